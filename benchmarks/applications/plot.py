"""The plots of the sweep: throughput, quality, and costs. Needs matplotlib."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from benchmarks._main import make_folder
from nescio._report import Case
from nescio.errors import FileError

from .published import PUBLISHED

__all__ = ["plot_sweep"]

_FAMILIES = {
    "plain": ("#525252", "whole lookups"),
    "partial": ("#2563a8", "bins"),
    "paper": ("#d97706", "the paper's co-design"),
    "exact": ("#be185d", "exact mode"),
    "co-design": ("#0f766e", "all of these and hashes"),
}
_LEVELS = {"full": 1.0, "eco": 0.7, "relaxed": 0.4}
_BYTES = (300_000, 100_000, 30_000)
_WITHIN = 2.0  # percent of the quality, as in Figure 17

Facts = dict[str, Any]


def plot_sweep(folder: Path, cases: Sequence[Case]) -> None:
    """Writes applications-throughput.png, -quality.png and -costs.png into a folder.

    Raises FileError if a file cannot be written.
    """
    make_folder(str(folder), "--plot")
    names = list(dict.fromkeys(str(case["application"]) for case in cases))
    own = {name: [case for case in cases if case["application"] == name] for name in names}
    _throughput(folder / "applications-throughput.png", own)
    _quality(folder / "applications-quality.png", own)
    _costs(folder / "applications-costs.png", own)


class _Numbers(LogFormatter):
    """Labels the ticks that LogFormatter labels, without powers."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Returns the label of a tick; empty for most."""
        return f"{x:,.12g}" if super().__call__(x, pos) else ""


