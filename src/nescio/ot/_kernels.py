"""Kernels of both parties on the CPU and on GPUs, and the buffers that collect their blocks.

Both classes of kernels have the methods of `Kernels`. Blocks are NumPy arrays on the CPU and
`DeviceBlocks` on devices. An output buffer collects the blocks of one request; on the CPU an
extension grows its leaves in that memory if they fit.
"""

import numpy as np

from .. import _core
from .._arrays import ByteArray, IndexArray
from ._blocks import wipe
from .device import DeviceBlocks, DeviceKernels

_NO_BLOCKS: IndexArray = np.zeros((0, 2), np.uint64)
_TOUCHED = 1 << 21  # blocks, 32 MB


class CpuOutputBuffer:
    """An array that extensions fill, in place if their leaves fit into its free part."""

    def __init__(self, array: IndexArray, kernels: "CpuKernels") -> None:
        self.count = len(array)
        self.done = 0
        self._kernels = kernels
        self._array = array

    def wipe(self) -> None:
        """Overwrites the array, which may have leaves in its free part."""
        wipe(self._array)

    def touch(self) -> None:
        """Writes to the pages of the array, up to those that fit into the wait for base OTs."""
        self._array[:_TOUCHED] = 0

    def scratch(self, leaves: int) -> IndexArray:
        """Returns a free part of the array, or the scratch memory of the kernels."""
        if leaves <= self.count - self.done:
            return self._array[self.done : self.done + leaves]
        return self._kernels.scratch(leaves)

    def out(self, count: int) -> IndexArray:
        """Returns the part of the array for the next `count` blocks."""
        return self._array[self.done : self.done + count]

    def append(self, blocks: IndexArray, count: int, *, in_place: bool = False) -> IndexArray:
        """Copies blocks to the array, unless they are there already."""
        out = self.out(count)
        if not in_place and not np.may_share_memory(out, blocks):
            out[:] = blocks[:count]
        self.done += count
        return out

    def blocks(self) -> IndexArray:
        """Returns the array."""
        return self._array


