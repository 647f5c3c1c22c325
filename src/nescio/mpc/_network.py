"""Networks of integers: linear maps, then lookups in tables, and what they compute in clear.

All numbers are modulo 2^32. Layer k adds the maps of earlier results and a bias; its values are
shifted to the right, rounded, and looked up in the table of its activation. The last layer has no
activation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._arrays import Array, as_count
from ..errors import ArgumentError
from ._activation import Activation
from ._maps import Map, Ring, Shape

MAX_LAYERS = 4096


class Term(NamedTuple):
    """A map of an earlier result: `source` 0 is the network's input, k the result of layer k."""

    source: int
    map: Map


@dataclass(frozen=True, eq=False)
class Layer:
    """A sum of maps and a bias (outputs shape, or one number a channel), then an activation."""

    terms: tuple[Term, ...]
    bias: Array
    activation: Activation | None = None
    shift: int = 0

    @property
    def outputs(self) -> Shape:
        """The shape of a result."""
        return self.terms[0].map.outputs

    @property
    def size(self) -> int:
        """The number of values, each of which takes one table."""
        return int(np.prod(self.outputs))

    def total(self, results: Sequence[Ring]) -> Ring:
        """Returns the sum of the maps of earlier results, without the bias."""
        first, *others = self.terms
        total = first.map(results[first.source])
        for term in others:
            total += term.map(results[term.source])
        return total

    def biased(self, total: Ring) -> Ring:
        """Adds the bias."""
        bias = self.bias.astype(np.int64).astype(np.uint32)
        if bias.ndim == 1:
            bias = bias.reshape(-1, *(1,) * (len(self.outputs) - 1))
        return total + bias


class Simulated(NamedTuple):
    """The last layer's outputs (n, *shape), and the number of wrong lookups of each layer.

    A lookup is wrong if its value is outside the window of the activation.
    """

    outputs: Ring
    wraps: list[int]


@dataclass(frozen=True, eq=False)
class Network:
    """Layers in their order, for inputs of one shape. Raises ArgumentError if they do not fit."""

    inputs: Shape
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        as_count(len(self.layers), "layers", 1, MAX_LAYERS)
        shapes = [tuple(self.inputs)]
        for number, layer in enumerate(self.layers, 1):
            _check(layer, number, shapes)
            shapes.append(layer.outputs)
        if self.layers[-1].activation is not None:
            raise ArgumentError("the last layer: found an activation, expected none")

    def simulate(
        self, inputs: Ring, dithers: Sequence[Ring], errors: Sequence[Ring] | None = None
    ) -> Simulated:
        """Computes what the two parties compute, in clear.

        `inputs` (n, *inputs) are integers modulo 2^32. `dithers[k]` (n, *outputs) are the client's
        shares of the values of layer k, for all layers but the last: they decide the rounding.
        `errors[k]` are added to the values of layer k: a product of encrypted numbers may be 1 off.
        """
        results, wraps = [inputs], list[int]()
        for number, (layer, own) in enumerate(zip(self.layers, [*dithers, None], strict=True)):
            values = layer.biased(layer.total(results))
            if errors is not None:
                values += errors[number]
            if layer.activation is None or own is None:
                return Simulated(values, wraps)
            found, wrapped = layer.activation.simulate(values, own, layer.shift)
            results.append(found)
            wraps.append(int(wrapped.sum()))
        raise AssertionError("the last layer has no activation")


def _check(layer: Layer, number: int, shapes: list[Shape]) -> None:
    """Raises ArgumentError for a layer that does not fit the results before it."""
    what = f"layer {number}"
    if not layer.terms:
        raise ArgumentError(f"{what}: found no map, expected one or more")
    for source, linear in layer.terms:
        as_count(source, f"{what}: a source", 0, len(shapes) - 1)
        if tuple(linear.inputs) != shapes[source]:
            raise ArgumentError(
                f"{what}: found a map of {linear.inputs}, expected {shapes[source]}, the shape of "
                f"result {source}"
            )
        if linear.outputs != layer.outputs:
            raise ArgumentError(
                f"{what}: found maps to {linear.outputs} and {layer.outputs}, expected one shape"
            )
    if layer.bias.shape not in (layer.outputs, layer.outputs[:1]):
        raise ArgumentError(
            f"{what}: found a bias of shape {layer.bias.shape}, expected {layer.outputs}, or "
            f"{layer.outputs[:1]}"
        )
    if layer.activation is not None:
        as_count(layer.shift, f"{what}: shift", 0, 32 - layer.activation.bits)
