"""The class in place of the outputs: layers after the last one that find the largest output.

The outputs are looked up as ranks, from 0 to 1,023, which all later layers use. Their numbers are
exact: a layer's values are integers d with two places of the table each, 2 d and 2 d + 1, and both
have the same entry. The value is

    2^shift (2 d) + terms,     2^shift >= 2 terms + 1,

so that neither the rounding by chance nor the errors of the products, up to 1 for each term, leave
these two places. Of equal ranks the first one wins: there is one class, whatever the dithers are.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .._arrays import Array
from ..errors import ArgumentError
from ._activation import Activation
from ._maps import Dense, Ring, Shape
from ._network import Layer, Term
from ._tables import MAX_BITS, MIN_BITS

Classes = npt.NDArray[np.int64]

RANK_BITS = MAX_BITS - 2
"""Bits of a rank: a difference of two has a sign, and two places for each number."""

MOST_PAIRED = 128
"""The most classes of which all pairs are compared; the matrix of pairs has C^3 / 2 numbers."""

MAX_CLASSES = (1 << MAX_BITS - 1) - 1
_RANKS = 1 << RANK_BITS
_UNIT = 4  # of the last number: a product may be 1 off

_Numbers = npt.NDArray[np.int64]
_Sum = dict[int, _Numbers]  # a matrix for each earlier result


def check_count(shape: Shape) -> None:
    """Raises ArgumentError for outputs (n, *shape) that have no class, or too many."""
    if len(shape) != 1 or not 2 <= shape[0] <= MAX_CLASSES:
        raise ArgumentError(
            f'outputs="class": found outputs of shape {("n", *shape)}, expected (n, C) for 2 to '
            f"{MAX_CLASSES:,} classes: tables of 2^{MAX_BITS} entries compare no more; compile "
            'with outputs="logits", and let the client take the largest one'
        )


# ---- ranks ---------------------------------------------------------------------------------------


def ranking(low: float, high: float, margin: float) -> tuple[Activation, float, float]:
    """Returns the table of ranks for outputs from `low` to `high`, its unit, and its center.

    The outputs and a margin have all ranks, with two places each, in one half of the window. In the
    other half are outputs that are lower or higher: they have the first or the last rank.
    """
    half = (high - low) / 2 * (1 + margin) or 1.0

    def rank(places: _Numbers) -> _Numbers:
        return (places + _RANKS >> 1).clip(0, _RANKS - 1)

    return Activation(rank, bits=MAX_BITS, outputs=RANK_BITS), half / _RANKS, (low + high) / 2


# ---- the largest rank ----------------------------------------------------------------------------


def class_layers(shape: Shape, source: int) -> list[Layer]:
    """Returns the layers from ranks, result `source` of a shape, to the number of the largest one.

    The number is 4 (class + 1), up to 1. Up to MOST_PAIRED classes: all pairs are compared, then
    wins are counted. For more: a tournament, then the first rank that is equal to the largest.
    """
    count = int(np.prod(shape))
    check_count((count,))
    found = _Builder(shape, source)
    largest = _paired(found, count) if count <= MOST_PAIRED else _tournament(found, count)
    numbers = _UNIT * np.arange(1, count + 1)[None]
    return [*found.layers, Layer((Term(largest, Dense(numbers)),), np.zeros(1, np.int64))]


def layer_names(count: int) -> list[str]:
    """Returns the names of the layers with tables, from that of the ranks on."""
    if count <= MOST_PAIRED:
        return ["ranks", "compare", "wins"]
    return ["ranks", *["maximum"] * (count - 1).bit_length(), "equal", "first"]


class _Builder:
    """Layers of exact integers, and the shapes of their results."""

    def __init__(self, shape: Shape, source: int) -> None:
        self.ranks, self.layers = source, list[Layer]()
        self._shapes = {source: shape}

    def add(self, values: _Sum, bias: _Numbers | int, activation: Activation) -> int:
        """Adds a layer of values d, a sum and a bias; returns the number of its result."""
        terms = len(values)
        shift = (2 * terms).bit_length()
        maps = (
            Term(source, Dense(matrix << shift + 1, self._shapes[source]))
            for source, matrix in values.items()
        )
        rows = len(next(iter(values.values())))
        places = (np.zeros(rows, np.int64) + bias << shift + 1) + terms
        self.layers.append(Layer(tuple(maps), places, activation, shift))
        number = self.ranks + len(self.layers)
        self._shapes[number] = (rows,)
        return number


def _paired(found: _Builder, count: int) -> int:
    """Compares all pairs; a class is the largest if it wins all of its comparisons."""
    first, second = np.triu_indices(count, 1)
    pairs = np.arange(len(first))
    differences = np.zeros((len(pairs), count), np.int64)
    differences[pairs, first], differences[pairs, second] = 1, -1
    wins = found.add({found.ranks: differences}, 0, _compared(lambda d: d >= 0, 1))
    return found.add({wins: differences.T}, np.arange(count) - (count - 1), _is_zero(count - 1))


def _tournament(found: _Builder, count: int) -> int:
    """Finds the largest rank, by max(a, b) = b + relu(a - b), then the first class that has it."""
    ranks = np.eye(count, dtype=np.int64)
    left: _Sum = {found.ranks: ranks}
    relu = _compared(lambda d: np.clip(d, 0, _RANKS - 1), RANK_BITS)
    while (size := len(left[found.ranks])) > 1:
        half = size // 2
        over = found.add({k: own[:half] - own[half : 2 * half] for k, own in left.items()}, 0, relu)
        left = {k: own[half:] for k, own in left.items()}
        left[over] = np.eye(size - half, half, dtype=np.int64)
    below = {k: -np.repeat(own, count, 0) for k, own in left.items()}
    below[found.ranks] += ranks
    equal = found.add(below, 0, _is_zero(_RANKS - 1))
    others = ranks - np.tri(count, k=-1, dtype=np.int64)
    return found.add({equal: others}, -1, _is_zero(count))


def _compared(function: Callable[[_Numbers], Array], outputs: int) -> Activation:
    """Returns the table of a function of a difference of two ranks."""
    return Activation(
        lambda places: function(places >> 1), bits=MAX_BITS, outputs=outputs, low=2 - 2 * _RANKS
    )


def _is_zero(most: int) -> Activation:
    """Returns the table of [d = 0] for d from -most to 0."""
    bits = max(MIN_BITS, (2 * most + 1).bit_length())
    return Activation(lambda places: places >> 1 == 0, bits=bits, outputs=1, low=2 - (1 << bits))


# ---- the last number -----------------------------------------------------------------------------


def classes_of(outputs: Ring, count: int) -> Classes:
    """Returns the classes (n,) for the last layer's outputs (n, 1), integers modulo 2^32.

    The two lowest bits do not count: the last product may be 1 off. A number that is no class gives
    the next one: only a server that deviates causes it, and an error would tell it about the class.
    """
    numbers = outputs.view(np.int32).reshape(-1).astype(np.int64)
    found: Classes = ((numbers + _UNIT // 2) // _UNIT - 1).clip(0, count - 1)
    return found
