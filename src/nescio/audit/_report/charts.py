"""Plots as SVG text, by matplotlib, for reports that load no other files and run no scripts."""

import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("plots need matplotlib: pip install 'nescio[audit]'") from error

__all__ = ["Series", "bars", "lines"]

COLORS = (
    *("#2563a8", "#c2410c", "#15803d", "#7e22ce"),
    *("#a16207", "#0e7490", "#be185d", "#525252"),
)
_MAX_POINTS = 400
_TINY = 1e-99
_INK = "#000102"
"""Placeholder for the page's text color, which depends on the light or dark theme."""

_STYLE: dict[Any, Any] = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "grid.color"), _INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), _INK),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "none"),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "axes.grid": True,
    "grid.alpha": 0.2,
    "font.size": 9.0,
    "lines.markersize": 4.0,
    "svg.fonttype": "none",
}
_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a plot. Points whose y is None are left out; `dots` draws points without a line."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    dots: bool = False
    dashed: bool = False


def lines(
    title: str,
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
) -> str:
    """Returns an <svg> of lines or dots; on a logarithmic axis, zero is drawn at its end."""
    with _drawn(title) as (figure, text):
        axes = figure.subplots()
        axes.set_prop_cycle(color=COLORS)
        for one in series:
            _draw(axes, one, log_x=log_x, log_y=log_y)
        axes.set(xlabel=x_label, ylabel=y_label)
        if axes.lines:
            _scale(axes.xaxis, axes.set_xscale, axes.dataLim.intervalx, logarithmic=log_x)
            _scale(axes.yaxis, axes.set_yscale, axes.dataLim.intervaly, logarithmic=log_y)
            if not log_y:
                axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
            figure.legend(loc="outside lower left")
    return "".join(text)


def bars(title: str, sections: Sequence[tuple[str, int, str]]) -> str:
    """Returns an <svg> of one bar in sections: (name, number, color) each."""
    with _drawn(title, height=1.1) as (figure, text):
        axes, before = figure.subplots(), 0
        for name, number, color in sections:
            axes.barh(0, number, left=before, color=color, label=f"{name}: {number}")
            before += number
        axes.set(xlim=(0, max(before, 1)))
        axes.set_axis_off()
        figure.legend(loc="outside lower left", ncols=len(sections))
    return "".join(text)


def _draw(axes: Axes, one: Series, *, log_x: bool, log_y: bool) -> None:
    points = [
        (x, y)
        for x, y in zip(one.x, one.y, strict=True)
        if y is not None and math.isfinite(x) and math.isfinite(y)
    ]
    step = max(1, math.ceil(len(points) / _MAX_POINTS))
    points = points[::step] + points[len(points) - 1 : len(points) * (step > 1)]
    xs, ys = _positive([x for x, _ in points], log_x), _positive([y for _, y in points], log_y)
    if xs and ys:
        style = "o" if one.dots else "--" if one.dashed else "o-" if len(points) < 60 else "-"
        axes.plot(xs, ys, style, label=one.name)


def _positive(values: list[float], logarithmic: bool) -> list[float]:
    """Replaces values below the smallest positive one by that one, on a logarithmic axis."""
    least = max(min((value for value in values if value > 0), default=math.inf), _TINY)
    if not logarithmic or math.isinf(least):
        return [] if logarithmic else values
    return [min(max(value, least), 1 / _TINY) for value in values]


def _scale(
    axis: Axis, scale: Callable[..., None], ends: Sequence[float], *, logarithmic: bool
) -> None:
    """Sets the scale of an axis; counts get whole-number ticks, logarithmic ones powers of two."""
    counts = ends[0] >= 1
    if logarithmic:
        scale("log", base=2 if counts else 10)
        if counts:
            axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    elif counts:
        axis.set_major_locator(MaxNLocator(integer=True))


@contextmanager
def _drawn(title: str, height: float = 3.6) -> Iterator[tuple[Figure, list[str]]]:
    """Yields a figure to draw on, and the list that receives its <svg>; output is deterministic."""
    text: list[str] = []
    with mpl.rc_context({**_STYLE, "svg.hashsalt": title}):
        figure = Figure(figsize=(7.2, height), layout="constrained")
        yield figure, text
        file = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=nothing)
    text.append(_inline(file.getvalue(), title))


def _inline(svg: str, title: str) -> str:
    """Prepares an <svg> for the page: an accessible name, the page's font and color, no free ids.

    The ids that remain are those that the plot refers to.
    """
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _LINK)
    tree = ET.fromstring(svg)  # noqa: S314 - written by matplotlib, just now
    tree.attrib.update({"role": "img", "aria-label": title})
    for group in tree.iter(f"{{{_SVG}}}g"):
        group.attrib.pop("id", None)
    name = ET.Element(f"{{{_SVG}}}title")
    name.text = title
    tree.insert(0, name)
    text = ET.tostring(tree, encoding="unicode").replace(_INK, "currentColor")
    text = re.sub(r"font-family: [^;\"]*", "font-family: system-ui, sans-serif", text)
    return re.sub(r"\s*\n\s*", " ", text)
