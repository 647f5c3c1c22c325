"""The implementations of each step of silent OT: tiers of the CPU, kernels of a device.

A step's implementations ("ways") are listed from the naive one to the one that parties use.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import numpy as np

from nescio import _core
from nescio._arrays import Array, IndexArray
from nescio._device import Device, describe
from nescio.ot._engine import EngineBlocks, OtEngine

from .limits import DeviceLimits, HostLimits, Limit
from .work import CODE, KEY, Bits, Blocks, Code, Part, Step, Trees, Work

__all__ = ["ONLY", "DeviceMachine", "HostMachine", "Machine", "Run"]

ONLY = "only"
"""The name of the implementation of a step that has only one."""

_PORTABLE = "portable"
_USED = "fused"


Run = Callable[[Part], tuple[Any, ...]]
"""A prepared step, with its inputs in memory: runs one part and returns its outputs.

Codes overwrite their noise. Only the first run of a part has meaningful outputs, but each run takes
the same time.
"""


class Machine(Protocol):
    """A CPU or device that runs steps."""

    name: str
    about: str
    threads: int | None

    def ways(self, step: Step) -> Sequence[str]:
        """Returns the names of a step's implementations; none if there are none here."""

    def prepare(self, step: Step, way: str) -> Run:
        """Returns a step that is ready to run."""

    def reference(self, step: Step, way: str) -> Run:
        """Returns another implementation of the step, to compare with."""

    def limit(self, work: Work, way: str) -> Limit:
        """Returns the lower bounds of some work on this machine."""


# ---- CPU ----------------------------------------------------------------------------------------


class HostMachine:
    """The CPU, in some of its tiers, with a pool of threads (0: every processor)."""

    name = "cpu"

    def __init__(self, tiers: Sequence[str] | None, threads: int) -> None:
        known = _core.supported_tiers()
        self._tiers = [tier for tier in known if tiers is None or tier in tiers]
        self._pool = _core.ThreadPool(threads)
        self._limits = HostLimits(self._pool.threads)
        self.threads: int | None = self._pool.threads
        self.about = f"cpu ({_core.active_tier()})"

    def ways(self, step: Step) -> Sequence[str]:
        """Returns the tiers; transposing bits has one implementation only."""
        return [ONLY] if isinstance(step, Bits) else self._tiers

    def prepare(self, step: Step, way: str) -> Run:
        """Returns a step in a tier, ready to run."""
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

    def reference(self, step: Step, way: str) -> Run:
        """Returns the step in another tier, the widest available, or NumPy's for bits."""
        if isinstance(step, Bits):
            return lambda _: (_transposed(step),)
        others = [tier for tier in _core.supported_tiers() if tier != way]
        return self.prepare(step, others[-1] if others else _PORTABLE)

    def limit(self, work: Work, way: str) -> Limit:
        """Returns the limits of a tier."""
        return self._limits.of(work, _core.active_tier() if way == ONLY else way)

    def _trees(self, step: Trees, tier: str) -> Run:
        depth = step.depth
        leaves: IndexArray = np.zeros((len(step.seeds) << depth, 2), np.uint64)

        def run(part: Part) -> tuple[Array, ...]:
            out = leaves[part.begin << depth : part.end << depth]
            if step.name == "sender_trees":
                seeds = step.seeds[part.begin : part.end]
                return _core.grow_trees(seeds, depth, step.delta, KEY, self._pool, tier, out)
            levels = slice(part.begin * depth, part.end * depth)
            sides, choices = step.sides[levels], step.choices[levels]
            return (_core.puncture_trees(sides, choices, depth, KEY, self._pool, tier, out),)

        return run

    def _code(self, step: Code, tier: str) -> Run:
        noise = step.noise.copy()
        scratch = _core.QuasiCyclicScratch()

        def run(part: Part) -> tuple[Array, ...]:
            own = noise[part.begin : part.end]
            if step.parameters == "qc":
                args = (own, CODE, step.outputs, self._pool, tier, scratch)
                return (_core.encode_qc(*args),)
            if step.family == "primal":
                _core.encode_primal(own, step.seeds, CODE, 0, self._pool, tier)
                return (own,)
            _core.encode_ec(own, CODE, self._pool, tier)
            return (own[: step.outputs],)

        return run

    def _blocks(self, step: Blocks, tier: str) -> Run:
        if step.name == "check":
            return lambda _: (_core.chi_sum(step.blocks, CODE, self._pool, tier),)
        out = np.zeros_like(step.blocks)
        return lambda _: (_core.hash_blocks(step.blocks, 0, 0, KEY, self._pool, None, tier, out),)


def _transposed(step: Bits) -> IndexArray:
    """Transposes with NumPy: bit i of row j becomes bit j of block i; in slices of the rows."""
    columns = []
    for begin in range(0, step.rows.shape[1], 1 << 14):
        bits = np.unpackbits(step.rows[:, begin : begin + (1 << 14)], axis=1, bitorder="little")
        columns.append(np.packbits(np.ascontiguousarray(bits.T), axis=1, bitorder="little"))
    return np.concatenate(columns).view(np.uint64)


# ---- Devices ------------------------------------------------------------------------------------


class _StepEngine(OtEngine, Protocol):
    """A module of the engine; it names the implementations of some steps, the used one first."""

    TREE_WAYS: tuple[str, ...]
    PRIMAL_WAYS: tuple[str, ...]


class DeviceMachine:
    """One device.

    Raises ArgumentError for an invalid name, ResourceError if the device does not exist.
    """

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
        """Returns the engine's kernels; none for quasi-cyclic codes."""
        if step.name == "sender_trees":
            return self._engine.TREE_WAYS[::-1]
        if step.name == "code" and step.family == "primal":
            return self._engine.PRIMAL_WAYS[::-1]
        if step.name == "receiver_trees":
            return [_USED]
        return [] if step.parameters == "qc" else [ONLY]

    def prepare(self, step: Step, way: str) -> Run:
        """Returns a step on blocks in device memory; seeds, sums and rows of bits are copied."""
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

    def reference(self, step: Step, way: str) -> Run:
        """Returns the step on the CPU."""
        del way
        return self._host.prepare(step, _core.active_tier())

    def limit(self, work: Work, way: str) -> Limit:
        """Returns the limits of the device."""
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
                self._own.encode_primal(own, seeds, CODE, 0, way)
                return (own,)
            self._own.encode_ec(own, CODE)
            return (own[: step.outputs],)

        return run

    def _blocks(self, step: Blocks) -> Run:
        blocks = self._own.upload(step.blocks)
        if step.name == "check":
            return lambda _: (self._own.chi_sum(blocks, CODE, 0),)
        return lambda _: (self._own.hash_blocks(blocks, 0, 0, KEY, None),)
