"""Where a party's work is done, and where what it draws comes together: the processor, or GPUs.

Both kinds of kernels have one vocabulary, over blocks that are NumPy arrays here and `DeviceBlocks`
there. A sink is memory for what a call draws: extensions grow leaves in it where they fit.
"""

from collections.abc import Sequence

import numpy as np

from .. import _core
from .._arrays import ByteArray, IndexArray
from .device import DeviceBlocks, DeviceKernels

_NONE: IndexArray = np.zeros((0, 2), np.uint64)


class HostSink:
    """An array that extensions fill, in place where their leaves fit into what is left of it."""

    def __init__(self, count: int, kernels: "HostKernels") -> None:
        self.count = count
        self.done = 0
        self._kernels = kernels
        self._out: IndexArray = np.empty((count, 2), np.uint64)

    def room(self, leaves: int) -> IndexArray:
        """A part of the array, or memory that extensions use in turn."""
        if leaves <= self.count - self.done:
            return self._out[self.done : self.done + leaves]
        return self._kernels.scratch(leaves)

    def place(self, count: int) -> IndexArray:
        """Where the next blocks are to stand."""
        return self._out[self.done : self.done + count]

    def take(self, blocks: IndexArray, count: int, *, placed: bool = False) -> IndexArray:
        """Copies blocks to the array, unless they are there already."""
        place = self.place(count)
        if not placed and not np.may_share_memory(place, blocks):
            place[:] = blocks[:count]
        self.done += count
        return place

    def all(self) -> IndexArray:
        """The array."""
        return self._out


class HostKernels:
    """The processor's kernels, on the threads of a pool."""

    def __init__(self, threads: int) -> None:
        self._pool = _core.ThreadPool(threads)
        self._scratch = _NONE
        self._product = _core.QuasiCyclicRoom()

    def sink(self, count: int) -> HostSink:
        """An array of `count` blocks."""
        return HostSink(count, self)

    def scratch(self, count: int) -> IndexArray:
        """Memory for leaves, the same at each call: new memory is slow at its first touch."""
        if len(self._scratch) < count:
            self._scratch = _NONE  # gives it back before more is asked for
            self._scratch = np.empty((count, 2), np.uint64)
        return self._scratch[:count]

    def empty(self, count: int) -> IndexArray:
        """Memory for blocks that are kept."""
        return np.empty((count, 2), np.uint64)

    def upload(self, blocks: IndexArray) -> IndexArray:
        """The blocks themselves."""
        return blocks

    def to_host(self, blocks: IndexArray) -> IndexArray:
        """The blocks themselves."""
        return blocks

    def keep(self, several: Sequence[IndexArray]) -> IndexArray:
        """A copy of blocks, one after the other."""
        return np.concatenate([_NONE, *several])

    def grow(
        self,
        seeds: IndexArray,
        depth: int,
        delta: IndexArray,
        key: bytes,
        room: IndexArray | None,
    ) -> tuple[IndexArray, IndexArray]:
        """Trees and the sums of their levels."""
        return _core.grow_trees(seeds, depth, delta, key, self._pool, out=room)

    def puncture(
        self,
        sides: IndexArray,
        choices: ByteArray,
        depth: int,
        key: bytes,
        room: IndexArray | None,
    ) -> IndexArray:
        """Punctured trees."""
        return _core.puncture_trees(sides, choices, depth, key, self._pool, out=room)

    def encode_primal(self, noise: IndexArray, seeds: IndexArray, code_seed: bytes) -> IndexArray:
        """A s + e, in the place of e."""
        _core.encode_primal(noise, seeds, code_seed, 0, self._pool)
        return noise

    def encode_ec(
        self, noise: IndexArray, code_seed: bytes, place: IndexArray | None
    ) -> IndexArray:
        """H e, in the place of e's first half; the first blocks in their own place, if named."""
        _core.encode_ec(noise, code_seed, self._pool, out=place)
        return noise[: len(noise) // 2]

    def encode_qc(self, noise: IndexArray, code_seed: bytes, count: int) -> IndexArray:
        """H e."""
        return _core.encode_qc(noise, code_seed, count, self._pool, room=self._product)

    def hash_blocks(
        self, blocks: IndexArray, first: int, tag: int, key: bytes, delta: IndexArray | None
    ) -> IndexArray:
        """Hashes of blocks, or of blocks ^ delta."""
        out = np.empty_like(blocks)  # huge pages where it is large
        return _core.hash_blocks(blocks, first, tag, key, self._pool, delta, out=out)

    def chi_sum(self, leaves: IndexArray, chi_seed: bytes) -> IndexArray:
        """The check's combination of leaves."""
        return _core.chi_sum(leaves, chi_seed, self._pool)

    def read_choices(self, blocks: IndexArray, out: ByteArray) -> None:
        """The receiver's choices."""
        _core.low_bits(blocks, out)


class DeviceSink:
    """Parts that are joined on their devices."""

    def __init__(self, count: int, kernels: "GpuKernels") -> None:
        self.count = count
        self.done = 0
        self._kernels = kernels
        self._parts: list[DeviceBlocks] = []

    def room(self, leaves: int) -> None:
        """None: kernels bring their own memory."""
        del leaves

    def place(self, count: int) -> None:
        """None: blocks stay where they are."""
        del count

    def take(self, blocks: DeviceBlocks, count: int, *, placed: bool = False) -> DeviceBlocks:
        """Remembers the blocks."""
        del placed
        self._parts.append(blocks[:count])
        self.done += count
        return self._parts[-1]

    def all(self) -> DeviceBlocks:
        """The blocks, one after the other."""
        if len(self._parts) == 1:
            return self._parts[0]
        return self._kernels.join(self._parts)


class GpuKernels(DeviceKernels):
    """The kernels of devices, in the vocabulary of `Kernels`."""

    def sink(self, count: int) -> DeviceSink:
        """Parts on the devices."""
        return DeviceSink(count, self)

    def empty(self, count: int) -> DeviceBlocks:
        """No blocks: kernels bring their own memory."""
        del count
        return DeviceBlocks([])

    def to_host(self, blocks: DeviceBlocks) -> IndexArray:
        """A copy in the host's memory."""
        return blocks.to_host()

    def keep(self, several: Sequence[DeviceBlocks]) -> DeviceBlocks:
        """Blocks one after the other."""
        return self.join(several)

    def grow(
        self,
        seeds: IndexArray,
        depth: int,
        delta: IndexArray,
        key: bytes,
        room: DeviceBlocks | None,
    ) -> tuple[DeviceBlocks, IndexArray]:
        """Trees and the sums of their levels."""
        del room
        return self.grow_trees(seeds, depth, delta, key)

    def puncture(
        self,
        sides: IndexArray,
        choices: ByteArray,
        depth: int,
        key: bytes,
        room: DeviceBlocks | None,
    ) -> DeviceBlocks:
        """Punctured trees."""
        del room
        return self.puncture_trees(sides, choices, depth, key)

    def read_choices(self, blocks: DeviceBlocks, out: ByteArray) -> None:
        """The receiver's choices, in the host's memory."""
        out[:] = self.low_bits(blocks)
