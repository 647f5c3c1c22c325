"""Linear operations on values: each computes on batches, and as a window where it is one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as everywhere

from .._maps import Shape
from ._layers import MOST_NUMBERS, Layers, windows_of
from ._values import (
    Expression,
    Op,
    Pointwise,
    Term,
    Value,
    natural_axis,
    natural_shape,
    summed,
)
from ._windows import Pair, Window

_MOST_KERNELS = 8  # in a sum: more of them cost more than tables of the identity

Compose = Callable[[Window], Window | None]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a convolution or a pooling, for height and width; padding is on the left."""

    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1


def mapped(
    layers: Layers,
    value: Value,
    op: Op,
    shape: Shape,
    compose: Compose | None = None,
    *,
    constant: Op | None = None,
) -> Expression:
    """Returns a linear `op` of a value, whose windows `compose` maps.

    Where there is no composed window, the value is first made a result by an identity. `constant`
    maps the constant part if `op` does not.
    """
    expression = layers.expression(value)
    natural = natural_shape(expression.shape)
    if compose is not None and windows_of(expression, natural):
        composed = [compose(window) for window in expression.windows or ()]
        if None in composed and not expression.is_plain:
            expression = layers.identity(expression, "two maps in a row are no convolution")
            composed = [compose(window) for window in expression.windows or ()]
    else:
        composed = []
    if None in composed or not composed:
        composed = [None] * len(expression.terms)
    pairs = zip(expression.terms, composed, strict=True)
    terms = tuple(term.then(op, window) for term, window in pairs)
    return Expression(shape, terms, (constant or op)(expression.constant))


def reshaped(layers: Layers, value: Value, shape: Shape, *, alone: bool = False) -> Value:
    """Returns a value in another shape, with its numbers in their order.

    A function that `alone` uses the value stays open.
    """
    if isinstance(value, Pointwise):
        if alone and value.closed is None:
            base = reshaped(layers, value.base, shape)
            assert isinstance(base, Expression)
            return Pointwise(base, value.function, value.name, value.direction)
        value = layers.expression(value)
    terms = tuple(
        term.then(lambda x: x.reshape(len(x), *shape), term.window, term.matrix)
        for term in value.terms
    )
    constant = value.constant.reshape(1, *shape)
    origin = value.origin
    if origin is not None:
        first = origin[1]
        origin = origin[0], lambda x: first(x).reshape(len(x), *shape)
    return Expression(shape, terms, constant, origin=origin, is_plain=value.is_plain)


def permuted(layers: Layers, value: Value, order: Sequence[int]) -> Value:
    """Returns a value with its axes, of which 0 is the batch, in another order."""
    shape = tuple(value.shape[axis - 1] for axis in order[1:])
    kept = [axis for axis in order if axis == 0 or value.shape[axis - 1] != 1]
    if kept == sorted(kept):
        return reshaped(layers, value, shape)
    inner = layers.expression(value)

    def op(x: Tensor) -> Tensor:
        return x.permute(*order)

    found = mapped(layers, inner, op, shape)
    found.origin, found.is_plain = (inner, op), inner.is_plain
    return found


def convolved(
    layers: Layers, value: Value, op: Op, kernel: Tensor, *, sizes: Sizes, shape: Shape
) -> Expression:
    """Convolves a value; `op` does so for batches, `kernel` has four dimensions."""
    natural = natural_shape(value.shape)
    outputs = natural_shape(shape)
    assert natural is not None
    assert outputs is not None
    outer = Window(
        kernel,
        natural,
        (outputs[1], outputs[2]),
        (-sizes.padding[0], -sizes.padding[1]),
        sizes.stride,
        sizes.dilation,
        sizes.groups,
    )
    simple = outer.is_depthwise

    def compose(inner: Window) -> Window | None:
        return inner.then(outer) if simple or inner.reads_one_channel else None

    return mapped(layers, value, op, shape, compose)


def dense(layers: Layers, value: Value, weight: Tensor) -> Expression:
    """Multiplies (n, inputs) by a weight (outputs, inputs)."""
    expression = layers.expression(value)
    most = max(MOST_NUMBERS, weight.numel())
    if any(len(weight) * term.size > most for term in expression.terms):
        if not expression.is_plain:
            expression = layers.identity(expression, "the matrix of two maps is too large")
        for term in expression.terms:
            layers.check_matrix(term, len(weight), most)

    def op(x: Tensor) -> Tensor:
        return x.flatten(1) @ weight.T

    def pulled(term: Term) -> Term:
        return term.then(op, matrix=term.pulled(weight))

    terms = tuple(map(pulled, expression.terms))
    return Expression((len(weight),), terms, op(expression.constant))


