"""The plots of the simulation. Need matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nescio._report import Case
from nescio.errors import ArgumentError

__all__ = ["plot_latency", "plot_machines"]


def _numbers(cases: Sequence[Case], name: str) -> list[float]:
    return [cast(float, case[name]) for case in cases]


def _panels(cases: Sequence[Case]) -> tuple[Figure, list[tuple[int, Axes]]]:
    """Makes a panel for each number of rows."""
    rows = sorted({cast(int, case["rows"]) for case in cases})
    figure = Figure(figsize=(5.2 * len(rows), 4.4), layout="constrained")
    panels = figure.subplots(1, len(rows), squeeze=False)[0]
    return figure, list(zip(rows, panels, strict=True))


def _lines(cases: Sequence[Case], names: tuple[str, ...], y: str, label: str, path: Path) -> None:
    """Draws a line over the rates for each combination of some fields."""
    known = [case for case in cases if case.get(y) is not None]
    figure, panels = _panels(known)
    for rows, axes in panels:
        own = [case for case in known if case["rows"] == rows]
        for key in dict.fromkeys(tuple(case[name] for name in names) for case in own):
            line = [case for case in own if tuple(case[name] for name in names) == key]
            text = ", ".join(f"{n} {v}" for n, v in zip(names, key, strict=True))
            text = text.replace("design ", "").replace("node ", "")
            axes.plot(_numbers(line, "lookups_per_second"), _numbers(line, y), "o-", label=text)
        axes.set(xscale="log", yscale="log", xlabel="lookups/s", ylabel=label)
        axes.set_title(f"{rows:,} rows")
        axes.grid(which="both", alpha=0.25)
        axes.legend(fontsize="x-small")
    try:
        figure.savefig(path, dpi=144, metadata={"Date": None} if path.suffix == ".svg" else None)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"the plot cannot be written: {error}") from error


def plot_latency(path: Path, cases: Sequence[Case]) -> None:
    """Plots the 99th percentile against the rate. Raises ArgumentError."""
    quiet = [case for case in cases if case["slow_calls"] == "none"]
    _lines(quiet or cases, ("shards", "tree"), "p99_ms", "99th percentile, ms", path)


def plot_machines(path: Path, cases: Sequence[Case]) -> None:
    """Plots the machines against the rate. Raises ArgumentError."""
    _lines(cases, ("design", "node"), "machines", "machines of one party", path)
