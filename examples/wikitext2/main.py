"""Trains a language model on WikiText-2, and runs it with private lookups of its words.

    python examples/wikitext2/main.py --data ../shared/data/wikitext2

The steps: the data, the plain model, layouts for its table, and the device's half of the model with
lookups on two servers. `--small` takes less than a minute, `--full` is the paper's setting.
`--type` looks up each word of sentences that are typed.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # this file is run by its path

import nescio.torch
from examples.common.application import Application
from examples.common.arguments import at_least, build_parser, running
from examples.common.infer import infer
from examples.common.report import Report
from examples.wikitext2 import saved
from examples.wikitext2.absent import compare_rows
from examples.wikitext2.cached import run_with_cache
from examples.wikitext2.describe import (
    PUBLISHED,
    describe_data,
    describe_model,
    describe_quality,
)
from examples.wikitext2.keyboard import standard_input, type_words
from examples.wikitext2.model import LanguageModel
from examples.wikitext2.part import WINDOW, TextPart, log_of
from examples.wikitext2.task import EFFORTS, SIZES, STREAMS, Task
from examples.wikitext2.training import start_from, train
from nescio.cli import run as run_command
from nescio.errors import ArgumentError
from nescio.pir.batch import Layout

LOSS = 0.05
"""The part of the perplexity that the relaxed layout may add, as in the paper's evaluation."""


def command_line() -> argparse.ArgumentParser:
    """Returns the parser of the command."""
    parser = build_parser(
        "wikitext2", "Trains a language model on WikiText-2, and runs it privately."
    )
    parser.add_argument(
        "--cache-rows",
        type=at_least(1, 1 << 24),
        metavar="N",
        help="run streams whose device keeps the rows of the last N words too",
    )
    parser.add_argument(
        "--type",
        action="store_true",
        help="look up each word of lines from standard input, and show the likeliest next words, "
        "with the model that an earlier run left in --folder (default: train a small one first)",
    )
    parser.set_defaults(run=run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the application and returns the exit code."""
    return run_command(command_line(), argv)


def run(arguments: argparse.Namespace) -> int:
    """Runs all steps, or the keyboard."""
    if arguments.type:
        return run_keyboard(arguments)
    effort = EFFORTS[arguments.size]
    with running(arguments) as (report, folder):
        task = load_task(arguments.data, arguments.size, arguments.seed, report)
        application = trained(task, report)
        saved.save(folder, task.texts.words, task.size.shape)
        infer(application, effort, folder, report)
        relaxed = Layout.load(folder / "relaxed" / "servers" / f"{application.table}.layout")
        compare_rows(task, application, relaxed, report)
        if arguments.cache_rows:
            report.step(f"a device that keeps {arguments.cache_rows:,} rows")
            rows, own = arguments.cache_rows, folder / "cache"
            run_with_cache(task, application, effort, report, cache_rows=rows, folder=own)
    return 0


def run_keyboard(arguments: argparse.Namespace) -> int:
    """Looks up typed words, with the model of an earlier run or with a new small one."""
    torch.set_num_threads(arguments.threads)
    lines = standard_input()
    if arguments.size != "default" or arguments.cache_rows:
        raise ArgumentError("--type: found --small, --full or --cache-rows too, expected --folder")
    if arguments.folder is not None:
        type_words(arguments.folder, lines)
        return 0
    report = Report()
    with tempfile.TemporaryDirectory(prefix="nescio-") as temporary:
        folder = Path(temporary)
        task = load_task(arguments.data, "small", arguments.seed, report)
        application = trained(task, report)
        saved.save(folder, task.texts.words, task.size.shape)
        nescio.torch.export(application.model, folder / "separate", tables=[application.table])
        report.step("the keyboard")
        type_words(folder, lines)
    return 0


def prepare(data: Path, size: str, seed: int, report: Report) -> Application:
    """Loads the data, and trains the model. Raises FileError for a set that is missing."""
    return trained(load_task(data, size, seed, report), report)


def load_task(data: Path, size: str, seed: int, report: Report) -> Task:
    """Loads the data. Raises FileError for a set that is missing."""
    report.step("data")
    task = Task(data, SIZES[size], seed)
    describe_data(task, report)
    return task


def trained(task: Task, report: Report) -> Application:
    """Trains the model, and reports its quality.

    Layouts are rated by the text to validate with, which is not used otherwise.
    """
    report.step("the plain model")
    model = _trained(task, report)
    held_out = TextPart(model, task.held_out)
    with torch.no_grad():
        perplexity = -held_out.rate(list(held_out.run(model, STREAMS)))
    describe_quality(task, perplexity, report)
    return Application(
        name="wikitext2",
        metric="perplexity",
        model=model,
        make=partial(LanguageModel, task.words, task.size.shape, device="meta"),
        table="words",
        lookups=WINDOW,
        log=log_of(task.logged),
        rated=TextPart(model, task.rated),
        held_out=held_out,
        loss=LOSS,
        published=PUBLISHED,
    )


def _trained(task: Task, report: Report) -> LanguageModel:
    torch.manual_seed(task.seed)
    model = LanguageModel(task.words, task.size.shape)
    describe_model(model, report)
    start_from(model, task.train)
    train(
        model,
        task.train,
        epochs=task.size.epochs,
        window=WINDOW,
        rate=task.size.rate,
        seed=task.seed,
        progress=report.say,
    )
    return model


if __name__ == "__main__":
    sys.exit(main())
