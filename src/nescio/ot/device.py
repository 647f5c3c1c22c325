"""Oblivious transfers on GPUs: blocks in device memory, and both parties' kernels on them.

Results are bit for bit those of the CPU kernels. With several devices, each grows a share of the
trees and holds their leaves, a contiguous range of all blocks, and computes on that range.

    trees      divided: each device grows about the same number of whole trees
    primal     divided: each device encodes the rows that it holds, with a copy of the short secret
    dual (ec)  not divided: every output depends on all blocks, so they go to the first device
    hash, sums of leaves, choices: divided, each device's own range

Blocks are copied between devices only where this table says so.

Source: Gan, Yuki, Rogers, Ghodsi, "cuOT", section III-E.
"""

from collections.abc import Callable, Iterable, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import TypeVar, cast

import numpy as np

from .._arrays import ByteArray, IndexArray
from .._device import Device
from ..errors import ArgumentError
from ._engine import EngineBlocks, EngineDevice, OtEngine

Shared = TypeVar("Shared", IndexArray, ByteArray)
Item = TypeVar("Item")
Result = TypeVar("Result")


class DeviceBlocks:
    """Blocks in the memory of one device, or of several that hold a contiguous range each.

    A slice (with step 1) shares the memory. `to_host()` copies the blocks to an array of shape
    (n, 2). Other libraries (PyTorch, CuPy, JAX) read blocks on one device by DLPack without a copy:
    writes by one side are visible to the other.
    """

    def __init__(self, parts: Iterable[EngineBlocks]) -> None:
        self.parts = tuple(part for part in parts if len(part))

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (n, 2): each block is two halves of 64 bits."""
        return len(self), 2

    @property
    def firsts(self) -> list[int]:
        """The index of each part's first block."""
        ends = np.cumsum([0, *(len(part) for part in self.parts)])
        return [int(first) for first in ends[:-1]]

    def __getitem__(self, part: slice) -> "DeviceBlocks":
        start, stop, step = part.indices(len(self))
        if step != 1:
            raise ArgumentError(f"slice of device blocks: found step {step}, expected 1")
        return DeviceBlocks(
            own[max(start - first, 0) : max(stop - first, 0)]
            for first, own in zip(self.firsts, self.parts, strict=True)
        )

    def to_host(self) -> IndexArray:
        """Copies the blocks to host memory: uint64 of shape (n, 2)."""
        if len(self.parts) == 1:
            return self.parts[0].to_host()
        empty: IndexArray = np.zeros((0, 2), np.uint64)
        return np.concatenate([empty, *(part.to_host() for part in self.parts)])

    def _single_part(self) -> EngineBlocks:
        if len(self.parts) != 1:
            raise BufferError(
                f"the blocks are in {len(self.parts)} parts, expected 1: call "
                "DeviceKernels.gather first"
            )
        return self.parts[0]

    def __dlpack__(self, **arguments: object) -> object:
        """Exports the blocks by DLPack. Raises BufferError unless they are in one part."""
        return self._single_part().__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns the device type and number that DLPack defines."""
        return self._single_part().__dlpack_device__()


class DeviceKernels:
    """The kernels of both parties on one or more devices of one kind ("cuda:1", "emulated").

    Host arrays have the types of the engine: blocks are uint64 of shape (n, 2), seeds of codes are
    16 bytes. All work is finished when a method returns. Raises ArgumentError for invalid names and
    inconsistent sizes, ResourceError for devices that do not exist or have too little memory.
    """

    def __init__(self, names: Sequence[str]) -> None:
        devices = [Device.parse(name) for name in names]
        if len({device.kind for device in devices}) != 1:
            found = ", ".join(map(str, devices)) or "none"
            raise ArgumentError(f"devices: found {found}, expected one or more of one kind")
        if len(set(devices)) != len(devices):
            raise ArgumentError(
                f"devices: found {', '.join(map(str, devices))}, expected each once"
            )
        self.devices = tuple(devices)
        module = cast(OtEngine, devices[0].engine())
        self._engines = [module.OtDevice(device.number) for device in devices]
        self._by_number = {engine.number: engine for engine in self._engines}
        self._executor = ThreadPoolExecutor(len(devices)) if len(devices) > 1 else None

    def upload(self, blocks: IndexArray) -> DeviceBlocks:
        """Copies host blocks to the devices, divided evenly."""
        shares = self._shares(blocks, 1)
        return DeviceBlocks(self._all(lambda engine, share: engine.upload(share), shares))

    def join(self, several: Sequence[DeviceBlocks]) -> DeviceBlocks:
        """Joins blocks in order; adjacent parts on one device become one part."""
        joined: list[EngineBlocks] = []
        run: list[EngineBlocks] = []
        for part in [part for blocks in several for part in blocks.parts]:
            if run and run[-1].device != part.device:
                joined.append(self._joined(run))
                run = []
            run.append(part)
        return DeviceBlocks([*joined, self._joined(run)] if run else [])

    def gather(self, blocks: DeviceBlocks) -> DeviceBlocks:
        """Copies the blocks to the first device as one part, unless they are there already."""
        return DeviceBlocks([self._on(self._engines[0], blocks)])

    def grow_trees(
        self, seeds: IndexArray, depth: int, delta: IndexArray, key: bytes
    ) -> tuple[DeviceBlocks, IndexArray]:
        """Grows correlated trees from seeds (t, 2): t 2^depth leaves, and sums (t depth, 2)."""
        shares = self._shares(seeds, 1)
        grown = self._all(
            lambda engine, share: engine.grow_trees(
                share[0], depth, delta, key, first_tree=share[1]
            ),
            list(zip(shares, _firsts(shares), strict=True)),
        )
        return DeviceBlocks(leaves for leaves, _ in grown), np.concatenate([s for _, s in grown])

    def puncture_trees(
        self, sides: IndexArray, choices: ByteArray, depth: int, key: bytes
    ) -> DeviceBlocks:
        """Grows the leaves of punctured trees from sides (t depth, 2) and choices (t depth,)."""
        if depth < 1 or len(sides) != len(choices) or len(sides) % depth:
            raise ArgumentError(
                f"punctured trees: found {len(sides)} sides and {len(choices)} choices at depth "
                f"{depth}, expected equal numbers that are a multiple of the depth"
            )
        side_shares, choice_shares = self._shares(sides, depth), self._shares(choices, depth)
        firsts = [first // depth for first in _firsts(choice_shares)]
        return DeviceBlocks(
            self._all(
                lambda engine, share: engine.puncture_trees(
                    share[0], share[1], depth, key, first_tree=share[2]
                ),
                list(zip(side_shares, choice_shares, firsts, strict=True)),
            )
        )

    def encode_primal(
        self, noise: DeviceBlocks, seeds: DeviceBlocks, code_seed: bytes, first_row: int = 0
    ) -> DeviceBlocks:
        """XORs rows first_row.. of the code times `seeds` into the noise, and returns the noise."""
        copies = {
            number: self._on(self._by_number[number], seeds) for number in self._numbers(noise)
        }
        self._each(
            noise,
            lambda engine, part, first: engine.encode_primal(
                part, copies[engine.number], code_seed, first_row + first
            ),
        )
        return noise

    def encode_ec(self, noise: DeviceBlocks, code_seed: bytes, out: None = None) -> DeviceBlocks:
        """Encodes 2n blocks of noise to n blocks on the first device; overwrites the noise."""
        del out  # blocks stay where they are
        part = self._on(self._engines[0], noise)
        self._engines[0].encode_ec(part, code_seed)
        return DeviceBlocks([part[: len(part) // 2]])

    def encode_qc(self, noise: DeviceBlocks, code_seed: bytes, count: int) -> DeviceBlocks:
        """Raises ArgumentError: there is no GPU kernel for quasi-cyclic codes."""
        del noise, code_seed, count
        raise ArgumentError(
            f"quasi-cyclic codes ('qc') do not run on {self.devices[0]}: use "
            "expand-convolute codes ('ec') or device='cpu'"
        )

    def hash_blocks(
        self,
        blocks: DeviceBlocks,
        first_index: int,
        tag: int,
        key: bytes,
        delta: IndexArray | None = None,
    ) -> DeviceBlocks:
        """Hashes block x of transfer i to h(x, i) or h(x ^ delta, i), from `first_index` on."""
        return DeviceBlocks(
            self._each(
                blocks,
                lambda engine, part, first: engine.hash_blocks(
                    part, first_index + first, tag, key, delta
                ),
            )
        )

    def chi_sum(self, leaves: DeviceBlocks, chi_seed: bytes) -> IndexArray:
        """Computes the sum of chi[i] leaves[i], of shape (2,)."""
        sums = self._each(leaves, lambda engine, part, first: engine.chi_sum(part, chi_seed, first))
        total: IndexArray = np.bitwise_xor.reduce([np.zeros(2, np.uint64), *sums], axis=0)
        return total

    def chi_at(self, positions: IndexArray, chi_seed: bytes) -> IndexArray:
        """Computes the coefficients chi at positions (m,): shape (m, 2), in host memory."""
        return self._engines[0].chi_at(positions, chi_seed)

    def low_bits(self, blocks: DeviceBlocks) -> ByteArray:
        """Extracts the lowest bit of each block to host memory, uint8: a receiver's choices."""
        bits = self._each(blocks, lambda engine, part, _: engine.low_bits(part))
        empty: ByteArray = np.zeros(0, np.uint8)
        return np.concatenate([empty, *bits])

    def transpose_bits(self, rows: ByteArray) -> DeviceBlocks:
        """Transposes 128 rows of bits on the first device: block i has bit i of each row."""
        return DeviceBlocks([self._engines[0].transpose_bits(rows)])

    def _shares(self, items: Shared, group: int) -> list[Shared]:
        """Divides items among the devices, in whole groups of `group`."""
        groups, devices = len(items) // group, len(self._engines)
        ends = [groups * i // devices * group for i in range(devices + 1)]
        return [
            cast(Shared, np.ascontiguousarray(items[begin:end])) for begin, end in pairwise(ends)
        ]

    def _all(
        self, work: Callable[[EngineDevice, Item], Result], shares: Sequence[Item]
    ) -> list[Result]:
        """Runs work(device, share) on all devices in parallel."""
        run_all = map if self._executor is None else self._executor.map
        return list(run_all(work, self._engines, shares))

    def _each(
        self, blocks: DeviceBlocks, work: Callable[[EngineDevice, EngineBlocks, int], Result]
    ) -> list[Result]:
        """Runs work(device, part, index of its first block) for each part, on its device."""
        run_all = map if self._executor is None else self._executor.map
        devices = [self._by_number[number] for number in self._numbers(blocks)]
        return list(run_all(work, devices, blocks.parts, blocks.firsts))

    def _numbers(self, blocks: DeviceBlocks) -> list[int]:
        """Returns each part's device. Raises ArgumentError for a device not of these kernels."""
        numbers = [part.device for part in blocks.parts]
        for number in numbers:
            if number not in self._by_number:
                found = Device(self.devices[0].kind, number)
                raise ArgumentError(
                    f"blocks: found some on {found}, expected {', '.join(map(str, self.devices))}"
                )
        return numbers

    def _joined(self, parts: list[EngineBlocks]) -> EngineBlocks:
        return parts[0] if len(parts) == 1 else self._by_number[parts[0].device].join(parts)

    @staticmethod
    def _on(engine: EngineDevice, blocks: DeviceBlocks) -> EngineBlocks:
        """Returns the blocks as one part on a device, copied there if necessary."""
        if len(blocks.parts) == 1 and blocks.parts[0].device == engine.number:
            return blocks.parts[0]
        return engine.join(list(blocks.parts))


def _firsts(shares: Sequence[Sized]) -> list[int]:
    """Counts the items before each share."""
    return list(accumulate((len(share) for share in shares), initial=0))[:-1]
