"""The figures of earlier runs, from their JSON files."""

import argparse
import json
from pathlib import Path

from benchmarks._main import make_folder
from nescio._report import Case
from nescio.errors import FileError

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Draws the figures of sweeps and latencies, each with the applications of all files."""
    from .plot import plot_sweep  # noqa: PLC0415 - matplotlib is needed only here
    from .plot_latency import plot_latency  # noqa: PLC0415

    out = make_folder(arguments.out)
    cases = [case for name in arguments.cases for case in _read(Path(name))]
    sweep = [case for case in cases if "what" in case]
    latency = [case for case in cases if "way" in case]
    if sweep:
        plot_sweep(out, sweep)
    if latency:
        plot_latency(out / "applications-latency.png", latency)
    return 0


def _read(path: Path) -> list[Case]:
    try:
        cases: list[Case] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"--cases: {path} cannot be read: {error}") from error
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        raise FileError(f"--cases: {path} is not a file that --json of sweep or latency wrote")
    return cases
