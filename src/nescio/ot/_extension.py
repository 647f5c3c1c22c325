"""Extensions: from a few thousand correlated OTs to millions, with the same loop for both parties.

An extension spends correlations on trees (one for each level of each tree) and grows the trees. In
a malicious session the parties then check the trees. The leaves are multiplied by a public code.
The result is more correlations than were spent: some are kept for the next extension, and the
caller gets the others. The blocks of the sender are r[i], with lowest bit 0; those of the receiver
are t[i], whose lowest bit is the choice.

Source: Boyle et al. 2019 (dual LPN), Yang et al. 2020 (Ferret: primal LPN, the iteration).
"""

import struct
from collections.abc import Callable
from typing import NamedTuple, Protocol

from .._arrays import IndexArray
from .._timing import Clock
from ..errors import MismatchError
from ..net import Channel
from ..net._frame import clean
from ._blocks import wipe
from ._engine import Blocks, Kernels, OutputBuffer
from ._families import ExtensionPlan, Family
from ._keys import ExtensionKeys, SessionKeys

_ANNOUNCEMENT = struct.Struct("<4sQQQQ")

Seed = Callable[[int, bytes, Callable[[], None]], IndexArray]
"""Makes the first correlations of a session from base OTs: their number to their blocks.

Takes the session's public name, and a function to call while it waits for the other party.
"""


class Check(Protocol):
    """A party's part in the check that the sender's trees were grown correctly."""

    def run(self, leaves: Blocks) -> bytes:
        """Proves it to the receiver, or checks the sender's proof; returns the challenge."""

    def finish(self) -> None:
        """Waits for the receiver's verdict, at the sender."""


Grow = Callable[
    [ExtensionPlan, IndexArray, IndexArray, ExtensionKeys, Blocks | None],
    tuple[Blocks, Check | None],
]
"""A party's part in growing the trees of an extension: `Sender._grow`, `Receiver._grow`.

Takes the plan, a correlation for each level of each tree, the 128 correlations of the check (none
without a check), the extension's keys, and memory for the leaves or None. Returns the leaves of all
trees and the check, or None without one.
"""


class Request(NamedTuple):
    """The OTs that a method needs: the kind of transfer (4 characters) and their number.

    `options` and `length` are those of messages, else 0. Both parties must make the same request.
    """

    kind: str
    number: int
    options: int = 0
    length: int = 0

    def encode(self, drawn: int) -> bytes:
        """Encodes the sender's announcement, after `drawn` OTs of the session."""
        return _ANNOUNCEMENT.pack(self.kind.encode(), drawn, *self[1:])

    def __str__(self) -> str:
        sizes = f", one of {self.options}, {self.length} bytes" if self.options else ""
        return f"{self.number} {self.kind.strip()}{sizes}"


