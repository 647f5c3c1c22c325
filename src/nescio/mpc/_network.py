"""Networks of integers: linear maps, then lookups in tables, and what they compute in clear.

All numbers are modulo 2^32. Layer k adds the maps of earlier results and a bias; its values are
shifted to the right, rounded, and looked up in the table of its activation. The last layer has no
activation.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .. import _core
from .._arrays import Array, as_array, shown
from ..errors import ArgumentError
from ._activation import Activation
from ._maps import Map, Ring, Shape, as_shape, check_ring
from ._public import PublicNetwork

_RING_BITS = 32


class Term(NamedTuple):
    """A map of an earlier result: `source` 0 is the network's input, k the result of layer k."""

    source: int
    map: Map


@dataclass(frozen=True, eq=False)
class Layer:
    """A sum of maps and a bias, then an activation of each value.

    `bias` are integers, one number a channel or an array of the outputs' shape. `shift` lower bits
    of a value are dropped, by chance up or down, and the rest is its place in the activation's
    table. Raises ArgumentError for terms that are not a tuple of Term.
    """

    terms: tuple[Term, ...]
    bias: Array
    activation: Activation | None = None
    shift: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.terms, tuple) or not all(
            isinstance(one, Term) for one in self.terms
        ):
            raise ArgumentError(
                f"terms: found {shown(self.terms)}, expected a tuple of terms, such as "
                "(Term(0, map),)"
            )
        object.__setattr__(self, "bias", as_array(self.bias, "bias"))

    @property
    def outputs(self) -> Shape:
        """The shape of a result."""
        return self.terms[0].map.outputs

    @property
    def size(self) -> int:
        """The number of values, each of which takes one table."""
        return int(np.prod(self.outputs))

    def total(self, results: Sequence[Ring]) -> Ring:
        """Returns the sum (n, *outputs) of the maps of earlier results, without the bias.

        `results` are the network's input (n, *inputs) and the results of the layers before.
        """
        first, *others = self.terms
        total = first.map(results[first.source])
        for term in others:
            total += term.map(results[term.source])
        return total

    def biased(self, total: Ring) -> Ring:
        """Returns `total` (n, *outputs) plus the bias, modulo 2^32."""
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
    """Layers in their order, for inputs of one shape: the server's secret.

    Every layer but the last has an activation. The outputs are the last layer's values. Raises
    ArgumentError for layers that do not fit each other.
    """

    inputs: Shape
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", as_shape(self.inputs, "inputs"))
        if not isinstance(self.layers, tuple) or not all(isinstance(k, Layer) for k in self.layers):
            raise ArgumentError(f"layers: found {shown(self.layers)}, expected a tuple of Layer")
        for number, (layer, own) in enumerate(zip(self.layers, self.public.layers, strict=True), 1):
            bias = layer.bias
            if bias.dtype.kind not in "iu" or bias.shape not in (own.outputs, own.outputs[:1]):
                raise ArgumentError(
                    f"layer {number}: found a bias, {bias.dtype} of shape {bias.shape}, expected "
                    f"integers of shape {own.outputs[:1]} or {own.outputs}"
                )
            low, high = int(bias.min()), int(bias.max())
            if low < -(1 << _RING_BITS - 1) or high >= 1 << _RING_BITS:
                raise ArgumentError(
                    f"layer {number}: found a bias from {low} to {high}, expected "
                    f"{-(1 << _RING_BITS - 1)} to {(1 << _RING_BITS - 1) - 1}"
                )

    @cached_property
    def public(self) -> PublicNetwork:
        """The part that both parties know; the client needs no more."""
        return PublicNetwork.of(self)

    @cached_property
    def weights_digest(self) -> str:
        """SHA-256 of all weights, in hexadecimal: what is prepared is of use with them alone."""
        digest = hashlib.sha256(self.public.digest.encode())
        for layer in self.layers:
            for term in layer.terms:
                digest.update(term.map.weights.astype("<i2").tobytes())
        return digest.hexdigest()

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
        layer k (n, *outputs), uint32: a product of encrypted numbers may be 1 off. Raises
        ArgumentError for arrays of other shapes or dtypes.
        """
        check_ring(inputs, "inputs", ("n", *self.inputs))
        if dithers is None:
            dithers = self.draw_dithers(len(inputs))
        self._check_each("dithers", dithers, self.layers[:-1], len(inputs))
        if errors is not None:
            self._check_each("errors", errors, self.layers, len(inputs))
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

    def _check_each(
        self, what: str, arrays: Sequence[Ring], layers: Sequence[Layer], count: int
    ) -> None:
        """Raises ArgumentError unless there is an array (count, *outputs) for each layer."""
        if not isinstance(arrays, tuple | list) or len(arrays) != len(layers):
            found = f"{len(arrays)} arrays" if isinstance(arrays, tuple | list) else shown(arrays)
            raise ArgumentError(f"{what}: found {found}, expected a list of {len(layers)}")
        for number, (array, layer) in enumerate(zip(arrays, layers, strict=True), 1):
            check_ring(array, f"{what} of layer {number}", (count, *layer.outputs))

    def draw_dithers(self, count: int) -> list[Ring]:
        """Draws the dithers of `count` inferences, as the offline phase does: uniform ones."""
        return [uniform((count, *layer.outputs)) for layer in self.layers[:-1]]


def uniform(shape: Shape) -> Ring:
    """Draws numbers modulo 2^32 from the operating system."""
    numbers: Ring = np.empty(shape, np.uint32)
    _core.fill_random(numbers.view(np.uint8).reshape(-1))
    return numbers
