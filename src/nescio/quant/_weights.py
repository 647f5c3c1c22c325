"""Low-bit matrices: integers as bit planes, with a step for all rows, for each row or for groups.

A weight w is stored as step * q with an integer q of b bits (1 to 8). For b >= 2 the levels are
linear and q = clip(round(w / step), -2^(b-1), 2^(b-1) - 1), in two's complement. One bit has no
zero: q = 1 for w >= 0 and q = -1 for w < 0.

`_steps` finds the step of least mean squared error; with one bit it is mean |w|. `_groups` finds
those of groups of columns.

Source: thesis, section 3.3.2 (planes), 3.3.3 (linear steps, clipping, one bit without a zero).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Array, as_array, as_count
from ..errors import ArgumentError
from ._groups import check_group, group_steps, groups_of, rounded, spread
from ._steps import best_steps, levels, widest_steps

FloatArray = npt.NDArray[np.float32]
PlaneArray = npt.NDArray[np.uint64]
IntegerArray = npt.NDArray[np.int8]
ScaleArray = npt.NDArray[Any]
"""float32 (rows,), or float16 (rows, groups)."""

MAX_WEIGHT_BITS = 8
MAX_COLUMNS = 1 << 22
WORD_BITS = 64

_CHUNK_WEIGHTS = 1 << 18  # the temporary arrays of so many weights fit in the cache


@dataclass(frozen=True, eq=False)
class QuantizedWeights:
    """A matrix of b-bit integers, and the step of each row, or of each group of columns of a row.

    planes    (b, rows, words) uint64, lowest plane first; column j is bit j % 64 of word j // 64,
              and bits beyond the last column are zero
    columns   number of columns
    scale     (rows,) float32: the step of each row, finite; equal for all rows unless `per_row`.
              With a group, (rows, groups) float16
    group     columns of a group: 32, 64 or 128; 0 for a step per row

    Raises ArgumentError for invalid arrays.
    """

    planes: PlaneArray
    columns: int
    scale: ScaleArray
    group: int = 0

    def __post_init__(self) -> None:
        _check_planes(self.planes, as_count(self.columns, "columns", 1, MAX_COLUMNS))
        _check_scale(self.scale, self.rows, self.columns, check_group(self.group))

    @property
    def bits(self) -> int:
        """Bits per weight: the number of planes."""
        return int(self.planes.shape[0])

    @property
    def rows(self) -> int:
        """Number of rows: outputs."""
        return int(self.planes.shape[1])

    def to_integers(self) -> IntegerArray:
        """Returns the integers, (rows, columns) int8; -1 and 1 for one bit."""
        total = np.zeros((self.rows, self.columns), np.uint8)
        for i, plane in enumerate(self.planes):
            total |= _unpacked(plane, self.columns) << np.uint8(i)
        if self.bits == 1:
            return (2 * total.view(np.int8) - 1).astype(np.int8)
        unused = np.uint8(8 - self.bits)  # shifting left, then right, extends the sign
        return (total << unused).view(np.int8) >> unused.astype(np.int8)

    def to_floats(self) -> FloatArray:
        """Returns the dequantized weights, (rows, columns) float32."""
        steps = spread(self.scale, self.group, self.columns) if self.group else self.scale[:, None]
        floats = self.to_integers().astype(np.float32)
        floats *= steps
        return floats

    def mean_error(self, weights: object) -> float:
        """Returns the mean squared difference from float weights (rows, columns).

        Raises ArgumentError for another shape.
        """
        exact = as_weights(weights)
        if exact.shape != (self.rows, self.columns):
            raise ArgumentError(
                f"weights: found shape {exact.shape}, expected {(self.rows, self.columns)}"
            )
        return float(np.mean(np.square(exact.astype(np.float64) - self.to_floats())))


def quantize_weights(
    weights: object, bits: int, *, per_row: bool = False, group: int = 0, clip: bool = True
) -> QuantizedWeights:
    """Quantizes floats (rows, columns) to 1 to 8 bits with the step of least squared error.

    `per_row` uses one step per row instead of one for the matrix; `group`, of 32, 64 or 128, one
    for so many columns of a row. With `clip=False` the levels span the largest |w|, without a
    search for the best step. Deterministic.

    Raises ArgumentError for bits outside 1 to 8, for anything but a matrix of floats, for NaN,
    infinity and values beyond float32, for other groups, and for `per_row` with a group.
    """
    bits = as_count(bits, "weight bits", 1, MAX_WEIGHT_BITS)
    matrix = as_weights(weights)
    if check_group(group):
        if per_row:
            raise ArgumentError("per_row: found a group too, expected one of the two")
        return with_steps(matrix, bits, group_steps(matrix, bits, group, clip=clip), group)
    return with_steps(matrix, bits, steps_of(matrix, bits, per_row=per_row, clip=clip))


def from_integers(
    integers: object, bits: int, scale: object = 1.0, *, group: int = 0
) -> QuantizedWeights:
    """Packs integers (rows, columns) that another program has quantized.

    `scale` is one number or (rows,); with a `group` of 32, 64 or 128 columns it is a number or
    (rows, groups), and stored as float16. The integers are -2^(bits-1) to 2^(bits-1) - 1, or -1 and
    1 if `bits` is 1. Raises ArgumentError naming the first integer outside that range, and for a
    scale that is not finite.
    """
    check_group(group)
    bits = as_count(bits, "weight bits", 1, MAX_WEIGHT_BITS)
    matrix = as_array(integers, "integers")
    if matrix.dtype.kind not in "iu":
        raise ArgumentError(f"integers: found {matrix.dtype}, expected integers")
    _check_shape(matrix, "integers")
    low, high = levels(bits)
    wrong = (matrix < low) | (matrix > high)
    if bits == 1:
        wrong |= matrix == 0
    if wrong.any():
        row, column = np.unravel_index(int(wrong.argmax()), matrix.shape)
        expected = "-1 or 1" if bits == 1 else f"{low} to {high}"
        raise ArgumentError(
            f"integers: found {matrix[row, column]} at row {row}, column {column}; "
            f"expected {expected} for {bits} bits"
        )
    rows = len(matrix)
    shape = (rows, groups_of(matrix.shape[1], group)) if group else (rows,)
    steps = as_array(scale, "scale")
    if steps.dtype.kind not in "fiu" or steps.shape not in ((), shape):
        raise ArgumentError(
            f"scale: found shape {steps.shape} of {steps.dtype}, expected a number or {shape}"
        )
    narrow = np.broadcast_to(_as_scale(steps, group), shape).copy()
    packed = _packed(matrix.astype(np.int8), bits)
    return QuantizedWeights(packed, matrix.shape[1], narrow, group)


def steps_of(
    matrix: FloatArray, bits: int, *, per_row: bool = False, clip: bool = True
) -> FloatArray:
    """Returns the step of each row of checked floats, (rows,), as `quantize_weights` does."""
    groups = matrix if per_row else matrix.reshape(1, -1)
    steps = best_steps(groups, bits) if clip else widest_steps(groups, bits)
    return np.broadcast_to(steps, len(matrix)).copy()


def with_steps(
    matrix: FloatArray, bits: int, steps: ScaleArray, group: int = 0
) -> QuantizedWeights:
    """Rounds checked floats (rows, columns) to the levels of each row's, or each group's, step."""
    integers = np.empty(matrix.shape, np.int8)
    chunk = max(1, _CHUNK_WEIGHTS // matrix.shape[1])
    for first in range(0, len(matrix), chunk):
        rows = slice(first, first + chunk)
        if group:
            integers[rows] = rounded(matrix[rows], bits, group, steps[rows])
        else:
            integers[rows] = _rounded(matrix[rows], bits, steps[rows])
    return QuantizedWeights(_packed(integers, bits), matrix.shape[1], steps, group)


def as_weights(weights: object) -> FloatArray:
    """Converts a matrix to float32. Raises ArgumentError unless it holds finite floats."""
    matrix = as_array(weights, "weights")
    if matrix.dtype.kind != "f":
        raise ArgumentError(
            f"weights: found {matrix.dtype}, expected floats (from_integers takes integers)"
        )
    _check_shape(matrix, "weights")
    narrow = as_float32(matrix)
    if not np.isfinite(narrow).all():
        at = int(np.isfinite(narrow).argmin())
        row, column = divmod(at, narrow.shape[1])
        raise ArgumentError(
            f"weights: found {matrix[row, column]} at row {row}, column {column}; expected finite "
            "numbers of float32"
        )
    return np.ascontiguousarray(narrow)


def _rounded(weights: FloatArray, bits: int, steps: FloatArray) -> IntegerArray:
    if bits == 1:
        return np.where(weights >= 0, 1, -1).astype(np.int8)
    low, high = levels(bits)
    wide = steps.astype(np.float64)[:, np.newaxis]
    quotients = np.divide(weights, wide, out=np.zeros(weights.shape), where=wide != 0)
    return np.clip(np.rint(quotients, out=quotients), low, high, out=quotients).astype(np.int8)


def _packed(integers: IntegerArray, bits: int) -> PlaneArray:
    """Packs integers into bit planes."""
    rows, columns = integers.shape
    words = -(-columns // WORD_BITS)
    planes = np.zeros((bits, rows, words * 8), np.uint8)
    values = (integers > 0).view(np.uint8) if bits == 1 else integers.view(np.uint8)
    for i in range(bits):
        plane = values & np.uint8(1 << i)  # packbits reads any nonzero value as one
        planes[i, :, : -(-columns // 8)] = np.packbits(plane, axis=1, bitorder="little")
    return planes.view("<u8").astype(np.uint64, copy=False)


def _unpacked(plane: PlaneArray, columns: int) -> npt.NDArray[np.uint8]:
    flat = np.ascontiguousarray(plane).astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(flat, axis=1, count=columns, bitorder="little")


def as_float32(values: Array) -> FloatArray:
    """Converts floats to float32; values beyond its range become infinite."""
    with np.errstate(over="ignore"):  # callers reject infinity
        return values.astype(np.float32, copy=False)


def _check_shape(matrix: Array, what: str) -> None:
    if matrix.ndim != 2 or not matrix.size or matrix.shape[1] > MAX_COLUMNS:
        raise ArgumentError(
            f"{what}: found shape {matrix.shape}, expected (rows, columns), each at least 1, and "
            f"columns at most {MAX_COLUMNS}"
        )


def _check_planes(planes: Any, columns: int) -> None:  # noqa: ANN401 - checked here
    if not isinstance(planes, np.ndarray):
        raise ArgumentError(f"planes: found {type(planes).__name__}, expected an array of uint64")
    words = -(-columns // WORD_BITS)
    if planes.dtype != np.uint64 or planes.ndim != 3 or planes.shape[2] != words:
        raise ArgumentError(
            f"planes: found {planes.dtype} of shape {planes.shape}, expected uint64 of shape "
            f"(bits, rows, {words}) for {columns} columns"
        )
    if not 1 <= planes.shape[0] <= MAX_WEIGHT_BITS or not planes.shape[1]:
        raise ArgumentError(
            f"planes: found shape {planes.shape}, expected 1 to {MAX_WEIGHT_BITS} planes of at "
            "least one row"
        )
    used = columns % WORD_BITS
    if used and (planes[:, :, -1] >> np.uint64(used)).any():
        raise ArgumentError(f"planes: found bits beyond column {columns - 1}, expected zeros")


def _as_scale(steps: Array, group: int) -> ScaleArray:
    """Converts a scale to the dtype that is stored; values beyond its range become infinite."""
    with np.errstate(over="ignore"):  # QuantizedWeights rejects infinity
        return steps.astype(np.float16) if group else as_float32(steps)


def _check_scale(scale: Any, rows: int, columns: int, group: int) -> None:  # noqa: ANN401
    shape = (rows, groups_of(columns, group)) if group else (rows,)
    dtype = np.dtype(np.float16 if group else np.float32)
    if not isinstance(scale, np.ndarray):
        raise ArgumentError(f"scale: found {type(scale).__name__}, expected an array of {dtype}")
    if scale.dtype != dtype or scale.shape != shape:
        raise ArgumentError(
            f"scale: found {scale.dtype} of shape {scale.shape}, expected {dtype} of {shape}"
        )
    if not np.isfinite(scale).all():
        at = tuple(map(int, np.argwhere(~np.isfinite(scale))[0]))
        where = f"row {at[0]}, group {at[1]}" if group else f"row {at[0]}"
        raise ArgumentError(f"scale: found {scale[at]} for {where}, expected a finite number")
