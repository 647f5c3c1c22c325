"""Extensions: from a few thousand correlated OTs to millions, the same loop for both parties.

An extension spends correlations on trees (a correlation for each level of each tree), grows them,
checks them if asked to, and multiplies the leaves with a public code. What comes out are more
correlations than went in: the first of them are kept for the next extension, the others go to the
caller. A party's blocks b[i] are r[i] for the sender and t[i] for the receiver, whose lowest bits
are 0 and the choice.

Source: Boyle et al. 2019 (dual LPN), Yang et al. 2020 (Ferret: primal LPN, the iteration).
"""

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from .. import _core
from .._arrays import ByteArray, IndexArray
from ..errors import MismatchError
from ..net import Channel
from .family import Family, Shape

Blocks = IndexArray
"""128-bit blocks: uint64 of shape (n, 2), the lower half first."""

Seen = Callable[[int, Blocks], None]

_NONE: Blocks = np.zeros((0, 2), np.uint64)
_ANNOUNCEMENT = struct.Struct("<QQ")


class Role(Protocol):
    """What a party does in its own way."""

    def seed(self, count: int) -> Blocks:
        """The first `count` correlations, from base OTs."""

    def grow(self, shape: Shape, blocks: Blocks, out: Blocks) -> "Check":
        """The leaves of all trees into `out`; `blocks` has a correlation for each level."""


class Check(Protocol):
    """The proof that the trees of an extension were grown as they should be."""

    def __call__(self, leaves: Blocks, blocks: Blocks) -> None:
        """Proves it to the other party, or checks its proof, with 128 correlations."""


class Clock:
    """Seconds that each step took, added up."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Adds what the block takes to a step's time."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            taken = time.perf_counter() - begin
            self.seconds[name] = self.seconds.get(name, 0.0) + taken


class Extender:
    """A party's supply of correlations, which grows as it is drawn on."""

    def __init__(
        self, channel: Channel, family: Family, role: Role, pool: _core.ThreadPool, *, leads: bool
    ) -> None:
        self.clock = Clock()
        self.drawn = 0
        self._channel = channel
        self._family = family
        self._role = role
        self._pool = pool
        self._leads = leads
        self._kept = _NONE  # for the next extension, then for the caller
        self._leaves = _NONE

    def draw(self, count: int, seen: Seen | None = None) -> Blocks:
        """The next `count` blocks; `seen` is told of each part of them as soon as it is there.

        Raises MismatchError if the other party draws another number.
        """
        self._announce(count)
        self.drawn += count
        if not self._spare() and self._family.shape(count).gives == count + self._family.reserve:
            return self._draw_at_once(count, seen)
        out: Blocks = np.empty((count, 2), np.uint64)
        done = 0
        while done < count:
            part = self._take_spare(out[done:]) or self._extend(out[done:])
            if seen is not None:
                seen(done, out[done : done + part])
            done += part
        return out

    def _announce(self, count: int) -> None:
        """The sender says what it is about to draw, and after how many; the receiver compares."""
        own = _ANNOUNCEMENT.pack(self.drawn, count)
        if self._leads:
            self._channel.send("DRAW", own)
            return
        found = self._channel.receive("DRAW", len(own))
        if bytes(found) != own:
            drawn, wanted = _ANNOUNCEMENT.unpack(found)
            message = (
                f"the parties draw different numbers of OTs: the sender {wanted} after {drawn}, "
                f"the receiver {count} after {self.drawn}"
            )
            self._channel.abort(message)
            raise MismatchError(
                message, found=f"{wanted} after {drawn}", expected=f"{count} after {self.drawn}"
            )

    def _spare(self) -> int:
        """Blocks that are kept and that no extension will need."""
        return max(0, len(self._kept) - self._family.reserve)

    def _take_spare(self, out: Blocks) -> int:
        """Moves what no extension will need to `out`. Returns how many."""
        count = min(len(out), self._spare())
        if count:
            out[:count], self._kept = self._kept[:count], self._kept[count:].copy()
        return count

    def _extend(self, out: Blocks) -> int:
        """One extension: fills `out` as far as it goes, and keeps the rest. Returns how many.

        Leaves grow in `out` itself if they have room there.
        """
        shape = self._family.shape(len(out))
        self._stock(shape)
        leaves = out[: shape.leaves] if len(out) >= shape.leaves else self._memory(shape.leaves)
        blocks = self._run(shape, leaves)
        count = min(len(out), len(blocks) - self._family.reserve)
        self._kept = blocks[count:].copy()
        if len(out) < shape.leaves:
            out[:count] = blocks[:count]
        return count

    def _draw_at_once(self, count: int, seen: Seen | None) -> Blocks:
        """An extension that gives what is wanted and no more, in memory that is then the caller's.

        It has twice as many leaves; the memory of the others goes back to the system.
        """
        shape = self._family.shape(count)
        self._stock(shape)
        leaves: Blocks = np.empty((shape.leaves, 2), np.uint64)
        blocks = self._run(shape, leaves)
        self._kept = blocks[count:].copy()
        if blocks.base is leaves:
            del blocks
            leaves.resize((count, 2), refcheck=False)  # in place: no other array is left on it
            blocks = leaves
        if seen is not None:
            seen(0, blocks[:count])
        return blocks[:count]

    def _memory(self, count: int) -> Blocks:
        """Memory for leaves, the same at each extension: new memory is slow at its first touch."""
        if len(self._leaves) < count:
            self._leaves = _NONE  # gives it back before more is asked for
            self._leaves = np.empty((count, 2), np.uint64)
        return self._leaves[:count]

    def _stock(self, shape: Shape) -> None:
        """Sees to it that there are correlations enough for an extension, at its first."""
        missing = shape.needs - len(self._kept)
        if missing <= 0:
            return
        assert len(self._kept) == 0, "the reserve covers every extension but the first"
        start = self._family.start(shape.needs)
        with self.clock.step("base"):
            self._kept = self._role.seed((start or shape).needs)
        if start is not None:
            leaves: Blocks = np.empty((start.leaves, 2), np.uint64)
            self._kept = self._run(start, leaves).copy()

    def _run(self, shape: Shape, leaves: Blocks) -> Blocks:
        """Spends what `shape` needs of the blocks that are kept, and gives all that come of it."""
        spent, self._kept = self._kept[: shape.needs], _NONE
        levels, checks, seeds = np.split(
            spent, [shape.trees * shape.depth, shape.needs - shape.seeds]
        )
        with self.clock.step("trees"):
            check = self._role.grow(shape, levels, leaves)
        if len(checks):
            with self.clock.step("check"):
                check(leaves, checks)
        with self.clock.step("lpn"):
            return shape.encode(leaves, seeds, self._pool)


def packed(blocks: Blocks) -> ByteArray:
    """Blocks as their bytes."""
    raw: ByteArray = np.ascontiguousarray(blocks).reshape(-1).view(np.uint8)
    return raw
