"""The products of a network: which maps share one, and which ciphertexts each of them uses.

The maps of a layer are added in one product where their layouts agree: a shortcut of a residual
layer takes no results of its own. A mask that several maps use is encrypted once where its layout
serves all of them: the first convolution of a residual block and its shortcut read the same pixels,
also where both have a stride. Both parties compute the same plan from the public shapes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._arrays import Array
from ..errors import ArgumentError
from ._encoding import RESULT_BITS, Encoding, cheapest
from ._layout import ConvolutionShape, Layout, N, Pair, linear
from ._maps import Convolution, Dense, Map, Ring, Shape
from ._network import Layer as NetworkLayer
from ._network import Network
from ._public import PublicLayer, PublicNetwork, PublicTerm

MAX_MAGNITUDES, MAX_NORM = 1 << 25, 1 << 19


class Message(NamedTuple):
    """The ciphertexts of a result's mask."""

    source: int
    layout: Layout

    def image(self, results: Sequence[Ring]) -> Ring:
        """Returns the result (1, *shape) as an image."""
        shape = self.layout.shape
        image: Ring = results[self.source].reshape(shape.in_channels, *shape.image)
        return image


class Part(NamedTuple):
    """A map in a product: its number in the layer, the product's layout, its first tap there."""

    number: int
    layout: int
    offset: Pair
    groups: int


@dataclass(frozen=True)
class Product:
    """Some maps of a layer, the numbers of the messages with their inputs, and the encoding."""

    encoding: Encoding
    messages: tuple[int, ...]
    parts: tuple[Part, ...]

    @cached_property
    def present(self) -> list[npt.NDArray[np.bool_]]:
        """The polynomials (outputs, inputs) of each layout that have weights, for any weights.

        Those between groups are zero, and take neither memory nor time.
        """
        encoding = self.encoding
        found = [np.zeros((encoding.outputs, own.inputs), np.bool_) for own in encoding.layouts]
        for part in self.parts:
            found[part.layout] |= encoding.present(encoding.layouts[part.layout], part.groups)
        return found

    @property
    def polynomials(self) -> int:
        """The number of polynomials that have weights."""
        return sum(int(own.sum()) for own in self.present)

    def weights(self, maps: Sequence[Map], channels: slice) -> list[npt.NDArray[np.int32]]:
        """Returns the weights of some output channels for each layout, with zeros between taps."""
        first, end, _ = channels.indices(self.encoding.out_channels)
        found = [
            np.zeros((end - first, own.shape.in_channels, *own.shape.kernel), np.int32)
            for own in self.encoding.layouts
        ]
        for number, layout, (top, left), _ in self.parts:
            own = _full_weights(maps[number], first, end)
            rows, columns = own.shape[2:]
            found[layout][:, :, top : top + rows, left : left + columns] += own
        return found


class _Need(NamedTuple):
    """A map as a convolution of a result."""

    number: int
    source: int
    shape: ConvolutionShape
    groups: int


class _Choice(NamedTuple):
    """A product of some maps with its new messages, and the bytes of these and of the answer."""

    bytes: int
    product: Product
    new: tuple[Message, ...]


@dataclass
class ProductPlan:
    """The client's messages, and the products of each layer."""

    messages: list[Message] = field(default_factory=list)
    layers: list[list[Product]] = field(default_factory=list)

    @classmethod
    def of(cls, network: PublicNetwork) -> "ProductPlan":
        """Chooses the products with the fewest bytes, layer by layer.

        Raises ArgumentError for a kernel with more taps than a polynomial has coefficients.
        """
        plan = cls()
        for layer in network.layers:
            plan.layers.append([plan._added(group, layer) for group in plan._groups(layer)])
        return plan

    def last_uses(self) -> dict[int, int]:
        """Returns the last layer that uses each message."""
        return {
            message: layer
            for layer, products in enumerate(self.layers)
            for own in products
            for message in own.messages
        }

    def _groups(self, layer: PublicLayer) -> list[list[_Need]]:
        """Returns the maps of each product: they are joined where that takes fewer bytes."""
        needs = [
            _Need(number, term.source, shape_of(term), term.groups)
            for number, term in enumerate(layer.terms)
        ]
        groups: list[list[_Need]] = []
        for need in sorted(needs, key=lambda need: -int(np.prod(need.shape.kernel))):
            alone = self._cheapest([need], layer).bytes
            for group in groups:
                apart = self._cheapest(group, layer).bytes + alone
                if self._cheapest([*group, need], layer).bytes < apart:
                    group.append(need)
                    break
            else:
                groups.append([need])
        return groups

    def _added(self, needs: Sequence[_Need], layer: PublicLayer) -> Product:
        """Adds the messages of a product, and returns it."""
        choice = self._cheapest(needs, layer)
        self.messages += choice.new
        return choice.product

    def _cheapest(self, needs: Sequence[_Need], layer: PublicLayer) -> _Choice:
        """Returns a product with the messages there are of one tile and pitch, or with none."""
        fitting = [
            (need, number)
            for need in needs
            for number, (source, layout) in enumerate(self.messages)
            if source == need.source and layout.fits(need.shape) is not None
        ]
        bounds = {self._bound(number) for _, number in fitting}
        choices = [self._choice(needs, {}, layer)]
        for bound in sorted(bounds):
            known = {need.number: at for need, at in fitting if self._bound(at) == bound}
            choices.append(self._choice(needs, known, layer))
        found = [choice for choice in choices if choice is not None]
        if not found:
            shapes = [need.shape for need in needs]
            raise ArgumentError(f"{shapes}: the taps of a kernel exceed {N} coefficients")
        return min(found, key=lambda choice: (choice.bytes, choice.product.encoding.products))

    def _bound(self, number: int) -> tuple[Pair, int]:
        """Returns what layouts of a product have in common."""
        layout = self.messages[number].layout
        return layout.tile, layout.pitch

    def _choice(
        self, needs: Sequence[_Need], known: dict[int, int], layer: PublicLayer
    ) -> _Choice | None:
        """Returns the product with the `known` messages of some maps, by their numbers."""
        messages = sorted(set(known.values()))
        fresh = _fresh([need for need in needs if need.number not in known])
        given = tuple(self.messages[number].layout for number in messages)
        shapes = tuple(need.shape for need in fresh)
        encoding = cheapest(shapes, given, layer.outputs[0], bits_of(layer))
        if encoding is None:
            return None
        added = encoding.layouts[len(given) :]
        new = tuple(Message(own.source, one) for own, one in zip(fresh, added, strict=True))
        sources = [self.messages[number].source for number in messages]
        sources += [need.source for need in fresh]
        parts = tuple(_part(need, sources, encoding) for need in needs)
        numbers = (*messages, *range(len(self.messages), len(self.messages) + len(new)))
        cost = encoding.bytes_out + sum(message.layout.bytes for message in new)
        return _Choice(cost, Product(encoding, numbers, parts), new)


