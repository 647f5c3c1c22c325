"""The older versions that a table still answers, and what their answers take.

An update writes rows in place. It keeps a patch of the records and of each hash table: the rows
that it changed and their differences (core/pir/patch.h). The answer of an older version is that of
the current one plus the sums of all later patches. A rebuild keeps the state before it instead,
with the memory and the patches of that state, until the next change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from .. import _core
from .._arrays import ByteArray, IndexArray
from ._hash_shape import HASH_BYTES
from ._hash_tree import TreeChange
from ._params import TableParams
from ._state import Kept, TableState
from ._versions import RecentIds

MAX_VERSIONS = 256
DEFAULT_VERSIONS = 32
DEFAULT_FRACTION = Fraction(1, 8)

ID_BYTES = 16
_MAX_IDS = 1 << 14
_MOST_LANES = 16


class Version(NamedTuple):
    """A version that a table answers: the state that has its memory, and its age there.

    With an age of n, the answers are those of the state and of its n latest patches.
    """

    state: TableState
    age: int

    @property
    def params(self) -> TableParams:
        """The parameters of the version."""
        return self.state.kept[self.age - 1].params if self.age else self.state.params

    @property
    def tops(self) -> ByteArray:
        """The tops of the version."""
        tops = self.state.tree.tops.copy()
        for kept in self.state.kept[: self.age]:
            numbers, hashes = kept.tops
            tops[numbers.astype(np.int64)] = hashes
        return tops

    def patches(self, number: int) -> Sequence[_core.Patch]:
        """Returns the patches of the records (0), or of a hash table (from 1 on)."""
        return [kept.patches[number] for kept in self.state.kept[: self.age]]


def states_of(state: TableState) -> Iterator[TableState]:
    """Yields the current state, and the one before a rebuild if it is kept."""
    yield state
    if state.before is not None:
        yield state.before


def versions_of(state: TableState) -> Iterator[Version]:
    """Yields the versions that a table answers, newest first."""
    for own in states_of(state):
        for age in range(1 + len(own.kept)):
            yield Version(own, age)


def find_version(state: TableState, ident: bytes) -> Version | None:
    """Finds the version with an id among those that a table answers."""
    if ident == state.params.id:
        return Version(state, 0)
    return next((one for one in versions_of(state) if one.params.id == ident), None)


def kept_bytes(state: TableState) -> int:
    """Returns the memory of older versions."""
    own = sum(kept.bytes for kept in state.kept)
    if state.before is None:
        return own
    return own + state.before.records.bytes + state.before.tree.bytes + kept_bytes(state.before)


def without(state: TableState, version: Version) -> TableState:
    """Returns a state that no longer answers an older version, and those before it."""
    if version.state is state:
        return replace(state, kept=state.kept[: version.age - 1], before=None)
    if version.age == 0 or state.before is None:
        return replace(state, before=None)
    return replace(state, before=replace(state.before, kept=state.before.kept[: version.age - 1]))


@dataclass(frozen=True, slots=True)
class Keeping:
    """Limits of the older versions: `count` with the current one, a fraction of the table's bytes.

    The patches of the last update are kept in any case, unless `count` is 1.
    """

    count: int = DEFAULT_VERSIONS
    fraction: float = float(DEFAULT_FRACTION)

    def limited(self, state: TableState) -> TableState:
        """Returns a state with as many older versions as the limits allow."""
        if self.count == 1:
            return replace(state, kept=(), before=None)
        left = self.fraction * (state.records.bytes + state.tree.bytes)
        kept: list[Kept] = []
        for one in state.kept[: self.count - 1]:
            left -= one.bytes
            if kept and left < 0:
                return replace(state, kept=tuple(kept), before=None)
            kept.append(one)
        before, more = state.before, self.count - 2 - len(kept)
        if before is not None:
            before = replace(before, kept=before.kept[:more]) if more >= 0 else None
        return replace(state, kept=tuple(kept), before=before)

    def updated(
        self,
        state: TableState,
        old: TableState,
        changed: tuple[IndexArray, ByteArray, ByteArray],
        change: TreeChange,
    ) -> TableState:
        """Returns the state after an update of `old`, which keeps what the update overwrites.

        `changed` has the numbers of the records, and their old and new bytes.
        """
        if self.count == 1:
            return state
        lanes = [_lane_bytes(old.params), *[HASH_BYTES] * len(change.rows)]
        patches = tuple(
            _core.Patch(*rows, layout.bins, layout.output, lane)
            for rows, layout, lane in zip(
                [changed, *change.rows], old.params.layouts, lanes, strict=True
            )
        )
        kept = Kept(old.params, change.old_tops, patches)
        return self.limited(replace(state, kept=(kept, *old.kept)))

    def rebuilt(self, state: TableState, old: TableState) -> TableState:
        """Returns the state after a rebuild, which keeps the state before it."""
        return self.limited(replace(state, before=replace(old, before=None)))


def _lane_bytes(params: TableParams) -> int:
    """Returns the bytes of a record's lanes: one row, or several if a record has many rows.

    Lanes are whole elements of the output; a record whose rows are not has one lane.
    """
    lane = params.row_bytes * max(1, params.record_rows // _MOST_LANES)
    element = 1 if params.output == "bit" else int(params.output[1:]) // 8
    return lane if lane % element == 0 else _core.answer_bytes(params.output, params.record_bytes)


class KnownIds:
    """The ids of the versions that a table has had, up to the last 16,384."""

    def __init__(self, first: bytes) -> None:
        self._ids = RecentIds(ID_BYTES // 8, _MAX_IDS)
        self.add(first)

    def __contains__(self, ident: bytes) -> bool:
        """Tests if the table has had the version with an id."""
        return ident in self._ids

    def to_bytes(self) -> bytes:
        """Encodes all ids, 16 bytes each, oldest first."""
        return self._ids.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, current: bytes) -> "KnownIds":
        """Decodes the bytes of `to_bytes`, and adds the `current` id."""
        known = cls(current)
        if data:
            known._ids.replace(data)
        if current not in known:
            known.add(current)
        return known

    def add(self, ident: bytes) -> None:
        """Adds the id of a version."""
        self._ids.add(ident)
