"""Trains a recommender on MovieLens, and runs it with private lookups of its films.

    python examples/movielens/main.py --data ../shared/data/movielens

The steps: the data, the plain model, layouts for its table, and the device's half of the model with
lookups on two servers. `--small` takes less than a minute, `--full` is the paper's setting.
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
from examples.movielens.describe import (
    PUBLISHED,
    describe_data,
    describe_long_histories,
    describe_quality,
)
from examples.movielens.model import Recommender, train
from examples.movielens.part import RecommenderPart
from examples.movielens.task import HISTORY, MAX_LOOKUPS, SIZES, Task
from examples.movielens.titles import UNKNOWN, look_up_titles
from nescio.cli import run as run_command

LOSS = 0.005
"""The part of the AUC that the relaxed layout may lose, as in the paper's evaluation."""


def command_line() -> argparse.ArgumentParser:
    """Returns the parser of the command."""
    parser = build_parser("movielens", "Trains a recommender on MovieLens, and runs it privately.")
    parser.add_argument(
        "--history",
        type=at_least(1, MAX_LOOKUPS - 1),
        default=HISTORY,
        metavar="N",
        help="films of a history that count, the ones liked last (default: %(default)s)",
    )
    parser.add_argument(
        "--by-title",
        action="store_true",
        help="look films up by title too, in a table whose rows have keys",
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
        if arguments.by_title:
            report.step("films by title")
            _look_up_titles(task, application, folder / "titles", effort.timed, report)
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

    Layouts are rated by users of the training. The users to validate with are too few to tell a
    loss of half a percent.
    """
    report.step("the plain model")
    model = _trained(task, report)
    describe_quality(task, model, report)
    describe_long_histories(task, model, report)
    logged, rated = (task.sample(part, task.size.log) for part in task.halves(task.split.train))
    held_out = task.shuffled(task.sample(task.split.test, task.size.held_out))
    return Application(
        name="movielens",
        metric="ROC-AUC",
        model=model,
        make=partial(Recommender, task.films, device="meta"),
        table="films",
        lookups=task.lookups,
        log=task.log(logged),
        rated=RecommenderPart(task, model, rated),
        held_out=RecommenderPart(task, model, held_out),
        loss=LOSS,
        published=PUBLISHED,
    )


def _trained(task: Task, report: Report) -> Recommender:
    torch.manual_seed(task.seed)
    model = Recommender(task.films)
    likes = task.split.train[task.inferences.liked[task.split.train]]
    model.start_from(task.inferences.users[likes], task.inferences.films[likes])
    train(
        model,
        task.examples,
        task.split.train,
        task.split.valid,
        epochs=task.size.epochs,
        seed=task.seed,
        progress=report.say,
    )
    return model


def _look_up_titles(
    task: Task, application: Application, folder: Path, count: int, report: Report
) -> None:
    numbers = task.sample(task.split.test, count)
    facts = look_up_titles(task, application.model, folder, numbers)
    report.facts["titles"] = facts
    same = "the same bits as" if facts["equal"] else "other bits than"
    report.say(
        f"{len(numbers):,} inferences, {task.lookups} titles each: {same} the plain model; "
        f"{facts['bytes_up']:,} bytes up and {facts['bytes_down']:,} down for each server; "
        f"{facts['lookup']:.1f} ms, of which {facts['servers']:.1f} ms of the slower server"
    )
    report.say(f"an unknown title, {UNKNOWN!r}: the same bytes, and the device knows it is absent")


if __name__ == "__main__":
    sys.exit(main())
