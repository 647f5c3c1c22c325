"""Sources of rows: the lookups of one table, for the indices of one call."""

import hashlib
from typing import Any

import numpy as np
import torch

from .._arrays import Array
from ..errors import ArgumentError, MismatchError
from ..pir import Lookups, TableParams
from ..pir.batch import BatchClient


class Source:
    """An ordinary table: each index is one lookup, duplicates and padding included."""

    def __init__(self, lookups: Lookups) -> None:
        self.lookups: object = lookups
        self._table = lookups

    @property
    def params(self) -> TableParams:
        """The parameters of the table that is served."""
        return self._table.params

    @property
    def rows(self) -> int:
        """The number of rows that indices count."""
        return self.params.rows

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of a row."""
        return self.params.row_shape

    def fetch(
        self,
        indices: Array,
        ends: Array,  # noqa: ARG002
        unused: Array | None,  # noqa: ARG002
    ) -> tuple[Array, Array]:
        """Looks up flat indices, cut into inferences that end at `ends`.

        `unused` has a flag for each index whose row the caller does not need. Returns the rows, and
        a flag for each that is missing. Raises IndexRangeError before anything is sent, and the
        errors of the lookup.
        """
        return self._table.lookup(indices), np.zeros(len(indices), np.bool_)


class BatchSource(Source):
    """A table with a batch layout: each inference is one lookup, whatever its indices are."""

    def __init__(self, client: BatchClient, lookups: object) -> None:
        self.lookups = lookups
        self._client = client

    @property
    def params(self) -> TableParams:
        """The parameters of the table in bins."""
        return self._client.params

    @property
    def rows(self) -> int:
        """The number of rows that indices count."""
        return self._client.row_kind.rows

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of a row."""
        return self._client.row_kind.row_shape

    def fetch(self, indices: Array, ends: Array, unused: Array | None) -> tuple[Array, Array]:
        """Looks up flat indices; unused ones take no slot, and their rows are zeros."""
        wanted = np.ones(len(indices), np.bool_) if unused is None else ~unused
        kind = self._client.row_kind
        rows = np.zeros((len(indices), *kind.row_shape), kind.dtype)
        missing = np.zeros(len(indices), np.bool_)
        if len(ends):  # an empty list would be one inference
            firsts = [0, *ends[:-1]]
            own = [slice(first, end) for first, end in zip(firsts, ends, strict=True)]
            result = self._client.lookup([indices[part][wanted[part]] for part in own])
            rows[wanted] = np.concatenate(result.rows)
            missing[wanted] = ~np.concatenate(result.found)
        return rows, missing


def source_of(lookups: object) -> Source:
    """Returns the source of some lookups. Raises ArgumentError for anything else."""
    if isinstance(lookups, Source):
        return lookups
    if isinstance(lookups, BatchClient):
        return BatchSource(lookups, lookups)
    params = getattr(lookups, "params", None)
    if not isinstance(params, TableParams):
        raise ArgumentError(
            f"lookups: found {type(lookups).__name__}, expected lookups of a table, such as a "
            "nescio.pir.LocalTable or a nescio.service.RemoteTable"
        )
    table: Any = lookups
    if params.layout:
        return BatchSource(BatchClient(table), lookups)
    if params.is_cut:
        raise ArgumentError(
            f"lookups: found {params.describe()} and no layout, expected a table in one bin, or "
            "one that nescio.pir.batch.build made"
        )
    return Source(table)


# The dtypes of tables and of their tensors. NumPy has no bfloat16: its bits are in uint16.
TORCH_DTYPES = {
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
}
_STORED = {"bfloat16": "uint16"}


def stored_dtype(name: str) -> np.dtype[Any]:
    """Returns the dtype of the table for tensors of a dtype."""
    return np.dtype(_STORED.get(name, name))


def dtype_name(dtype: object) -> str | None:
    """Returns the name of a tensor's dtype; None if no table can have it."""
    return next((name for name, other in TORCH_DTYPES.items() if other == dtype), None)


def table_dtype(params: TableParams, dtype: torch.dtype | None) -> str:
    """Returns the name of the tensors' dtype for a table. Raises ArgumentError."""
    found = params.dtype.newbyteorder("=")
    name = found.name if dtype is None else dtype_name(dtype)
    if name in TORCH_DTYPES and stored_dtype(name) == found:
        return name
    if dtype is not None:
        raise ArgumentError(f"dtype: found a table of {found}, expected one that stores {dtype}")
    raise ArgumentError(
        f"lookups: found a table of {found}, expected float16, float32 or float64; for the bits of "
        "bfloat16 in uint16, pass dtype=torch.bfloat16"
    )


def as_tensor(rows: Array, name: str) -> torch.Tensor:
    """Converts rows of a table to a tensor of a dtype, without a change of bits."""
    native = np.ascontiguousarray(rows, rows.dtype.newbyteorder("="))
    if not native.flags.writeable:
        native = native.copy()
    if name == "bfloat16":
        return torch.from_numpy(native.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(native)


def as_stored(weight: torch.Tensor) -> Array:
    """Converts a weight to the array of its table, without a change of bits."""
    plain = weight.detach().cpu().contiguous()
    if weight.dtype == torch.bfloat16:
        plain = plain.view(torch.int16)
    array: Array = plain.numpy()
    return array.view(stored_dtype(str(dtype_name(weight.dtype))))


def digest_of(array: Array) -> str:
    """Returns SHA-256 of the bytes of a C-contiguous array, in hexadecimal."""
    return hashlib.sha256(array.data).hexdigest()


def check_rows(rows: Array, count: int, columns: int, name: str) -> None:
    """Raises MismatchError for rows that are not those of the table that the module was made for.

    An operator may have replaced the table in between.
    """
    found = f"{rows.dtype.newbyteorder('=').name} of shape {rows.shape}"
    expected = f"{stored_dtype(name).name} of shape {(count, columns)}"
    if found != expected:
        raise MismatchError(
            f"the rows that were looked up: found {found}, expected {expected}; the servers have "
            "another table now: load the model again",
            found=found,
            expected=expected,
        )
