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
from typing import NamedTuple, Protocol

import numpy as np

from .._arrays import ByteArray, IndexArray
from ..errors import MismatchError
from ..net import Channel
from ..net._frame import clean
from ._engine import Blocks, Kernels, Sink
from ._families import Family, Shape
from ._keys import SessionKeys

_ANNOUNCEMENT = struct.Struct("<4sQQQQ")


class Draw(NamedTuple):
    """What is drawn: for which kind of transfer (4 characters), how many, and of which shape.

    `options` and `length` are those of messages, else 0. Both parties name the same.
    """

    kind: str
    number: int
    options: int = 0
    length: int = 0

    def encode(self, drawn: int) -> bytes:
        """The sender's announcement, after so many."""
        return _ANNOUNCEMENT.pack(self.kind.encode(), drawn, *self[1:])

    def __str__(self) -> str:
        shape = f", one of {self.options}, {self.length} bytes" if self.options else ""
        return f"{self.number} {self.kind.strip()}{shape}"


class Check(Protocol):
    """The proof that the trees of an extension were grown as they should be."""

    def __call__(self, leaves: Blocks) -> None:
        """Proves it to the other party, or checks its proof."""


class Role(Protocol):
    """What a party does in its own way."""

    def seed(self, count: int) -> IndexArray:
        """The first `count` correlations, from base OTs."""

    def grow(
        self,
        shape: Shape,
        blocks: IndexArray,
        checks: IndexArray,
        key: bytes,
        room: Blocks | None,
    ) -> tuple[Blocks, Check | None]:
        """The leaves of all trees, in `room` if there is one, and what proves them.

        `blocks` has a correlation for each level of each tree, `checks` the 128 of the proof, or
        none if there is to be no proof; trees are hashed under `key`.
        """


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
        self,
        channel: Channel,
        family: Family,
        role: Role,
        kernels: Kernels,
        keys: SessionKeys,
        *,
        leads: bool,
    ) -> None:
        self.clock = Clock()
        self.drawn = 0
        self._channel = channel
        self._family = family
        self._role = role
        self._kernels = kernels
        self.keys = keys
        self._leads = leads
        self._extensions = 0
        self._kept = kernels.empty(0)  # spare ones, and behind them those for the next extension

    def draw(self, what: Draw, seen: Callable[[int, Blocks], None] | None = None) -> Blocks:
        """The next blocks; `seen` is told of each part of them as soon as it is there.

        Raises MismatchError if the other party draws something else. After any error the channel
        has to be closed: what was spent must not be spent again.
        """
        count = what.number
        sink = self._kernels.sink(count)
        self._announce(what)
        self.drawn += count
        while sink.done < count:
            begin = sink.done
            part = self._take_spare(sink) if self._spare() else self._extend(sink)
            if seen is not None:
                seen(begin, part)
        return sink.all()

    def _announce(self, what: Draw) -> None:
        """The sender says what it is about to draw, and after how many; the receiver compares."""
        own = what.encode(self.drawn)
        if self._leads:
            self._channel.send("DRAW", own)
            return
        raw = bytes(self._channel.receive("DRAW", len(own)))
        if raw != own:
            kind, drawn, *numbers = _ANNOUNCEMENT.unpack(raw)
            found = f"{Draw(clean(kind.decode('latin-1')), *numbers)} after {drawn}"
            expected = f"{what} after {self.drawn}"
            raise MismatchError(
                f"the parties draw different things: the sender {found}, the receiver {expected}",
                found=found,
                expected=expected,
            )

    def _spare(self) -> int:
        """Blocks that are kept and that no extension will need."""
        return max(0, len(self._kept) - self._family.reserve)

    def _take_spare(self, sink: Sink) -> Blocks:
        """Moves what no extension will need to the sink."""
        count = min(sink.count - sink.done, self._spare())
        part = sink.take(self._kept, count)
        self._kept = self._kept[count:]
        return part

    def _extend(self, sink: Sink) -> Blocks:
        """One extension: fills the sink as far as it goes, and keeps the rest."""
        missing = sink.count - sink.done
        shape = self._family.shape(missing)
        self._stock(shape)
        count = min(missing, shape.gives - self._family.reserve)
        place = sink.place(count) if shape.places else None
        blocks = self._run(shape, sink.room(shape.leaves), place)
        self._kept = self._kernels.keep([blocks[count:]])
        return sink.take(blocks, count, placed=place is not None)

    def _stock(self, shape: Shape) -> None:
        """Sees to it that there are correlations enough for an extension, at its first."""
        if shape.needs <= len(self._kept):
            return
        assert len(self._kept) == 0, "the reserve covers every extension but the first"
        start = self._family.start(shape.needs)
        with self.clock.step("base"):
            self._kept = self._kernels.upload(self._role.seed((start or shape).needs))
        if start is not None:
            room = self._kernels.sink(start.leaves).room(start.leaves)
            self._kept = self._kernels.keep([self._run(start, room, None)])

    def _run(self, shape: Shape, room: Blocks | None, place: Blocks | None) -> Blocks:
        """Spends what `shape` needs of the blocks that are kept, and gives all that come of it.

        The first of them may be in `place` instead.
        """
        kernels, kept = self._kernels, self._kept
        levels = kernels.to_host(kept[: shape.trees * shape.depth])
        checks = kernels.to_host(kept[shape.trees * shape.depth : shape.needs - shape.seeds])
        key = self.keys.trees(self._extensions)
        self._extensions += 1
        with self.clock.step("trees"):
            leaves, check = self._role.grow(shape, levels, checks, key, room)
        if check is not None:
            with self.clock.step("check"):
                check(leaves)
        with self.clock.step("lpn"):
            seeds = kept[shape.needs - shape.seeds : shape.needs]
            return shape.encode(kernels, leaves, seeds, place)


def packed(blocks: IndexArray) -> ByteArray:
    """Blocks as their bytes."""
    raw: ByteArray = np.ascontiguousarray(blocks).reshape(-1).view(np.uint8)
    return raw
