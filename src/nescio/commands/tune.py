"""`nescio tune`: a layout for batch lookups, from the log of past ones."""

import argparse
import importlib
import inspect
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from .._arrays import load_array
from ..dpf import OUTPUTS
from ..errors import ArgumentError
from . import Subparsers, count, generator
from ._files import check_apart, check_different
from ._progress import Progress
from .functions import load_function

if TYPE_CHECKING:
    from ..pir.batch import Trial, Tuning

_COLUMNS = [
    ("kind", "kind", ">8"),
    ("quality", "quality", ">8.5g"),
    ("retrieved", "retrieved", ">9.4f"),
    ("complete", "complete", ">8.4f"),
    ("inferences_per_second", "inferences/s", ">12,.0f"),
    ("milliseconds", "ms", ">8.3f"),
    ("bytes", "bytes", ">9,d"),
    ("key_bytes", "up", ">8,d"),
    ("answer_bytes", "down", ">9,d"),
    ("table_megabytes", "table MB", ">8,.1f"),
    ("layout", "layout", ""),
]
_NOTES = """\
retrieved: share of the rows of held-out inferences that a client gets. complete: share of the
inferences that get all of theirs. inferences/s, ms: one server that answers {clients} inferences
together, measured ({threads}). bytes: of an inference, to and from both servers.
up, down: to and from one of them{verify}. table MB: a server's memory."""


def add_parser(commands: Subparsers) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "tune",
        help="find the bins, hot rows and budgets for batch lookups, from an access log",
        description="Searches layouts of a table for lookups of many rows at a time: whole "
        "lookups, bins, a hot table, several hashes, rows that arrive together, exact mode. Makes "
        "them from a log of past inferences, scores them on held-out ones, and prints those that "
        "no other one beats in both quality and time. The layout that is written is public, and "
        "tells which rows are popular.",
    )
    parser.add_argument(
        "log",
        type=Path,
        metavar="LOG",
        help="access log: .csv, .csv.gz or .parquet with the columns inference, row and optionally "
        "user and time, or the .npz of AccessLog.save",
    )
    _add_table(parser)
    _add_scores(parser)
    _add_budgets(parser)
    _add_files(parser)
    parser.set_defaults(run=_run)


