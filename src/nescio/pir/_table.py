"""Tables of rows, which may change while they are served."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from .. import _core
from .._arrays import Array, ByteArray, IndexArray, as_array, as_indices, as_threads
from .._locks import SharedLock
from ..dpf import Generator, Output
from ..errors import ArgumentError
from . import _stored as stored
from ._checksums import Progress
from ._digest import CHUNK_ROWS, digest_of, hash_chunks
from ._params import TableParams
from ._update import Update
from ._versions import LastChange, UsedVersions

_PART_BYTES = 32 << 20
_MAX_RECENT = 256  # updates that device copies of the table can follow


@dataclass(frozen=True, slots=True)
class Overwritten:
    """The rows that an update changed, and the id of the version before it, `since`."""

    since: bytes
    indices: IndexArray


@dataclass(frozen=True, slots=True)
class TableState:
    """One version of a table: its parameters, its rows in the engine, the hashes of its chunks.

    `recent` lists the latest updates, as far back as a device copy can profit from them. It is
    empty if there is no such copy.
    """

    params: TableParams
    rows: _core.Table
    hashes: ByteArray
    recent: tuple[Overwritten, ...] = ()

    def changed_since(self, version: bytes) -> IndexArray | None:
        """Lists the rows that changed since the version with an id; None if that is unknown."""
        for first, overwritten in enumerate(self.recent):
            if overwritten.since == version:
                return np.unique(np.concatenate([one.indices for one in self.recent[first:]]))
        return None


class Table:
    """A table of rows for lookups: an array of numbers, bools or fixed-length strings of any shape.

    The first axis counts the rows. NumPy arrays (memory-mapped ones included), PyTorch and other
    DLPack arrays, and buffers are accepted. The rows are copied to the layout that the engine
    reads, and hashed, at some GB/s; the array itself is not kept.

    `output` is the group in which shares are added ("bit" is the fastest on a CPU), `generator` the
    generator of the keys, `version` a text that the operator chooses and clients see. `threads` of
    0 uses all processors. `progress`, if given, is called with the bytes done and their total.

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
        threads: int = 0,
        progress: Progress | None = None,
    ) -> None:
        values = _servable(array)
        params = TableParams(  # raises for rows that are too long, before they are copied
            rows=len(values),
            row_shape=values.shape[1:],
            dtype=values.dtype,
            output=output,
            generator=generator,
            version=str(version),
            digest="0" * 64,
        )
        pool = _core.ThreadPool(as_threads(threads))
        rows: ByteArray = np.ascontiguousarray(values).reshape(len(values), -1).view(np.uint8)

        def parts() -> Iterator[ByteArray]:
            for first in range(0, len(rows), _part_rows(params)):
                yield rows[first : first + _part_rows(params)]

        self._begin(_build(params, parts(), pool, progress), pool)

    @classmethod
    def load(
        cls, path: str | Path, *, threads: int = 0, progress: Progress | None = None
    ) -> "Table":
        """Maps a table that `save` wrote into memory, after a check of the whole file.

        The check hashes the file with `threads` threads (0: all processors); `progress`, if given,
        is called with the bytes done and their total. Changes to the table do not reach the file.
        Raises FileError if the file is not a table, or has changed since it was written.
        """
        table = cls.__new__(cls)
        pool = _core.ThreadPool(as_threads(threads))
        table._begin(TableState(*stored.read(Path(path), pool.threads, progress)), pool)
        return table

    def save(self, path: str | Path, *, source: stored.Source | None = None) -> None:
        """Writes the table to a file for `load`, atomically. Raises FileError if that fails.

        `source` identifies the file that the rows came from, for `nescio serve --cache`.
        """
        # Blocks changes, but not readers; a thread that reads blocks changes already.
        with nullcontext() if self._lock.is_mine else self._changes:
            state = self._state
            stored.write(
                Path(path),
                state.params,
                state.rows,
                state.hashes,
                source=source,
                threads=self._pool.threads,
            )

    def _begin(self, state: TableState, pool: _core.ThreadPool) -> None:
        self._state = state
        self._pool = pool
        self._lock = SharedLock()
        self._changes = threading.RLock()
        self._versions = UsedVersions(state.params.version)
        self._last: LastChange | None = None
        self._followed = False

    def follow(self) -> None:
        """Keeps the numbers of rows that change from now on, for `TableState.changed_since`."""
        self._followed = True

    @property
    def params(self) -> TableParams:
        """The public parameters of the current version."""
        return self._state.params

    @property
    def bytes(self) -> int:
        """The memory of the rows in bytes."""
        return self._state.rows.bytes

    def __len__(self) -> int:
        """The number of rows."""
        return self.params.rows

    def __repr__(self) -> str:
        """Describes the table's parameters in one line."""
        return f"Table({self.params.describe()})"

    def __getitem__(self, indices: object) -> Array:
        """Returns plaintext rows, with NumPy indexing: for tests and the table's owner."""
        with self.reading() as state:
            wanted = as_indices(indices, state.params.rows, "an index")
            return _as_values(state.rows.load(wanted.reshape(-1)), wanted.shape, state.params)

    @contextmanager
    def reading(self) -> Iterator[TableState]:
        """Gives the current version, and blocks changes until the block ends."""
        with self._lock.reading():
            yield self._state

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Lets one thread at a time prepare a change. Raises ArgumentError in one that reads."""
        if self._lock.is_mine:
            raise ArgumentError(
                "found a change of a table inside `reading()` by the same thread, which would wait "
                "for itself; expected the change after the block"
            )
        with self._changes:
            yield

    def update(self, indices: object, rows: object, *, version: str | None = None) -> TableParams:
        """Overwrites the rows at `indices` in place; returns the parameters of the new version.

        If an index occurs twice, the later row wins. `version` of None increments the current
        version: two servers that make the same changes in the same order agree. The change waits
        for answers that have begun; later queries for the old version are refused.

        In addition to the table, an update takes the bytes of the new rows, about 20 bytes for
        each, and per thread half a megabyte or 4,096 rows, if they are longer; or a copy of the
        table, if that has at most 8 MiB of rows.

        Raises IndexRangeError, or ArgumentError for rows of another shape or dtype, or a version
        that the table has had before.
        """
        with self._changing():
            old = self._state
            version = self._versions.choose(version, old.params.version)
            where = as_indices(indices, old.params.rows, "an index").reshape(-1)
            new = rows_as_bytes(rows, len(where), old.params)
            update = Update(old.rows, old.params, old.hashes, where, new, pool=self._pool)
            changed = where.copy() if self._followed else None
            state = _new_version(old, update.hashes, changed, version)
            with self._lock.writing():
                update.write()
                self._state = state
            return self._changed(state.params)

    def insert(self, indices: object, rows: object, *, version: str | None = None) -> TableParams:
        """Inserts rows before those at `indices`, as `numpy.insert` does; returns the parameters.

        An index of `len(table)` appends. A new copy of the table is built, while the old one
        continues to serve. Raises the errors of `update`.
        """
        with self._changing():
            params = self._state.params
            where = as_indices(indices, params.rows + 1, "an index").reshape(-1)
            new = rows_as_bytes(rows, len(where), params)
            numbers = -1 - np.arange(len(where))  # negative numbers stand for new rows
            order = np.insert(np.arange(params.rows), where.astype(np.int64), numbers)
            return self._rebuild(order, new, version)

    def delete(self, indices: object, *, version: str | None = None) -> TableParams:
        """Deletes the rows at `indices`; returns the parameters of the new version.

        A new copy of the table is built, as by `insert`. Raises IndexRangeError, or ArgumentError
        if no row would remain.
        """
        with self._changing():
            params = self._state.params
            where = as_indices(indices, params.rows, "an index").reshape(-1)
            order = np.delete(np.arange(params.rows), where.astype(np.int64))
            if not len(order):
                raise ArgumentError("a table must keep at least one row")
            return self._rebuild(order, np.zeros((0, params.row_bytes), np.uint8), version)

    def change(self, made: LastChange, make: Callable[[TableParams], TableParams]) -> TableParams:
        """Applies the change of a message once, even if the message arrives several times.

        `make` gets the current parameters and changes the table; no other change can interleave.
        If the last change was the same one, nothing happens.
        """
        with self._changing():
            if made != self._last:
                make(self.params)
                self._last = made
            return self.params

    @property
    def last_change(self) -> LastChange | None:
        """The message of the last change; None if there was none, or no message made it."""
        return self._last

    @property
    def next_version(self) -> str | None:
        """The version that the next change gets if it names none; None if it would be too long."""
        with suppress(ArgumentError):
            return self._versions.choose(None, self.params.version)
        return None

    def has_had(self, version: str) -> bool:
        """Tests if the table has, or had before, a version."""
        return version in self._versions

    def _changed(self, params: TableParams) -> TableParams:
        """Notes a change that is done."""
        self._versions.add(params.version)
        self._last = None
        return params

    def _rebuild(self, order: Array, new: ByteArray, version: str | None) -> TableParams:
        """Builds the version whose row i is old row order[i], or new row -1 - order[i]."""
        old = self._state
        version = self._versions.choose(version, old.params.version)

        def parts() -> Iterator[ByteArray]:
            for first in range(0, len(order), _part_rows(old.params)):
                own = order[first : first + _part_rows(old.params)]
                part = old.rows.load(np.maximum(own, 0).astype(np.uint64))
                part[own < 0] = new[-1 - own[own < 0]]
                yield part

        params = replace(old.params, rows=len(order), version=version)
        state = _build(params, parts(), self._pool, None)
        with self._lock.writing():
            self._state = state
        return self._changed(state.params)


def rows_as_bytes(rows: object, count: int, params: TableParams) -> ByteArray:
    """Converts `count` rows to bytes. Raises ArgumentError for another shape or dtype."""
    values = as_array(rows, "the rows")
    expected = (count, *params.row_shape)
    if values.shape != expected or values.dtype != params.dtype:
        raise ArgumentError(
            f"the rows have shape {values.shape} and dtype {values.dtype}, "
            f"expected {expected} and {params.dtype}"
        )
    raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return raw.reshape(count, params.row_bytes)


def _servable(array: object) -> Array:
    if isinstance(array, str | Path):
        raise ArgumentError(
            "table: found a path, expected an array: load it with numpy.load, or with Table.load"
        )
    values = as_array(array, "the table")
    if values.ndim == 0 or values.size == 0:
        raise ArgumentError(
            f"table: found shape {values.shape}, expected at least one row and element"
        )
    if values.dtype.hasobject or values.dtype.kind == "V":
        raise ArgumentError(
            f"dtype {values.dtype} is not supported; use numbers, bools or fixed-length strings"
        )
    return values


def _part_rows(params: TableParams) -> int:
    """Returns the rows per part: whole chunks, about 32 MB."""
    return CHUNK_ROWS * max(1, _PART_BYTES // (CHUNK_ROWS * params.row_bytes))


def _build(
    params: TableParams,
    parts: Iterator[ByteArray],
    pool: _core.ThreadPool,
    progress: Progress | None,
) -> TableState:
    """Stores and hashes rows, which arrive in parts of `_part_rows`."""
    rows = _core.Table(params.rows, params.row_bytes, params.output)
    hashes = []
    done = 0
    for part in parts:
        rows.store(done, part, pool)
        hashes.append(hash_chunks(part, pool.threads))
        done += len(part)
        if progress is not None:
            progress(done * params.row_bytes, params.rows * params.row_bytes)
    all_hashes = np.concatenate(hashes)
    return TableState(replace(params, digest=digest_of(all_hashes)), rows, all_hashes)


def _new_version(
    old: TableState, hashes: ByteArray, changed: IndexArray | None, version: str
) -> TableState:
    """Returns the state after an update; `changed` is None if no device copy follows it."""
    params = replace(old.params, digest=digest_of(hashes), version=version)
    if changed is None:
        return TableState(params, old.rows, hashes)
    recent = [*old.recent, Overwritten(old.params.id, changed)]
    while len(recent) > _MAX_RECENT or sum(len(one.indices) for one in recent) > params.rows:
        del recent[0]  # copying the whole table is as fast as following these updates
    return TableState(params, old.rows, hashes, tuple(recent))


def _as_values(rows: ByteArray, shape: tuple[int, ...], params: TableParams) -> Array:
    values: Array = rows.view(params.dtype).reshape((*shape, *params.row_shape))
    return values
