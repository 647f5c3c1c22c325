"""The steps after the training, the same for every application."""

from pathlib import Path

from examples.common.application import Application, Effort
from examples.common.compare import Comparison
from examples.common.layouts import find_layouts
from examples.common.report import Report


def infer(application: Application, effort: Effort, folder: Path, report: Report) -> Comparison:
    """Searches layouts, and runs held-out inferences privately beside the plain model.

    `folder` gets the log of lookups, log.npz, and a folder for each way.
    """
    report.step("layouts of the table")
    application.log.save(folder / "log.npz")
    layouts = find_layouts(application, effort, report)
    report.step("private inference")
    comparison = Comparison(application, effort, folder, report)
    comparison.run(layouts)
    return comparison