def overloaded(network: Network) -> list[int]:
    """Returns the layers, from 0, whose weights exceed the bounds of core/rlwe/layer.h.

    They are for all weights of an output polynomial: the sum of magnitudes, and the norm.
    """
    sums = [_sums(layer) for layer in network.layers]
    if all(_within(*(own.sum(1, keepdims=True) for own in pair)) for pair in sums):
        return []  # also if all channels share a polynomial
    plan = ProductPlan.of(network.public)
    return [
        number
        for number, (products, pair) in enumerate(zip(plan.layers, sums, strict=True))
        if not all(_fits(product, *pair) for product in products)
    ]


def _sums(layer: NetworkLayer) -> tuple[Array, Array]:
    """Returns the sums of magnitudes and of squares (terms, channels) of a layer's weights."""
    flat = [own.map.weights.reshape(len(own.map.weights), -1) for own in layer.terms]
    magnitudes = np.array([np.abs(own).sum(1, dtype=np.float64) for own in flat])
    squares = np.array([np.square(own, dtype=np.float64).sum(1) for own in flat])
    return magnitudes, squares


def _fits(product: Product, magnitudes: Array, squares: Array) -> bool:
    """Tests the bounds for the terms of a product, by output polynomials."""
    own = [part.number for part in product.parts]
    starts = np.arange(0, product.encoding.out_channels, product.encoding.packed)
    packed = (np.add.reduceat(sums[own], starts, axis=1) for sums in (magnitudes, squares))
    return _within(*packed)


def _within(magnitudes: Array, squares: Array) -> bool:
    """Tests the bounds for sums of the terms (terms, polynomials); terms may share places."""
    return bool(
        (magnitudes.sum(0) <= MAX_MAGNITUDES).all() and (np.sqrt(squares).sum(0) <= MAX_NORM).all()
    )


def _fresh(needs: Sequence[_Need]) -> list[_Need]:
    """Returns the needs, without those that the layouts of others serve."""
    found: list[_Need] = []
    for need in needs:
        served = (
            one.source == need.source and Layout(one.shape, (1, 1)).fits(need.shape) is not None
            for one in found
        )
        if not any(served):
            found.append(need)
    return found


def _part(need: _Need, sources: Sequence[int], encoding: Encoding) -> Part:
    """Finds the layout of a map's input in the product."""
    for number, (source, layout) in enumerate(zip(sources, encoding.layouts, strict=True)):
        offset = layout.fits(need.shape) if source == need.source else None
        if offset is not None:
            return Part(need.number, number, offset, need.groups)
    raise AssertionError("a map without an input")


def bits_of(layer: PublicLayer) -> int:
    """Returns the bits of a layer's values that count: higher ones do not change its lookups."""
    if layer.activation is None:
        return RESULT_BITS
    return min(layer.shift + layer.activation.bits, RESULT_BITS)


def shape_of(term: PublicTerm) -> ConvolutionShape:
    """Returns a map as a convolution without groups and gaps."""
    if term.kernel is None:
        return linear(int(np.prod(term.inputs)), term.outputs[0])
    rows, columns = term.inputs[1:]
    kernel = _spans(term.kernel, term.dilation)
    sizes = (kernel, term.stride, term.padding)
    return ConvolutionShape(term.inputs[0], term.outputs[0], (rows, columns), *sizes)


def _spans(kernel: Shape, dilation: Pair) -> Pair:
    rows, columns = (apart * (size - 1) + 1 for size, apart in zip(kernel, dilation, strict=True))
    return rows, columns


def _full_weights(own: Map, first: int, end: int) -> npt.NDArray[np.int32]:
    """Returns weights of some output channels, with zeros between groups and in gaps of kernels."""
    if isinstance(own, Dense):
        return own.weights[first:end, :, None, None].astype(np.int32)
    assert isinstance(own, Convolution)
    outputs, wide, *kernel = own.weights.shape
    spans = _spans((kernel[0], kernel[1]), own.dilation)
    full = np.zeros((end - first, wide * own.groups, *spans), np.int32)
    each, (down, right) = outputs // own.groups, own.dilation
    for group in range(first // each, -(-end // each)):
        low, high = max(group * each, first), min((group + 1) * each, end)
        channels = slice(group * wide, (group + 1) * wide)
        full[low - first : high - first, channels, ::down, ::right] = own.weights[low:high]
    return full
