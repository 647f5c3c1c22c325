"""Lookups of the rows of inferences: the same bytes for every inference, whatever it needs."""

import threading
from contextlib import AbstractContextManager, nullcontext

from ... import _core
from ..._arrays import Array, as_count
from ...errors import ArgumentError, MismatchError
from .._layout_kind import layout_kind
from .._local import Lookups
from .._params import TableParams
from .._rows import RowKind
from ._layout import Layout
from ._memory import Memory
from ._plan import Planner
from ._requests import BatchResult, Request, request_all, request_each
from ._sets import RowSets
from ._table import check_bins

_MAX_CACHE_ROWS = 1 << 24
_WAITING_LOOKUPS = 16  # rows that wait to be fetched, in lookups of all slots
_TRIES = 10


class BatchClient:
    """Looks up the rows of inferences in a batch table: `client.lookup([[17, 42], [5]])`.

    `lookups` is the table on its two servers: a `RemoteTable`, or a `LocalTable`. Every inference
    sends one lookup, which has as many keys, of the same sizes, whatever rows it needs, however
    many, and whether they fit. Keys that no row needs get random places. Rows that do not fit are
    `missing` from the result; nothing is ever sent again because of them.

    `layout` is the layout that the client has, by default the one that the servers have.
    `cache_rows` is the number of rows that the client keeps, those used last; such rows need no
    slot. With `carry`, rows that are missing are fetched by later lookups, in slots that are left.

    Security model: that of `nescio.Client`; the servers learn the number of inferences, and the
    table's layout, which is public. Choosing slots takes time that depends on the rows, on this
    device, as making keys does not: the times of lookups can tell an observer a little about how
    many rows they need. A row that is missing changes the application's result: see
    docs/security.md for what that can tell.

    Raises MismatchError if the layout is not the table's, MalformedMessageError if the servers'
    layout is invalid, ArgumentError for a table without a batch layout.
    """

    def __init__(
        self,
        lookups: Lookups,
        *,
        layout: Layout | None = None,
        cache_rows: int = 0,
        carry: bool = False,
    ) -> None:
        params = lookups.params
        if not params.layout:
            raise ArgumentError(
                f"a table without a layout: found {params.describe()}, expected a batch table "
                "(nescio.pir.batch.build); look up rows of this one with its own lookup"
            )
        text = lookups.layout
        if layout_kind(text) == "keyed":
            raise ArgumentError(
                "a table with keys: found the layout of a keyed table, expected a batch table "
                "(nescio.pir.batch.build); look up keys with nescio.pir.KeyedClient"
            )
        self.layout = Layout.from_bytes(text) if layout is None else layout
        self._lookups = lookups
        self._check(params)
        self._planner = Planner(self.layout, _core.ThreadPool(1))
        waiting = _WAITING_LOOKUPS * self.layout.slots if carry else 0
        self._memory = Memory(as_count(cache_rows, "cache_rows", 0, _MAX_CACHE_ROWS), waiting)
        self._version = params.id
        self._turn: AbstractContextManager[object]
        self._turn = threading.Lock() if self._memory.is_used else nullcontext()

    @property
    def params(self) -> TableParams:
        """The public parameters of the table in bins, which are not those of its rows."""
        return self._lookups.params

    @property
    def row_kind(self) -> RowKind:
        """The number, shape and dtype of the rows."""
        return RowKind(self.layout.rows, self.params.row_shape[1:], self.params.dtype)

    def lookup(self, sets: object) -> BatchResult:
        """Looks up the rows of one inference (a list of rows) or several (a list of lists).

        Sends one lookup for each inference, also for one without rows. Rows may repeat. If not all
        fit, rows with which others of the inference arrive have priority, and then the first ones.
        If the table changes meanwhile, a client with a cache sends all lookups again, whatever it
        has cached, so that all rows are of one version.

        Raises IndexRangeError for rows that are not in the table, MismatchError if the table has
        another layout now or keeps changing, and the errors of `lookups`; nothing is remembered of
        a call that failed.
        """
        asked = RowSets.of(sets, self.layout.rows)
        with self._turn:
            for _ in range(_TRIES):
                result = self._try(asked)
                if result is not None:
                    return result
        now = self._lookups.params
        raise MismatchError(
            f"the table changed during each of {_TRIES} lookups; it is {now.describe()} now: look "
            "up again later, or change the table less often",
            found=now.id.hex(),
            expected=self._version.hex(),
        )

    def _try(self, asked: RowSets) -> BatchResult | None:
        """Sends the lookups once; returns None if the cache turns out to be of another version."""
        params = self._lookups.params
        self._check(params)
        if params.id != self._version:
            self._memory.clear()
            self._version = params.id
        self._memory.begin()
        try:
            request = self._request(asked)
            values = self._answers(request)
        except BaseException:
            self._memory.forget()
            raise
        if self._memory.caches and self._lookups.params.id != params.id:
            self._memory.forget()
            return None
        self._memory.settle(values)
        return request.collect(asked, values)

    def _answers(self, request: Request) -> Array:
        """Looks up places, and checks that the table had this layout all the time."""
        try:
            return self._lookups.lookup(request.places, layout=self.layout.digest)
        finally:
            self._check(self._lookups.params)

    def _request(self, asked: RowSets) -> Request:
        if self._memory.is_used:
            return request_each(self._planner, self._memory, asked)
        return request_all(self._planner, asked)

    def _check(self, params: TableParams) -> None:
        """Raises MismatchError unless the table has this layout."""
        if params.layout != self.layout.digest:
            raise MismatchError(
                f"the layout is of another table or version: found {self.layout.digest[:12]}, "
                f"expected {params.layout[:12] or 'none'} for {params.describe()}; fetch the "
                "layout again, with a new BatchClient",
                found=self.layout.digest,
                expected=params.layout,
            )
        check_bins(params, self.layout)
