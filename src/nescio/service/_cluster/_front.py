"""A table and its server as a front has them: the rows are at shards, the versions at a head."""

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from ... import _core
from ..._arrays import ByteArray
from ...errors import MismatchError, ResourceError
from ...pir import Server, TableParams
from ...pir import _wire as wire
from ...pir._hash_tree import HashTree
from ...pir._history import KnownIds
from ...pir._sharded import HeadTable
from ...pir._sharded._sum import add_answers
from ...pir._state import TableState
from ...pir._vacancy import Vacancy
from ...pir._versions import UsedVersions
from ...pir._wire import QueryMessage
from .._batcher import Waited
from ._connect import NamedActor, Ray
from ._messages import PROTOCOL, HeadState, Partial
from ._replicas import Replicas
from ._reports import Reports

_LOG = logging.getLogger(__name__)
_FOLLOW_SECONDS = 1.0
_LATE_SECONDS = 5.0
_CHANGE_SECONDS = 60.0
_LEARN_SECONDS = 2.0
_RECENT_SECONDS = 0.1  # in which versions that clients name need not be asked for again
_UNHEARD_SECONDS = 1.0  # in which a head that did not answer is not asked again
_BATCH_KEYS = 256
_GPU_BATCH_KEYS = 1024
_LANES = 2


class FrontTable(HeadTable):
    """A table's versions, which follow those of its head. Changes are made by the head."""

    def __init__(self, ray: Ray, head: NamedActor, state: HeadState, replicas: Replicas) -> None:
        self._ray = ray
        self._replicas = replicas
        self._head = head
        self.reports: Reports | None = None
        self._no_rows = _core.Table([(1, 1, 1)], 1, "bit")
        self._begin(self._state_of(state), _core.ThreadPool(1))
        self._asked = self._unheard = -math.inf
        self._learning = threading.Lock()
        self._take(state)
        self.remote = self._change
        self._stopped = threading.Event()
        self._follower = threading.Thread(target=self._follow, name="nescio-follow", daemon=True)
        self._follower.start()

    def stop(self) -> None:
        """Ends the thread that follows the head: Ray ends a process that calls it after its end."""
        if self.reports is not None:
            self.reports.stop()
        self._stopped.set()
        self._follower.join()

    def report(self, waited: Callable[[], Waited]) -> None:
        """Lets the head know of waits each second, until `stop`."""
        self.reports = Reports(self._head, self._replicas, waited)

    def learn(self) -> None:
        """Asks the head for its versions, once for all that ask at the same time.

        Raises ResourceError if it does not answer soon, or did not a moment ago.
        """
        with self._learning:
            if time.monotonic() - self._asked < _RECENT_SECONDS:
                return
            if time.monotonic() - self._unheard < _UNHEARD_SECONDS:
                raise ResourceError("the head of the table does not answer: try again later")
            try:
                self.refresh(_LEARN_SECONDS)
            except ResourceError:
                self._unheard = time.monotonic()
                raise

    def refresh(self, seconds: float = _CHANGE_SECONDS) -> None:
        """Asks the head for its versions. Raises ResourceError if it does not answer."""
        begun = time.monotonic()
        try:
            state = self._ray.get(self._head.state.remote(), timeout=seconds)
        except Exception as error:
            raise ResourceError(f"the head of the table does not answer: {error}") from error
        if isinstance(state, Exception):
            raise ResourceError(f"the head of the table could not open it: {state}")
        self._take(state)
        self._asked = begun

    def _change(self, message: bytes) -> TableParams:
        """Lets the head make a change; returns the parameters after it."""
        try:
            params: TableParams | Exception = self._ray.get(
                self._head.change.remote(message), timeout=_CHANGE_SECONDS
            )
        except Exception as error:
            raise ResourceError(f"the head of the table does not answer: {error}") from error
        if isinstance(params, Exception):
            raise params
        self.refresh()
        return params

    def _take(self, state: HeadState) -> None:
        """Takes over a state. Raises ResourceError for one of another release's protocol."""
        if state.protocol != PROTOCOL:
            raise ResourceError(
                f"the head of the table has protocol {state.protocol}, this front has {PROTOCOL}: "
                "run one release on all nodes; see docs/cluster.md for an upgrade"
            )
        used = UsedVersions.from_bytes(state.used, state.params.version)
        ids = KnownIds.from_bytes(state.ids, state.params.id)
        vacancy = Vacancy.from_bytes(state.vacancy, state.params.rows)
        new = self._state_of(state)

        def write() -> None:
            self._state, self._vacancy = new, vacancy

        self._lock.write(write)
        self.restore(used, ids, state.last)
        self._replicas.update(state.names, state.params.id, ids.__contains__)
        self._epoch = state.epoch

    def _state_of(self, state: HeadState) -> TableState:
        tree = HashTree((), state.tops)
        return TableState(state.params, self._no_rows, tree, state.recent, state.layout, state.kept)

    def _follow(self) -> None:
        while not self._stopped.is_set():
            try:
                newer = self._ray.get(
                    self._head.newer.remote(self._epoch, _FOLLOW_SECONDS),
                    timeout=_FOLLOW_SECONDS + _LATE_SECONDS,
                )
                if newer is not None:
                    self._take(newer)
            except Exception as error:
                _LOG.warning("the head of the table does not answer: %s", error)
                self._stopped.wait(_FOLLOW_SECONDS)