class Extender:
    """A party's correlations: makes them by extensions and hands them out in order."""

    def __init__(
        self,
        channel: Channel,
        family: Family,
        seed: Seed,
        grow: Grow,
        kernels: Kernels,
        *,
        keys: SessionKeys,
        leads: bool,
    ) -> None:
        self.clock = Clock()
        self.drawn = 0
        self._channel = channel
        self._family = family
        self._seed = seed
        self._grow = grow
        self._kernels = kernels
        self.keys = keys
        self._leads = leads
        self._extensions = 0
        self._kept = kernels.empty(0)  # spare blocks, then those for the next extension

    def draw(
        self,
        request: Request,
        on_blocks: Callable[[int, Blocks], None] | None = None,
        out: IndexArray | None = None,
    ) -> Blocks:
        """Returns the next blocks, in `out` or new memory.

        Calls `on_blocks(first, part)` for each part when it is made. Raises MismatchError if the
        other party makes another request. After any error the channel must be closed, because a
        correlation must not be spent twice.
        """
        count = request.number
        buffer = self._kernels.output_buffer(count, out)
        try:
            self._announce(request)
            self.drawn += count
            while buffer.done < count:
                begin = buffer.done
                part = self._take_spare(buffer) if self._spare() else self._extend(buffer)
                if on_blocks is not None:
                    on_blocks(begin, part)
        except BaseException:
            buffer.wipe()
            raise
        return buffer.blocks()

    def _announce(self, request: Request) -> None:
        """Sends the request and the OTs drawn before (sender), or compares them (receiver)."""
        own = request.encode(self.drawn)
        if self._leads:
            self._channel.send("DRAW", own)
            return
        raw = bytes(self._channel.receive("DRAW", len(own)))
        if raw != own:
            kind, drawn, *numbers = _ANNOUNCEMENT.unpack(raw)
            found = f"{Request(clean(kind.decode('latin-1')), *numbers)} after {drawn}"
            expected = f"{request} after {self.drawn}"
            raise MismatchError(
                "the parties call different methods or pass different sizes: the sender draws "
                f"{found}, the receiver {expected}",
                found=found,
                expected=expected,
            )

    def _spare(self) -> int:
        """Counts the kept blocks that the next extension does not need."""
        return max(0, len(self._kept) - self._family.reserve)

    def _take_spare(self, buffer: OutputBuffer) -> Blocks:
        """Moves spare blocks to the buffer."""
        count = min(buffer.count - buffer.done, self._spare())
        part = buffer.append(self._kept, count)
        self._kept = self._kept[count:]
        return part

    def _extend(self, buffer: OutputBuffer) -> Blocks:
        """Runs one extension, adds its blocks to the buffer, and keeps those that are left."""
        missing = buffer.count - buffer.done
        plan = self._family.plan(missing)
        self._ensure_inputs(plan, buffer)
        count = min(missing, plan.outputs - self._family.reserve)
        out = buffer.out(count) if plan.supports_out else None
        blocks = self._run(plan, buffer.scratch(plan.leaves), out)
        self._kept = self._kernels.keep(blocks[count:])
        return buffer.append(blocks, count, in_place=out is not None)

    def _ensure_inputs(self, plan: ExtensionPlan, buffer: OutputBuffer) -> None:
        """Makes the correlations that the first extension of a session spends.

        While a party waits for the other's base OTs, it touches the memory of its outputs.
        """
        if plan.inputs <= len(self._kept):
            return
        assert len(self._kept) == 0, "the reserve covers every extension but the first"
        first = self._family.first_plan(plan.inputs)
        with self.clock.step("base"):
            seeds = self._seed((first or plan).inputs, self.keys.session, buffer.touch)
            self._kept = self._kernels.keep(self._kernels.upload(seeds))
            wipe(seeds)
        if first is not None:
            scratch = self._kernels.output_buffer(first.leaves).scratch(first.leaves)
            self._kept = self._kernels.keep(self._run(first, scratch, None))

    def _run(self, plan: ExtensionPlan, scratch: Blocks | None, out: Blocks | None) -> Blocks:
        """Spends the plan's inputs from the kept blocks, and returns all outputs.

        The first outputs may be in `out` instead.
        """
        kernels, kept = self._kernels, self._kept
        levels = kernels.to_host(kept[: plan.trees * plan.depth])
        checks = kernels.to_host(kept[plan.trees * plan.depth : plan.inputs - plan.seeds])
        keys = self.keys.extension(self._extensions)
        self._extensions += 1
        with self.clock.step("trees"):
            leaves, check = self._grow(plan, levels, checks, keys, scratch)
        challenge = b""
        if check is not None:
            with self.clock.step("check"):
                challenge = check.run(leaves)
        with self.clock.step("lpn"):
            seeds = kept[plan.inputs - plan.seeds : plan.inputs]
            blocks = plan.encode(kernels, leaves, seeds, keys.code(challenge), out)
        if check is not None:
            with self.clock.step("check"):
                check.finish()
        return blocks
