"""The layouts of a table: that of its records in the engine, and the text for its clients."""

import hashlib
from typing import NamedTuple

from ..._arrays import shown
from ...dpf import Output
from ...errors import ArgumentError
from .._bins import Bins
from ._fields import MAX_LAYOUT_BYTES


class Layout(NamedTuple):
    """The bins and the size of a table in the engine, and the group of its shares."""

    bins: list[Bins]
    row_bytes: int
    output: Output

    @property
    def rows(self) -> int:
        """The number of rows of all bins."""
        return sum(group.total_rows for group in self.bins)


def layout_digest(layout: object) -> str:
    """Computes the `layout` of the parameters. Raises ArgumentError for anything but bytes."""
    if not isinstance(layout, bytes) or len(layout) > MAX_LAYOUT_BYTES:
        raise ArgumentError(
            f"layout: found {shown(layout)}, expected bytes, at most {MAX_LAYOUT_BYTES} of them"
        )
    return hashlib.sha256(layout).hexdigest() if layout else ""
