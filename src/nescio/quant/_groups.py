"""Scales for groups of columns of a row: the search for their steps, and the rounding.

A group of 32, 64 or 128 columns has a float16 step, which may be negative. Of some steps between
the one that clips nothing and one that clips much, each group takes that of least squared error;
the levels that it rounds to then give the best step for them (see `_steps`). All groups are
searched at the same time. Weights are rounded with the float16 that is stored.
"""

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError
from ._steps import FloatArray, levels

HalfArray = npt.NDArray[np.float16]
IntegerArray = npt.NDArray[np.int8]

GROUPS = (32, 64, 128)
"""Columns of a group."""

_TRIED = 20
_REFINED = 2
_CHUNK_WEIGHTS = 1 << 18  # the temporary arrays of so many weights fit in the cache
_SMALLEST = np.finfo(np.float16).smallest_subnormal
_LARGEST = float(np.finfo(np.float16).max)


def check_group(group: object) -> int:
    """Checks the columns of a group; 0 means none. Raises ArgumentError for other numbers."""
    if isinstance(group, bool) or not isinstance(group, int) or group not in (0, *GROUPS):
        raise ArgumentError(f"group: found {group!r}, expected 32, 64 or 128 columns")
    return group


def groups_of(columns: int, group: int) -> int:
    """Returns the number of groups of a row; the last may have fewer columns."""
    return -(-columns // group)


def group_steps(matrix: FloatArray, bits: int, group: int, *, clip: bool = True) -> HalfArray:
    """Returns the step of each group of finite floats (rows, columns): (rows, groups).

    With `clip=False` the levels span the largest |w| of the group. Raises ArgumentError for weights
    whose steps are beyond float16.
    """
    rows, columns = matrix.shape
    steps = np.empty((rows, groups_of(columns, group)), np.float16)
    chunk = max(1, _CHUNK_WEIGHTS // columns)
    for first in range(0, rows, chunk):
        part = slice(first, first + chunk)
        steps[part] = _as_halves(_steps_of(matrix[part], bits, group, clip), first)
    return steps


def rounded(matrix: FloatArray, bits: int, group: int, steps: HalfArray) -> IntegerArray:
    """Rounds floats (rows, columns) to the levels of each group's step."""
    if bits == 1:
        return np.where(matrix >= 0, 1, -1).astype(np.int8)
    low, high = levels(bits)
    wide = spread(steps, group, matrix.shape[1]).astype(np.float32)
    quotients = np.divide(matrix, wide, out=np.zeros_like(matrix), where=wide != 0)
    return np.clip(np.rint(quotients, out=quotients), low, high, out=quotients).astype(np.int8)


def spread(steps: HalfArray, group: int, columns: int) -> HalfArray:
    """Repeats the step of each group for its columns: (rows, columns)."""
    return np.repeat(steps, group, axis=1)[:, :columns]


def _steps_of(matrix: FloatArray, bits: int, group: int, clip: bool) -> FloatArray:
    rows, columns = matrix.shape
    count = groups_of(columns, group)
    padded = np.zeros((rows, count * group), np.float32)
    padded[:, :columns] = matrix
    groups = padded.reshape(rows, count, group)
    largest = np.abs(groups).max(axis=2)
    if bits == 1 and clip:
        sizes = np.full(count, group)
        sizes[-1] = columns - (count - 1) * group
        mean: FloatArray = np.abs(groups).sum(axis=2) / sizes.astype(np.float32)
        return mean
    if not clip:
        widest: FloatArray = largest / np.float32(2 if bits == 1 else 1 << bits - 1)
        return widest
    return _best(groups, largest, bits)


def _best(groups: FloatArray, largest: FloatArray, bits: int) -> FloatArray:
    """Returns the best of the steps that are tried, refined by the levels that it rounds to."""
    low, high = levels(bits)
    factors = np.linspace(0.3 if bits < 4 else 0.6, 1.15, _TRIED, dtype=np.float32)
    # There is one more level below zero than above: a negative step gives it to the largest weight.
    signs = np.where(groups.max(axis=2) > -groups.min(axis=2), np.float32(-1), np.float32(1))
    safe = np.where(largest > 0, largest, 1) * signs
    weights = groups / safe[..., np.newaxis]  # so that no square underflows
    best = np.zeros_like(largest)
    score = np.full(largest.shape, -1, np.float32)
    for factor in factors:
        products, squares = _moments(weights, np.full_like(largest, factor / -low), low, high)
        own = products * products / np.maximum(squares, 1)
        better = own > score
        score = np.where(better, own, score)
        best = np.where(better, products / np.maximum(squares, 1), best)
    for _ in range(_REFINED):
        products, squares = _moments(weights, best, low, high)
        best = np.where(squares > 0, products / np.maximum(squares, 1), best)
    return best * largest * signs


def _moments(
    weights: FloatArray, steps: FloatArray, low: int, high: int
) -> tuple[FloatArray, FloatArray]:
    """Returns the sums of q w and of q^2 of each group, with q the integers of its step."""
    inverse = np.divide(1, steps, out=np.zeros_like(steps), where=steps != 0)
    integers = weights * inverse[..., np.newaxis]
    np.clip(np.rint(integers, out=integers), low, high, out=integers)
    return (
        np.einsum("rgi,rgi->rg", integers, weights),
        np.einsum("rgi,rgi->rg", integers, integers),
    )


def _as_halves(steps: FloatArray, first_row: int) -> HalfArray:
    """Converts steps to float16; a step that underflows becomes the smallest float16."""
    sizes = np.abs(steps)
    if sizes.max(initial=0) > _LARGEST:
        row, number = np.unravel_index(int(sizes.argmax()), steps.shape)
        raise ArgumentError(
            f"weights: found a step of {sizes[row, number]:g} for row {first_row + row}, group "
            f"{number}; expected at most {_LARGEST:g}, the largest float16: scale the layer down"
        )
    narrow = np.where(sizes > 0, np.maximum(sizes.astype(np.float16), _SMALLEST), np.float16(0))
    return np.copysign(narrow, steps).astype(np.float16)
