"""The command line that the applications share."""

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from nescio.errors import FileError

from .files import data_folder
from .report import Report


def build_parser(name: str, description: str) -> argparse.ArgumentParser:
    """Returns the parser of `python examples/NAME/main.py`, for further options."""
    parser = argparse.ArgumentParser(
        f"python examples/{name}/main.py", description=description, allow_abbrev=False
    )
    add = parser.add_argument
    add(
        "--data",
        type=Path,
        default=data_folder(name),
        metavar="PATH",
        help=f"folder of the data set (default: {name} in the folder that NESCIO_DATA names)",
    )
    _add_sizes(parser)
    add(
        "--seed",
        type=at_least(0, 2**63 - 1),
        default=0,
        help="seed of the split and of training (default: 0)",
    )
    add(
        "--threads",
        type=at_least(1, 1024),
        default=1,
        help="threads of PyTorch; each server has one (default: %(default)s)",
    )
    add(
        "--folder",
        type=Path,
        metavar="OUT",
        help="new or empty folder for what is made: the log of lookups, the exported model, "
        "report.json (default: a temporary folder)",
    )
    return parser


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument(
        "--small",
        dest="size",
        action="store_const",
        const="small",
        default="default",
        help="use a part of the data, and finish within a minute",
    )
    sizes.add_argument(
        "--full",
        dest="size",
        action="store_const",
        const="full",
        help="use all of the data, and infer privately for all held-out examples",
    )


def at_least(low: int, high: int | None = None) -> Callable[[str], int]:
    """Returns the `type` of an option that is an integer of at least `low`, and at most `high`."""
    end = "on" if high is None else f"to {high}"

    def parse(text: str) -> int:
        value = int(text) if text.removeprefix("-").isdecimal() and len(text) < 30 else None
        if value is None or value < low or (high is not None and value > high):
            raise argparse.ArgumentTypeError(
                f"found {text[:40]!r}, expected an integer from {low} {end}"
            )
        return value

    return parse


@contextmanager
def running(arguments: argparse.Namespace) -> Iterator[tuple[Report, Path]]:
    """Gives the report of a run and the folder for what is made, and saves the report at the end.

    Raises FileError as `output_folder` does.
    """
    torch.set_num_threads(arguments.threads)
    report = Report()
    with output_folder(arguments.folder) as folder:
        yield report, folder
        report.save(folder / "report.json")
        if arguments.folder is not None:
            report.say(f"the log, the exported models and report.json are in {folder}")


@contextmanager
def output_folder(given: Path | None) -> Iterator[Path]:
    """Gives the folder for what is made; a temporary one is removed afterwards.

    Raises FileError if the folder has files, or if nothing can be written there.
    """
    if given is None:
        with tempfile.TemporaryDirectory(prefix="nescio-") as folder:
            yield Path(folder)
        return
    try:
        given.mkdir(parents=True, exist_ok=True)
        used = any(given.iterdir())
        with tempfile.TemporaryFile(dir=given):  # hours before results are written
            pass
    except OSError as error:
        raise FileError(f"--folder: {given} cannot be used: {error.strerror}") from error
    if used:
        raise FileError(f"--folder: {given} has files, expected a new or empty folder")
    yield given
