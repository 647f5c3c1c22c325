"""Tables of rows, which may change while they are served."""

import builtins
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

from .. import _core
from .._arrays import Array, ByteArray, IndexArray, as_count, as_indices, as_threads
from ..dpf import Generator, Output
from ..errors import ArgumentError
from . import _stored as stored
from ._bins import Bins, check_bins
from ._checksums import Progress, Source
from ._hash_tree import TreeChange
from ._params import MAX_ROWS, TableParams, layout_digest
from ._rows import RowKind, as_values, new_params, parts_of, rows_as_bytes, servable
from ._state import DENSE, TableState, build_state, new_version, part_spans
from ._vacancy import Vacancy
from ._vacant_rows import Note, VacantRows


class Table(VacantRows):
    """A table of rows for lookups: an array of numbers, bools or fixed-length strings of any shape.

    The first axis counts the rows. NumPy arrays (memory-mapped ones included), PyTorch and other
    DLPack arrays, and buffers are accepted. The rows are copied to the layout that the engine
    reads, and hashed, at some GB/s; the array itself is not kept.

    `output` is the group in which shares are added ("bit" is the fastest on a CPU), `generator` the
    generator of the keys, `version` a text that the operator chooses and clients see. A lookup gets
    a record of `record_rows` rows, a power of two: by default as many as fit 256 bytes, so that
    short rows cost less.

    `bins` cuts the table: the rows are those of the first bin, of the second one, and so on, and a
    lookup sends keys to each bin (see `Bins` and `Client.query`). `layout` is a text for clients
    that says which content is where; the service serves it. `spare` adds vacant rows at the end,
    which `append` fills later. `threads` of 0 uses all processors.
    `progress`, if given, is called with the bytes done and their total.

    A table may be read and changed from several threads: an answer uses the version with which it
    began.

    Raises ArgumentError for an array without rows, or with elements of no fixed size.
    """

    def __init__(
        self,
        array: object,
        *,
        version: str = "1",
        output: Output = "bit",
        generator: Generator = "chacha20",
        record_rows: int | None = None,
        bins: Sequence[tuple[int, ...]] | None = None,
        layout: bytes = b"",
        spare: int = 0,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> None:
        values = servable(array)
        count = len(values) + as_count(spare, "spare rows", 0, MAX_ROWS - len(values))
        params = new_params(  # raises for rows that are too long, before they are copied
            RowKind(count, values.shape[1:], values.dtype),
            version=version,
            output=output,
            generator=generator,
            record_rows=record_rows,
            bins=() if bins is None else check_bins(bins),
            layout=layout,
        )
        if spare and params.is_cut:
            raise ArgumentError(
                f"spare: found {spare} vacant rows of a table in bins, which have places by its "
                "layout: expected 0; build the table again for more rows"
            )
        pool = _core.ThreadPool(as_threads(threads))
        rows: ByteArray = np.ascontiguousarray(values).reshape(len(values), -1).view(np.uint8)
        self._begin(build_state(params, parts_of(rows, params), pool, progress, layout), pool)
        self._vacancy = Vacancy(len(values))
        self._vacancy.grow(count)

    @classmethod
    def of_parts(
        cls,
        params: TableParams,
        parts: Iterator[ByteArray],
        layout: builtins.bytes,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> "Table":
        """Builds a table from its rows as bytes, in the parts of `part_spans`."""
        table, pool = cls.__new__(cls), _core.ThreadPool(as_threads(threads))
        table._begin(build_state(params, parts, pool, progress, layout), pool)
        return table

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        extra: builtins.bytes = b"",
        threads: int = 0,
        progress: Progress | None = None,
    ) -> "Table":
        """Maps a table that `save` wrote into memory, after a check of the whole file.

        The check hashes the file with `threads` threads (0: all processors); `progress`, if given,
        is called with the bytes done and their total. Changes to the table do not reach the file.
        `extra` is what `extra_state` returned when the file was written; without it no row is
        vacant. Raises FileError if the file is not a table, or has changed since it was written,
        and MalformedMessageError for other bytes than those.
        """
        pool = _core.ThreadPool(as_threads(threads))
        return cls.of_stored(stored.read(Path(path), pool.threads, progress), pool, extra)

    @classmethod
    def of_stored(
        cls, found: stored.StoredTable, pool: _core.ThreadPool, extra: builtins.bytes
    ) -> "Table":
        """Returns the table of a file. Raises MalformedMessageError for other `extra` bytes."""
        table = cls.__new__(cls)
        state = TableState(found.params, found.records, found.tree, layout=found.layout)
        table._begin(state, pool)
        table._vacancy = Vacancy.from_bytes(extra, state.params.rows)
        if table._vacancy.count:
            table.check_uncut()
        return table

    def save(self, path: str | Path, *, source: Source | None = None) -> None:
        """Writes the table to a file for `load`, atomically. Raises FileError if that fails.

        `source` identifies the file that the rows came from, for `nescio serve --cache`.
        """
        # Blocks changes, but not readers; a thread that reads blocks changes already.
        with nullcontext() if self._lock.is_mine else self._changes:
            state = self._state
            stored.write(
                Path(path),
                state.params,
                state.records,
                state.tree,
                layout=state.layout,
                source=source,
            )

    def __len__(self) -> int:
        """The number of rows."""
        return self.params.rows

    def window(self, number: int) -> tuple[int, int] | None:
        """Returns None: the records, and each hash table, are in memory as a whole (see shards)."""
        del number
        return None

    def __repr__(self) -> str:
        """Describes the table's parameters in one line."""
        return f"Table({self.params.describe()})"

    def __getitem__(self, indices: object) -> Array:
        """Returns plaintext rows, with NumPy indexing: for tests and the table's owner."""
        with self.reading() as state:
            wanted = as_indices(indices, state.params.rows, "an index")
            return as_values(state.load(wanted.reshape(-1)), wanted.shape, state.params)

    def update(self, indices: object, rows: object, *, version: str | None = None) -> TableParams:
        """Overwrites the rows at `indices` in place; returns the parameters of the new version.

        If an index occurs twice, the later row wins. `version` of None increments the current
        version: two servers that make the same changes in the same order agree. The change waits
        for answers that have begun; queries for kept versions are answered (`keep_versions`).

        It takes up to five times the bytes of the records that change; one of many rows builds a
        new table, which is faster.

        Raises IndexRangeError, or ArgumentError for rows of another shape or dtype, or a version
        that the table has had before. A vacant row at an index becomes an occupied one.
        """
        with self.changing():
            params = self._state.params
            where = as_indices(indices, params.rows, "an index").reshape(-1)
            new = rows_as_bytes(rows, len(where), params)
            return self._overwrite(where, new, version, lambda: self._vacancy.remove(where))

    def _overwrite(
        self, where: IndexArray, new: ByteArray, version: str | None, note: Note
    ) -> TableParams:
        """Overwrites rows, in place if they are few; see `update`."""
        with self.changing():
            old = self._state
            version = self._versions.choose(version, old.params.version)
            if len(where) * DENSE >= old.params.records:
                parts = old.overwritten(where, new, self._pool)
                return self._replace(parts, replace(old.params, version=version), old.layout, note)
            numbers, before, records = old.overlaid(where, new)
            bins = old.params.layouts[0].bins
            changes = _core.RowChanges(numbers, records, bins, self._pool)
            change = TreeChange.of(old.tree, old.params.hashes, numbers, records, self._pool)
            state = new_version(old, change.tops, numbers, version)
            state = self._keeping.updated(state, old, (numbers, before, records), change)
            self._recorded(state.params)

            def write() -> None:
                tables = [
                    (old.records, changes),
                    *zip(old.tree.tables, change.changes, strict=True),
                ]
                _core.replace_all(tables, self._pool)
                self._set(state, note)

            self._lock.write(write)
            return self._changed(state.params)

    def insert(self, indices: object, rows: object, *, version: str | None = None) -> TableParams:
        """Inserts rows before those at `indices`, as `numpy.insert` does; returns the parameters.

        An index of `len(table)` appends. A new copy of the table is built, while the old one
        continues to serve. Raises the errors of `update`, and ArgumentError for a table in bins.
        """
        with self.changing():
            self.check_uncut()
            params = self._state.params
            where = as_indices(indices, params.rows + 1, "an index").reshape(-1)
            new = rows_as_bytes(rows, len(where), params)
            numbers = -1 - np.arange(len(where))  # negative numbers stand for new rows
            order = np.insert(np.arange(params.rows), where.astype(np.int64), numbers)
            return self._rebuild(order, new, version)

    def delete(self, indices: object, *, version: str | None = None) -> TableParams:
        """Deletes the rows at `indices`; returns the parameters of the new version.

        A new copy of the table is built, as by `insert`. Raises IndexRangeError, or ArgumentError
        if no row would remain, or for a table in bins.
        """
        with self.changing():
            self.check_uncut()
            params = self._state.params
            where = as_indices(indices, params.rows, "an index").reshape(-1)
            order = np.delete(np.arange(params.rows), where.astype(np.int64))
            if not len(order):
                raise ArgumentError("a table must keep at least one row")
            return self._rebuild(order, np.zeros((0, params.row_bytes), np.uint8), version)

    def replace(
        self,
        rows: object,
        *,
        bins: Sequence[Bins],
        layout: builtins.bytes,
        version: str | None = None,
    ) -> TableParams:
        """Replaces all rows, their bins and the layout; returns the parameters of the new version.

        A new table is built from the array `rows`, whose rows have the shape and dtype of the old
        ones, while the old table answers. Raises ArgumentError for other rows, bins of another
        number of rows, or a version that the table has had.
        """
        with self.changing():
            old = self.params
            params = replace(
                old,
                rows=sum(group.total_rows for group in bins),
                bins=check_bins(bins),
                layout=layout_digest(layout),
                version=self._versions.choose(version, old.version),
            )
            parts = parts_of(rows_as_bytes(rows, params.rows, params), params)
            return self._replace(parts, params, layout, self._no_vacancy)

    def rewrite(self, parts: Iterator[ByteArray], version: str | None) -> TableParams:
        """Replaces all rows by as many others, in the parts of `part_spans`; see `update`."""
        with self.changing():
            params = self._state.params
            version = self._versions.choose(version, params.version)
            params = replace(params, version=version)
            return self._replace(parts, params, self.layout, self._no_vacancy)

    def check_uncut(self) -> None:
        """Raises ArgumentError for a table in bins, whose rows are only updated."""
        if self.params.is_cut:
            raise ArgumentError(
                "found a change other than an update of a table in bins, whose rows have places "
                "by its layout: expected an update; build the table again for other rows"
            )

    def _changed(self, params: TableParams) -> TableParams:
        """Notes a change that is done."""
        self._versions.add(params.version)
        self._ids.add(params.id)
        self._last = None
        return params

    def _rebuild(self, order: Array, new: ByteArray, version: str | None) -> TableParams:
        """Builds the version whose row i is old row order[i], or new row -1 - order[i]."""
        old = self._state
        version = self._versions.choose(version, old.params.version)

        params = replace(old.params, rows=len(order), bins=(), version=version)

        def parts() -> Iterator[ByteArray]:
            for span in part_spans(params):
                own = order[span.first : span.first + span.rows]
                part = old.load(np.maximum(own, 0).astype(np.uint64))
                part[own < 0] = new[-1 - own[own < 0]]
                yield part

        vacancy = self._vacancy.reordered(order)

        def note() -> None:
            self._vacancy = vacancy

        return self._replace(parts(), params, self.layout, note)

    def _replace(
        self,
        parts: Iterator[ByteArray],
        params: TableParams,
        layout: builtins.bytes,
        note: Note,
    ) -> TableParams:
        """Builds a version from its rows, in parts of `part_spans`, while the old one answers."""
        self._forget_before()
        return self._publish(build_state(params, parts, self._pool, None, layout), note)

    def _publish(self, state: TableState, note: Note) -> TableParams:
        """Makes a state that was built beside the current one the current version."""
        state = self._keeping.rebuilt(state, self._state)
        self._recorded(state.params)
        self._lock.write(lambda: self._set(state, note))
        return self._changed(state.params)
