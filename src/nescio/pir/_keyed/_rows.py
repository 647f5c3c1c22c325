"""The rows of a keyed table by their hashed keys: what every change of the table does."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from ... import _core
from ..._arrays import Array, ByteArray, IndexArray
from ...errors import ArgumentError
from .._params import TableParams
from .._rows import Operation, RowKind
from .._table import Table
from ._keys import WORDS, Words
from ._layout import KeyedLayout
from ._places import Name, Slots, check_different, enlarged, is_full


class KeyedRows:
    """The places of a keyed table's keys, and its layout; changes both with the table.

    It is the `target` of the table, so that changes over the network are changes of keys too. The
    table's lock for changes protects it.
    """

    def __init__(self, layout: KeyedLayout, places: _core.Cuckoo) -> None:
        self.layout = layout
        self.places = places
        self.moved: ByteArray = layout.empty_rows()[:0]

    @classmethod
    def restored(cls, layout: KeyedLayout, slots: Slots, words: Words) -> "KeyedRows":
        """Returns the rows of keys at known slots. Raises ArgumentError if they are not theirs."""
        places = _core.Cuckoo(layout.rows)
        places.restore(slots, words)
        return cls(layout, places)

    @property
    def row_kind(self) -> RowKind:
        """The rows of changes: values, whose names are hashed keys."""
        layout = self.layout
        return RowKind(layout.bins[0].total_rows, layout.shape, layout.dtype, WORDS)

    def check(self, operation: Operation) -> None:
        """Accepts every operation."""

    def change(
        self, table: Table, operation: Operation, indices: IndexArray, rows: Array, version: str
    ) -> TableParams:
        """Makes a change of a message, whose indices are hashed keys. Raises ArgumentError."""
        if not indices[:, -1].all():
            raise ArgumentError("keys: found one with the fingerprint 0, which no key has")

        def name(number: int) -> str:
            return f"key {number} of the change"

        if operation == "delete":
            return self.delete(table, indices, version, name)
        values = self.layout.value_rows(rows)
        make = self.insert if operation == "insert" else self.update
        return make(table, indices, values, version, name)

    def insert(
        self, table: Table, words: Words, values: ByteArray, version: str | None, name: Name
    ) -> TableParams:
        """Inserts keys or overwrites their values; see `KeyedTable.insert`."""
        check_different(words, name)
        rows = join(words, values)
        with table.changing():
            new = words[self.places.find(words) < 0]
            full = is_full(self.places.rows, len(self.places) + len(new))
            if full or not self.places.insert(new):
                return self._grow(table, words, rows, new, version)
            with self._undone_by_errors():
                left, reached, _ = self.places.moves()
                self.moved = table[left]
                where = np.concatenate([reached, self.places.find(words)])
                return table.update(where, np.concatenate([self.moved, rows]), version=version)

    def update(
        self, table: Table, words: Words, values: ByteArray, version: str | None, name: Name
    ) -> TableParams:
        """Overwrites the values of keys; see `KeyedTable.update`."""
        check_different(words, name)
        with table.changing():
            slots = self._known(words, name)
            return table.update(slots, join(words, values), version=version)

    def delete(self, table: Table, words: Words, version: str | None, name: Name) -> TableParams:
        """Deletes keys; see `KeyedTable.delete`."""
        check_different(words, name)
        with table.changing():
            slots = self._known(words, name)
            self.places.erase(words)
            with self._undone_by_errors():
                empty = np.zeros((len(slots), self.layout.row_bytes), np.uint8)
                return table.update(slots, empty, version=version)

    def _grow(
        self, table: Table, words: Words, rows: ByteArray, new: Words, version: str | None
    ) -> TableParams:
        """Inserts into larger subtables; `new` are the words that are not in the table."""
        places = enlarged(self.places, new)
        slots, held = self.places.entries()
        layout = replace(self.layout, rows=places.rows)
        physical = layout.empty_rows()
        physical[places.find(held)] = table[slots]
        physical[places.find(words)] = rows
        params = table.replace(
            physical, bins=layout.bins, layout=layout.to_bytes(), version=version
        )
        self.places, self.layout = places, layout
        return params

    @contextmanager
    def _undone_by_errors(self) -> Iterator[None]:
        """Undoes the last change of the places if the table's change fails."""
        try:
            yield
        except BaseException:
            self.places.undo()
            raise
        finally:
            self.moved = self.moved[:0]

    def _known(self, words: Words, name: Name) -> Slots:
        """Returns the slots of keys. Raises ArgumentError if one is not in the table."""
        slots = self.places.find(words)
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            raise ArgumentError(
                f"keys: found {len(missing)} that are not in the table, such as "
                f"{name(int(missing[0]))}; insert adds keys"
            )
        return slots


def join(words: Words, values: ByteArray) -> ByteArray:
    """Joins fingerprints and values to rows of the physical table."""
    fingerprints = np.ascontiguousarray(words[:, 3:].astype("<u8", copy=False)).view(np.uint8)
    return np.concatenate([fingerprints, values], axis=1)
