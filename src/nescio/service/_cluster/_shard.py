"""The actor that holds a shard's rows.

Ray starts it again after a failure: from the file of its part that the base in the data folder
names (_base.py), or from its source if there has been no checkpoint.
"""

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ... import _core
from ..._arrays import ByteArray, IndexArray, as_threads, load_array
from ..._disk import sync_folder
from ...errors import FileError, MismatchError, ResourceError
from ...pir import TableParams
from ...pir._rows import rows_as_bytes, servable
from ...pir._sharded import (
    Frozen,
    Part,
    RowUpdate,
    ShardServer,
    ShardTable,
    build_shard,
    read_shard,
    write_frozen,
)
from ...pir._sharded._shard import Prepared
from ._base import stored_base
from ._connect import Actor, Ray
from ._messages import PROTOCOL, Partial, ShardInfo
from ._placement import Placement, Room
from ._replica import PING_GROUP

_CONCURRENCY = 8
_NICENESS = 10
_TRIES = 10  # to read a file that a new checkpoint may have removed
_OVERHEAD_BYTES = 128 << 20  # of a process, and of the keys and answers of a batch


@dataclass(frozen=True, slots=True)
class ShardSource:
    """The source of a shard's rows: a file of a shard, or the file of an array of all rows.

    The parameters of an array's table have no digest yet. `mapped` leaves rows in the file. The
    files of the latest checkpoint in the `folder` of the table's data count before the source.
    """

    params: TableParams
    part: Part
    path: Path
    is_array: bool
    mapped: bool = False
    folder: Path | None = None

    def load(self, threads: int) -> ShardTable:
        """Reads the rows. Raises FileError if that fails."""
        for left in reversed(range(_TRIES)):
            base = stored_base(self.folder)
            name = None if base is None else base.file_of(self.part)
            if name is None or self.folder is None:
                break
            try:
                return read_shard(self.folder / name, threads, mapped=self.mapped)
            except FileError:
                newer = stored_base(self.folder)
                if not left or newer is None or newer.files == (base and base.files):
                    raise
        if not self.is_array:
            return read_shard(self.path, threads, mapped=self.mapped)
        pool = _core.ThreadPool(threads)
        return ShardTable.of(build_shard(self.params, self.part, self._rows, pool), self.part, pool)

    def _rows(self, first: int, count: int) -> ByteArray:
        """Returns rows of the array; those after its end are vacant."""
        values = servable(load_array(self.path))
        own = values[first : first + count]
        rows = rows_as_bytes(own, len(own), self.params)
        return np.pad(rows, ((0, count - len(rows)), (0, 0))) if len(rows) < count else rows


@dataclass(frozen=True, slots=True)
class ShardOptions:
    """Options of all shards of a table: the party, threads of each, and versions that it keeps.

    `devices` are those of each replica, as its process numbers them; none are the processors.
    """

    party: int
    threads: int
    keep: int
    devices: Sequence[str] = ()

    @property
    def cards(self) -> int:
        """The GPUs that Ray reserves for each replica."""
        return sum(name.startswith("cuda") for name in self.devices)

    def room(self, source: ShardSource) -> Room:
        """Returns what Ray reserves for a replica of a shard."""
        rows = 0 if source.mapped else source.part.bytes(source.params)
        return Room(rows + _OVERHEAD_BYTES, self.cards)


def start_shard(  # noqa: PLR0917 - of an actor
    ray: Ray,
    name: str,
    shard: int,
    source: ShardSource,
    options: ShardOptions,
    placement: Placement,
) -> Actor:
    """Starts the actor of a name, or finds it; its rows must fit its node."""
    room = options.room(source)
    remote = ray.remote(concurrency_groups={PING_GROUP: 1})
    actor = remote(Shard).options(
        name=name,
        lifetime="detached",
        get_if_exists=True,
        max_restarts=-1,
        max_concurrency=_CONCURRENCY,
        num_cpus=0,
        num_gpus=options.cards,
        memory=room.memory,
        scheduling_strategy=placement.strategy(name, shard, room),
    )
    return actor.remote(source, options)


