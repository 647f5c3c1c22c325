"""Max pooling as a tournament: max(a, b) = b + relu(a - b), over columns, then over rows.

A window of 2 x 2 takes three tables, and one for the function before it: functions that do not fall
are applied after the pooling. At the borders, only the pixels of the image take part.
"""

from typing import NamedTuple

from ._functions import relu
from ._layers import Layers
from ._linear import added, padded, sliced
from ._values import Expression, Pointwise, Value


class Line(NamedTuple):
    """The kernel, stride, padding and dilation of a pooling along an axis, and its outputs."""

    axis: int
    taps: int
    stride: int
    padding: int
    dilation: int
    outputs: int


class _Tap(NamedTuple):
    """The pixels that a tap reads, for the outputs from `first` on."""

    values: Expression
    first: int


def max_pooled(layers: Layers, value: Value, lines: list[Line], *, alone: bool) -> Value:
    """Pools a value along axes. A function that `alone` the pooling uses comes after it."""
    if isinstance(value, Pointwise) and alone and value.direction == 1 and value.closed is None:
        base = _pooled(layers, value.base, lines)
        return Pointwise(base, value.function, value.name, value.direction)
    return _pooled(layers, layers.expression(value), lines)


def _pooled(layers: Layers, found: Expression, lines: list[Line]) -> Expression:
    for line in lines:
        if line.taps > 1 or line.stride > 1:
            found = _along(layers, found, line)
    return found


def _along(layers: Layers, values: Expression, line: Line) -> Expression:
    """Pools along one axis: taps that all outputs have are paired, the others come after them."""
    taps = [_tap(layers, values, line, number) for number in range(line.taps)]
    whole = [tap.values for tap in taps if tap and _length(tap, line) == line.outputs]
    others = [tap for tap in taps if tap and _length(tap, line) < line.outputs]
    if not whole:
        raise layers.refusal(
            f"found a max pooling of {line.taps} with a padding of {line.padding}",
            "a padding such that one tap of the kernel is within the image everywhere",
            "use an odd kernel with a padding of at most half of it, or no padding",
        )
    while len(whole) > 1:
        pairs = zip(whole[::2], whole[1::2], strict=False)
        rest = whole[-1:] if len(whole) % 2 else []
        whole = [*(_larger(layers, *pair) for pair in pairs), *rest]
    found = whole[0]
    for tap in others:
        found = _raised(layers, found, tap, line)
    return found


def _tap(layers: Layers, values: Expression, line: Line, number: int) -> _Tap | None:
    """Returns the pixels of the image under one tap."""
    offset, size = number * line.dilation - line.padding, values.shape[line.axis]
    inside = [k for k in range(line.outputs) if 0 <= k * line.stride + offset < size]
    if not inside:
        return None
    first = inside[0]
    start = first * line.stride + offset
    return _Tap(sliced(layers, values, line.axis, start, len(inside), step=line.stride), first)


def _length(tap: _Tap, line: Line) -> int:
    return tap.values.shape[line.axis]


def _larger(layers: Layers, first: Expression, second: Expression) -> Expression:
    return added(layers, relu(added(layers, first, second, -1.0)), second)


def _raised(layers: Layers, found: Expression, tap: _Tap, line: Line) -> Expression:
    """Returns the larger one of all outputs and a tap that some of them have."""
    length = _length(tap, line)
    own = sliced(layers, found, line.axis, tap.first, length)
    over = relu(added(layers, tap.values, own, -1.0))
    after = line.outputs - tap.first - length
    return added(layers, found, padded(layers, over, line.axis, tap.first, after))
