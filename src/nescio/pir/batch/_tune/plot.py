"""The plot of a search: every layout tried, and the best ones."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("plots need matplotlib: pip install 'nescio[tune]'") from error

from ....errors import ArgumentError, FileError

if TYPE_CHECKING:
    from .result import Trial, Tuning

_KINDS = {
    "plain": ("#525252", "whole lookups"),
    "bins": ("#2563a8", "bins"),
    "hot": ("#c2410c", "hot rows"),
    "choices": ("#15803d", "several hashes"),
    "together": ("#7e22ce", "rows together"),
    "exact": ("#be185d", "exact mode"),
}


def plot_tuning(path: Path, found: "Tuning") -> None:
    """Plots quality against inferences per second, and against bytes. Raises FileError."""
    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    _draw(left, found, found.inferences_per_second)
    _draw(right, found, lambda trial: trial.cost.bytes)
    budgets, setup = found.budgets, found.setup
    left.axvline(1e3 * setup.clients / max(budgets.max_ms, 1e-9), color="black", ls=":", lw=0.8)
    right.axvline(max(1, budgets.max_bytes), color="black", ls=":", lw=0.8)
    own = all(trial.score.quality == trial.score.retrieved for trial in found.trials)
    left.set_ylabel("fraction of rows retrieved" if own else "quality")
    left.set_xlabel(f"inferences/s of a server ({setup.clients} clients together)")
    right.set_xlabel("bytes of an inference, both servers, both directions")
    right.legend(fontsize="small", loc="lower right")
    figure.suptitle(
        f"Layouts for {setup.rows:,} rows of {setup.row_bytes:,} bytes (dotted: the budgets)"
    )
    try:
        figure.savefig(path, dpi=144, metadata={"Date": None} if path.suffix == ".svg" else None)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: the plot cannot be written: {error}") from error


def _draw(axes: Axes, found: "Tuning", measure: "Callable[[Trial], float]") -> None:
    for kind, (color, label) in _KINDS.items():
        own = [trial for trial in found.trials if trial.design.kind == kind]
        axes.plot(
            [measure(trial) for trial in own],
            [trial.score.quality for trial in own],
            ".",
            color=color,
            alpha=0.5,
            label=label,
        )
    front = found.pareto
    axes.plot(
        [measure(trial) for trial in front],
        [trial.score.quality for trial in front],
        "-",
        color="black",
        lw=0.8,
        alpha=0.6,
        label="best in time",
    )
    try:
        chosen = found.chosen
        axes.plot(measure(chosen), chosen.score.quality, "k*", ms=12, label="chosen")
    except ArgumentError:
        pass  # nothing meets the budgets
    axes.set_xscale("log")
    axes.grid(which="both", alpha=0.25)
