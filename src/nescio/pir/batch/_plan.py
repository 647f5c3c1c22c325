"""Plans of inferences: which slot fetches which row, and what arrives where.

A plan depends on the rows, and is made on the device of their owner. Its shape and all that is sent
depend on the layout alone.
"""

import os
from collections.abc import Iterator
from itertools import repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ... import _core
from ..._arrays import IndexArray
from ._layout import Layout
from ._positions import COVERED, DROPPED, BinArray, ChoiceArray, Offsets, Positions

Numbers = npt.NDArray[np.int64]


class Plan(NamedTuple):
    """Places for every slot of every set, (sets, slots), and the arrivals of the accesses.

    Access i arrives in slot `slots[i]` of its set, as part `parts[i]`: 0 for the row of the slot, c
    for its c-th neighbor. `slots[i]` is -1 for an access that is dropped.
    """

    places: IndexArray
    slots: Numbers
    parts: Numbers


class Planner:
    """Plans inferences for a layout, one on a device or the many of a log.

    Sets follow each other: set s has the accesses `offsets[s]` to `offsets[s + 1] - 1`, all of
    different rows. If not all fit, those have priority that bring the most others of their set;
    then the first ones.
    """

    def __init__(self, layout: Layout, pool: _core.ThreadPool) -> None:
        self.layout = layout
        self.positions = Positions(layout)
        self._pool = pool
        capacity = self.positions.capacity
        self._first_slots: Numbers = np.cumsum(capacity, dtype=np.int64) - capacity
        self._slot_rows: IndexArray = np.concatenate(
            [np.full(group.slots, group.rows, np.uint64) for group in layout.bins]
        )

    def assign(
        self, offsets: Offsets, rows: IndexArray, together: BinArray | None = None
    ) -> ChoiceArray:
        """Returns the candidate that each access uses, DROPPED or COVERED (see _core.assign).

        `together` is `positions.together(...)` of the same log, if that is known already: it
        depends on the layout's neighbors alone.
        """
        bins = self.positions.per_row(lambda own: self.positions.candidates(own).bins, rows)
        if together is None:
            together = self.positions.together(offsets, rows, self._pool)
        return self._assign(offsets, bins, together)

    def _assign(self, offsets: Offsets, bins: BinArray, together: BinArray) -> ChoiceArray:
        return _core.assign(offsets, bins, self.positions.capacity, together, self._pool)

    def plan(self, offsets: Offsets, rows: IndexArray, late: int = 0) -> Plan:
        """Plans the lookups of sets. Slots without a row get a random place.

        The last `late` accesses come after all others, also if they bring more.
        """
        bins, places = self.positions.candidates(rows)
        together = self.positions.together(offsets, rows, self._pool)
        together[len(rows) - late :] = -1
        choices = self._assign(offsets, bins, together)
        sets = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        used = np.flatnonzero(choices > DROPPED)
        chosen = choices[used].astype(np.int64)
        slots, parts = np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.int64)
        slots[used] = self._slots_of(sets[used], bins[used, chosen])
        all_places = self._random_places(len(offsets) - 1)
        all_places[sets[used], slots[used]] = places[used, chosen]
        _add_covered(slots, parts, choices, offsets[:-1][sets], together)
        return Plan(all_places, slots, parts)

    def arrivals(self, plan: Plan, rows: IndexArray) -> Iterator[tuple[int, int, int]]:
        """Yields the rows, slots and parts of all that arrives for one set, neighbors first."""
        served = np.flatnonzero((plan.slots >= 0) & (plan.parts == 0))
        together = self.layout.together
        if together is not None:
            lists = self.positions.lists(rows[served])
            near = np.where((lists >= 0)[:, None], together.neighbors[lists], -1)
            owner, part = np.nonzero(near >= 0)
            slots = plan.slots[served[owner]]
            yield from zip(near[owner, part].tolist(), slots.tolist(), (part + 1).tolist())  # noqa: B905
        yield from zip(rows[served].tolist(), plan.slots[served].tolist(), repeat(0))

    def _slots_of(self, sets: Numbers, bins: BinArray) -> Numbers:
        """Returns a slot of its bin for each access: in one set, no two get the same."""
        keys = sets * len(self.positions.capacity) + bins
        order = np.argsort(keys, kind="stable")
        starts = np.searchsorted(keys[order], keys[order])
        ranks = np.empty(len(keys), np.int64)
        ranks[order] = np.arange(len(keys)) - starts
        slots: Numbers = self._first_slots[bins] + ranks
        return slots

    def _random_places(self, sets: int) -> IndexArray:
        """Returns a random place for each slot, from the operating system's generator.

        The places are as good as uniform: a word of 64 bits exceeds 2^24 times the rows of a bin.
        """
        shape = sets, len(self._slot_rows)
        words = np.frombuffer(os.urandom(8 * sets * len(self._slot_rows)), np.uint64)
        places: IndexArray = words.reshape(shape) % self._slot_rows
        return places


def _add_covered(
    slots: Numbers, parts: Numbers, choices: ChoiceArray, firsts: Numbers, together: BinArray
) -> None:
    """Writes the slots and parts of the accesses that others bring."""
    brings = (together >= 0) & (choices > DROPPED)[:, None]
    owner, part = np.nonzero(brings)
    brought = firsts[owner] + together[owner, part]
    covered = choices[brought] == COVERED
    slots[brought[covered]] = slots[owner[covered]]
    parts[brought[covered]] = part[covered] + 1
