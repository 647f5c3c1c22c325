"""A table of rows that a server serves, and that can change while it is served."""

import builtins
import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from .. import _core
from .._arrays import Array, ByteArray, IndexArray, as_array, as_indices, as_threads
from .._locks import SharedLock
from ..dpf import Generator, Output
from ..errors import ArgumentError
from . import _stored as stored
from ._digest import CHUNK_ROWS, digest_of, hash_chunks
from ._params import TableParams

Progress = Callable[[int, int], None]

_PART_BYTES = 32 << 20
_MAX_RECENT = 256  # updates that are remembered for copies of the table elsewhere


@dataclass(frozen=True, slots=True)
class Overwritten:
    """What an update changed: the rows at `indices` of the version with the id `since`."""

    since: bytes
    indices: IndexArray


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one version: its parameters, its rows in the engine, the hashes of its runs.

    `recent` has the updates that led here, as far back as a copy elsewhere may be worth following.
    """

    params: TableParams
    rows: _core.Table
    hashes: ByteArray
    recent: tuple[Overwritten, ...] = ()

    def changed_since(self, version: bytes) -> IndexArray | None:
        """The rows that were overwritten since the version with an id; None if that is unknown."""
        for first, overwritten in enumerate(self.recent):
            if overwritten.since == version:
                return np.unique(np.concatenate([one.indices for one in self.recent[first:]]))
        return None


class Table:
    """Rows to look up: any array of numbers, bools or fixed strings, of any shape.

    The first axis counts the rows. NumPy arrays (memory-mapped ones too), PyTorch and other DLPack
    arrays on the CPU, and buffers are taken. The rows are copied into the layout that the engine
    multiplies fastest, and hashed, at some GB/s; the array itself is not kept.

    `output` is the group that shares add up in ("bit" is the fastest on a CPU), `generator` the
    keys' generator, `version` a text of the operator's choice that clients see. `threads` of 0
    takes every processor. `progress`, if given, is called with the bytes done and their total.

    A table may be read and changed from several threads: answers under way are finished on the
    version that they began with.

    Raises ArgumentError for an array without rows, or whose elements have no fixed bytes.
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
        rows: ByteArray = values.reshape(len(values), -1).view(np.uint8)
        params = TableParams(
            rows=len(rows),
            row_shape=values.shape[1:],
            dtype=values.dtype,
            output=output,
            generator=generator,
            version=str(version),
            digest="0" * 64,
        )
        pool = _core.ThreadPool(as_threads(threads))

        def parts() -> Iterator[ByteArray]:
            for first in range(0, len(rows), _part_rows(params)):
                yield rows[first : first + _part_rows(params)]

        self._begin(_build(params, parts(), pool, progress), pool)

    @classmethod
    def load(cls, path: str | Path, *, threads: int = 0) -> "Table":
        """A table that `save` wrote, mapped into memory: it serves at once, whatever its size.

        Changes to it stay in memory. Its digest is taken from the file, not from the rows. Raises
        FileError if the file is not a table.
        """
        table = cls.__new__(cls)
        table._begin(TableState(*stored.read(Path(path))), _core.ThreadPool(as_threads(threads)))
        return table

    def save(self, path: str | Path, *, source: stored.Source | None = None) -> None:
        """Writes the table to a file that `load` maps; it is there whole, or not at all.

        `source` says what file the rows came from, for `stored.source_of`.
        """
        with self._changes:  # holds off changes, but no readers
            state = self._state
            stored.write(Path(path), state.params, state.rows, state.hashes, source)

    def _begin(self, state: TableState, pool: _core.ThreadPool) -> None:
        self._state = state
        self._pool = pool
        self._lock = SharedLock()
        self._changes = threading.RLock()
        self._last_message: builtins.bytes | None = None

    @property
    def params(self) -> TableParams:
        """The public parameters of the current version."""
        return self._state.params

    @property
    def bytes(self) -> int:
        """Memory that the rows stand in."""
        return self._state.rows.bytes

    def __len__(self) -> int:
        """The number of rows."""
        return self.params.rows

    def __repr__(self) -> str:
        """The table's parameters in one line."""
        return f"Table({self.params.describe()})"

    def __getitem__(self, indices: object) -> Array:
        """Rows in the open, as NumPy indexes: for checks, and for who holds the table."""
        with self.reading() as state:
            wanted = as_indices(indices, state.params.rows, "an index")
            return _as_values(state.rows.load(wanted.reshape(-1)), wanted.shape, state.params)

    @contextmanager
    def reading(self) -> Iterator[TableState]:
        """The current version, which does not change as long as the block lasts."""
        with self._lock.reading():
            yield self._state

    def update(self, indices: object, rows: object, *, version: str | None = None) -> TableParams:
        """Overwrites the rows at `indices`, in place, under a new version; returns its parameters.

        Of two rows for one index the later stays. `version` of None counts the current one up: two
        servers that make the same changes in the same order agree. Answers under way are finished
        first; queries for the old version are refused from then on.

        Raises IndexRangeError, or ArgumentError for rows of another shape or dtype.
        """
        with self._changes:
            old = self._state
            where = as_indices(indices, old.params.rows, "an index").reshape(-1)
            new = rows_as_bytes(rows, len(where), old.params)
            hashes = _rehash(old, where, new, self._pool)
            state = _new_version(old, hashes, where, version)
            with self._lock.writing():
                old.rows.replace(where, new)
                self._state = state
            self._last_message = None
            return state.params

    def insert(self, indices: object, rows: object, *, version: str | None = None) -> TableParams:
        """Inserts rows before those at `indices` (as `numpy.insert` does), under a new version.

        An index of `len(table)` appends. The table is built anew beside the old one, which serves
        until the new one takes its place. Errors are those of `update`.
        """
        with self._changes:
            params = self._state.params
            where = as_indices(indices, params.rows + 1, "an index").reshape(-1)
            new = rows_as_bytes(rows, len(where), params)
            numbers = -1 - np.arange(len(where))  # of new rows, to tell them from old ones
            order = np.insert(np.arange(params.rows), where.astype(np.int64), numbers)
            return self._rebuild(order, new, version)

    def delete(self, indices: object, *, version: str | None = None) -> TableParams:
        """Removes the rows at `indices`, under a new version, as `insert` adds them.

        Raises IndexRangeError, or ArgumentError if no row would remain.
        """
        with self._changes:
            params = self._state.params
            where = as_indices(indices, params.rows, "an index").reshape(-1)
            order = np.delete(np.arange(params.rows), where.astype(np.int64))
            if not len(order):
                raise ArgumentError("a table keeps at least one row")
            return self._rebuild(order, np.zeros((0, params.row_bytes), np.uint8), version)

    def change(
        self, message: builtins.bytes, make: Callable[[TableParams], TableParams]
    ) -> TableParams:
        """Makes the change that a message asks for, once, however often the message comes.

        `make` gets the current parameters and changes the table; no other change comes between.
        Nothing happens if the last change was the same message's.
        """
        name = hashlib.sha256(message).digest()
        with self._changes:
            if name != self._last_message:
                make(self.params)
                self._last_message = name
            return self.params

    def _rebuild(self, order: Array, new: ByteArray, version: str | None) -> TableParams:
        """A table whose row i is old row order[i], or new row -1 - order[i]."""
        old = self._state

        def parts() -> Iterator[ByteArray]:
            for first in range(0, len(order), _part_rows(old.params)):
                own = order[first : first + _part_rows(old.params)]
                part = old.rows.load(np.maximum(own, 0).astype(np.uint64))
                part[own < 0] = new[-1 - own[own < 0]]
                yield part

        params = replace(
            old.params, rows=len(order), version=version or next_version(old.params.version)
        )
        state = _build(params, parts(), self._pool, None)
        with self._lock.writing():
            self._state = state
        self._last_message = None
        return state.params