def _plain_numbers(axes: Axes) -> None:
    """Writes the numbers of logarithmic axes without powers."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter("{x:,.12g}")
            axis.set_minor_formatter(_Numbers(minor_thresholds=(1.2, 0.4)))


def _save(figure: Figure, path: Path) -> None:
    try:
        figure.savefig(path, dpi=110, format="png")
    except OSError as error:
        raise FileError(f"the plot cannot be written: {error}") from error


def _of(cases: Sequence[Facts], what: str, **fields: object) -> list[Facts]:
    return [
        case
        for case in cases
        if case["what"] == what and all(case[name] == value for name, value in fields.items())
    ]


def _first_generator(cases: Sequence[Facts]) -> object:
    return _of(cases, "measured")[0]["generator"]


# ---- Figure 11: inferences a second --------------------------------------------------------------


def _throughput(path: Path, own: dict[str, list[Facts]]) -> None:
    figure = Figure(figsize=(3.7 * len(own) + 1.5, 4.2), layout="constrained")
    for number, (name, cases) in enumerate(own.items()):
        axes = figure.add_subplot(1, len(own), number + 1)
        _bars(axes, cases)
        published = PUBLISHED[name]
        axes.axhline(published.eco, color="black", linewidth=1, label="paper, V100, Acc-eco")
        axes.axhline(
            published.relaxed, color="black", linewidth=1, ls="--", label="paper, V100, relaxed"
        )
        axes.axhline(published.cpu, color="black", linewidth=1, ls=":", label="paper, CPU")
        axes.set(yscale="log", title=name)
        axes.set_ylabel("inferences/s of a server" if number == 0 else "")
        axes.grid(axis="y", alpha=0.25)
        _plain_numbers(axes)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    _save(figure, path)


def _bars(axes: Axes, cases: Sequence[Facts]) -> None:
    """Draws a bar for each family and level, and a mark for the other generator."""
    first = _first_generator(cases)
    labels = [family for family in _FAMILIES if _of(cases, "pick", family=family)]
    for index, (level, alpha) in enumerate(_LEVELS.items()):
        for place, family in enumerate(labels):
            for case in _of(cases, "pick", family=family, level=level):
                x, y = place + 0.27 * (index - 1), case["inferences_per_second"]
                if case["generator"] == first:
                    axes.bar(x, y, 0.25, color=_FAMILIES[family][0], alpha=alpha)
                else:
                    axes.plot(x, y, "D", color="black", ms=3)
    axes.set_xticks(range(len(labels)), labels, rotation=20)


# ---- Figures 18 to 20: quality against throughput ------------------------------------------------


def _quality(path: Path, own: dict[str, list[Facts]]) -> None:
    figure = Figure(figsize=(11, 3.0 * len(own) + 0.6), layout="constrained")
    for line, (name, cases) in enumerate(own.items()):
        model = _of(cases, "model")[0]
        for column, most in enumerate(_BYTES):
            axes = figure.add_subplot(len(own), len(_BYTES), line * len(_BYTES) + column + 1)
            for family, (color, label) in _FAMILIES.items():
                _line(axes, cases, family, most, color=color, label=label)
            axes.axvline(model["quality"], color="black", linewidth=1, ls=":", label="plain model")
            axes.set(yscale="log", xlabel=f"{model['metric']} on the test")
            axes.set_title(f"{name}, at most {most / 1e3:.0f} KB", fontsize="medium")
            axes.set_ylabel("inferences/s" if column == 0 else "")
            axes.grid(alpha=0.25)
            _plain_numbers(axes)
            if model["metric"] == "perplexity":
                axes.set_xlim(2 * model["quality"], 0.97 * model["quality"])
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=6)
    _save(figure, path)


def _line(
    axes: Axes, cases: Sequence[Facts], family: str, most: float, *, color: str, label: str
) -> None:
    """Draws the layouts of a family that none beats in time and quality of the training."""
    points = [
        case
        for case in _of(cases, "measured", generator=_first_generator(cases))
        if family in case["families"] and case["bytes"] <= most
    ]
    found = _front(
        points, lambda case: case["milliseconds"], lambda case: case["training_lost_percent"]
    )
    x = [case["quality"] for case in found]
    axes.plot(
        x, [case["inferences_per_second"] for case in found], "o-", ms=3, c=color, label=label
    )


def _front(
    points: Sequence[Facts], cost: Callable[[Facts], float], loss: Callable[[Facts], float]
) -> list[Facts]:
    """Returns the points that none beats in both, the cheapest first."""
    found: list[Facts] = []
    for point in sorted(points, key=lambda one: (cost(one), loss(one))):
        if not found or loss(point) < loss(found[-1]):
            found.append(point)
    return found


# ---- Figures 16 and 17: computation and bytes ----------------------------------------------------


def _costs(path: Path, own: dict[str, list[Facts]]) -> None:
    figure = Figure(figsize=(3.8 * len(own) + 0.5, 4.0), layout="constrained")
    for number, (name, cases) in enumerate(own.items()):
        axes = figure.add_subplot(1, len(own), number + 1)
        clients = _of(cases, "model")[0]["clients"]
        near = [case for case in _of(cases, "tried") if case["training_lost_percent"] <= _WITHIN]
        for family in ("partial", "paper", "co-design"):
            color, label = _FAMILIES[family]
            style = {"color": color, "label": label}
            some = [case for case in near if family in case["families"]]
            _costs_line(axes, some, "bytes", clients, style)
            if family == "paper":
                free = f"{label}, co-located bytes not counted"
                dotted = style | {"label": free, "ls": ":"}
                _costs_line(axes, some, "uncharged_bytes", clients, dotted)
        axes.set(xscale="log", yscale="log", title=name, xlabel="bytes of an inference")
        axes.set_ylabel("microseconds of a server" if number == 0 else "")
        axes.grid(which="both", alpha=0.2)
        _plain_numbers(axes)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    _save(figure, path)


def _costs_line(
    axes: Axes, cases: Sequence[Facts], measure: str, clients: int, style: Mapping[str, Any]
) -> None:
    found = _front(cases, lambda case: case[measure], lambda case: case["milliseconds"])
    y = [1e3 * case["milliseconds"] / clients for case in found]
    axes.step([case[measure] for case in found], y, where="post", marker="o", ms=3, **style)
