"""A table's rows on devices, kept as the table is while it changes."""

import threading
from collections.abc import Sequence

from .. import _core
from .._arrays import ByteArray
from .._device import Device
from ._device_table import DEFAULT_NODES, SHARD_ROWS, DeviceTable, Strategy, Work
from ._table import Table, TableState

_PART_BYTES = 64 << 20


class DeviceReplica:
    """The rows of a `Table` on devices. Every answer is made from the version it is asked for.

    Updates send the rows that they changed, any other change the table anew. Raises ResourceError
    if a device is missing or has no room.
    """

    def __init__(
        self, table: Table, devices: Sequence[Device], strategy: Strategy, pool: _core.ThreadPool
    ) -> None:
        self._devices = devices
        self._strategy = strategy
        self._pool = pool
        self.nodes = DEFAULT_NODES  # of a walk that expands some at a time; for comparison
        self._lock = threading.Lock()  # guards what follows
        self._id = b""  # of the version that `rows` are of
        self.rows: DeviceTable | None = None
        self.work: Work | None = None  # what the last answer took
        with table.reading() as state:
            self._follow(state)

    def answer(self, state: TableState, keys: _core.Keys) -> ByteArray:
        """Answers to keys from a version of the table, which does not change meanwhile."""
        with self._lock:
            rows = self._follow(state)
            answers, self.work = rows.answer_by(self._strategy, keys, self.nodes)
            return answers

    def _follow(self, state: TableState) -> DeviceTable:
        """The rows of a version."""
        if self.rows is not None and state.params.id == self._id:
            return self.rows
        changed = state.changed_since(self._id)
        if self.rows is not None and changed is not None:
            rows = self.rows
            self.rows = None  # whose they are is not known if this fails
            rows.replace(changed, state.rows.load(changed))
        else:
            self.rows = None  # gives the memory back before as much is asked for
            rows = self._place(state)
        self.rows, self._id = rows, state.params.id
        return rows

    def _place(self, state: TableState) -> DeviceTable:
        params = state.params
        placed = DeviceTable(self._devices, params.rows, params.row_bytes, params.output)
        step = max(1, _PART_BYTES // (SHARD_ROWS * params.row_bytes)) * SHARD_ROWS
        for first in range(0, params.rows, step):
            count = min(step, params.rows - first)
            placed.store(first, state.rows.load_range(first, count, self._pool))
        return placed
