"""A copy of a table on devices, which follows the table's changes."""

import threading
from collections.abc import Sequence

from .. import _core
from .._arrays import ByteArray
from .._device import Device, automatic_device
from ..errors import ResourceError
from ._device_table import DEFAULT_NODES, SHARD_ROWS, DeviceTable, Strategy, Work
from ._table import Table, TableState

_PART_BYTES = 64 << 20


def automatic_replica(table: Table, pool: _core.ThreadPool) -> "DeviceReplica | None":
    """Copies a table to the first GPU. Returns None if the CPU is to answer.

    That is the case without a usable GPU, and if its memory is too small or already in use.
    """
    params = table.params
    device = automatic_device(-(-params.rows // SHARD_ROWS) * SHARD_ROWS * params.row_bytes)
    if device is None:
        return None
    try:
        return DeviceReplica(table, [device], "auto", pool)
    except ResourceError:
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
        self.names = tuple(map(str, devices))
        self.nodes = DEFAULT_NODES  # per key and step of a bounded walk; for benchmarks
        self._lock = threading.Lock()  # guards the attributes below
        self._id = b""  # of the version in `rows`
        self.rows: DeviceTable | None = None
        self.work: Work | None = None  # of the last answer
        table.follow()
        with table.reading() as state:
            self._follow(state)

    def answer(self, state: TableState, keys: _core.Keys) -> ByteArray:
        """Answers keys from a version of the table, which the caller keeps from changing."""
        with self._lock:
            rows = self._follow(state)
            answers, self.work = rows.answer_by(self._strategy, keys, self.nodes)
            return answers

    def _follow(self, state: TableState) -> DeviceTable:
        """Brings the copy to a version and returns it."""
        if self.rows is not None and state.params.id == self._id:
            return self.rows
        changed = state.changed_since(self._id)
        if self.rows is not None and changed is not None:
            rows = self.rows
            self.rows = None  # the version is unknown if the next line fails
            rows.replace(changed, state.rows.load(changed))
        else:
            self.rows = None  # frees the memory before the new copy is allocated
            rows = self._copy(state)
        self.rows, self._id = rows, state.params.id
        return rows

    def _copy(self, state: TableState) -> DeviceTable:
        params = state.params
        copy = DeviceTable(self._devices, params.rows, params.row_bytes, params.output)
        step = max(1, _PART_BYTES // (SHARD_ROWS * params.row_bytes)) * SHARD_ROWS
        for first in range(0, params.rows, step):
            count = min(step, params.rows - first)
            copy.store(first, state.rows.load_range(first, count, self._pool))
        return copy