class CpuKernels:
    """The CPU's kernels, on a pool of threads."""

    def __init__(self, threads: int) -> None:
        self._pool = _core.ThreadPool(threads)
        self._scratch = _NO_BLOCKS
        self._kept = _NO_BLOCKS
        self._product = _core.QuasiCyclicScratch()

    def output_buffer(self, count: int, out: IndexArray | None = None) -> CpuOutputBuffer:
        """Prepares an array for `count` blocks: `out`, or a new one."""
        return CpuOutputBuffer(np.empty((count, 2), np.uint64) if out is None else out, self)

    def scratch(self, count: int) -> IndexArray:
        """Returns memory for leaves, reused between calls: new pages are slow at first use."""
        if len(self._scratch) < count:
            wipe(self._scratch)
            self._scratch = _NO_BLOCKS  # frees the old memory before the new allocation
            self._scratch = np.empty((count, 2), np.uint64)
        return self._scratch[:count]

    def empty(self, count: int) -> IndexArray:
        """Allocates memory for blocks."""
        return np.empty((count, 2), np.uint64)

    def upload(self, blocks: IndexArray) -> IndexArray:
        """Returns the blocks unchanged."""
        return blocks

    def to_host(self, blocks: IndexArray) -> IndexArray:
        """Returns the blocks unchanged."""
        return blocks

    def keep(self, blocks: IndexArray) -> IndexArray:
        """Copies blocks over those kept before, which are spent; new pages would be slow."""
        count = len(blocks)
        if len(self._kept) < count:
            wipe(self._kept)
            self._kept = np.empty((count, 2), np.uint64)
        self._kept[:count] = blocks
        return self._kept[:count]

    def grow(
        self,
        seeds: IndexArray,
        depth: int,
        delta: IndexArray,
        key: bytes,
        scratch: IndexArray | None,
    ) -> tuple[IndexArray, IndexArray]:
        """Grows correlated trees: their leaves, and the sums of their levels."""
        return _core.grow_trees(seeds, depth, delta, key, self._pool, out=scratch)

    def puncture(
        self,
        sides: IndexArray,
        choices: ByteArray,
        depth: int,
        key: bytes,
        scratch: IndexArray | None,
    ) -> IndexArray:
        """Grows punctured trees and returns their leaves."""
        return _core.puncture_trees(sides, choices, depth, key, self._pool, out=scratch)

    def encode_primal(self, noise: IndexArray, seeds: IndexArray, code_seed: bytes) -> IndexArray:
        """Computes A s + e in the memory of e."""
        _core.encode_primal(noise, seeds, code_seed, 0, self._pool)
        return noise

    def encode_ec(self, noise: IndexArray, code_seed: bytes, out: IndexArray | None) -> IndexArray:
        """Computes H e in the first half of e; with `out`, the first blocks are there instead."""
        _core.encode_ec(noise, code_seed, self._pool, out=out)
        return noise[: len(noise) // 2]

    def encode_qc(self, noise: IndexArray, code_seed: bytes, count: int) -> IndexArray:
        """Computes the first `count` blocks of H e."""
        return _core.encode_qc(noise, code_seed, count, self._pool, scratch=self._product)

    def hash_blocks(
        self,
        blocks: IndexArray,
        first: int,
        tag: int,
        key: bytes,
        delta: IndexArray | None,
        *,
        out: IndexArray | None = None,
    ) -> IndexArray:
        """Hashes the blocks, or blocks ^ delta; `out` may be `blocks` itself."""
        out = np.empty_like(blocks) if out is None else out  # NumPy uses huge pages
        return _core.hash_blocks(blocks, first, tag, key, self._pool, delta, out=out)

    def chi_sum(self, leaves: IndexArray, chi_seed: bytes) -> IndexArray:
        """Computes the linear combination of leaves for the consistency check."""
        return _core.chi_sum(leaves, chi_seed, self._pool)

    def read_choices(self, blocks: IndexArray, out: ByteArray) -> None:
        """Writes the receiver's choices, the lowest bits of its blocks, to `out`."""
        _core.low_bits(blocks, out)

    def close(self) -> None:
        """Wipes kept blocks and scratch memory, and releases them."""
        wipe(self._kept, self._scratch)
        self._kept = self._scratch = _NO_BLOCKS
        self._product = _core.QuasiCyclicScratch()  # wipes the old one


class GpuOutputBuffer:
    """Blocks that stay on their devices and are joined at the end."""

    def __init__(self, count: int, kernels: "GpuKernels") -> None:
        self.count = count
        self.done = 0
        self._kernels = kernels
        self._parts: list[DeviceBlocks] = []

    def wipe(self) -> None:
        """Releases the blocks; memory of devices is not overwritten."""
        self._parts = []

    def touch(self) -> None:
        """Does nothing: kernels allocate their memory."""

    def scratch(self, leaves: int) -> None:
        """Returns None: kernels allocate their memory."""
        del leaves

    def out(self, count: int) -> None:
        """Returns None: blocks stay where they are."""
        del count

    def append(self, blocks: DeviceBlocks, count: int, *, in_place: bool = False) -> DeviceBlocks:
        """Adds the first `count` blocks, without a copy."""
        del in_place
        self._parts.append(blocks[:count])
        self.done += count
        return self._parts[-1]

    def blocks(self) -> DeviceBlocks:
        """Joins the blocks in order."""
        if len(self._parts) == 1:
            return self._parts[0]
        return self._kernels.join(self._parts)


class GpuKernels(DeviceKernels):
    """The kernels of devices with the methods of `Kernels`."""

    def output_buffer(self, count: int, out: None = None) -> GpuOutputBuffer:
        """Makes a buffer for `count` blocks; it allocates nothing."""
        del out
        return GpuOutputBuffer(count, self)

    def empty(self, count: int) -> DeviceBlocks:
        """Returns no blocks: kernels allocate their memory."""
        del count
        return DeviceBlocks([])

    def to_host(self, blocks: DeviceBlocks) -> IndexArray:
        """Copies blocks to host memory."""
        return blocks.to_host()

    def keep(self, blocks: DeviceBlocks) -> DeviceBlocks:
        """Copies blocks, so that the memory that they are a part of can be released."""
        return self.join([blocks])

    def grow(
        self,
        seeds: IndexArray,
        depth: int,
        delta: IndexArray,
        key: bytes,
        scratch: DeviceBlocks | None,
    ) -> tuple[DeviceBlocks, IndexArray]:
        """Grows correlated trees: their leaves, and the sums of their levels."""
        del scratch
        return self.grow_trees(seeds, depth, delta, key)

    def puncture(
        self,
        sides: IndexArray,
        choices: ByteArray,
        depth: int,
        key: bytes,
        scratch: DeviceBlocks | None,
    ) -> DeviceBlocks:
        """Grows punctured trees and returns their leaves."""
        del scratch
        return self.puncture_trees(sides, choices, depth, key)

    def hash_blocks(  # type: ignore[override]
        self,
        blocks: DeviceBlocks,
        first: int,
        tag: int,
        key: bytes,
        delta: IndexArray | None,
        *,
        out: DeviceBlocks | None = None,
    ) -> DeviceBlocks:
        """Hashes the blocks, or blocks ^ delta, to new memory."""
        del out
        return super().hash_blocks(blocks, first, tag, key, delta)

    def read_choices(self, blocks: DeviceBlocks, out: ByteArray) -> None:
        """Writes the receiver's choices to `out`, in host memory."""
        out[:] = self.low_bits(blocks)

    def close(self) -> None:
        """Ends the threads; memory of devices is released with the blocks, not overwritten."""
        if self._executor is not None:
            self._executor.shutdown()