class Shard:
    """The methods of the actor."""

    def __init__(self, source: ShardSource, options: ShardOptions) -> None:
        begin = time.monotonic()
        self._table = source.load(as_threads(options.threads))
        self._table.keep_versions(options.keep)
        self._server = ShardServer(
            self._table,
            threads=options.threads,
            party=options.party,
            device="auto" if options.devices else "cpu",
            devices=options.devices or None,
        )
        self._prepared: tuple[str, Prepared] | None = None
        self._frozen: Frozen | None = None
        self._thawing = ExitStack()
        self._changing = threading.Lock()
        self._seconds = time.monotonic() - begin

    def info(self) -> ShardInfo:
        """Describes the shard."""
        table = self._table
        return ShardInfo(
            table.part,
            table.is_fresh,
            table.own_tops().copy(),
            table.params.id,
            self.node(),
            os.getpid(),
            table.bytes,
            self._seconds,
        )

    def node(self) -> str:
        """Returns the id of the node that the shard is on."""
        import ray  # noqa: PLC0415 - in an actor

        node: str = ray.get_runtime_context().get_node_id()
        return node

    def ping(self) -> bytes:
        """Returns the id of the version that the shard has."""
        return self._table.params.id

    def protocol(self) -> int:
        """Returns the version of the messages."""
        return PROTOCOL

    def identify(self, params: TableParams) -> None:
        """Takes the parameters of a table whose digest was not known before all shards were."""
        self._table.identify(params)

    def answer(self, queries: Sequence[bytes]) -> Partial:
        """Answers the queries of a batch from the shard's rows."""
        begin = time.perf_counter()
        ident, fresh = self._table.params.id, self._table.is_fresh
        checked = [self._server.checked(query) for query in queries]
        found = self._server.answer_parts(checked)
        shares = [one for one in found if isinstance(one, bytes)]
        return Partial(
            self._table.part,
            tuple(b"" if isinstance(one, MismatchError) else one.table for one in checked),
            np.frombuffer(b"".join(shares), np.uint8),
            {i: one for i, one in enumerate(found) if isinstance(one, MismatchError)},
            ident,
            fresh,
            time.perf_counter() - begin,
        )

    def prepare(self, name: str, update: RowUpdate) -> tuple[IndexArray, ByteArray]:
        """Prepares a change of rows of the whole table; returns the tops that change."""
        with self._changing:
            table = self._table
            prepared = table.prepare(update.of(table.params, table.part))
            self._prepared = name, prepared
            return prepared.tops

    def commit(self, name: str, after: TableParams) -> None:
        """Makes the change that was prepared under a name."""
        with self._changing:
            if self._prepared is None or self._prepared[0] != name:
                raise ResourceError(f"the shard has not prepared change {name}")
            prepared, self._prepared = self._prepared[1], None
            self._table.commit(prepared, after)

    def abandon(self, name: str) -> None:
        """Forgets a change that was prepared under a name."""
        with self._changing:
            if self._prepared is not None and self._prepared[0] == name:
                self._prepared = None

    def make(self, updates: Sequence[RowUpdate]) -> bytes:
        """Makes changes that all other shards have made; returns the id after them."""
        with self._changing:
            self._prepared = None
            for update in updates:
                self._table.make(update)
            return self._table.params.id

    # Checkpoints

    def freeze(self, ident: bytes) -> None:
        """Keeps the current version for `write`, in place of one that was kept before.

        Raises ResourceError if it is another one than that with an id.
        """
        with self._changing:
            self._thaw()
            if self._table.params.id != ident:
                raise ResourceError(f"found version {self._table.params.version!r}")
            self._frozen = self._thawing.enter_context(self._table.frozen())

    def thaw(self) -> None:
        """Forgets the version that is kept for `write`, and ends its writing."""
        with self._changing:
            self._thaw()

    def _thaw(self) -> None:
        self._frozen = None
        self._thawing.close()

    def write(self, path: Path) -> bytes:
        """Writes the version that is kept to a durable file; returns its id.

        Raises FileError if that fails, or if it is thawed meanwhile.
        """
        frozen = self._frozen
        if frozen is None:
            raise FileError("found no version to write: expected `freeze` before")

        def pause() -> None:
            if self._frozen is not frozen:
                raise FileError("another checkpoint has begun")

        with ThreadPoolExecutor(1, initializer=_lower_priority) as own:
            own.submit(write_frozen, path, frozen, pause).result()
        sync_folder(path.parent)
        with self._changing:
            if self._frozen is frozen:
                self._thaw()
        return frozen.state.params.id

    def read_rate(self) -> float:
        """Measures the bytes a second at which the shard reads its records."""
        return self._server.measured_read()


def _lower_priority() -> None:
    with suppress(OSError, AttributeError):  # of this thread alone, on Linux
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
