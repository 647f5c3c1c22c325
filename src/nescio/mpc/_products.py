"""Maps of a layer that share a product: their inputs are joined as channels of one convolution.

A shortcut of a residual layer is a convolution with one tap, which is also one with as many taps as
the layer's other map, all zeros but one. A stride of such a shortcut selects pixels of its input.
So a shortcut costs the encryptions of its input, and no results of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._arrays import Array
from ._encoding import ConvolutionShape, Encoding, linear
from ._maps import Convolution, Dense, Map, Ring, Shape
from ._public import PublicTerm

Pair = tuple[int, int]


class Joined(NamedTuple):
    """A map in a product: its number in the layer, the step between its pixels, its first tap."""

    number: int
    source: int
    step: Pair
    offset: Pair


@dataclass(frozen=True)
class Product:
    """Some maps of a layer as one convolution, and its encoding."""

    shape: ConvolutionShape
    maps: tuple[Joined, ...]
    encoding: Encoding

    @classmethod
    def of(cls, shape: ConvolutionShape, maps: Sequence[Joined]) -> "Product":
        """Chooses the encoding."""
        return cls(shape, tuple(maps), Encoding.of(shape))

    def image(self, results: Sequence[Ring]) -> Ring:
        """Returns the joined channels of results (1, *shape) of earlier layers."""
        parts = []
        for _, source, (down, right), _ in self.maps:
            result = results[source]
            if result.ndim == 4 and self.shape.image != (1, 1):
                parts.append(result[0, :, ::down, ::right])
            else:
                parts.append(result.reshape(-1, 1, 1))
        return np.concatenate(parts)

    def weights(self, maps: Sequence[Map]) -> Array:
        """Returns the joined weights of the layer's maps, with zeros between groups and taps."""
        parts = []
        for number, _, _, (top, left) in self.maps:
            own = _full_weights(maps[number])
            outputs, channels, rows, columns = own.shape
            part = np.zeros((outputs, channels, *self.shape.kernel), np.int32)
            part[:, :, top : top + rows, left : left + columns] = own
            parts.append(part)
        return np.concatenate(parts, axis=1)


def products_of(terms: Sequence[PublicTerm]) -> list[Product]:
    """Returns the products of a layer: maps are joined where that takes fewer bytes."""
    found: list[Product] = []
    order = sorted(range(len(terms)), key=lambda number: -int(np.prod(terms[number].kernel or 1)))
    for number in order:
        shape, step = _shape(terms[number])
        alone = Product.of(shape, [Joined(number, terms[number].source, step, (0, 0))])
        for place, other in enumerate(found):
            both = _join(other, alone)
            if both is not None and both.encoding.bytes < (
                other.encoding.bytes + alone.encoding.bytes
            ):
                found[place] = both
                break
        else:
            found.append(alone)
    return found


def _join(first: Product, second: Product) -> Product | None:
    """Returns a product of the maps of both, if the second's taps are among the first's."""
    one, other = first.shape, second.shape
    if (one.image, one.stride, one.output) != (other.image, other.stride, other.output):
        return None
    offset = one.padding[0] - other.padding[0], one.padding[1] - other.padding[1]
    ends = offset[0] + other.kernel[0], offset[1] + other.kernel[1]
    if min(offset) < 0 or ends[0] > one.kernel[0] or ends[1] > one.kernel[1]:
        return None
    shape = ConvolutionShape(
        one.in_channels + other.in_channels,
        one.out_channels,
        one.image,
        one.kernel,
        one.stride,
        one.padding,
    )
    moved = [joined._replace(offset=offset) for joined in second.maps]
    return Product.of(shape, [*first.maps, *moved])


def _shape(term: PublicTerm) -> tuple[ConvolutionShape, Pair]:
    """Returns a map as a convolution without groups and gaps, and the step between its pixels."""
    if term.kernel is None:
        return linear(int(np.prod(term.inputs)), term.outputs[0]), (1, 1)
    kernel = _spans(term.kernel, term.dilation)
    channels, outputs, image = term.inputs[0], term.outputs[0], term.inputs[1:]
    rows, columns = image
    if kernel == (1, 1) and term.padding == (0, 0):
        down, right = term.stride
        chosen = -(-rows // down), -(-columns // right)
        return ConvolutionShape(channels, outputs, chosen), (down, right)
    shape = ConvolutionShape(channels, outputs, (rows, columns), kernel, term.stride, term.padding)
    return shape, (1, 1)


def _spans(kernel: Shape, dilation: Pair) -> Pair:
    rows, columns = (apart * (size - 1) + 1 for size, apart in zip(kernel, dilation, strict=True))
    return rows, columns


def _full_weights(own: Map) -> Array:
    """Returns the weights of a map, with zeros between groups, and in the gaps of the kernel."""
    if isinstance(own, Dense):
        return own.weights[:, :, None, None].astype(np.int32)
    assert isinstance(own, Convolution)
    outputs, wide, *kernel = own.weights.shape
    full = np.zeros((outputs, wide * own.groups, *_spans(tuple(kernel), own.dilation)), np.int32)
    each, (down, right) = outputs // own.groups, own.dilation
    for group in range(own.groups):
        lines = slice(group * each, (group + 1) * each)
        channels = slice(group * wide, (group + 1) * wide)
        full[lines, channels, ::down, ::right] = own.weights[lines]
    return full
