"""Rows that a client remembers between inferences: a cache, and the rows that are still missing.

Nothing that is sent depends on them: they only change which rows the slots of a lookup fetch.
"""

from collections import OrderedDict
from typing import NamedTuple

from ..._arrays import Array


class Arrival(NamedTuple):
    """The position of a row in the answer to a lookup: its set, slot, and part of the slot."""

    set: int
    slot: int
    part: int


class Memory:
    """The `cache_rows` rows used last, and rows that no lookup fetched yet, at most `max_waiting`.

    Planning comes before the answer, so an entry of the cache is an `Arrival` until `settle`.
    """

    def __init__(self, cache_rows: int, max_waiting: int) -> None:
        self._cache: OrderedDict[int, Array | Arrival] = OrderedDict()
        self._cache_rows = cache_rows
        self._waiting: dict[int, None] = {}
        self._max_waiting = max_waiting
        self._before: dict[int, None] = {}

    @property
    def caches(self) -> bool:
        """True if rows are kept."""
        return self._cache_rows > 0

    @property
    def is_used(self) -> bool:
        """True if anything is remembered."""
        return self.caches or self._max_waiting > 0

    @property
    def waiting(self) -> list[int]:
        """The rows to fetch when there is room, those that wait longest first."""
        return list(self._waiting)

    def begin(self) -> None:
        """Begins a lookup, which `settle` or `forget` ends."""
        self._before = dict(self._waiting)

    def find(self, row: int) -> Array | Arrival | None:
        """Returns a row of the cache, which was then used last."""
        entry = self._cache.get(row)
        if entry is not None:
            self._cache.move_to_end(row)
        return entry

    def has(self, row: int) -> bool:
        """Tests if a row is in the cache, without using it."""
        return row in self._cache

    def add(self, row: int, arrival: Arrival, *, asked: bool) -> bool:
        """Adds a row that will arrive. Returns true if it waited.

        A neighbor that nobody asked for takes a free place only, and is the first to leave.
        """
        waited = self._waiting.pop(row, 0) is None
        if asked or waited:
            self._use(row, arrival)
        elif row not in self._cache and len(self._cache) < self._cache_rows:
            self._cache[row] = arrival
            self._cache.move_to_end(row, last=False)
        return waited

    def _use(self, row: int, arrival: Arrival) -> None:
        if self._cache_rows:
            self._cache[row] = arrival
            self._cache.move_to_end(row)
            if len(self._cache) > self._cache_rows:
                self._cache.popitem(last=False)

    def miss(self, row: int) -> None:
        """Notes a row to fetch later. Too many push out those that wait longest."""
        if self._max_waiting:
            self._waiting[row] = None
            if len(self._waiting) > self._max_waiting:
                del self._waiting[next(iter(self._waiting))]

    def settle(self, values: Array) -> None:
        """Copies the rows that arrived, from the values of all slots."""
        for row, entry in self._cache.items():
            if isinstance(entry, Arrival):
                self._cache[row] = values[entry].copy()

    def forget(self) -> None:
        """Takes back a lookup that failed."""
        for row in [row for row, entry in self._cache.items() if isinstance(entry, Arrival)]:
            del self._cache[row]
        self._waiting = self._before

    def clear(self) -> None:
        """Empties the cache: its rows are of an earlier version of the table."""
        self._cache.clear()
