"""`nescio audit`: attacks on logs of secure aggregation, and on simulated runs."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import ArgumentError
from . import Subparsers

if TYPE_CHECKING:
    from ..audit import Findings
    from ..audit._simulate.sweep import Case, Curve

if TYPE_CHECKING:
    _Parsers = argparse._SubParsersAction["_Parser"]

NO_VERDICT = 3
"""Exit code of `nescio audit run` without a verdict; 0 to 2 are verdicts."""

TIME_LIMIT = 600.0
"""Default of `--time-limit` of `nescio audit run`, in seconds."""

_METHODS = ("auto", "reflect", "program", "lattice", "skewness")


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
    _add_simulate(whats)


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
        "--column-limit",
        type=float,
        metavar="SECONDS",
        help="time limit of each integer program (default: a limit on its search nodes)",
    )
    add(
        "--threads",
        type=int,
        default=0,
        help="threads for integer programs (default: 0, all processors)",
    )
    _add_attack(
        parser,
        TIME_LIMIT,
        f"time limit of the whole audit; a log whose audit it ends is never called safe "
        f"(default: {TIME_LIMIT:g})",
    )
    parser.set_defaults(run=_run, failure=NO_VERDICT)


def _add_attack(parser: argparse.ArgumentParser, limit: float | None, about_limit: str) -> None:
    add = parser.add_argument
    add(
        "--method",
        choices=_METHODS,
        default="auto",
        help="method of the search: reflect (relaxed-reflect-reflect), program (integer programs), "
        "lattice and skewness (which need no counts), or auto to combine them (default: auto)",
    )
    add(
        "--time-limit",
        type=float,
        default=limit,
        metavar="SECONDS",
        help=about_limit,
    )
    add("--seed", type=int, default=0, help="seed of all random choices (default: 0)")


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


def _add_simulate(whats: "_Parsers") -> None:
    parser = whats.add_parser(
        "simulate",
        help="find the settings at which the attack fails",
        description="Attacks simulated runs whose participation is known. Options marked LIST "
        "take comma-separated values; every combination is tried, with more and more rounds "
        "until it is broken. Prints the rounds that break each setting, and the largest noise at "
        "which the attack still succeeds. Defenses: none, update-noise:S, sum-noise:S, "
        "count-noise:K, coarse-counts:Q, hidden-counts:F, no-counts, batched:B, subset:F. A "
        "setting that resists this attack is not proven safe from others.",
    )
    add = parser.add_argument
    add(
        "--users",
        type=_list_of(int),
        default=[16, 32, 64],
        metavar="LIST",
        help="numbers of users (default: 16,32,64)",
    )
    add(
        "--rounds",
        type=_list_of(int),
        metavar="LIST",
        help="numbers of rounds (default: from 1.5 to 8 times the users)",
    )
    add(
        "--participation",
        type=_list_of(float),
        default=[0.1],
        metavar="LIST",
        help="probabilities that a user takes part in a round (default: 0.1)",
    )
    add(
        "--granularity",
        type=_list_of(int),
        default=[10],
        metavar="LIST",
        help="rounds per window of counts (default: 10)",
    )
    add(
        "--noise",
        type=_list_of(float),
        default=[0.0],
        metavar="LIST",
        help="noise of each update between rounds, relative to its size (default: 0)",
    )
    add(
        "--noise-directions",
        type=int,
        default=0,
        metavar="N",
        help="number of directions in which the noise lies (default: 0, all)",
    )
    add(
        *("--defense", "--defence"),
        type=_list_of(str),
        default=["none"],
        metavar="LIST",
        help="defenses with their strengths, such as none,update-noise:0.5 (default: none)",
    )
    add(
        "--step",
        type=float,
        default=0.0,
        help="fraction of the way to the optimum that the model moves in each round (default: 0, a "
        "fixed model)",
    )
    add(
        "--dimensions",
        type=int,
        default=0,
        metavar="N",
        help="dimensions of an update (default: 0, the larger of 4096 and four times the users)",
    )
    add("--trials", type=int, default=3, metavar="N", help="runs per setting (default: 3)")
    add(
        "--share",
        type=float,
        default=1.0,
        help="fraction of users to recover in every trial for a setting to be broken (default: 1)",
    )
    _add_attack(parser, None, "time limit of each attack (default: none)")
    add("--json", metavar="FILE", help="write cases and curves as JSON")
    add("--plot", metavar="FILE.svg", help="plot the rounds that break each setting")
    add(
        "--plot-noise",
        metavar="FILE.svg",
        help="plot the largest noise that still breaks each setting",
    )
    parser.set_defaults(run=_simulate)


def _simulate(arguments: argparse.Namespace) -> int:
    from .._report import Report, check_writable  # noqa: PLC0415
    from ..audit import Defense  # noqa: PLC0415
    from ..audit._report.advice import CAUTION  # noqa: PLC0415
    from ..audit._simulate import sweep as sweeps  # noqa: PLC0415

    for path in (arguments.json, arguments.plot, arguments.plot_noise):
        check_writable(path)
    if arguments.plot or arguments.plot_noise:
        from ..audit._report import charts as chart  # noqa: F401, PLC0415 - fails before the work
    plan = sweeps.Sweep(
        users=arguments.users,
        rounds=arguments.rounds or _default_rounds(arguments.users),
        participation=arguments.participation,
        granularity=arguments.granularity,
        noise=arguments.noise,
        defenses=[Defense.parse(text) for text in arguments.defense],
        step=arguments.step,
        dimensions=arguments.dimensions,
        directions=arguments.noise_directions,
        trials=arguments.trials,
        share=arguments.share,
    )
    if arguments.plot_noise and len(arguments.noise) < 2:
        raise ArgumentError(
            "--plot-noise: found one noise, expected several, such as --noise 0,0.5,1"
        )
    report, cases = Report(_COLUMNS), []
    limits = {"method": arguments.method, "time_limit": arguments.time_limit}
    for case in sweeps.sweep(plan, **limits, seed=arguments.seed):
        cases.append(case)
        report.add(_row(case))
    curves = {
        "rounds to break": sweeps.rounds_to_break(cases, plan.share),
        "noise to break": sweeps.noise_to_break(cases, plan.share),
    }
    _print_curves(curves)
    print(CAUTION)
    _write(arguments, cases, curves, CAUTION)
    return 0


_COLUMNS = [
    ("defence", "defense", ">18"),
    ("users", "users", ">5d"),
    ("rounds", "rounds", ">6d"),
    ("participation", "share", ">5g"),
    ("granularity", "window", ">6d"),
    ("noise", "noise", ">6g"),
    ("recovered", "recovered", ">9.1%"),
    ("unique", "proven", ">7.1%"),
    ("wrong", "wrong", ">6.1%"),
    ("error", "error", ">8.2g"),
    ("seconds", "seconds", ">7.2f"),
]


def _row(case: "Case") -> dict[str, object]:
    return case.as_json()


def _default_rounds(users: Sequence[int]) -> list[int]:
    """Returns rounds in steps of 4 / 3 from 1.5 times the fewest users to 8 times the most."""
    rounds, one = [], 3 * min(users) // 2
    while one <= 8 * max(users):
        rounds.append(max(one, 2))
        one = max(one * 4 // 3, one + 1)
    return rounds or [2]


def _print_curves(curves: "dict[str, list[Curve]]") -> None:
    for what, own in curves.items():
        for curve in own:
            points = ", ".join(
                f"{x:g}: {'not broken' if y is None else format(y, 'g')}"
                for x, y in zip(curve.x, curve.y, strict=True)
            )
            print(f"{what}, {curve.name}, by {curve.over}: {points}")


def _write(
    arguments: argparse.Namespace,
    cases: "list[Case]",
    curves: "dict[str, list[Curve]]",
    caution: str,
) -> None:
    from ..audit._simulate.sweep import plot  # noqa: PLC0415

    for path, what in ((arguments.plot, "rounds"), (arguments.plot_noise, "noise")):
        if path:
            Path(path).write_text(plot(curves[f"{what} to break"], f"{what} to break"), "utf-8")
    if arguments.json:
        lists: dict[str, Any] = {
            what.replace(" ", "_"): [
                {"name": c.name, "over": c.over, "x": c.x, "y": c.y} for c in own
            ]
            for what, own in curves.items()
        }
        document = {"caution": caution, "cases": [c.as_json() for c in cases], **lists}
        Path(arguments.json).write_text(
            json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8"
        )


def _list_of(kind: Callable[[str], object]) -> Callable[[str], list[object]]:
    """Returns a parser of comma-separated lists for argparse."""

    def read(text: str) -> list[object]:
        return [*dict.fromkeys(kind(part) for part in text.split(","))]

    read.__name__ = "comma-separated list"
    return read
