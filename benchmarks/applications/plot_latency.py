"""The plot of the time of one inference by step. Needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from matplotlib.figure import Figure

from nescio._report import Case
from nescio.errors import FileError

__all__ = ["plot_latency"]

_STEPS = {
    "plan": ("#9ca3af", "places of the rows"),
    "keys": ("#2563a8", "keys"),
    "servers": ("#be185d", "servers"),
    "http": ("#d1d5db", "HTTP"),
    "link": ("#0f766e", "bytes at the link's rate"),
    "decode": ("#d97706", "decoding and check"),
    "model": ("#525252", "model on the device"),
}


def plot_latency(path: Path, cases: Sequence[Case]) -> None:
    """Plots a bar of the steps for each way of each application, as Figure 12 of the paper.

    Raises FileError if the file cannot be written.
    """
    names = list(dict.fromkeys(str(case["application"]) for case in cases))
    figure = Figure(figsize=(3.6 * len(names) + 1.6, 4.2), layout="constrained")
    for number, name in enumerate(names):
        axes = figure.add_subplot(1, len(names), number + 1)
        own = [case for case in cases if case["application"] == name]
        labels = [_label(case) for case in own]
        bottom = [0.0] * len(own)
        for step, (color, label) in _STEPS.items():
            heights = [cast(float, case.get(step) or 0.0) for case in own]
            axes.bar(labels, heights, bottom=bottom, color=color, label=label)
            bottom = [low + high for low, high in zip(bottom, heights, strict=True)]
        axes.set_title(name)
        axes.tick_params(axis="x", labelrotation=30)
        axes.set_ylabel("ms of one inference" if number == 0 else "")
        axes.grid(axis="y", alpha=0.25)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center", fontsize="small")
    try:
        figure.savefig(path, dpi=120, format="png")
    except OSError as error:
        raise FileError(f"the plot cannot be written: {error}") from error


def _label(case: Case) -> str:
    return f"{case['way']}" if case["weights"] == "float" else f"{case['way']}, {case['weights']}"
