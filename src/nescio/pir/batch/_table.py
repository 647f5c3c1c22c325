"""Batch tables: rows in the bins of a layout, in which a row may be at several places."""

from pathlib import Path

import numpy as np

from ..._arrays import Array, ByteArray, IndexArray, as_indices
from ...errors import ArgumentError, MalformedMessageError, MismatchError
from .._checksums import Progress
from .._params import TableParams
from .._rows import Operation, RowKind, rows_as_bytes
from .._state import DENSE
from .._table import Table
from ._cut import Cut, Gather
from ._layout import Layout


class BatchTable:
    """A table for lookups of many rows at a time; `nescio.pir.batch.build` makes one.

    `table` is the table in bins, which `BatchServer` and the service serve. `layout` tells which
    rows are where. Rows have the numbers that they have in the array that the table was built from.
    Changes of the served table, also those over the network, are changes of these rows.

    Raises ArgumentError for a table without a batch layout, or in other bins than its layout's.
    """

    def __init__(self, table: Table) -> None:
        params = table.params
        try:
            self.layout = Layout.from_bytes(table.layout)
            check_bins(params, self.layout)
        except (MalformedMessageError, MismatchError) as error:
            raise ArgumentError(
                f"table: found {params.describe()}, expected a batch table, which "
                f"nescio.pir.batch.build makes ({error})"
            ) from error
        self.table = table
        self._rows = BatchRows(self.layout, params)
        table.target = self._rows

    @classmethod
    def load(
        cls, path: str | Path, *, threads: int = 0, progress: Progress | None = None
    ) -> "BatchTable":
        """Maps a table that `save` wrote into memory; see `nescio.Table.load`."""
        return cls(Table.load(path, threads=threads, progress=progress))

    def save(self, path: str | Path) -> None:
        """Writes the table with its layout to a file; see `nescio.Table.save`."""
        self.table.save(path)

    @property
    def params(self) -> TableParams:
        """The public parameters of the table in bins."""
        return self.table.params

    def __len__(self) -> int:
        """The number of rows, each counted once."""
        return self.layout.rows

    def __repr__(self) -> str:
        """Describes the layout and the table in one line."""
        return f"BatchTable({self.layout.describe()}; {self.params.describe()})"

    def __getitem__(self, rows: object) -> Array:
        """Returns plaintext rows, with NumPy indexing: for tests and the table's owner."""
        wanted = as_indices(rows, len(self), "a row")
        return self._rows.load(self.table, wanted.reshape(-1)).reshape(
            (*wanted.shape, *self._rows.row_kind.row_shape)
        )

    def update(self, rows: object, values: object, *, version: str | None = None) -> TableParams:
        """Overwrites rows at all of their places; returns the parameters of the new version.

        They also change where they arrive together with other rows. If a row occurs twice, its
        later values win. An update of many rows builds a new copy of the table. Raises
        IndexRangeError, or ArgumentError as `nescio.Table.update` does. There is no insertion and
        no deletion: for other rows, make a layout and build the table again.
        """
        return self._rows.update(self.table, rows, values, version)


class BatchRows:
    """The rows of a batch table, which changes are about; see `Target`."""

    def __init__(self, layout: Layout, params: TableParams) -> None:
        self.row_kind = RowKind(layout.rows, params.row_shape[1:], params.dtype)
        self._cut = Cut(layout)
        self.moved: ByteArray = np.zeros((0, 0), np.uint8)

    def load(self, table: Table, rows: IndexArray) -> Array:
        """Returns the rows at indices."""
        loaded: Array = table[self._cut.first_places(rows)][:, 0]
        return loaded

    def check(self, operation: Operation) -> None:
        """Raises ArgumentError for an insertion or a deletion."""
        if operation != "update":
            name = "an insertion" if operation == "insert" else "a deletion"
            raise ArgumentError(
                f"found {name} of rows of a batch table, whose layout has a place for each of its "
                "rows: expected an update; for other rows, make a layout and build the table again"
            )

    def change(
        self, table: Table, operation: Operation, indices: IndexArray, rows: Array, version: str
    ) -> TableParams:
        """Makes a change. Raises ArgumentError if it is not an update."""
        self.check(operation)
        return self.update(table, indices, rows, version)

    def update(
        self, table: Table, rows: object, values: object, version: str | None
    ) -> TableParams:
        """Overwrites rows at all of their places; see `BatchTable.update`."""
        with table.changing():
            where = as_indices(rows, self.row_kind.rows, "a row").reshape(-1)
            new = rows_as_bytes(values, len(where), self.row_kind)
            changed, last = np.unique(where[::-1], return_index=True)
            gather = self._updated(table, changed, new[::-1][last])
            owners = self._cut.with_owners(changed)
            params = table.params
            if len(owners) * DENSE >= self.row_kind.rows:
                return table.rewrite(self._cut.parts(params, gather), version)
            at, places = self._cut.all_places(owners)
            slots = self._cut.slots(owners.astype(np.int64), gather)[at]
            content = slots.reshape(-1).view(params.dtype)
            return table.update(
                places, content.reshape((len(at), *params.row_shape)), version=version
            )

    def _updated(self, table: Table, changed: IndexArray, new: ByteArray) -> Gather:
        """Returns a function for the rows' bytes after a change of some, which are sorted."""

        def gather(rows: IndexArray) -> ByteArray:
            found = rows_as_bytes(self.load(table, rows), len(rows), self.row_kind)
            at = np.searchsorted(changed, rows)
            at[at == len(changed)] = 0
            is_new = changed[at] == rows if len(changed) else np.zeros(len(rows), bool)
            found[is_new] = new[at[is_new]]
            return found

        return gather


def check_bins(params: TableParams, layout: Layout) -> None:
    """Raises MismatchError unless a table is in the bins of a layout."""
    if params.bins != layout.bins or params.row_shape[:1] != (layout.slot_rows,):
        raise MismatchError(
            f"a table in other bins than its layout's: found {params.describe()}, expected "
            f"{layout.describe()}; build the table again with nescio.pir.batch.build",
            found=str(params.bins),
            expected=str(layout.bins),
        )
