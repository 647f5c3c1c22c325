"""The plot of `nescio bench lookup`. Needs matplotlib: pip install 'nescio[bench]'."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from .._report import Case
from ..errors import FileError

_SERIES = (
    *("rows", "row_bytes", "output", "generator", "tier", "threads"),
    *("device", "strategy", "nodes"),
)
_NAMED = ("threads", "nodes")  # fields whose numbers need a name


def plot_lookup(path: Path, cases: Sequence[Case]) -> None:
    """Plots throughput against latency: a line per table, a point per batch size.

    As Figure 13 of "GPU-based Private Information Retrieval for On-Device Machine Learning
    Inference" (2024). Dashed lines are the limits measured in the same run. Raises FileError if
    the file cannot be written.
    """
    figure = Figure(figsize=(8, 5.5), layout="constrained")
    axes = figure.add_subplot()
    series: dict[tuple[object, ...], list[Case]] = {}
    for case in cases:
        series.setdefault(tuple(case.get(field) for field in _SERIES), []).append(case)
    for own in series.values():
        _draw(axes, own, series)
    axes.set(xscale="log", yscale="log", xlabel="latency of a batch, ms", ylabel="queries/s")
    axes.set_title("Private lookups: throughput against latency (batch sizes next to the points)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:,g}")
        axis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))
    axes.grid(which="both", alpha=0.25)
    axes.legend(fontsize="small")
    try:
        figure.savefig(path, dpi=144, format="png")
    except OSError as error:
        raise FileError(f"the plot cannot be written: {error}") from error


def _draw(axes: Axes, own: list[Case], series: dict[tuple[object, ...], list[Case]]) -> None:
    own = sorted(own, key=lambda case: _number(case, "batch"))
    latency = [_number(case, "milliseconds") for case in own]
    rate = [_number(case, "queries_per_second") for case in own]
    limit = [_number(case, "limit_queries_per_second") for case in own]
    (line,) = axes.plot(latency, rate, "o-", label=_name(own[0], series))
    axes.plot(
        [1e3 * _number(case, "batch") / bound for case, bound in zip(own, limit, strict=True)],
        limit,
        "--",
        color=line.get_color(),
        alpha=0.5,
    )
    for case, x, y in zip(own, latency, rate, strict=True):
        axes.annotate(
            str(case["batch"]), (x, y), xytext=(4, -10), textcoords="offset points", fontsize=7
        )


def _name(case: Case, series: dict[tuple[object, ...], list[Case]]) -> str:
    """Returns the rows and row bytes, and the fields in which this line differs from others."""
    parts = [f"{case['rows']:,} x {case['row_bytes']} B"]
    for i, field in enumerate(_SERIES[2:], start=2):
        if len({key[i] for key in series}) > 1 and case.get(field) is not None:
            parts.append(f"{field}: {case[field]}" if field in _NAMED else str(case[field]))
    return ", ".join(parts)


def _number(case: Case, field: str) -> float:
    value = case[field]
    assert isinstance(value, int | float)
    return float(value)