class ClusterServer(Server):
    """Answers queries by the shards of a table."""

    table: FrontTable

    def __init__(
        self, table: FrontTable, replicas: Replicas, party: int, devices: tuple[str, ...] = ()
    ) -> None:
        self.table = table
        self._devices = devices
        self.party = party
        self._replicas = replicas
        self._replica = None

    @property
    def shards(self) -> Replicas:
        """The shards and their replicas."""
        return self._replicas

    def stop(self) -> None:
        """Ends the threads of the table and of its replicas, before Ray ends."""
        self.table.stop()
        self._replicas.stop()

    @property
    def threads(self) -> int:
        """The number of shards."""
        return len(self._replicas.shards)

    @property
    def batch_keys(self) -> int:
        """The batch size in keys above which larger batches gain little."""
        return _GPU_BATCH_KEYS if self._devices else _BATCH_KEYS

    @property
    def lanes(self) -> int:
        """Batches at the same time: replicas have one each, and the next one is on its way."""
        return max(_LANES, 1 + max(map(len, self._replicas.shards)))

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of each replica, which compute the answers: processors, or GPUs."""
        return self._devices or ("cpu",)

    def pass_bytes(self, tables: int) -> int:
        """Returns the bytes of the records and of the first `tables - 1` hash tables."""
        return sum(_core.table_bytes(*layout) for layout in self.params.layouts[:tables])

    def measured_read(self) -> float:
        """Returns the bytes a second at which one replica of every shard reads its records."""
        rates = [own[0].actor.read_rate.remote() for own in self._replicas.shards]
        return float(sum(self.table._ray.get(rates)))

    def knows(self, query: bytes) -> bool:
        """Tests if the version that a query names is known here."""
        ident = wire.table_of(query)
        return self.table.find_version(ident) is not None or ident in self.table.history()[1]

    def learn(self) -> None:
        """Asks the head for its versions. Raises ResourceError if it does not answer soon."""
        self.table.learn()

    def answer(self, query: bytes) -> bytes:
        """Answers a query; asks the head first if it names a version that is not known here."""
        if not self.knows(query):
            self.learn()
        return super().answer(query)

    def answer_batch(self, queries: Sequence[QueryMessage]) -> list[bytes | MismatchError]:
        """Adds what the shards answer. Raises ResourceError if a shard has no replica."""
        partials = self._replicas.answer([query.message for query in queries])
        errors: dict[int, MismatchError] = {}
        for partial in partials:
            errors.update(partial.errors)
        added = self._added(queries, partials)
        return [
            self._error(query, errors[i]) if i in errors else answer
            for i, (query, answer) in enumerate(zip(queries, added, strict=True))
        ]

    def _error(self, query: QueryMessage, error: MismatchError) -> MismatchError:
        """Returns the error of a query: a shard does not know versions before its checkpoint."""
        if query.table in self.table.history()[1]:
            return self.table.not_answered(query.table, "a query")
        return error

    def _added(self, queries: Sequence[QueryMessage], partials: Sequence[Partial]) -> list[bytes]:
        """Adds the shares of all shards; answers of queries with an error are empty."""
        expected = tuple(query.table for query in queries)
        sizes = [self._answer_bytes(query) for query in queries]
        bits = self.params.output == "bit"
        if bits and all(one.versions == expected and not one.errors for one in partials):
            payloads = [_checked(one, sum(sizes)) for one in partials]
            total = add_answers(self.params, 1, payloads)  # all are XORed: at once
            ends = np.cumsum(sizes)[:-1]
            return [
                self._encoded(query, own)
                for query, own in zip(queries, np.split(total, ends), strict=True)
            ]
        shares = [_Shares(partial) for partial in partials]
        return [
            self._added_one(query, [one.take(i, size, query.table) for one in shares])
            for i, (query, size) in enumerate(zip(queries, sizes, strict=True))
        ]

    def _added_one(self, query: QueryMessage, parts: Sequence[ByteArray | None]) -> bytes:
        own = [part for part in parts if part is not None]
        if len(own) < len(parts):
            return b""
        params = self.params_for(query.message)
        return self._encoded(query, add_answers(params, query.lookups, own))

    def _answer_bytes(self, query: QueryMessage) -> int:
        widths = self.params_for(query.message).answer_widths[: len(query.keys)]
        return query.lookups * sum(widths)

    def _encoded(self, query: QueryMessage, shares: ByteArray) -> bytes:
        return wire.encode_shares(query.table, query.party, query.lookups, len(query.keys), shares)


class _Shares:
    """The shares of a partial answer, taken query by query."""

    def __init__(self, partial: Partial) -> None:
        self._partial = partial
        self._at = 0

    def take(self, number: int, count: int, version: bytes) -> ByteArray | None:
        """Returns the shares of the next query; None for one that has an error.

        Raises ResourceError for shares of another version, or too few.
        """
        if number in self._partial.errors:
            return None
        if self._partial.versions[number] != version:
            raise ResourceError(f"part {self._partial.part}: found an answer of another version")
        found = self._partial.payload[self._at : self._at + count]
        self._at += count
        return _of_length(found, count, self._partial)


def _checked(partial: Partial, count: int) -> ByteArray:
    return _of_length(partial.payload, count, partial)


def _of_length(shares: ByteArray, count: int, partial: Partial) -> ByteArray:
    """Returns shares of a length. Raises ResourceError for others."""
    if len(shares) != count:
        raise ResourceError(
            f"part {partial.part}: found {len(shares)} bytes of shares, expected {count}"
        )
    return shares
