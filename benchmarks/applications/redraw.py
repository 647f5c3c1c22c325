"""The figures of earlier runs, from their JSON files."""

import argparse
import json
from collections import Counter
from pathlib import Path

from benchmarks._main import make_folder
from nescio._report import Case
from nescio.errors import FileError

from .published import PUBLISHED

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Draws the figures of sweeps and latencies, each with the applications of all files."""
    from .plot import plot_sweep  # noqa: PLC0415 - matplotlib is needed only here
    from .plot_latency import plot_latency  # noqa: PLC0415

    cases = [case for name in arguments.cases for case in _read(Path(name))]
    sweep = [case for case in cases if "what" in case]
    latency = [case for case in cases if "way" in case]
    _check(sweep)
    out = make_folder(arguments.out)
    if sweep:
        plot_sweep(out, sweep)
    if latency:
        plot_latency(out / "applications-latency.png", latency)
    return 0


def _check(sweep: list[Case]) -> None:
    """Raises FileError for the sweep of an application that was cut short, or is there twice."""
    facts = Counter((case["application"], case["what"]) for case in sweep)
    for name in dict.fromkeys(case["application"] for case in sweep):
        if facts[name, "model"] != 1:
            raise FileError(f"--cases: found {facts[name, 'model']} sweeps of {name}, expected one")
        if not facts[name, "pick"]:
            raise FileError(
                f"--cases: found a sweep of {name} that was cut short, expected the picks too; run "
                "it again to its end"
            )


def _read(path: Path) -> list[Case]:
    try:
        cases: list[Case] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"--cases: {path} cannot be read: {error}") from error
    if not isinstance(cases, list) or not cases or not all(map(_is_ours, cases)):
        raise FileError(f"--cases: {path} is not a file that --json of sweep or latency wrote")
    return cases


def _is_ours(case: object) -> bool:
    return (
        isinstance(case, dict)
        and case.get("application") in PUBLISHED
        and ("what" in case or "way" in case)
    )
