"""A copy of a table on devices, which follows the table's changes."""

import threading
from collections.abc import Iterator, Sequence

import numpy as np

from .. import _core
from .._arrays import ByteArray
from .._device import Device, automatic_device
from ..errors import ResourceError
from ._bins import Bins, Grouping
from ._device_table import (
    DEFAULT_NODES,
    SHARD_ROWS,
    DeviceTable,
    Strategy,
    Window,
    Work,
    blocks_of,
)
from ._hash_shape import ARITY
from ._state import TableState
from ._table import Table

_PART_BYTES = 64 << 20


def automatic_replica(table: Table, pool: _core.ThreadPool) -> "DeviceReplica | None":
    """Copies a table to the first GPU. Returns None if the CPU is to answer.

    That is the case without a usable GPU, and if its memory, or the host's, is not sufficient.
    """
    blocks = [
        blocks_of(layout.bins, table.window(number)) * layout.row_bytes
        for number, layout in enumerate(table.params.layouts)
    ]
    device = automatic_device(sum(blocks) * SHARD_ROWS)
    if device is None:
        return None
    try:
        return DeviceReplica(table, [device], "auto", pool)
    except (ResourceError, MemoryError):
        return None


class DeviceReplica:
    """A copy of a `Table` on devices. Every answer uses the version of its query.

    An update copies the changed rows to the devices; an insertion or deletion copies the whole
    table. Raises ResourceError if a device does not exist or lacks the memory.
    """

    def __init__(
        self, table: Table, devices: Sequence[Device], strategy: Strategy, pool: _core.ThreadPool
    ) -> None:
        self._devices = devices
        self._strategy = strategy
        self._pool = pool
        self._window = table.window
        self.names = tuple(map(str, devices))
        self.nodes = DEFAULT_NODES  # per key and step of a bounded walk; for benchmarks
        self._lock = threading.Lock()  # guards the attributes below
        self._id = b""  # of the version in `rows`
        self._tables: list[DeviceTable] | None = None  # of the records, then of each hash table
        self.work: Work | None = None  # of the last answer
        with table.reading() as state:
            self._follow(state)

    @property
    def rows(self) -> DeviceTable | None:
        """The records; None if the copy failed."""
        return None if self._tables is None else self._tables[0]

    def answer(self, state: TableState, number: int, keys: list[_core.Keys]) -> ByteArray:
        """Answers keys for each group of bins, from the records (0) or a hash table of a version.

        The caller keeps the version from changing.
        """
        with self._lock:
            tables = self._follow(state)
            answers, work = tables[number].answer_by(self._strategy, keys, self.nodes)
            if number == 0:
                self.work = work
            return answers

    def _follow(self, state: TableState) -> list[DeviceTable]:
        """Brings the copy to a version and returns its tables."""
        if self._tables is not None and state.params.id == self._id:
            return self._tables
        changed = state.changed_since(self._id)
        if self._tables is not None and changed is not None:
            tables, shape = self._tables, state.params.hashes
            self._tables = None  # the version is unknown if the next lines fail
            for number, copy in enumerate(tables):
                above = shape.tree_numbers(0, changed) // np.uint64(ARITY**number)
                where = shape.table_rows(number, np.unique(above))
                copy.replace(where, state.table(number).load(where))
        else:
            self._tables = None  # frees the memory before the new copy is allocated
            tables = [self._copy(state, number) for number in range(1 + len(state.tree.tables))]
        self._tables, self._id = tables, state.params.id
        return tables

    def _copy(self, state: TableState, number: int) -> DeviceTable:
        layout, window = state.params.layouts[number], self._window(number)
        blocks = blocks_of(layout.bins, window)
        devices = self._devices[:blocks]  # a small hash table is on fewer devices
        copy = DeviceTable(devices if number else self._devices, *layout, window=window)
        step = max(1, _PART_BYTES // (SHARD_ROWS * layout.row_bytes)) * SHARD_ROWS
        for first, count in _spans(layout.bins, window, step):
            copy.store(first, state.table(number).load_range(first, count, self._pool))
        return copy


def _spans(bins: Sequence[Bins], window: Window | None, step: int) -> Iterator[tuple[int, int]]:
    """Yields the first row and the number of rows of parts of at most `step` rows, about."""
    if window is None:
        grouping = Grouping(bins)
        yield from ((grouping.first(span), span.total) for span in grouping.spans(step))
        return
    first, end = window[0], sum(window)
    yield from ((at, min(step, end - at)) for at in range(first, end, step))
