"""The plot of the steps of silent OT. Needs matplotlib: pip install 'nescio[bench]'."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nescio._report import Case
from nescio.errors import ArgumentError

_ACROSS = 3
_TITLES = {
    "sender_trees": "trees, sender",
    "receiver_trees": "trees, receiver",
    "check": "sum of the check",
}


def plot_steps(path: Path, cases: Sequence[Case]) -> None:
    """Plots axes for each step, a bar for each implementation and size. Raises ArgumentError."""
    panels: dict[str, list[Case]] = {}
    for case in cases:
        if "milliseconds" in case:
            panels.setdefault(_title(case), []).append(case)
    down = -(-len(panels) // _ACROSS)
    bars = max(map(len, panels.values()))
    canvas = Figure(figsize=(4.6 * _ACROSS, down * (1.2 + 0.22 * bars)), layout="constrained")
    grid = list(canvas.subplots(down, _ACROSS, squeeze=False).flat)
    for axes, (title, own) in zip(grid, panels.items(), strict=False):
        _bars(axes, own)
        axes.set_title(title, fontsize="medium")
    for axes in grid[len(panels) :]:
        axes.remove()
    canvas.suptitle("Steps of silent OT, each alone; |: limit, measured in the same run")
    try:
        canvas.savefig(path)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"the plot cannot be written: {error}") from error


def _bars(axes: Axes, cases: Sequence[Case]) -> None:
    names = [f"{case['n']:,} {case['device']} {case['way']}" for case in cases]
    axes.barh(names, [cast(float, case["milliseconds"]) for case in cases])
    limits = [cast(float, case["limit_milliseconds"]) for case in cases]
    axes.plot(limits, names, "k|", markersize=9)
    axes.set_xscale("log")
    axes.tick_params(axis="y", labelsize=6)
    axes.invert_yaxis()
    axes.set_xlabel("ms", fontsize="small")


def _title(case: Case) -> str:
    step = str(case["step"])
    named = _TITLES.get(step, step)
    return f"{named}, {case['family']} {case['parameters']}" if case["family"] else named
