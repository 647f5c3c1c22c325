"""`nescio audit simulate`: attacks on simulated runs, and the options of every attack."""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..audit._simulate.sweep import Case, Curve

__all__ = ["add_attack", "add_simulate"]

_METHODS = ("auto", "reflect", "program", "lattice", "skewness")


def add_attack(parser: argparse.ArgumentParser, limit: float | None, about_limit: str) -> None:
    """Declares the options of every attack; `limit` is the default of its time limit."""
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


def add_simulate(whats: "argparse._SubParsersAction[Any]") -> None:
    """Declares the subcommand `simulate`."""
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
    add_attack(parser, None, "time limit of each attack (default: none)")
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
