"""Networks of integers: linear maps, then lookups in tables, and what they compute in clear.

All numbers are modulo 2^32. Layer k adds the maps of earlier results and a bias; its values are
shifted to the right, rounded, and looked up in the table of its activation. The last layer has no
activation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .. import _core
from .._arrays import Array
from ..errors import ArgumentError
from ._activation import Activation
from ._maps import Map, Ring, Shape
from ._public import PublicNetwork


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
        for number, (layer, own) in enumerate(zip(self.layers, self.public.layers, strict=True), 1):
            bias = layer.bias
            if bias.dtype.kind not in "iu" or bias.shape not in (own.outputs, own.outputs[:1]):
                raise ArgumentError(
                    f"layer {number}: found a bias, {bias.dtype} of shape {bias.shape}, expected "
                    f"integers of shape {own.outputs[:1]} or {own.outputs}"
                )

    @cached_property
    def public(self) -> PublicNetwork:
        """The part that both parties know; the client needs no more."""
        return PublicNetwork.of(self)

    def simulate(
        self,
        inputs: Ring,
        dithers: Sequence[Ring] | None = None,
        errors: Sequence[Ring] | None = None,
    ) -> Simulated:
        """Computes what the two parties compute, in clear.

        `inputs` (n, *inputs) are integers modulo 2^32, dtype uint32. `dithers[k]` (n, *outputs) are
        the client's shares of the values of layer k, for all layers but the last: they decide the
        rounding; without them, uniform ones are drawn. `errors[k]` are added to the values of
        layer k: a product of encrypted numbers may be 1 off. Raises ArgumentError for inputs of
        another shape.
        """
        if inputs.shape[1:] != tuple(self.inputs) or inputs.dtype != np.uint32:
            raise ArgumentError(
                f"inputs: found {inputs.dtype} of shape {inputs.shape}, expected uint32 of shape "
                f"{('n', *self.inputs)}"
            )
        if dithers is None:
            dithers = self.draw_dithers(len(inputs))
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

    def draw_dithers(self, count: int) -> list[Ring]:
        """Draws the dithers of `count` inferences, as the offline phase does: uniform ones."""
        return [uniform((count, *layer.outputs)) for layer in self.layers[:-1]]


def uniform(shape: Shape) -> Ring:
    """Draws numbers modulo 2^32 from the operating system."""
    numbers: Ring = np.empty(shape, np.uint32)
    _core.fill_random(numbers.view(np.uint8).reshape(-1))
    return numbers
