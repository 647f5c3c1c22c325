"""Requests of inferences: the places to look up, and how the answer becomes the rows asked for."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..._arrays import Array, IndexArray
from ._memory import Arrival, Memory
from ._plan import Planner
from ._sets import RowSets

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The rows of some inferences.

    `rows[i]` has the rows of inference i in the order asked, (n, *row_shape), with zeros for a row
    that was not fetched. `found[i]` is true for those that were, and `missing[i]` lists the
    others, each once. `carried` lists rows that earlier lookups missed and this one fetched, and
    `carried_rows` has them.
    """

    rows: list[Array] = field(repr=False)
    found: list[npt.NDArray[np.bool_]] = field(repr=False)
    missing: list[IndexArray] = field(repr=False)
    carried: IndexArray = field(repr=False)
    carried_rows: Array = field(repr=False)


@dataclass(slots=True)
class Request:
    """The places to look up for some sets of rows, and the arrivals of the rows.

    Row i arrives with lookup `sets[i]`, in slot `slots[i]` (-1: not at all), as part `parts[i]`,
    unless it is one of `cached`. `carried` are the arrivals of rows that earlier lookups missed.
    """

    places: IndexArray
    sets: Numbers
    slots: Numbers
    parts: Numbers
    cached: dict[int, Array] = field(default_factory=dict)
    carried: dict[int, Arrival] = field(default_factory=dict)

    def collect(self, asked: RowSets, values: Array) -> BatchResult:
        """Returns the rows, from the values of all slots: (sets, slots, parts, *row_shape)."""
        rows = np.zeros((len(asked.rows), *values.shape[3:]), values.dtype)
        found = self.slots >= 0
        rows[found] = values[self.sets[found], self.slots[found], self.parts[found]]
        for at, row in self.cached.items():
            rows[at], found[at] = row, True
        own_rows, own_found, missing = [], [], []
        for first, end, where in zip(asked.offsets, asked.offsets[1:], asked.asked, strict=False):
            own_rows.append(rows[where])
            own_found.append(found[where])
            missing.append(asked.rows[first:end][~found[first:end]])
        carried = np.array(list(self.carried), np.uint64)
        arrived = [values[arrival] for arrival in self.carried.values()]
        carried_rows = np.array(arrived, values.dtype).reshape(-1, *values.shape[3:])
        return BatchResult(own_rows, own_found, missing, carried, carried_rows)


def request_all(planner: Planner, asked: RowSets) -> Request:
    """Plans the lookups of sets that do not depend on each other."""
    plan = planner.plan(asked.offsets, asked.rows)
    sets = np.repeat(np.arange(len(asked.asked)), np.diff(asked.offsets))
    return Request(plan.places, sets, plan.slots, plan.parts)


def request_each(planner: Planner, memory: Memory, asked: RowSets) -> Request:
    """Plans the lookups of sets one by one: each remembers what arrives with those before it."""
    count = len(asked.rows)
    request = Request(
        np.empty((len(asked.asked), planner.layout.slots), np.uint64),
        np.zeros(count, np.int64),
        np.full(count, -1, np.int64),
        np.zeros(count, np.int64),
    )
    for number, first in enumerate(asked.offsets[:-1].tolist()):
        rows = asked.rows[first : asked.offsets[number + 1]].tolist()
        _request_set(planner, memory, request, number, dict(enumerate(rows, first)))
    return request


def _request_set(
    planner: Planner, memory: Memory, request: Request, number: int, rows: dict[int, int]
) -> None:
    """Plans lookup `number`; `rows` has the row at each place of the request."""
    wanted: dict[int, int] = {}
    for at, row in rows.items():
        entry = memory.find(row)
        if entry is None:
            wanted[row] = at
        elif isinstance(entry, Arrival):
            request.sets[at], request.slots[at], request.parts[at] = entry
        else:
            request.cached[at] = entry
    late = [row for row in memory.waiting if row not in wanted]
    fetched = np.array([*wanted, *late], np.uint64)
    plan = planner.plan(np.array([0, len(fetched)], np.int64), fetched, len(late))
    request.places[number] = plan.places[0]
    own = list(wanted.values())
    request.sets[own] = number
    request.slots[own], request.parts[own] = plan.slots[: len(own)], plan.parts[: len(own)]
    for row, slot, part in planner.arrivals(plan, fetched):
        arrival = Arrival(number, slot, part)
        if memory.add(row, arrival, asked=row in wanted) and row not in wanted:
            request.carried[row] = arrival
    for row in fetched[: len(own)][plan.slots[: len(own)] < 0].tolist():
        memory.miss(row)