def rows_as_bytes(rows: object, count: int, params: TableParams) -> ByteArray:
    """`count` rows for a table as bytes, a row each. Raises ArgumentError for any others."""
    values = as_array(rows, "the rows")
    expected = (count, *params.row_shape)
    if values.shape != expected or values.dtype != params.dtype:
        raise ArgumentError(
            f"the rows have shape {values.shape} and dtype {values.dtype}, "
            f"expected {expected} and {params.dtype}"
        )
    raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return raw.reshape(count, params.row_bytes)


def next_version(version: str) -> str:
    """The version that follows, if none is named: "7" is followed by "8", "may" by "may+1"."""
    base, counter = re.fullmatch(r"(.*?)(\d*)", version, re.DOTALL).groups()  # type: ignore[union-attr]
    if counter and (not base or base.endswith("+")):
        return f"{base}{int(counter) + 1}"
    return f"{version}+1"


def _servable(array: object) -> Array:
    if isinstance(array, str | Path):
        raise ArgumentError("a table is made from an array, not from a path: numpy.load it first")
    values = as_array(array, "the table")
    if values.ndim == 0 or values.size == 0:
        raise ArgumentError(f"a table has at least one row and element: found {values.shape}")
    if values.dtype.hasobject or values.dtype.kind == "V":
        raise ArgumentError(
            f"a table of {values.dtype} cannot be served; numbers, bools and fixed strings can"
        )
    return np.ascontiguousarray(values)