def multiplied(layers: Layers, value: Value, factors: Tensor) -> Expression:
    """Multiplies a value by factors that broadcast to (1, *shape)."""
    expression = layers.expression(value)
    shape = expression.shape
    whole = factors.expand(1, *shape)
    channels = whole.reshape(shape[0], -1)
    same = bool((channels == channels[:, :1]).all())

    def op(x: Tensor) -> Tensor:
        return x * whole

    def scaled(term: Term) -> Term:
        window, matrix = term.window, term.matrix
        if window is not None and same and len(window.kernel) == shape[0]:
            return term.then(op, window.scaled(channels[:, 0]))
        if matrix is not None:
            return term.then(op, matrix=matrix * whole.reshape(-1, 1))
        return term.then(op)

    terms = tuple(map(scaled, expression.terms))
    return Expression(shape, terms, op(expression.constant))


def shifted(expression: Expression, constant: Tensor) -> Expression:
    """Adds a constant that broadcasts to (1, *shape)."""
    own = expression.constant + constant.expand(1, *expression.shape)
    return Expression(expression.shape, expression.terms, own, is_plain=False)


def added(layers: Layers, first: Value, second: Value, factor: float = 1.0) -> Expression:
    """Returns first + factor * second, of one shape."""
    left, right = layers.expression(first), layers.expression(second)
    if factor != 1.0:
        right = multiplied(layers, right, torch.tensor(factor, dtype=torch.float64))
    found = summed(left, right)
    kernels = [term for term in found.terms if not _is_light(term)]
    if len(kernels) > _MOST_KERNELS:
        return layers.identity(found, f"{len(kernels)} convolutions are added")
    return found


def _is_light(term: Term) -> bool:
    if term.window is None:
        return term.matrix is None
    return term.window.reads_one_channel


def sliced(
    layers: Layers, value: Value, axis: int, first: int, length: int, *, step: int = 1
) -> Expression:
    """Keeps `length` numbers of an axis (0: the first after the batch)."""
    shape = (*value.shape[:axis], length, *value.shape[axis + 1 :])

    def op(x: Tensor) -> Tensor:
        return x.narrow(axis + 1, first, (length - 1) * step + 1)[_every(axis + 1, step)]

    def compose(window: Window) -> Window:
        return window.sliced(natural_axis(value.shape, axis), first, length, step)

    found = mapped(layers, value, op, shape, compose)
    found.is_plain = layers.expression(value).is_plain
    return found


def _every(axis: int, step: int) -> tuple[slice, ...]:
    return (*(slice(None) for _ in range(axis)), slice(None, None, step))


def padded(
    layers: Layers, value: Value, axis: int, before: int, after: int, *, filled: float = 0.0
) -> Expression:
    """Adds numbers on both sides of an axis; negative counts remove some."""
    if before < 0 or after < 0:
        first, last = max(0, -before), max(0, -after)
        value = sliced(layers, value, axis, first, value.shape[axis] - first - last)
    before, after = max(0, before), max(0, after)
    length = value.shape[axis] + before + after
    shape = (*value.shape[:axis], length, *value.shape[axis + 1 :])
    sides = [0, 0] * (len(shape) - axis - 1) + [before, after]

    def compose(window: Window) -> Window | None:
        return window.padded(natural_axis(value.shape, axis), before, after)

    return mapped(
        layers,
        value,
        lambda x: F.pad(x, sides),
        shape,
        compose,
        constant=lambda x: F.pad(x, sides, value=filled),
    )


def pooled(
    layers: Layers, value: Value, kernel: Pair, sizes: Sizes, *, shape: Shape, divisor: float
) -> Expression:
    """Adds the numbers under a kernel, and divides the sums."""
    channels = value.shape[0]
    ones = torch.ones(channels, 1, *kernel, dtype=torch.float64) / divisor
    natural, outputs = natural_shape(value.shape), natural_shape(shape)
    assert natural is not None
    assert outputs is not None
    own = Sizes(sizes.stride, sizes.padding, (1, 1), channels)

    def op(x: Tensor) -> Tensor:
        image = x.reshape(len(x), *natural)
        found = F.conv2d(image, ones, None, own.stride, own.padding, groups=channels)
        return found.reshape(len(x), *shape)

    return convolved(layers, value, op, ones, sizes=own, shape=shape)
