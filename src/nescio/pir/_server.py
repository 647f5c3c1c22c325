"""One of the two servers of a private lookup."""

from collections.abc import Sequence

import numpy as np

from .. import _core
from .._arrays import ByteArray, as_threads
from .._device import parse_devices
from ..errors import ArgumentError, MismatchError
from . import _wire as wire
from ._device_table import STRATEGIES, Strategy
from ._params import TableParams
from ._replica import DeviceReplica
from ._table import Table, TableState

# From here on a pass over a large table is bound by arithmetic, and a larger batch gains little. It
# would lose more: when all clients wait for one batch, none is sending its next request meanwhile.
_BATCH_KEYS = 128
# A GPU works on hundreds of keys at once; so many that its launches and copies do not count.
_GPU_BATCH_KEYS = 1024


class Server:
    """Answers queries about a table without learning which rows they are for.

    `threads` of 0 takes every processor. `party`, if given, is the only party whose queries are
    answered: a client that sends both keys to one server is then stopped instead of served. `tier`
    names a CPU tier for tests and benchmarks (None: the widest, or NESCIO_CPU's). A server may be
    used from several threads; one query at a time has its workers.

    `device` is where the answers are made: "auto" or "cpu" (the processor), "cuda" or "cuda:1" (a
    GPU). `devices` names several, which hold a stretch of the rows each. They get a copy of the
    table, which follows its changes. `strategy` is one of the paper's ways to walk the keys' trees
    on a GPU, for comparison; "auto" is the fast one. All of them give the same answers.

    Each query costs one pass over the table, shared by the queries that are answered together, and
    the expansion of each key. Security model: see `nescio.Client`.
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
        places = parse_devices(device, devices)
        if strategy not in STRATEGIES:
            raise ArgumentError(
                f"strategy: found {strategy!r}, expected one of {', '.join(STRATEGIES)}"
            )
        if strategy != "auto" and not places:
            raise ArgumentError(f"the strategy {strategy!r} is a GPU's: name one as device")
        if party not in (None, 0, 1):
            raise ArgumentError(f"party: found {party!r}, expected 0 or 1")
        if not isinstance(table, Table):
            raise ArgumentError(f"a server serves a nescio.Table, not a {type(table).__name__}")
        if tier is None:
            _core.active_tier()  # a wrong NESCIO_CPU shows here, not at the first query
        else:
            _core.check_tier(tier)
        self.table = table
        self.party = party
        self._tier = tier
        self._pool = _core.ThreadPool(as_threads(threads))
        self._replica = DeviceReplica(table, places, strategy, self._pool) if places else None

    @property
    def params(self) -> TableParams:
        """The table's public parameters: what a Client is made from."""
        return self.table.params

    @property
    def threads(self) -> int:
        """Worker threads in use."""
        return self._pool.threads

    @property
    def batch_keys(self) -> int:
        """Keys from which on more in one batch gain little."""
        return _BATCH_KEYS if self._replica is None else _GPU_BATCH_KEYS

    @property
    def replica(self) -> DeviceReplica | None:
        """The copy of the table on its devices; None if the CPU answers."""
        return self._replica

    def answer(self, query: bytes) -> bytes:
        """The answer to one query, `Query.keys[party]`.

        Raises MalformedMessageError or MalformedKeyError for bytes that are no query, and
        MismatchError for one to another table, version or party.
        """
        (answer,) = self.answer_batch([self.check(query)])
        if isinstance(answer, MismatchError):
            raise answer
        return answer

    def check(self, query: bytes) -> wire.QueryMessage:
        """Checks a query, with the errors of `answer`, without answering it."""
        message = wire.parse_query(self.params, query)
        if self.party is not None and message.party != self.party:
            raise MismatchError(
                f"the query is for party {message.party}, this server is party {self.party}: "
                "one server must never get both keys",
                found=f"party {message.party}",
                expected=f"party {self.party}",
            )
        return message

    def answer_batch(self, queries: Sequence[wire.QueryMessage]) -> list[bytes | MismatchError]:
        """Answers to checked queries, made in one pass over the table.

        A query whose version of the table has gone since it was checked gets a MismatchError.
        """
        with self.table.reading() as state:
            params = state.params
            current = [query for query in queries if query.table == params.id]
            keys = _joined(current)
            rows = self._answer(state, keys)
        ends = np.cumsum([len(query.keys) for query in current])
        parts = iter(np.split(rows, ends[:-1]))
        return [
            wire.encode_answer(params, query.party, next(parts))
            if query.table == params.id
            else wire.wrong_table("a query", query.table, params)
            for query in queries
        ]

    def _answer(self, state: TableState, keys: _core.Keys) -> ByteArray:
        if self._replica is not None:
            return self._replica.answer(state, keys)
        return state.rows.answer(keys, self._pool, self._tier)


def _joined(queries: Sequence[wire.QueryMessage]) -> _core.Keys:
    if len(queries) == 1:
        return queries[0].keys
    return _core.Keys.join([query.keys for query in queries])
