"""Checks of activation bits and of activation vectors."""

from typing import Literal

import numpy as np

from .._arrays import as_array, shown
from ..errors import ArgumentError
from ._weights import FloatArray

ActivationBits = Literal[8, 16, 32]
ACTIVATION_BITS: tuple[ActivationBits, ...] = (8, 16, 32)


def check_activation_bits(value: object) -> ActivationBits:
    """Returns the value if it is 8, 16 or 32. Raises ArgumentError otherwise."""
    for bits in ACTIVATION_BITS:
        if isinstance(value, int | np.integer) and value == bits:
            return bits
    raise ArgumentError(f"activation bits: found {shown(value)}, expected 8, 16 or 32")


def as_vectors(x: object, columns: int) -> FloatArray:
    """Converts floats (..., columns) to contiguous float32.

    Raises ArgumentError for another dtype or last axis.
    """
    array = as_array(x, "x")
    if array.dtype.kind != "f" or array.shape[-1:] != (columns,):
        raise ArgumentError(
            f"x: found {array.dtype} of shape {array.shape}, expected floats of shape "
            f"(..., {columns})"
        )
    with np.errstate(over="ignore"):  # overflow gives infinity, which the engine rejects
        return np.ascontiguousarray(array, np.float32)
