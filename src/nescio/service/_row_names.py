"""The names of rows in changes: their indices, or in a keyed table their hashed keys."""

from dataclasses import dataclass

import numpy as np

from .. import _core
from .._arrays import as_array, as_indices
from ..pir._change import Change
from ..pir._keyed import KeyedLayout, pack_keys
from ..pir._rows import Operation, RowKind, rows_as_bytes
from ._exchange import Description
from ._http import Http
from ._trust import fetch_layout


@dataclass(frozen=True, slots=True)
class RowNames:
    """The rows of a table's changes, and the layout of its keys if it has any."""

    kind: RowKind
    layout: KeyedLayout | None

    @classmethod
    async def fetch(cls, http: Http, server: Description) -> "RowNames":
        """Fetches the layout of a server's table if it has keys. Raises the errors of both."""
        kind, params = server.changes, server.params
        if kind.words == 1:
            return cls(kind, None)
        layout = KeyedLayout.from_bytes(await fetch_layout(http, [server], params))
        layout.check(params)
        return cls(kind._replace(row_shape=layout.shape, dtype=layout.dtype), layout)

    def change(
        self,
        operation: Operation,
        names: object,
        rows: object,
        version: str,
        *,
        limit: int | None = None,
    ) -> Change:
        """Makes a change. Raises ArgumentError or IndexRangeError if it does not fit the table.

        `limit` is a bound on indices other than that of the table.
        """
        if self.layout is not None:
            return self._of_keys(self.layout, operation, names, rows, version)
        limit = self.kind.rows + (operation == "insert") if limit is None else limit
        where = as_indices(names, limit, "an index").reshape(-1)
        if operation == "delete":
            return Change(operation, version, where, np.zeros((0, 0), np.uint8))
        return Change(operation, version, where, rows_as_bytes(rows, len(where), self.kind))

    def _of_keys(
        self, layout: KeyedLayout, operation: Operation, keys: object, rows: object, version: str
    ) -> Change:
        packed = layout.checked(pack_keys(keys))
        words = packed.hashed(layout.seed, _core.ThreadPool(1))
        if operation == "delete":
            return Change(operation, version, words, np.zeros((0, 0), np.uint8))
        values = as_array(rows, "values")
        if not packed.shape:
            values = values[None]
        return Change(operation, version, words, rows_as_bytes(values, len(words), self.kind))
