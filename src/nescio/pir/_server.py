"""One of the two servers of a private lookup."""

import logging
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .. import _core
from .._arrays import ByteArray, IndexArray, as_count, as_threads
from .._device import parse_devices
from ..errors import ArgumentError, MismatchError, ResourceError
from . import _wire as wire
from ._device_table import STRATEGIES, Strategy
from ._history import Version, find_version, states_of
from ._params import TableParams
from ._replica import DeviceReplica, automatic_replica
from ._state import TableState
from ._table import Table

_LOG = logging.getLogger(__name__)

# With this many keys a pass over a large table is bound by arithmetic, and a larger batch gains
# little. It would cost more: while all clients wait for one batch, none sends its next request.
_BATCH_KEYS = 128
# A GPU processes hundreds of keys at once; with this many, launches and copies are negligible.
_GPU_BATCH_KEYS = 1024
_READ_SECONDS = 0.2
_READS = 5


class Server:
    """Answers queries to a table without learning which rows they select.

    `threads` of 0 uses all processors. `party`, if given, is the number of this server's party:
    queries for the other party are refused, so that a client cannot send both keys to one server by
    mistake. `tier` names a CPU tier for tests and benchmarks (None: the widest, or the one in
    NESCIO_CPU). A server may be used from several threads; its workers process one call at a time.

    `device` computes the answers: "cpu", or a GPU, "cuda" or "cuda:1". "auto" is the first GPU if
    this build has the GPU part and the table fits in its memory, and otherwise the CPU; with a
    `tier` it is the CPU. `devices` names several devices, which hold a range of the rows each.
    Devices hold a copy of the table, which follows its changes. `strategy` selects one of the
    paper's tree walks on a named GPU, for comparison; "auto" is the fastest. All strategies give
    the same answers.

    The cost of a batch of queries is one pass over the table and the expansion of each key. Answers
    that the client checks cost a pass over the hash tables too: 34 bytes for each record.
    Security model: see `nescio.Client`.
    """

    def __init__(
        self,
        table: Table,
        *,
        threads: int = 0,
        party: int | None = None,
        device: str = "auto",
        devices: Sequence[str] | None = None,
        strategy: Strategy = "auto",
        tier: str | None = None,
    ) -> None:
        parsed = parse_devices(device, devices)
        if strategy not in STRATEGIES:
            raise ArgumentError(
                f"strategy: found {strategy!r}, expected one of {', '.join(STRATEGIES)}"
            )
        if strategy != "auto" and not parsed:
            raise ArgumentError(f"the strategy {strategy!r} needs a GPU: name one as the device")
        if party is not None:
            party = as_count(party, "party", 0, 1)
        if not isinstance(table, Table):
            raise ArgumentError(f"table: found {type(table).__name__}, expected a nescio.Table")
        if tier is None:
            _core.active_tier()  # raises for an invalid NESCIO_CPU now, not at the first query
        else:
            _core.check_tier(tier)
        self.table = table
        self.party = party
        self._tier = tier
        self._pool = _core.ThreadPool(as_threads(threads))
        self._replica: DeviceReplica | None = None
        if parsed:
            self._replica = DeviceReplica(table, parsed, strategy, self._pool)
        elif device == "auto" and tier is None:
            self._replica = automatic_replica(table, self._pool)
        self._automatic = not parsed

    @property
    def params(self) -> TableParams:
        """The table's public parameters, which a Client needs."""
        return self.table.params

    @property
    def tops(self) -> ByteArray:
        """The hashes that clients check rows against, which a Client needs: see `Table.tops`."""
        return self.table.tops

    @property
    def threads(self) -> int:
        """The number of worker threads."""
        return self._pool.threads

    @property
    def batch_keys(self) -> int:
        """The batch size in keys for a bin above which larger batches gain little."""
        return _BATCH_KEYS if self._replica is None else _GPU_BATCH_KEYS

    @property
    def lanes(self) -> int:
        """The number of batches to answer at the same time: those of one machine share it."""
        return 1

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the devices that compute the answers: ("cpu",), ("cuda:0",), ..."""
        return ("cpu",) if self._replica is None else self._replica.names

    @property
    def replica(self) -> DeviceReplica | None:
        """The copy of the table on its devices; None if the CPU answers."""
        return self._replica

    def pass_bytes(self, tables: int) -> int:
        """Returns the bytes of the records and of the first `tables - 1` hash tables."""
        with self.table.reading() as state:
            return sum(state.table(number).bytes for number in range(tables))

    def measured_read(self) -> float:
        """Reads all records with the server's threads; returns the bytes a second, about."""
        with self.table.reading() as state:
            seconds: list[float] = []
            while not seconds or (sum(seconds) < _READ_SECONDS and len(seconds) < _READS):
                begin = time.perf_counter()
                state.records.read_all(self._pool)
                seconds.append(time.perf_counter() - begin)
            return state.records.bytes / min(seconds)

    def knows(self, query: bytes) -> bool:
        """Tests if `check` can judge the version that a query names, without a call of `learn`."""
        del query
        return True

    def learn(self) -> None:
        """Asks for the table's latest versions, if they are elsewhere.

        Raises ResourceError if nobody tells them.
        """

    def answer(self, query: bytes) -> bytes:
        """Answers one query, `Query.keys[party]`.

        A query may be for an older version that the table keeps. Raises MalformedMessageError or
        MalformedKeyError for bytes that are not a query, VersionGoneError for a query to a version
        that is no longer kept, and MismatchError for one to another table or party.
        """
        (answer,) = self.answer_batch([self.check(query)])
        if isinstance(answer, MismatchError):
            raise answer
        return answer

    def check(self, query: bytes) -> wire.QueryMessage:
        """Checks a query without answering it. Raises the errors of `answer`."""
        params = self.params_for(query)
        try:
            message = wire.parse_query(params, query)
        except MismatchError as error:
            ident = wire.table_of(query)
            if ident == params.id:
                raise
            raise self.table.not_answered(ident, "a query") from error
        if self.party is not None and message.party != self.party:
            raise MismatchError(
                f"the query is for party {message.party}, this server is party {self.party}: "
                "one server must never get both keys",
                found=f"party {message.party}",
                expected=f"party {self.party}",
            )
        return message

    def params_for(self, query: object) -> TableParams:
        """Returns the parameters of the version that a query names; else the current ones."""
        version = self.table.find_version(wire.table_of(query))
        return self.params if version is None else version.params

    def answer_batch(self, queries: Sequence[wire.QueryMessage]) -> list[bytes | MismatchError]:
        """Answers checked queries, of all versions with the current memory in one pass over it.

        Queries to a version before a rebuild take a pass of their own. If the table has changed
        since a query was checked and no longer answers its version, a MismatchError takes the place
        of its answer.
        """
        answers: dict[int, bytes] = {}
        with self.table.reading() as current:
            found = [find_version(current, query.table) for query in queries]
            for state in states_of(current):
                asked = [
                    _Asked(i, queries[i], version)
                    for i, version in enumerate(found)
                    if version is not None and version.state is state
                ]
                asked.sort(key=lambda one: one.version.age)
                parts = self._answer(asked, state, None if state is not current else self._replica)
                for (i, query, version), part in zip(asked, parts, strict=True):
                    answers[i] = wire.encode_answer(version.params, query.party, part)
        return [
            answers[i] if i in answers else self.table.not_answered(query.table, "a query")
            for i, query in enumerate(queries)
        ]

    def _answer(
        self, asked: Sequence["_Asked"], state: TableState, replica: DeviceReplica | None
    ) -> list[list[ByteArray]]:
        """Answers queries from the records and, for those that are checked, each hash table.

        They are for versions of one state.
        """
        parts = [_Part.of(asked, number) for number in range(1 + len(state.tree.tables))]
        parts = [part for part in parts if part.numbers]
        answers: list[list[ByteArray]] = [[] for _ in asked]
        for part, found in zip(parts, self._answer_parts(parts, state, replica), strict=True):
            rows = found.reshape(-1, state.params.answer_widths[part.table])
            for i, own in zip(part.numbers, np.split(rows, part.ends[:-1]), strict=True):
                answers[i].append(own)
        return answers

    def _answer_parts(
        self, parts: Sequence["_Part"], state: TableState, replica: DeviceReplica | None
    ) -> Sequence[ByteArray]:
        """Answers the keys to each table, and makes them answers of their versions."""
        if replica is not None:
            try:
                found = [replica.answer(state, part.table, part.keys) for part in parts]
            except ResourceError as error:
                if not self._automatic:
                    raise
                # The table has outgrown the GPU, or the GPU has failed: it was not asked for.
                _LOG.warning("the CPU answers from now on: %s", error)
                self._replica = None
            else:
                for part, own in zip(parts, found, strict=True):
                    _core.add_patches(
                        part.patches, part.ages, part.keys, own, self._pool, self._tier
                    )
                return found
        tables = [(state.table(part.table), *part[-3:]) for part in parts]
        return _core.answer_all(tables, self._pool, self._tier)