def _part_rows(params: TableParams) -> int:
    """Rows that are taken at a time: whole runs, about 32 MB."""
    return CHUNK_ROWS * max(1, _PART_BYTES // (CHUNK_ROWS * params.row_bytes))


def _build(
    params: TableParams,
    parts: Iterator[ByteArray],
    pool: _core.ThreadPool,
    progress: Progress | None,
) -> TableState:
    """Stores and hashes rows that come in parts of `_part_rows`."""
    rows = _core.Table(params.rows, params.row_bytes, params.output)
    hashes = []
    done = 0
    for part in parts:
        rows.store(done, part, pool)
        hashes.append(hash_chunks(part, pool.threads))
        done += len(part)
        if progress is not None:
            progress(done * params.row_bytes, params.rows * params.row_bytes)
    together = np.concatenate(hashes)
    return TableState(replace(params, digest=digest_of(together)), rows, together)


def _rehash(
    old: TableState, where: IndexArray, new: ByteArray, pool: _core.ThreadPool
) -> ByteArray:
    """The hashes of all runs as they will be when the rows at `where` are `new`."""
    hashes = old.hashes.copy()
    runs = where // np.uint64(CHUNK_ROWS)
    for run in np.unique(runs):
        first = int(run) * CHUNK_ROWS
        rows = old.rows.load_range(first, min(CHUNK_ROWS, old.params.rows - first), pool)
        own = runs == run
        for index, row in zip(where[own] - np.uint64(first), new[own], strict=True):
            rows[index] = row
        hashes[int(run)] = hash_chunks(rows, 1)[0]
    return hashes


def _new_version(
    old: TableState, hashes: ByteArray, where: IndexArray, version: str | None
) -> TableState:
    params = replace(
        old.params,
        digest=digest_of(hashes),
        version=version or next_version(old.params.version),
    )
    recent = [*old.recent, Overwritten(old.params.id, where)]
    while len(recent) > _MAX_RECENT or sum(len(one.indices) for one in recent) > params.rows:
        del recent[0]  # to send the whole table is no more work than to follow this
    return TableState(params, old.rows, hashes, tuple(recent))


def _as_values(rows: ByteArray, shape: tuple[int, ...], params: TableParams) -> Array:
    values: Array = rows.view(params.dtype).reshape((*shape, *params.row_shape))
    return values
