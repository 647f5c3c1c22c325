"""The plot of inferences per second against bytes. Needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from nescio._report import Case
from nescio.errors import ArgumentError

_MODES = {
    "plain": ("#525252", "whole lookups"),
    "partial": ("#2563a8", "partial mode: as many bins as rows, 63 to 66 % of the rows"),
    "exact": ("#be185d", "exact mode: four hashes, all rows"),
}


def plot_pareto(path: Path, cases: Sequence[Case]) -> None:
    """Plots inferences per second against bytes, a line for each mode. Raises ArgumentError."""
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.add_subplot()
    for mode, (color, label) in _MODES.items():
        own = [case for case in cases if case["mode"] == mode]
        x = [cast(float, case["bytes"]) for case in own]
        y = [cast(float, case["inferences_per_second"]) for case in own]
        axes.plot(x, y, "o-", color=color, label=label)
        for case, at in zip(own, zip(x, y, strict=True), strict=True):
            axes.annotate(
                str(case["rows_wanted"]),
                at,
                xytext=(4, 4),
                textcoords="offset points",
                fontsize=7,
                color=color,
            )
    first = cases[0]
    axes.set(xscale="log", yscale="log", xlabel="bytes of an inference, to and from both servers")
    axes.set_ylabel(f"inferences/s of a server, {first['clients']} clients together")
    axes.set_title(f"{first['rows']:,} rows of {first['row_bytes']} bytes; numbers: rows asked for")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.set_major_formatter("{x:,.0f}")
        axis.set_minor_formatter(NullFormatter())
    axes.grid(which="both", alpha=0.25)
    axes.legend(fontsize="small")
    try:
        figure.savefig(path, dpi=144, metadata={"Date": None} if path.suffix == ".svg" else None)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"the plot cannot be written: {error}") from error
