"""The names of rows in changes: their indices, or in a keyed table their hashed keys."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import _core
from .._arrays import as_array, as_count, as_indices
from ..errors import ArgumentError
from ..pir._change import Change
from ..pir._keyed import KeyedLayout, pack_keys
from ..pir._params import MAX_ROWS
from ..pir._rows import Operation, RowKind, rows_as_bytes
from ..pir._vacancy import NO_ROWS
from ..pir._vacant_rows import GROWTH
from ._exchange import Description
from ._http import Http
from ._operator.vacant import Vacant
from ._trust import fetch_layout

_NONE = Vacant()


class TooFewVacantError(ArgumentError):
    """A table has fewer vacant rows than an append needs."""


class Needed(NamedTuple):
    """The rows of an append for which a table grows, by an eighth at least."""

    rows: int


@dataclass(frozen=True, slots=True)
class RowNames:
    """The rows of a table's changes, the layout of its keys if it has any, and its vacant rows."""

    kind: RowKind
    layout: KeyedLayout | None
    vacant: Vacant = _NONE

    @classmethod
    async def fetch(cls, http: Http, server: Description) -> "RowNames":
        """Fetches the layout of a server's table if it has keys. Raises the errors of both."""
        kind, params = server.changes, server.params
        if kind.words == 1:
            return cls(kind, None)
        layout = KeyedLayout.from_bytes(await fetch_layout(http, [server], params))
        layout.check(params)
        return cls(kind._replace(row_shape=layout.shape, dtype=layout.dtype), layout)

    def with_vacant(self, vacant: Vacant) -> "RowNames":
        """Returns the names with the table's vacant rows."""
        return RowNames(self.kind, self.layout, vacant)

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
        if operation in ("append", "clear", "grow"):
            return self._vacant_change(operation, names, rows, version, made=limit is not None)
        if self.layout is not None:
            return self._of_keys(self.layout, operation, names, rows, version)
        limit = self.kind.rows + (operation == "insert") if limit is None else limit
        where = as_indices(names, limit, "an index").reshape(-1)
        if operation == "delete":
            return Change(operation, version, where, np.zeros((0, 0), np.uint8))
        return Change(operation, version, where, rows_as_bytes(rows, len(where), self.kind))

    def _vacant_change(
        self, operation: Operation, names: object, rows: object, version: str, *, made: bool
    ) -> Change:
        """Makes a change of vacant rows; of those before it was made, if it is `made` already."""
        if self.kind.words != 1:
            raise ArgumentError(
                "found a change of vacant rows of a table with keys, expected insert and delete, "
                "which take keys"
            )
        none = np.zeros((0, 0), np.uint8)
        if operation == "grow":
            return Change("grow", version, NO_ROWS, none, count=self._growth(names))
        if operation == "clear":
            where = as_indices(names, self.kind.rows, "an index").reshape(-1)
            return Change("clear", version, where, none)
        count = len(as_array(rows, "the rows"))
        where = self.vacant.appended if made else self.vacant.rows[:count]
        if len(where) < count and not made:
            raise TooFewVacantError(
                f"found {len(where)} vacant rows for {count} new ones, expected as many"
            )
        return Change("append", version, where, rows_as_bytes(rows, len(where), self.kind))

    def _growth(self, names: object) -> int:
        """Returns the rows of a growth: those given, or as many as an append needs."""
        if not isinstance(names, Needed):
            return as_count(names, "rows to grow by", 1, MAX_ROWS)
        return max(names.rows - self.vacant.total, -(-self.kind.rows // GROWTH))

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
