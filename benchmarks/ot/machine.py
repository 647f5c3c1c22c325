"""Who does the steps of silent OT, in which ways: the processor in its tiers, a device in its own.

Ways are named from the naive to the one that parties use.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import numpy as np

from nescio import _core
from nescio._arrays import Array, IndexArray
from nescio._device import Device, describe
from nescio.ot._engine import EngineBlocks, OtEngine
from nescio.ot._families import CODE_SEED

from .limits import DeviceLimits, HostLimits, Limit
from .work import KEY, Bits, Blocks, Code, Part, Step, Trees, Work

__all__ = ["ONLY", "DeviceMachine", "HostMachine", "Machine", "Run"]

ONLY = "only"
"""The way of a step that has no other."""

_PORTABLE = "portable"
_USED = "fused"


Run = Callable[[Part], tuple[Any, ...]]
"""A step in one way, its inputs in memory: does a part, and gives what comes of it.

Codes overwrite their noise, so that only the first run of a part has a meaning; the others take as
long.
"""


class Machine(Protocol):
    """Who does steps."""

    name: str
    about: str
    threads: int | None

    def ways(self, step: Step) -> Sequence[str]:
        """The ways to do a step; none if it cannot be done here."""

    def prepare(self, step: Step, way: str) -> Run:
        """A step, ready to run."""

    def witness(self, step: Step, way: str) -> Run:
        """The same step by somebody else, or in another way, to compare with."""

    def limit(self, work: Work, way: str) -> Limit:
        """What nobody does faster here."""


# ---- The processor ------------------------------------------------------------------------------


class HostMachine:
    """The processor, in some of its tiers, on the threads of a pool (0: all it has)."""

    name = "cpu"

    def __init__(self, tiers: Sequence[str] | None, threads: int) -> None:
        known = _core.supported_tiers()
        self._tiers = [tier for tier in known if tiers is None or tier in tiers]
        self._pool = _core.ThreadPool(threads)
        self._limits = HostLimits(self._pool.threads)
        self.threads: int | None = self._pool.threads
        self.about = f"cpu ({_core.active_tier()})"

    def ways(self, step: Step) -> Sequence[str]:
        """Tiers; bits are transposed in one way alone."""
        return [ONLY] if isinstance(step, Bits) else self._tiers

    def prepare(self, step: Step, way: str) -> Run:
        """A step in a tier."""
        match step:
            case Trees():
                return self._trees(step, way)
            case Code():
                return self._code(step, way)
            case Blocks():
                return self._blocks(step, way)
            case Bits():
                return lambda _: (_core.transpose_bits(step.rows),)
        raise AssertionError(step.name)

    def witness(self, step: Step, way: str) -> Run:
        """Another tier, the widest there is, or NumPy for bits."""
        if isinstance(step, Bits):
            return lambda _: (_transposed(step),)
        others = [tier for tier in _core.supported_tiers() if tier != way]
        return self.prepare(step, others[-1] if others else _PORTABLE)

    def limit(self, work: Work, way: str) -> Limit:
        """The limits of a tier."""
        return self._limits.of(work, _core.active_tier() if way == ONLY else way)

    def _trees(self, step: Trees, tier: str) -> Run:
        depth = step.depth
        room: IndexArray = np.zeros((len(step.seeds) << depth, 2), np.uint64)

        def run(part: Part) -> tuple[Array, ...]:
            out = room[part.begin << depth : part.end << depth]
            if step.name == "sender_trees":
                seeds = step.seeds[part.begin : part.end]
                return _core.grow_trees(seeds, depth, step.delta, KEY, self._pool, tier, out)
            levels = slice(part.begin * depth, part.end * depth)
            sides, choices = step.sides[levels], step.choices[levels]
            return (_core.puncture_trees(sides, choices, depth, KEY, self._pool, tier, out),)

        return run

    def _code(self, step: Code, tier: str) -> Run:
        noise = step.noise.copy()
        room = _core.QuasiCyclicRoom()

        def run(part: Part) -> tuple[Array, ...]:
            own = noise[part.begin : part.end]
            if step.parameters == "qc":
                args = (own, CODE_SEED, step.outputs, self._pool, tier, room)
                return (_core.encode_qc(*args),)
            if step.family == "primal":
                _core.encode_primal(own, step.seeds, CODE_SEED, 0, self._pool, tier)
                return (own,)
            _core.encode_ec(own, CODE_SEED, self._pool, tier)
            return (own[: step.outputs],)

        return run

    def _blocks(self, step: Blocks, tier: str) -> Run:
        if step.name == "check":
            return lambda _: (_core.chi_sum(step.blocks, CODE_SEED, self._pool, tier),)
        out = np.zeros_like(step.blocks)
        return lambda _: (_core.hash_blocks(step.blocks, 0, 0, KEY, self._pool, None, tier, out),)


def _transposed(step: Bits) -> IndexArray:
    """Bit i of row j as bit j of block i, by NumPy, so many bytes of the rows at a time."""
    columns = []
    for begin in range(0, step.rows.shape[1], 1 << 14):
        bits = np.unpackbits(step.rows[:, begin : begin + (1 << 14)], axis=1, bitorder="little")
        columns.append(np.packbits(np.ascontiguousarray(bits.T), axis=1, bitorder="little"))
    return np.concatenate(columns).view(np.uint64)


# ---- Devices ------------------------------------------------------------------------------------


class _StepEngine(OtEngine, Protocol):
    """A module of the engine, which names the ways of some steps, the one that is used first."""

    TREE_WAYS: tuple[str, ...]
    PRIMAL_WAYS: tuple[str, ...]


class DeviceMachine:
    """One device. Raises ArgumentError for no name of one, ResourceError if it is not there."""

    def __init__(self, name: str) -> None:
        device = Device.parse(name)
        self.name = name
        self.threads: int | None = None
        self.about = describe([device])
        self._engine = cast(_StepEngine, device.engine())
        self._own = self._engine.OtDevice(device.number)
        self._limits = DeviceLimits(device)
        self._host = HostMachine(None, 0)

    def ways(self, step: Step) -> Sequence[str]:
        """The engine's; none for quasi-cyclic codes."""
        if step.name == "sender_trees":
            return self._engine.TREE_WAYS[::-1]
        if step.name == "code" and step.family == "primal":
            return self._engine.PRIMAL_WAYS[::-1]
        if step.name == "receiver_trees":
            return [_USED]
        return [] if step.parameters == "qc" else [ONLY]

    def prepare(self, step: Step, way: str) -> Run:
        """A step with its blocks on the device; seeds, sums and rows of bits are copied there."""
        match step:
            case Trees():
                return self._trees(step, way)
            case Code():
                return self._code(step, way)
            case Blocks():
                return self._blocks(step)
            case Bits():
                return lambda _: (self._own.transpose_bits(step.rows),)
        raise AssertionError(step.name)

    def witness(self, step: Step, way: str) -> Run:
        """The processor."""
        del way
        return self._host.prepare(step, _core.active_tier())

    def limit(self, work: Work, way: str) -> Limit:
        """The device's limits."""
        return self._limits.of(work, way)

    def _trees(self, step: Trees, way: str) -> Run:
        depth = step.depth

        def run(part: Part) -> tuple[Any, ...]:
            if step.name == "sender_trees":
                seeds = step.seeds[part.begin : part.end]
                return self._own.grow_trees(seeds, depth, step.delta, KEY, way=way)
            levels = slice(part.begin * depth, part.end * depth)
            return (self._own.puncture_trees(step.sides[levels], step.choices[levels], depth, KEY),)

        return run

    def _code(self, step: Code, way: str) -> Run:
        noise, seeds = self._own.upload(step.noise), self._own.upload(step.seeds)

        def run(part: Part) -> tuple[EngineBlocks, ...]:
            own = noise[part.begin : part.end]
            if step.family == "primal":
                self._own.encode_primal(own, seeds, CODE_SEED, 0, way)
                return (own,)
            self._own.encode_ec(own, CODE_SEED)
            return (own[: step.outputs],)

        return run

    def _blocks(self, step: Blocks) -> Run:
        blocks = self._own.upload(step.blocks)
        if step.name == "check":
            return lambda _: (self._own.chi_sum(blocks, CODE_SEED, 0),)
        return lambda _: (self._own.hash_blocks(blocks, 0, 0, KEY, None),)
