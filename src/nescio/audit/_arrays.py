"""Array types of the audit."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["BoolArray", "Columns", "FloatArray", "Floats", "IntArray"]

FloatArray = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Floats = npt.NDArray[np.float32]
"""Arrays of the search, which works in single precision."""

Columns = npt.NDArray[np.uint8]
"""Binary participation columns, stored as rows: (k, rounds)."""
