"""Trains a model of clicks on Taobao's ads, and runs it with private lookups.

    python examples/taobao/main.py --data ../shared/data/taobao

The steps: the data, the plain model, layouts for its table, and the device's half of the model with
lookups on two servers. `--small` takes less than a minute.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # this file is run by its path

from examples.common.application import EFFORTS, Application
from examples.common.arguments import at_least, build_parser, running
from examples.common.infer import infer
from examples.common.report import Report
from examples.taobao.describe import PUBLISHED, describe_data, describe_quality
from examples.taobao.five import compare_five
from examples.taobao.model import ClickModel
from examples.taobao.part import ClickPart, log_of
from examples.taobao.tables import Tables
from examples.taobao.task import HISTORY, MAX_HISTORY, SIZES, Task
from examples.taobao.train import train
from nescio.cli import run as run_command

LOSS = 0.005
"""The part of the AUC that the relaxed layout may lose, as in the paper's evaluation."""


def command_line() -> argparse.ArgumentParser:
    """Returns the parser of the command."""
    parser = build_parser("taobao", "Trains a model of clicks on ads, and runs it privately.")
    parser.add_argument(
        "--history",
        type=at_least(1, MAX_HISTORY),
        default=HISTORY,
        metavar="N",
        help="ads of a history that count (default: %(default)s)",
    )
    parser.add_argument(
        "--five-tables",
        action="store_true",
        help="compare with five tables that are looked up one after the other",
    )
    parser.set_defaults(run=run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the application and returns the exit code."""
    return run_command(command_line(), argv)


def run(arguments: argparse.Namespace) -> int:
    """Runs all steps."""
    effort = EFFORTS[arguments.size]
    with running(arguments) as (report, folder):
        task = load_task(
            arguments.data, arguments.size, arguments.seed, report, history=arguments.history
        )
        application = trained(task, report)
        infer(application, effort, folder, report)
        if arguments.five_tables:
            report.step("five tables, one after the other")
            compare_five(
                application,
                task.tables.firsts.tolist(),
                folder=folder,
                effort=effort,
                report=report,
            )
    return 0


def prepare(data: Path, size: str, seed: int, report: Report) -> Application:
    """Loads the data, and trains the model. Raises FileError for a set that is missing."""
    return trained(load_task(data, size, seed, report), report)


def load_task(data: Path, size: str, seed: int, report: Report, *, history: int = HISTORY) -> Task:
    """Loads the data. Raises FileError for a set that is missing."""
    report.step("data")
    task = Task(data, SIZES[size], history, seed)
    describe_data(task, report)
    return task


def trained(task: Task, report: Report) -> Application:
    """Trains the model, and reports its quality.

    Layouts are rated by the part to validate with, from which no weight was learned.
    """
    report.step("the plain model")
    model = _trained(task, task.tables, report)
    report.say("without histories, to compare with:")
    describe_quality(task, model, _trained(task, Tables(task.events, 0), report), report)
    history, logged = task.tables.places.history, task.logged()
    return Application(
        name="taobao",
        metric="ROC-AUC",
        model=model,
        make=partial(ClickModel, len(task.tables), history, device="meta"),
        table="features",
        lookups=task.lookups,
        log=log_of(task.tables.rows(logged), logged),
        rated=ClickPart(task.tables, model, task.split.valid[: task.size.log]),
        held_out=ClickPart(task.tables, model, task.split.test[: task.size.held_out]),
        loss=LOSS,
        published=PUBLISHED,
    )


def _trained(task: Task, tables: Tables, report: Report) -> ClickModel:
    torch.manual_seed(task.seed)
    model = ClickModel(len(tables), tables.places.history)
    parts, epochs = task.split, task.epochs
    train(
        model,
        tables,
        parts.train,
        parts.valid,
        epochs=epochs,
        seed=task.seed,
        progress=report.say,
    )
    return model


if __name__ == "__main__":
    sys.exit(main())
