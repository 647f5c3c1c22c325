"""Plots of a search. Needs matplotlib: pip install 'nescio[bench]'."""

from pathlib import Path

from matplotlib.figure import Figure

from ..errors import FileError
from .search import SearchResult


def plot_search(path: Path, found: SearchResult, fp32_seconds: float, *, sign: float = 1.0) -> None:
    """Plots quality against speedup over float32: every plan, and a line through the Pareto front.

    Corresponds to Figure 3.4 of the thesis. `sign` is -1 if a smaller quality is better. Raises
    FileError if the file cannot be written.
    """
    figure = Figure(figsize=(8, 5.5), layout="constrained")
    axes = figure.add_subplot()
    for points, style, label in ((found.points, ".", "plans"), (found.pareto, "o-", "best plans")):
        axes.plot(
            [fp32_seconds / point.cost for point in points],
            [sign * point.quality for point in points],
            style,
            label=label,
            alpha=0.4 if style == "." else 1.0,
        )
    axes.set(xlabel="speedup of the products over float32", ylabel="quality")
    axes.set_title("Bits for each layer: quality against speed")
    axes.grid(alpha=0.25)
    axes.legend(fontsize="small")
    try:
        figure.savefig(path, dpi=144, format="png")
    except OSError as error:
        raise FileError(f"{path}: cannot write the plot: {error}") from error
