"""`nescio audit`: attacks on logs of secure aggregation (`run`), and on simulated runs."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ..errors import ArgumentError
from . import Subparsers
from .audit_simulate import add_attack, add_simulate

if TYPE_CHECKING:
    from ..audit import Findings

if TYPE_CHECKING:
    _Parsers = argparse._SubParsersAction["_Parser"]

NO_VERDICT = 3
"""Exit code of `nescio audit run` without a verdict; 0 to 2 are verdicts."""

TIME_LIMIT = 600.0
"""Default of `--time-limit` of `nescio audit run`, in seconds."""


def add_parser(commands: Subparsers) -> None:
    """Declares the command and its subcommands."""
    parser = commands.add_parser(
        "audit",
        help="audit secure aggregation: recover single users' updates from sums",
        description="Audits secure aggregation. Attacks logs of your own system, or simulated "
        "runs, and reports what the server can learn about single users.",
    )
    whats = parser.add_subparsers(
        title="commands", required=True, metavar="COMMAND", parser_class=_Parser
    )
    _add_run(whats)
    add_simulate(whats)


class _Parser(argparse.ArgumentParser):
    """Exits with a command's own `failure` code on an invalid command line.

    For `run`, argparse's code 2 would mean that the log is broken.
    """

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(self.get_default("failure") or 2, f"{self.prog}: error: {message}\n")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        found, rest = super().parse_known_args(args, namespace)
        if rest:  # the parent parser would exit with its own code
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest


def _add_run(whats: "_Parsers") -> None:
    parser = whats.add_parser(
        "run",
        help="attack a log and grade it",
        description="Attacks a log of sums and counts, and writes a report as HTML and JSON. Exit "
        "codes: 0 if the log is safe under the thresholds, 1 if it is at risk, 2 if it is broken, "
        f"{NO_VERDICT} if there is no verdict. A log that is safe from this attack is not proven "
        "safe from others.",
    )
    add = parser.add_argument
    add("log", metavar="LOG.npz", help="log file written by nescio.audit.Log.save")
    add("--html", metavar="FILE", help="HTML report (default: LOG.audit.html next to the log)")
    add("--json", metavar="FILE", help="JSON report (default: LOG.audit.json next to the log)")
    add(
        "--broken",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="fraction of users above which the verdict is 'broken' (default: 0)",
    )
    add(
        "--usable",
        type=float,
        default=1.0,
        metavar="ERROR",
        help="largest relative error at which an update counts as recovered (default: 1)",
    )
    add(
        "--chance",
        type=float,
        default=1e-3,
        metavar="P",
        help="significance level of the shuffled-rounds test (default: 0.001)",
    )
    add(
        "--rows",
        choices=("auto", "sums", "averages"),
        default="auto",
        help="kind of the log's rows: sums of updates, averages (sums divided by the number of "
        "participants), or auto to tell from the log (default: auto)",
    )
    add(
        "--noise",
        type=float,
        help="standard deviation of an entry of one user's update between rounds (default: "
        "estimated)",
    )
    add(
        "--program-limit",
        type=float,
        dest="column_limit",
        metavar="SECONDS",
        help="time limit of each integer program (default: a limit on its search nodes)",
    )
    add("--column-limit", type=float, dest="column_limit", help=argparse.SUPPRESS)
    add(
        "--threads",
        type=int,
        default=0,
        help="threads for integer programs (default: 0, all processors)",
    )
    add_attack(
        parser,
        TIME_LIMIT,
        f"time limit of the whole audit; a log whose audit it ends is never called safe "
        f"(default: {TIME_LIMIT:g})",
    )
    parser.set_defaults(run=_run, failure=NO_VERDICT)


def _run(arguments: argparse.Namespace) -> int:
    from ..audit import Log, Thresholds, as_json, audit_log  # noqa: PLC0415 - slow to import

    path, as_html = Path(arguments.log), _page(wanted=arguments.html is not None)
    html = Path(arguments.html or path.with_suffix(".audit.html"))
    document = Path(arguments.json or path.with_suffix(".audit.json"))
    written = [document, html] if as_html else [document]
    _check_files(path, *written)
    findings = audit_log(
        Log.load(path),
        thresholds=Thresholds(arguments.broken, arguments.usable, arguments.chance),
        source=path.name,
        rows=arguments.rows,
        progress=_progress(arguments.time_limit),
        method=arguments.method,
        noise=arguments.noise,
        time_limit=arguments.time_limit,
        column_limit=arguments.column_limit,
        seed=arguments.seed,
        threads=arguments.threads,
    )
    if as_html:
        html.write_text(as_html(findings), encoding="utf-8")
    document.write_text(as_json(findings), encoding="utf-8")
    _print_verdict(findings, *written)
    return findings.verdict.code


def _progress(limit: float) -> Callable[[str], None] | None:
    """Returns the printer of progress, with the time; None unless stderr is a terminal."""
    if not sys.stderr.isatty():
        return None
    start = time.monotonic()

    def show(text: str) -> None:
        spent = time.monotonic() - start
        print(f"nescio: {spent:.0f} s of at most {limit:g} s: {text}", file=sys.stderr)

    return show


def _page(*, wanted: bool) -> "Callable[[Findings], str] | None":
    """Returns the HTML writer; None without matplotlib, unless the page is wanted."""
    try:
        from ..audit import as_html  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if wanted:
            raise
        print(f"nescio: no HTML, only JSON: {error}", file=sys.stderr)
        return None
    return as_html


def _check_files(log: Path, *written: Path) -> None:
    from .._report import check_writable  # noqa: PLC0415

    files = [path.resolve() for path in (log, *written)]
    if len(set(files)) < len(files):
        names = ", ".join(map(str, (log, *written)))
        raise ArgumentError(f"files: found {names}, expected different files")
    for path in written:
        check_writable(str(path))


def _print_verdict(findings: "Findings", *written: Path) -> None:
    from ..audit._report.advice import CAUTION  # noqa: PLC0415

    verdict = findings.verdict
    print(f"{verdict.grade}: {'; '.join(verdict.reasons)}")
    print(
        f"users: {verdict.users} took part; participation: {verdict.unique} unique, "
        f"{verdict.ambiguous} ambiguous, {verdict.clear} clear of chance; {findings.seconds:.1f} s"
    )
    print(f"report: {', '.join(map(str, written))}")
    if verdict.grade != "broken":
        print(CAUTION)
