"""The public parameters of a table: what they are, their fields as JSON, the layouts."""

from ._fields import (
    DTYPE_NAME,
    FORMAT,
    ID_BYTES,
    MAX_LAYOUT_BYTES,
    MAX_RECORD_ROWS,
    MAX_ROW_BYTES,
    MAX_ROWS,
    MAX_VERSION_LENGTH,
)
from ._layout import Layout, layout_digest
from ._table import TableParams

__all__ = [
    "DTYPE_NAME",
    "FORMAT",
    "ID_BYTES",
    "MAX_LAYOUT_BYTES",
    "MAX_RECORD_ROWS",
    "MAX_ROWS",
    "MAX_ROW_BYTES",
    "MAX_VERSION_LENGTH",
    "Layout",
    "TableParams",
    "layout_digest",
]