def _add_table(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("table and service").add_argument
    add("--table", type=Path, metavar="TABLE.npy", help="array file of the table, for its sizes")
    add("--rows", type=count, metavar="N", help="number of rows of the table, without --table")
    add("--row-bytes", type=count, metavar="N", help="bytes of a row, without --table")
    add(
        "--output",
        choices=OUTPUTS,
        default="bit",
        help="group in which the shares of answers are added (default: bit)",
    )
    add(
        "--generator",
        type=generator,
        default="chacha20",
        help="pseudorandom generator of the keys (default: chacha20)",
    )
    add(
        "--no-verify",
        action="store_false",
        dest="verify",
        help="do not count the keys and answers with which clients check rows",
    )
    add(
        "--clients",
        type=count,
        default=64,
        metavar="N",
        help="number of inferences that a server answers together (default: 64)",
    )
    add(
        "--threads",
        type=int,
        default=0,
        help="number of worker threads; 0 uses all processors (default: 0)",
    )
    add(
        "--seconds",
        type=float,
        default=0.25,
        help="duration of each measurement of the server's time, in seconds (default: 0.25)",
    )


def _add_scores(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("search and scores").add_argument
    add(
        "--held-out",
        type=Path,
        metavar="LOG",
        help="another log, to score layouts on (default: the latest fifth of LOG where times are "
        "known, otherwise a fifth of its users, or of its inferences)",
    )
    add(
        "--quality",
        metavar="MODULE:FUNCTION",
        help="function that rates a layout, larger is better: takes the rows of each held-out "
        "inference and a boolean array for each that marks the rows retrieved; also "
        "PATH.py:FUNCTION (default: the share of rows retrieved)",
    )
    add(
        "--layouts",
        type=count,
        default=500,
        metavar="N",
        help="maximum number of layouts to score (default: 500)",
    )
    add(
        "--cache-rows",
        type=count,
        default=0,
        metavar="N",
        help="rows that a client keeps and need not fetch again; the log then needs users and "
        "times (default: 0)",
    )
    add(
        "--min-count",
        type=count,
        default=5,
        metavar="N",
        help="users (or inferences, if users are not known) that a row or a pair of rows needs to "
        "shape the layout, which is public (default: 5)",
    )


def _add_budgets(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("budgets").add_argument
    add(
        "--max-bytes",
        type=float,
        default=300_000,
        metavar="N",
        help="maximum bytes of an inference, to and from both servers (default: 300000)",
    )
    add(
        "--max-ms",
        type=float,
        default=300,
        metavar="MS",
        help="maximum milliseconds of a server's answer to all clients together (default: 300)",
    )
    add(
        "--min-retrieved",
        type=float,
        metavar="SHARE",
        help="minimum share of rows retrieved; the fastest layout that has it is chosen",
    )
    add(
        "--min-quality",
        type=float,
        metavar="X",
        help="minimum quality; the fastest layout that has it is chosen",
    )
    add(
        "--exact",
        action="store_true",
        help="choose exact mode, which drops no row of any inference: the fastest layout of it",
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("files").add_argument
    add("--out", type=Path, metavar="FILE", help="write the chosen layout, for nescio serve")
    add("--plot", type=Path, metavar="FILE", help="plot all layouts, as SVG or PNG")
    add("--json", type=Path, metavar="FILE", help="write all layouts with their scores as JSON")
    add(
        "--state",
        type=Path,
        metavar="FILE",
        help="keep scores in this file; an interrupted search goes on from it",
    )


def _run(arguments: argparse.Namespace) -> int:
    from .._report import check_writable  # noqa: PLC0415 - needed only when the command runs
    from ..pir.batch import AccessLog, Budgets, tune  # noqa: PLC0415

    _check_files(arguments)
    for path in (arguments.out, arguments.plot, arguments.json):
        check_writable(None if path is None else str(path))
    if arguments.plot:
        importlib.import_module("matplotlib")  # fails before the search, not after it
    rows, row_bytes = _sizes(arguments)
    budgets = Budgets(
        arguments.max_bytes,
        arguments.max_ms,
        arguments.min_retrieved,
        arguments.min_quality,
        arguments.exact,
    )
    quality, name = _quality(arguments.quality)
    logs = [
        None if path is None else AccessLog.load(path, limit=rows)
        for path in (arguments.log, arguments.held_out)
    ]
    assert logs[0] is not None
    with Progress() as progress:
        found = tune(
            logs[0],
            rows,
            row_bytes,
            held_out=logs[1],
            budgets=budgets,
            quality=quality,
            quality_name=name,
            layouts=arguments.layouts,
            cache_rows=arguments.cache_rows,
            min_count=arguments.min_count,
            output=arguments.output,
            generator=arguments.generator,
            verify=arguments.verify,
            clients=arguments.clients,
            threads=arguments.threads,
            seconds=arguments.seconds,
            state=arguments.state,
            progress=progress,
        )
    _finish(found, arguments, rated=quality is not None)
    return 0


def _check_files(arguments: argparse.Namespace) -> None:
    """Raises ArgumentError for a file with two purposes."""
    named = vars(arguments)
    check_apart(
        {"LOG": arguments.log}
        | {f"--{n.replace('_', '-')}": named[n] for n in ("held_out", "table")},
        {f"--{name}": named[name] for name in ("out", "plot", "json", "state")},
    )
    check_different("--held-out", arguments.held_out, "LOG", arguments.log)


def _sizes(arguments: argparse.Namespace) -> tuple[int, int]:
    """Returns the rows of the table and the bytes of each. Raises ArgumentError."""
    given = [arguments.rows, arguments.row_bytes]
    if (arguments.table is None) != (None not in given) or given.count(None) == 1:
        raise ArgumentError(
            "sizes of the table: expected either --table, or both --rows and --row-bytes"
        )
    if arguments.table is None:
        return arguments.rows, arguments.row_bytes
    table = load_array(arguments.table)
    if not table.ndim or not table.size:
        raise ArgumentError(f"{arguments.table} has shape {table.shape}, expected rows")
    return len(table), table[:1].nbytes


def _quality(name: str | None) -> tuple[Callable[..., float] | None, str]:
    """Loads the quality function; returns it, and a text that changes with its source."""
    if name is None:
        return None, ""
    function: Callable[..., object] = load_function(name)
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:  # an object that is called
        file = None
    source = Path(file).read_bytes() if file else b""
    return function, f"{name} {sha256(source).hexdigest()}"  # type: ignore[return-value]


def _finish(found: "Tuning", arguments: argparse.Namespace, *, rated: bool) -> None:
    """Prints the best layouts, and writes the files. Raises ArgumentError if none is chosen."""
    if arguments.json:
        text = json.dumps(found.to_dicts(), indent=1)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    if arguments.plot:
        found.plot(arguments.plot)
    _print(found, rated=rated)
    chosen = found.chosen
    layout = found.layout()
    print(f"chosen: {_words(found, chosen)}")
    print(f"layout: {layout.describe()}")
    if arguments.out:
        layout.save(arguments.out)
        print(f"written: {arguments.out}, for nescio serve --layout and every client")


def _print(found: "Tuning", *, rated: bool) -> None:
    """Prints the best layouts, those whose time was measured."""
    from .._report import Report  # noqa: PLC0415

    best = [trial for trial in found.pareto if trial.is_final]
    if best:
        report = Report([column for column in _COLUMNS if rated or column[0] != "quality"])
        for trial in best:
            report.add(_case(found, trial))
    threads = found.setup.threads
    notes = _NOTES.format(
        clients=found.setup.clients,
        threads=f"--threads {threads}" if threads else "on all processors",
        verify=", with what checks the rows" if found.setup.verify else "",
    )
    print(f"the best {len(best)} of {len(found.trials)} layouts\n{notes}")
    if any(trial.timing == "too large" for trial in best):
        print("ms of layouts whose bins have more than 1 GB: by the model, not measured")


def _case(found: "Tuning", trial: "Trial") -> dict[str, object]:
    cost, score = trial.cost, trial.score
    return {
        "kind": trial.design.kind,
        "quality": score.quality,
        "retrieved": score.retrieved,
        "complete": score.complete,
        "inferences_per_second": found.inferences_per_second(trial),
        "milliseconds": trial.milliseconds,
        "bytes": cost.bytes,
        "key_bytes": cost.key_bytes,
        "answer_bytes": cost.answer_bytes,
        "table_megabytes": cost.table_bytes / 1e6,
        "layout": trial.design.describe(),
    }


def _words(found: "Tuning", trial: "Trial") -> str:
    """Describes a trial in one line."""
    return (
        f"{trial.design.describe()}: {trial.score.retrieved:.2%} of the rows, "
        f"{found.inferences_per_second(trial):,.0f} inferences/s, {trial.milliseconds:.3g} ms, "
        f"{trial.cost.bytes:,} bytes"
    )