class _Asked(NamedTuple):
    """A query to a version, and its number in a batch."""

    number: int
    query: wire.QueryMessage
    version: Version


class _Part(NamedTuple):
    """The keys of queries to the records (0), or to a hash table, and the patches that they need.

    `keys` are joined for each group of bins; lookup i gets the first `ages[i]` of the patches.
    """

    table: int
    numbers: list[int]
    ends: IndexArray
    keys: list[_core.Keys]
    patches: Sequence[_core.Patch]
    ages: IndexArray

    @classmethod
    def of(cls, asked: Sequence["_Asked"], table: int) -> "_Part":
        """Collects the keys of the queries that ask the table."""
        numbers = [i for i, one in enumerate(asked) if len(one.query.keys) > table]
        own = [asked[i] for i in numbers]
        lookups = [one.query.lookups for one in own]
        keys = [_joined(group) for group in zip(*(one.query.keys[table] for one in own))]  # noqa: B905
        ages = np.repeat(np.array([one.version.age for one in own], np.uint64), lookups)
        oldest = max(own, key=lambda one: one.version.age, default=None)
        patches = () if oldest is None else oldest.version.patches(table)
        return cls(table, numbers, np.cumsum(lookups), keys, patches, ages)


def _joined(keys: Sequence[_core.Keys]) -> _core.Keys:
    return keys[0] if len(keys) == 1 else _core.Keys.join(list(keys))
