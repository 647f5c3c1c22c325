"""The head of a table whose rows shards hold: parameters, tops and versions, and no row.

It takes the place of a `Table` in the service. A change goes to all shards in two steps. They
prepare it, and return the tops that change; the head computes the id after it, and records the
change; then they make it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

import numpy as np

from ... import _core
from ..._arrays import Array, ByteArray, IndexArray
from ...errors import ArgumentError
from .._hash_tree import HashTree
from .._history import Keeping
from .._params import TableParams
from .._state import Kept, Overwritten, TableState
from .._table import Table
from .._vacancy import Vacancy
from ._change import RowUpdate

_MAX_RECENT = 256


class Shards(Protocol):
    """All shards of a table, as its head needs them."""

    def prepare(self, update: RowUpdate) -> tuple[IndexArray, ByteArray]:
        """Lets all shards prepare a change; returns the tops that change, and their new hashes.

        Raises ResourceError if a shard cannot.
        """

    def commit(self, update: RowUpdate) -> None:
        """Lets all shards make the change that they have prepared, now with `after`."""

    def abandon(self, update: RowUpdate) -> None:
        """Lets shards forget what they have prepared."""


class HeadTable(Table):
    """A table without its rows. Rows change by `update`, `append` and `clear`."""

    shards: Shards

    @classmethod
    def of(
        cls,
        params: TableParams,
        tops: ByteArray,
        layout: bytes,
        vacancy: Vacancy,
        shards: Shards,
    ) -> "HeadTable":
        """Returns the head of a table with these tops. Raises ArgumentError for other tops."""
        tree = HashTree((), np.ascontiguousarray(tops))
        if tree.digest(params) != params.digest:
            raise ArgumentError(
                "tops: found those of another table, expected the hashes of its digest"
            )
        pool = _core.ThreadPool(1)
        table = cls.__new__(cls)
        no_rows = _core.Table([(1, 1, 1)], 1, "bit")
        table._begin(TableState(params, no_rows, tree, layout=layout), pool)
        table._vacancy = vacancy
        table.shards = shards
        return table

    @property
    def bytes(self) -> int:
        """The memory of the rows and of the hash tables of all shards in bytes."""
        return sum(_core.table_bytes(*layout) for layout in self.params.layouts)

    def __getitem__(self, indices: object) -> Array:
        """Raises ArgumentError: the rows are at the shards."""
        raise ArgumentError("found a read of plain rows at the head of a table, which has none")

    @contextmanager
    def try_changing(self) -> Iterator[bool]:
        """Gives True, and prevents changes meanwhile, if no change is under way; else False."""
        free = self._changes.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                self._changes.release()

    def adopt(self, state: TableState) -> None:
        """Takes over the state of another head of the same table."""
        self._lock.write(lambda: self._adopt(state))
        self._changed(state.params)

    def _adopt(self, state: TableState) -> None:
        self._state = state

    def follow(self, update: RowUpdate, tops: tuple[IndexArray, ByteArray]) -> None:
        """Notes a change that was made, with the tops that changed."""
        with self.changing():
            assert update.after is not None
            state = self._after(update.after, *tops)
            self._lock.write(lambda: self._adopt(state))
            self._changed(update.after)

    def _overwrite(
        self,
        where: IndexArray,
        new: ByteArray,
        version: str | None,
        note: Callable[[], None],
    ) -> TableParams:
        with self.changing():
            old = self._state
            version = self._versions.choose(version, old.params.version)
            update = RowUpdate(old.params.id, where, new)
            try:
                tops = self.shards.prepare(update)
                state = self._after(replace(old.params, version=version), *tops)
                self._recorded(state.params)
            except BaseException:
                self.shards.abandon(update)
                raise
            self.shards.commit(replace(update, after=state.params))
            self._lock.write(lambda: self._set(state, note))
            return self._changed(state.params)

    def _after(self, params: TableParams, numbers: IndexArray, hashes: ByteArray) -> TableState:
        """Returns the state after a change of some tops; `params` get the digest of the tops."""
        old, at = self._state, numbers.astype(np.int64)
        tops = old.tree.tops.copy()
        kept = Kept(old.params, (numbers, tops[at]), ())
        tops[at] = hashes
        tree = HashTree((), tops)
        params = replace(params, digest=tree.digest(params))
        none = np.zeros(0, np.uint64)
        recent = (*old.recent, Overwritten(old.params.id, none, numbers))[-_MAX_RECENT:]
        versions = (kept, *old.kept)[: self._keeping.count - 1]
        return TableState(params, old.records, tree, recent, old.layout, versions)

    def _rebuild(self, order: Array, new: ByteArray, version: str | None) -> TableParams:
        del order, new, version
        raise _refused("an insertion or a deletion")

    def _replace(self, *_: object) -> TableParams:
        raise _refused("a replacement of all rows")

    def _grown(self, rows: int, version: str | None) -> TableState:
        del rows, version
        raise _refused("a growth")


def _refused(what: str) -> ArgumentError:
    return ArgumentError(
        f"found {what} of a table that is cut into shards: expected an update, or an append to "
        "vacant rows; build the table again with more vacant rows"
    )


def merged_tops(
    parts: Sequence[tuple[IndexArray, ByteArray]],
) -> tuple[IndexArray, ByteArray]:
    """Joins the tops that shards have changed, in the order of their numbers."""
    return (
        np.concatenate([numbers for numbers, _ in parts]),
        np.concatenate([hashes for _, hashes in parts]),
    )


def keep_versions_of(table: HeadTable, count: int) -> None:
    """Lets a head list `count` versions."""
    table._keeping = Keeping(count)
