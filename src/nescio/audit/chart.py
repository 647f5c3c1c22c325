"""Plots as SVG text, for reports that open anywhere: no scripts, no fonts, no other files."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Series", "bars", "lines"]

COLOURS = (
    *("#2563a8", "#c2410c", "#15803d", "#7e22ce"),
    *("#a16207", "#0e7490", "#be185d", "#525252"),
)
_WIDTH, _HEIGHT = 720, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 18, 16, 52
_LEGEND_LINE = 18


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a plot. Points whose y is None are left out; `dots`: draw no line."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    dots: bool = False
    dashed: bool = False


class _Axis:
    """From values to places between `low` and `high`, linear or logarithmic."""

    def __init__(self, values: Sequence[float], ends: tuple[float, float], *, log: bool) -> None:
        shown = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
        self.log = log and bool(shown)
        low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
        if self.log:
            low, high = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
            high = max(high, low + 1)
        else:
            low, high = min(low, 0.0), max(high, low + 1e-12)
            high += 0.04 * (high - low)
        self._low, self._high, self._ends = float(low), float(high), ends

    def place(self, value: float) -> float:
        if self.log:
            value = math.log10(value) if value > 0 else self._low
        share = (value - self._low) / (self._high - self._low)
        return self._ends[0] + min(max(share, 0.0), 1.0) * (self._ends[1] - self._ends[0])

    def ticks(self) -> list[float]:
        if self.log:
            step = max(1, math.ceil((self._high - self._low) / 7))
            return [10.0**p for p in range(int(self._low), int(self._high) + 1, step)]
        span = self._high - self._low
        unit: float = 10.0 ** math.floor(math.log10(span / 5))
        step_size = next(unit * m for m in (1, 2, 5, 10) if span / (unit * m) <= 7)
        first = math.ceil(self._low / step_size - 1e-9)
        return [n * step_size for n in range(first, int(self._high / step_size + 1e-9) + 1)]


def lines(
    title: str,
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
) -> str:
    """An <svg> of lines or dots over two axes; on a logarithmic axis, zero is drawn at its end."""
    bottom = _HEIGHT - _BOTTOM
    xs = [x for s in series for x in s.x]
    ys = [y for s in series for y in s.y if y is not None]
    across = _Axis(xs, (_LEFT, _WIDTH - _RIGHT), log=log_x)
    up = _Axis(ys, (bottom, _TOP), log=log_y)
    parts = [*_grid(across, up, x_label, y_label)]
    for i, one in enumerate(series):
        parts += _draw(one, across, up, COLOURS[i % len(COLOURS)])
    names = [(s.name, COLOURS[i % len(COLOURS)]) for i, s in enumerate(series)]
    parts += _legend(names, _HEIGHT + 8)
    return _svg(title, parts, _HEIGHT + 8 + _LEGEND_LINE * len(series))


def bars(title: str, parts_of: Sequence[tuple[str, int, str]]) -> str:
    """An <svg> of one bar in parts: (name, number, colour) each."""
    total = max(sum(number for _, number, _ in parts_of), 1)
    width, at, drawn = _WIDTH - 2 * _RIGHT, float(_RIGHT), []
    for _, number, colour in parts_of:
        length = width * number / total
        drawn.append(
            f'<rect x="{at:.1f}" y="10" width="{length:.1f}" height="34" fill="{colour}"/>'
        )
        at += length
    names = [(f"{name}: {number}", colour) for name, number, colour in parts_of]
    drawn += _legend(names, 56, left=_RIGHT)
    return _svg(title, drawn, 60 + _LEGEND_LINE * len(names))


def _grid(across: _Axis, up: _Axis, x_label: str, y_label: str) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = []
    for value in across.ticks():
        x = across.place(value)
        parts.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{bottom}"/>')
        parts.append(_text(x, bottom + 18, _number(value), "middle"))
    for value in up.ticks():
        y = up.place(value)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>')
        parts.append(_text(_LEFT - 8, y + 4, _number(value), "end"))
    middle = (_TOP + bottom) / 2
    parts.append(_text((_LEFT + right) / 2, bottom + 40, x_label, "middle"))
    turned = f' transform="rotate(-90 16 {middle:.0f})"'
    parts.append(_text(16, middle, y_label, "middle", turned))
    return parts


def _draw(one: Series, across: _Axis, up: _Axis, colour: str) -> list[str]:
    points = [
        (across.place(x), up.place(y))
        for x, y in zip(one.x, one.y, strict=True)
        if y is not None and math.isfinite(y) and math.isfinite(x)
    ]
    if not points:
        return []
    parts = []
    if not one.dots:
        way = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        dashes = ' stroke-dasharray="6 4"' if one.dashed else ""
        parts.append(f'<path d="{way}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
    if not one.dashed:
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    return parts


def _legend(names: Sequence[tuple[str, str]], top: float, left: float = _LEFT) -> list[str]:
    parts = []
    for i, (name, colour) in enumerate(names):
        y = top + _LEGEND_LINE * i
        parts.append(f'<rect x="{left}" y="{y}" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(left + 18, y + 11, name, "start"))
    return parts


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    shown = escape(text)
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{shown}</text>'


def _number(value: float) -> str:
    return f"{value:.3g}" if value == 0 or 1e-3 <= abs(value) < 1e5 else f"{value:.0e}"


def _svg(title: str, parts: Sequence[str], height: float) -> str:
    name = escape(title, quote=True)
    style = (
        "text{font:12px system-ui,sans-serif;fill:currentColor}"
        ".grid{stroke:currentColor;stroke-opacity:.18;fill:none}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'aria-label="{name}"><title>{name}</title><style>{style}</style>{"".join(parts)}</svg>'
    )
