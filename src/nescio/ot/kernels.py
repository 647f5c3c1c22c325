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
    """An array that extensions fill.

    Where one extension gives all that is wanted, its leaves are that array: they are more, and the
    memory of the others goes back to the system. Else leaves that do not fit grow in `scratch`.
    """

    def __init__(self, count: int, scratch: "Scratch") -> None:
        self.count = count
        self.done = 0
        self._scratch = scratch
        self._out: IndexArray | None = None
        self._whole: IndexArray | None = None

    def room(self, leaves: int) -> IndexArray:
        """A part of the array, or memory of its own for leaves that are more than it has left."""
        missing = self.count - self.done
        if leaves <= missing:
            return self._array()[self.done : self.done + leaves]
        if self.done == 0 and leaves > Scratch.MOST:
            self._whole = np.empty((leaves, 2), np.uint64)
            return self._whole
        return self._scratch.blocks(leaves)

    def take(self, blocks: IndexArray, count: int) -> IndexArray:
        """Copies blocks to the array, unless they are there already, or are all of it."""
        whole, self._whole = self._whole, None
        inside = blocks.base is whole
        if whole is None or count < self.count:
            part = self._array()[self.done : self.done + count]
            if not np.may_share_memory(part, blocks):
                part[:] = blocks[:count]
        elif inside:
            self._out = _cut(whole, count)
        else:  # an array of its own
            self._out = blocks[:count]
        begin, self.done = self.done, self.done + count
        return self._array()[begin : self.done]

    def all(self) -> IndexArray:
        """The array."""
        return self._array()

    def _array(self) -> IndexArray:
        if self._out is None:
            self._out = np.empty((self.count, 2), np.uint64)
        return self._out


def _cut(whole: IndexArray, count: int) -> IndexArray:
    """An array cut to its first rows in place: nobody reads the others any more."""
    whole.resize((count, 2), refcheck=False)
    return whole


class Scratch:
    """Memory for leaves, the same at each extension: new memory is slow at its first touch."""

    MOST = 1 << 22
    """Blocks that are worth keeping."""

    def __init__(self) -> None:
        self._memory = _NONE

    def blocks(self, count: int) -> IndexArray:
        """Memory for so many blocks."""
        if count > self.MOST:
            return np.empty((count, 2), np.uint64)
        if len(self._memory) < count:
            self._memory = np.empty((count, 2), np.uint64)
        return self._memory[:count]


class HostKernels:
    """The processor's kernels, on the threads of a pool."""

    def __init__(self, threads: int) -> None:
        self._pool = _core.ThreadPool(threads)
        self._scratch = Scratch()
        self._product = _core.QuasiCyclicRoom()

    def sink(self, count: int) -> HostSink:
        """An array of `count` blocks."""
        return HostSink(count, self._scratch)

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
        self, seeds: IndexArray, depth: int, delta: IndexArray, room: IndexArray | None
    ) -> tuple[IndexArray, IndexArray]:
        """Trees and the sums of their levels."""
        return _core.grow_trees(seeds, depth, delta, self._pool, out=room)

    def puncture(
        self, sides: IndexArray, choices: ByteArray, depth: int, room: IndexArray | None
    ) -> IndexArray:
        """Punctured trees."""
        return _core.puncture_trees(sides, choices, depth, self._pool, out=room)

    def encode_primal(self, noise: IndexArray, seeds: IndexArray, code_seed: bytes) -> IndexArray:
        """A s + e, in the place of e."""
        _core.encode_primal(noise, seeds, code_seed, 0, self._pool)
        return noise

    def encode_ec(self, noise: IndexArray, code_seed: bytes) -> IndexArray:
        """H e, in the place of e's first half."""
        _core.encode_ec(noise, code_seed, self._pool)
        return noise[: len(noise) // 2]

    def encode_qc(self, noise: IndexArray, code_seed: bytes, count: int) -> IndexArray:
        """H e."""
        return _core.encode_qc(noise, code_seed, count, self._pool, room=self._product)

    def hash_blocks(
        self, blocks: IndexArray, first: int, tag: int, delta: IndexArray | None
    ) -> IndexArray:
        """Hashes of blocks, or of blocks ^ delta."""
        out = np.empty_like(blocks)  # huge pages where it is large
        return _core.hash_blocks(blocks, first, tag, self._pool, delta, out=out)

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

    def take(self, blocks: DeviceBlocks, count: int) -> DeviceBlocks:
        """Remembers the blocks."""
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
        self, seeds: IndexArray, depth: int, delta: IndexArray, room: DeviceBlocks | None
    ) -> tuple[DeviceBlocks, IndexArray]:
        """Trees and the sums of their levels."""
        del room
        return self.grow_trees(seeds, depth, delta)

    def puncture(
        self, sides: IndexArray, choices: ByteArray, depth: int, room: DeviceBlocks | None
    ) -> DeviceBlocks:
        """Punctured trees."""
        del room
        return self.puncture_trees(sides, choices, depth)

    def read_choices(self, blocks: DeviceBlocks, out: ByteArray) -> None:
        """The receiver's choices, in the host's memory."""
        out[:] = self.low_bits(blocks)
