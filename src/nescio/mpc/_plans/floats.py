"""Networks of floats: linear maps of earlier results, then a function of each number."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...errors import ArgumentError
from .._maps import Convolution, Dense, Floats, Shape
from .._network import Term

_CHUNK = 64

Windows = list[tuple[Floats, Floats]]


class FloatTerm(NamedTuple):
    """A linear map with float weights: `geometry` is a map of the same shapes."""

    source: int
    geometry: Convolution | Dense
    weights: Floats

    def __call__(self, values: Floats) -> Floats:
        """Maps a batch of values."""
        return self.geometry.floats(values, self.weights)

    def scaled(self, scales: Floats, results: Floats) -> Floats:
        """Returns the weights for inputs and results that are multiples of a scale a channel."""
        geometry, after = self.geometry, (1,) * (self.weights.ndim - 2)
        if isinstance(geometry, Dense):
            own = np.repeat(scales, self.weights.shape[1] // len(scales))[None]
        else:
            groups, each = geometry.groups, len(self.weights) // geometry.groups
            own = np.repeat(scales.reshape(groups, -1), each, axis=0)
        found: Floats = self.weights * own.reshape(*own.shape, *after)
        return found / results.reshape(-1, 1, *after)

    def rounded(self, scales: Floats, results: Floats) -> Term:
        """Returns the map with rounded weights for them."""
        whole = np.rint(self.scaled(scales, results)).astype(np.int64)
        geometry = replace(self.geometry, weights=whole)
        return Term(self.source, geometry)


@dataclass(frozen=True, eq=False)
class Function:
    """A function of one number. `scales` says that f(s x) = s f(x) for all s above 0.

    A function that scales may have another scale for each channel.
    """

    name: str
    of: Callable[[Floats], Floats]
    scales: bool = False

    def __call__(self, values: Floats) -> Floats:
        """Maps each number."""
        return self.of(values)


RELU = Function("relu", lambda values: np.maximum(values, 0), scales=True)


@dataclass(frozen=True, eq=False)
class FloatLayer:
    """Terms and a bias, then a function unless it is the last layer.

    The bias has one number a channel, or the shape of a result.
    """

    terms: tuple[FloatTerm, ...]
    bias: Floats
    function: Function = RELU

    @property
    def outputs(self) -> Shape:
        """The shape of a result."""
        return self.terms[0].geometry.outputs

    def values(self, results: Sequence[Floats]) -> Floats:
        """Returns the values of the layer, before its activation."""
        first, *others = (term(results[term.source]) for term in self.terms)
        for other in others:
            first = first + other
        if self.bias.ndim > 1:
            return first + self.bias
        return first + self.bias.reshape(-1, *(1,) * (first.ndim - 2))


def run(layers: Sequence[FloatLayer], inputs: Floats) -> Iterator[Floats]:
    """Yields the values of every layer for inputs (n, *inputs)."""
    results = [inputs]
    for layer in layers:
        values = layer.values(results)
        yield values
        results.append(layer.function(values))


def windows_of(layers: Sequence[FloatLayer], calibration: Floats) -> Windows:
    """Returns the lowest and highest value of each channel, for every layer.

    Raises ArgumentError for values that are not finite.
    """
    found: Windows = []
    for first in range(0, len(calibration), _CHUNK):
        for number, values in enumerate(run(layers, calibration[first : first + _CHUNK])):
            if not np.isfinite(values).all():
                raise ArgumentError(
                    f"layer {number + 1}: found values that are not finite for the calibration, "
                    "expected finite ones; clamp the inputs of the function before it"
                )
            axes = tuple(axis for axis in range(values.ndim) if axis != 1)
            low, high = values.min(axes), values.max(axes)
            if first:
                low, high = np.minimum(low, found[number][0]), np.maximum(high, found[number][1])
                found[number] = low, high
            else:
                found.append((low, high))
    return found
