"""Plots of the audit's benchmarks. Needs matplotlib: pip install 'nescio[bench]'."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import StrMethodFormatter

from nescio._report import Case
from nescio.errors import ArgumentError

from .figures import Figure

__all__ = ["draw"]

_WHOLE = StrMethodFormatter("{x:,.0f}")

_LABELS = {
    "right": "share of users recovered",
    "seconds": "seconds of a trial: median, least, most",
    "rounds": "rounds",
    "users": "users",
    "participation": "participation",
    "granularity": "rounds of a window",
    "noise": "noise of an update, relative to its size",
    "dimensions": "dimensions",
    "epochs": "local epochs",
    "relative_noise": "relative noise",
    "psnr": "PSNR, dB",
    "auc": "AUC",
}


def draw(path: Path, title: str, cases: Sequence[Case], figure: Figure | None) -> None:
    """Plots the cases of a figure. Raises ArgumentError if the file cannot be written."""
    panels = _panels(cases, figure)
    canvas = Canvas(figsize=(1 + 4.6 * len(panels), 4.2), layout="constrained")
    for axes, panel in zip(canvas.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        panel(axes)
        axes.grid(visible=True, alpha=0.25)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize="x-small")
    canvas.suptitle(title, fontsize="medium")
    try:
        canvas.savefig(path)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"the plot cannot be written: {error}") from error


Panel = Callable[[Axes], None]


def _panels(cases: Sequence[Case], figure: Figure | None) -> list[Panel]:
    if figure is None:
        return [lambda axes: _learned(axes, cases)]
    if figure.scan:
        panels: list[Panel] = [lambda axes: _needed(axes, cases, figure)]
        if figure.series == "granularity":
            panels.append(lambda axes: _histogram(axes, cases))
        return [*panels, lambda axes: _times(axes, cases, figure.x)]
    return [lambda axes: _success(axes, cases), lambda axes: _times(axes, cases, "rounds")]


def _needed(axes: Axes, cases: Sequence[Case], figure: Figure) -> None:
    """Plots the hardest setting that all trials recovered, against the varied field."""
    good = [case for case in cases if case["exact"] == case["asked"]]
    last = {case["curve"]: case for case in good}  # from easy to hard
    across = figure.series
    groups = [()] if across == "users" else sorted({(_number(c, "users"),) for c in last.values()})
    for group in groups:
        own = [c for c in last.values() if not group or c["users"] == group[0]]
        points = sorted((_number(c, across), _number(c, figure.x)) for c in own)
        if not points:
            continue
        label = f"{group[0]:,.0f} users" if group else None
        axes.plot(*zip(*points, strict=True), "o-", label=label)
    if across == "users":
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(_WHOLE)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(_WHOLE)
    axes.set(xlabel=_LABELS[across], ylabel=f"fewest {figure.x}, every trial exact")


def _success(axes: Axes, cases: Sequence[Case]) -> None:
    for name, own in _grouped(cases, "curve"):
        points = sorted((_number(c, "rounds"), _number(c, "right")) for c in own)
        axes.plot(*zip(*points, strict=True), "o-", label=name)
    axes.set(xlabel="rounds", ylabel=_LABELS["right"], ylim=(-0.03, 1.03))


def _times(axes: Axes, cases: Sequence[Case], x: str) -> None:
    for name, own in _grouped(cases, "curve"):
        ordered = sorted(own, key=lambda case: _number(case, x))
        middle = [_number(case, "seconds") for case in ordered]
        around = [
            [m - _number(c, "least_seconds") for m, c in zip(middle, ordered, strict=True)],
            [_number(c, "most_seconds") - m for m, c in zip(middle, ordered, strict=True)],
        ]
        across = [_number(case, x) for case in ordered]
        axes.errorbar(across, middle, yerr=around, fmt="o-", capsize=3, label=name)
    axes.set_yscale("log")
    axes.set(xlabel=_LABELS[x], ylabel=_LABELS["seconds"])


def _histogram(axes: Axes, cases: Sequence[Case]) -> None:
    """Plots Figure 6.5b for the longest run of each granularity."""
    for length, own in _grouped(cases, "granularity"):
        longest = max(own, key=lambda case: _number(case, "rounds"))
        shares = cast(Sequence[float], longest["in_windows"])
        axes.plot(range(len(shares)), shares, "o-", label=f"windows of {length}")
    axes.set(xlabel="participations of a user in a window", ylabel="share")


def _learned(axes: Axes, cases: Sequence[Case]) -> None:
    """Plots curves of the cases that PyTorch made; the cases name their axes."""
    x, y = str(cases[0]["x"]), str(cases[0]["y"])
    for name, own in _grouped(cases, "series"):
        points = sorted((_number(case, x), _number(case, y)) for case in own)
        axes.plot(*zip(*points, strict=True), "o-", label=name)
    axes.set_xscale("log", base=2)
    axes.set(xlabel=_LABELS[x], ylabel=_LABELS[y])


def _grouped(cases: Sequence[Case], field: str) -> list[tuple[str, list[Case]]]:
    found = dict.fromkeys(str(case[field]) for case in cases)
    return [(name, [case for case in cases if str(case[field]) == name]) for name in found]


def _number(case: Case, field: str) -> float:
    return float(cast(float, case[field]))
