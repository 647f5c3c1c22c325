"""The fields of a table's parameters as JSON types: their limits, and their parser."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from ..._arrays import shown
from ...errors import ArgumentError
from .._bins import Bins, check_bins

FORMAT = 3
MAX_ROWS = 1 << 40
MAX_ROW_BYTES = 1 << 24
MAX_RECORD_ROWS = 1 << 16
MAX_VERSION_LENGTH = 128
MAX_LAYOUT_BYTES = 64 << 20
ID_BYTES = 16

# NumPy's own names of fixed-size types that are the same on every machine. No other text from
# outside reaches NumPy's parser.
DTYPE_NAME = re.compile(
    r"\|b1|\|[iu]1|[<>]([iu][248]|f[248]|c(8|16)|U[1-9]\d{0,7}"
    r"|[mM]8\[([1-9]\d{0,5})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])|\|S[1-9]\d{0,7}"
)
_FIELDS = {
    "bins", "digest", "dtype", "format", "generator", "hashes", "layout", "output", "record_rows",
    "row_shape", "rows", "version",
}  # fmt: skip
_PREFIX = "table parameters: "
_T = TypeVar("_T")


def check_names(fields: Mapping[str, object]) -> None:
    """Raises ArgumentError for the fields of another format, and for missing or unknown ones."""
    if typed(fields, "format", int) != FORMAT:
        found = shown(fields["format"])
        raise ArgumentError(
            f"table parameters: found format {found}, this release reads {FORMAT}: "
            "use the same release of Nescio on both sides"
        )
    if set(fields) != _FIELDS:
        odd = ", ".join(sorted(map(shown, set(fields) ^ _FIELDS)))
        raise ArgumentError(f"table parameters: missing or unknown fields: {odd}")


def typed(fields: Mapping[str, object], name: str, kind: type[_T]) -> _T:
    """Returns a field of a type. Raises ArgumentError for one of another type or none."""
    value = fields.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ArgumentError(f"table parameters: {name} is {shown(value)}, expected {kind.__name__}")
    return value


def dtype_of(fields: Mapping[str, object]) -> np.dtype[Any]:
    """Returns the type of the elements. Raises ArgumentError for one that is not supported."""
    name = typed(fields, "dtype", str)
    if not DTYPE_NAME.fullmatch(name) or np.dtype(name).str != name:
        raise ArgumentError(f"table parameters: dtype {shown(name)} is not supported")
    return np.dtype(name)


def bins_of(fields: Mapping[str, object]) -> tuple[Bins, ...]:
    """Returns the bins. Raises ArgumentError for fields that are not bins."""
    try:
        return check_bins(typed(fields, "bins", list), fewest_fields=3)
    except ArgumentError as error:
        raise ArgumentError(f"table parameters: {str(error).removeprefix(_PREFIX)}") from error


def integers(fields: Mapping[str, object], name: str) -> list[int]:
    """Returns a list of integers. Raises ArgumentError for a field of another type."""
    values = typed(fields, name, list)
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in values):
        raise ArgumentError(f"table parameters: {name} is {shown(values)}, expected integers")
    return values
