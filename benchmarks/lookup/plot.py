"""Plots of the figures. Needs matplotlib: pip install 'nescio[bench]'."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from nescio._report import Case

from .figures import MEASURED, Figure

_LABELS = {
    "batch": "keys in a batch",
    "milliseconds": "latency of a batch, ms",
    "nodes": "K, nodes per step",
    "peak_device_bytes": "device memory without the table, bytes",
    "prf_calls": "calls of the generator",
    "queries_per_second": "queries/s",
    "row_bytes": "bytes of a row",
    "rows": "rows",
    "utilisation": "utilisation (generator's limit / time)",
}
_POWERS_OF_TWO = ("batch", "nodes", "row_bytes", "rows")
_MISSING_SHOWN = 6


def draw(path: Path, figure: Figure, cases: Sequence[Case], about: str) -> None:
    """Plots a figure: a column of axes for each panel, a row for each field.

    `about` says where and when the cases were measured. Raises OSError if the file cannot be
    written.
    """
    panels = list(dict.fromkeys(case[figure.panels] for case in cases))
    size = (1.5 + 4.5 * len(panels), 1.2 + 3.6 * len(figure.y))
    canvas = Canvas(figsize=size, layout="constrained")
    grid = canvas.subplots(len(figure.y), len(panels), squeeze=False)
    for column, panel in enumerate(panels):
        own = [case for case in cases if case[figure.panels] == panel]
        for row, field in enumerate(figure.y):
            axes = grid[row][column]
            _bars(axes, own, field) if figure.x == "line" else _curves(axes, own, figure.x, field)
            if len(panels) > 1:
                axes.set_title(f"{_LABELS[figure.panels]}: {panel:,}", fontsize="medium")
            _say_what_is_missing(axes, own)
    if grid[0][0].get_legend_handles_labels()[0]:
        grid[0][0].legend(fontsize="x-small")
    if "queries_per_second" in figure.y and figure.x != "milliseconds":
        about += "\nmarks: limits" if figure.x == "line" else "\ndashed: limits"
        about += " that were measured in the same run"
    canvas.suptitle(f"{figure.title}\n{about}", fontsize="medium")
    canvas.savefig(path, dpi=130, format="png")


def _curves(axes: Axes, cases: Sequence[Case], x: str, y: str) -> None:
    for name, own in _lines(cases).items():
        points = [case for case in own if case["status"] == MEASURED]
        across, up = ([_number(case, field) for case in points] for field in (x, y))
        (line,) = axes.plot(across, up, "o-", label=name, markersize=4)
        if y == "queries_per_second" and x != "milliseconds":
            limits = [_number(case, "limit_queries_per_second") for case in points]
            axes.plot(across, limits, "--", color=line.get_color(), alpha=0.5)
        if x == "milliseconds":
            for case, at in zip(points, zip(across, up, strict=True), strict=True):
                axes.annotate(
                    str(case["batch"]), at, xytext=(4, -9), textcoords="offset points", fontsize=6
                )
    axes.set(xlabel=_LABELS[x], ylabel=_LABELS[y])
    if all(case["status"] != MEASURED for case in cases):
        return  # a logarithmic axis needs a point
    axes.set_xscale("log", base=2 if x in _POWERS_OF_TWO else 10)
    if y != "utilisation":
        axes.set_yscale("log")
    axes.grid(which="major", alpha=0.25)


def _bars(axes: Axes, cases: Sequence[Case], y: str) -> None:
    points = [case for case in cases if case["status"] == MEASURED]
    if not points:
        return
    names = [_name(case) for case in points]
    axes.barh(names, [_number(case, y) for case in points], label="measured")
    if y == "queries_per_second":
        limits = [_number(case, "limit_queries_per_second") for case in points]
        axes.plot(limits, names, "k|", markersize=9, label="limit")
        axes.set_xscale("log")
    axes.tick_params(axis="y", labelsize=6)
    axes.invert_yaxis()
    axes.set_xlabel(_LABELS[y])


def _lines(cases: Sequence[Case]) -> dict[str, list[Case]]:
    lines: dict[str, list[Case]] = {}
    for case in cases:
        lines.setdefault(_name(case), []).append(case)
    return lines


def _name(case: Case) -> str:
    return f"{case['strategy']}, {case['output']}, {case['generator']}"


def _say_what_is_missing(axes: Axes, cases: Sequence[Case]) -> None:
    """Lists the cases without a point in the plot."""
    lines = [
        f"{case['status']}: {_name(case)}, {case['rows']:,} x {case['row_bytes']} B, "
        f"batch {case['batch']}"[:90]
        for case in cases
        if case["status"] != MEASURED
    ]
    if len(lines) > _MISSING_SHOWN:
        lines[_MISSING_SHOWN:] = [f"and {len(lines) - _MISSING_SHOWN} more"]
    axes.text(*(0.02, 0.02), "\n".join(lines), transform=axes.transAxes, fontsize=5, va="bottom")


def _number(case: Case, field: str) -> float:
    value = case[field]
    assert isinstance(value, int | float)
    return float(value)
