"""Tables on a device; this build has none."""

import numpy as np
from numpy.typing import NDArray

from . import _core
from .dpf import Output
from .errors import ResourceError


class DeviceTable:
    """Rows in a device's memory."""

    def store(self, first: int, rows: NDArray[np.uint8]) -> None:
        """Writes rows (count, row_bytes) from row `first` on."""
        raise NotImplementedError

    def answer(self, keys: _core.Keys) -> NDArray[np.uint8]:
        """Answers to keys, a row of answer_bytes each."""
        raise NotImplementedError


def open_table(device: str, rows: int, row_bytes: int, output: Output) -> DeviceTable:  # noqa: ARG001
    """A table on `device`. Raises ResourceError where there is none."""
    raise ResourceError(f"there is no CUDA device here: found none, expected {device!r}")
