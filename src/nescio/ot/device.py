"""Oblivious transfers on GPUs: blocks that stay there, and what both parties do with them.

Everything here has the bits of the processor's code. Where there are several devices, each grows
a share of the trees and holds their leaves: a stretch of all blocks, on which it works by itself.

    trees      divided: whole trees, about as many each
    primal     divided: each device encodes the rows that it holds, with a copy of the short secret
    dual (ec)  not divided: every output needs blocks of everywhere, so they go to the first device
    hash, sums of leaves, choices: each device's own stretch

Blocks are copied from one device to another only where this says so.

Source: Gan, Yuki, Rogers, Ghodsi, "cuOT", section III-E.
"""

from collections.abc import Callable, Iterable, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import TypeVar, cast

import numpy as np

from .._arrays import ByteArray, IndexArray
from .._devices import Device
from ..errors import ArgumentError
from ._engine import EngineBlocks, EngineDevice, OtEngine

Shared = TypeVar("Shared", IndexArray, ByteArray)
Item = TypeVar("Item")
Result = TypeVar("Result")


class DeviceBlocks:
    """Blocks in the memory of one device, or of several, which hold a stretch of them each.

    A slice (in steps of 1) shares them. `to_host()` copies them to an array of shape (n, 2). Other
    libraries (PyTorch, CuPy, JAX) take those of one device as they are, by DLPack: what is written
    to either is seen by both.
    """

    def __init__(self, parts: Iterable[EngineBlocks]) -> None:
        self.parts = tuple(part for part in parts if len(part))

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, 2): halves of 64 bits."""
        return len(self), 2

    @property
    def firsts(self) -> list[int]:
        """The number of each part's first block."""
        ends = np.cumsum([0, *(len(part) for part in self.parts)])
        return [int(first) for first in ends[:-1]]

    def __getitem__(self, part: slice) -> "DeviceBlocks":
        start, stop, step = part.indices(len(self))
        if step != 1:
            raise ArgumentError(f"blocks of a device: found steps of {step}, expected 1")
        return DeviceBlocks(
            own[max(start - first, 0) : max(stop - first, 0)]
            for first, own in zip(self.firsts, self.parts, strict=True)
        )

    def to_host(self) -> IndexArray:
        """A copy in the host's memory: uint64 of shape (n, 2)."""
        if len(self.parts) == 1:
            return self.parts[0].to_host()
        none: IndexArray = np.zeros((0, 2), np.uint64)
        return np.concatenate([none, *(part.to_host() for part in self.parts)])

    def _alone(self) -> EngineBlocks:
        if len(self.parts) != 1:
            raise BufferError(
                f"the blocks are in {len(self.parts)} parts: gather them on one device first"
            )
        return self.parts[0]

    def __dlpack__(self, **arguments: object) -> object:
        """The blocks for another library. Raises BufferError unless they are in one part."""
        return self._alone().__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Where they are, in DLPack's numbers."""
        return self._alone().__dlpack_device__()


class DeviceKernels:
    """What both parties do with blocks, on devices of one kind ("cuda", "cuda:1", "emulated").

    Arrays of the host are as those of the engine: blocks uint64 of shape (n, 2), seeds of codes 16
    bytes. Everything is done when a method returns. Raises ArgumentError for names that are none
    and for sizes that do not go together, ResourceError for devices that are not there or short of
    memory.
    """

    def __init__(self, names: Sequence[str]) -> None:
        devices = [Device.parse(name) for name in names]
        if len({device.kind for device in devices}) != 1:
            found = ", ".join(map(str, devices)) or "none"
            raise ArgumentError(f"devices: found {found}, expected one or more of one kind")
        if len(set(devices)) != len(devices):
            raise ArgumentError(f"devices: found {', '.join(map(str, devices))}, one of them twice")
        self.devices = tuple(devices)
        engine = cast(OtEngine, devices[0].engine())
        self._own = [engine.OtDevice(device.number) for device in devices]
        self._at = {own.number: own for own in self._own}
        self._together = ThreadPoolExecutor(len(devices)) if len(devices) > 1 else None

    def upload(self, blocks: IndexArray) -> DeviceBlocks:
        """A copy of blocks of the host, divided."""
        shares = self._shares(blocks, 1)
        return DeviceBlocks(self._all(lambda own, share: own.upload(share), shares))

    def join(self, several: Sequence[DeviceBlocks]) -> DeviceBlocks:
        """Blocks one after the other, where they are; neighbours on a device become one part."""
        joined: list[EngineBlocks] = []
        run: list[EngineBlocks] = []
        for part in [part for blocks in several for part in blocks.parts]:
            if run and run[-1].device != part.device:
                joined.append(self._joined(run))
                run = []
            run.append(part)
        return DeviceBlocks([*joined, self._joined(run)] if run else [])

    def gather(self, blocks: DeviceBlocks) -> DeviceBlocks:
        """The blocks on the first device, in one part: themselves, if they are so already."""
        return DeviceBlocks([self._on(self._own[0], blocks)])

    def grow_trees(
        self, seeds: IndexArray, depth: int, delta: IndexArray, key: bytes
    ) -> tuple[DeviceBlocks, IndexArray]:
        """Correlated trees of seeds (t, 2): their leaves, t 2^depth, and sums (t depth, 2)."""
        shares = self._shares(seeds, 1)
        grown = self._all(
            lambda own, share: own.grow_trees(share[0], depth, delta, key, first_tree=share[1]),
            list(zip(shares, _firsts(shares), strict=True)),
        )
        return DeviceBlocks(leaves for leaves, _ in grown), np.concatenate([s for _, s in grown])

    def puncture_trees(
        self, sides: IndexArray, choices: ByteArray, depth: int, key: bytes
    ) -> DeviceBlocks:
        """The leaves of punctured trees, from sides (t depth, 2) and choices (t depth,)."""
        if depth < 1 or len(sides) != len(choices) or len(sides) % depth:
            raise ArgumentError(
                f"punctured trees: found {len(sides)} sides and {len(choices)} choices at depth "
                f"{depth}, expected as many of both, and a multiple of the depth"
            )
        of_sides, of_choices = self._shares(sides, depth), self._shares(choices, depth)
        firsts = [first // depth for first in _firsts(of_choices)]
        return DeviceBlocks(
            self._all(
                lambda own, share: own.puncture_trees(
                    share[0], share[1], depth, key, first_tree=share[2]
                ),
                list(zip(of_sides, of_choices, firsts, strict=True)),
            )
        )

    def encode_primal(
        self, noise: DeviceBlocks, seeds: DeviceBlocks, code_seed: bytes, first_row: int = 0
    ) -> DeviceBlocks:
        """XORs rows first_row.. of the code times `seeds` into the noise, which it gives back."""
        copies = {number: self._on(self._at[number], seeds) for number in self._numbers(noise)}
        self._each(
            noise,
            lambda own, part, first: own.encode_primal(
                part, copies[own.number], code_seed, first_row + first
            ),
        )
        return noise

    def encode_ec(self, noise: DeviceBlocks, code_seed: bytes, place: None = None) -> DeviceBlocks:
        """The n blocks that a code makes of 2n, on the first device; the noise is spoilt."""
        del place  # blocks stay where they are
        own = self._on(self._own[0], noise)
        self._own[0].encode_ec(own, code_seed)
        return DeviceBlocks([own[: len(own) // 2]])

    def encode_qc(self, noise: DeviceBlocks, code_seed: bytes, count: int) -> DeviceBlocks:
        """Raises ArgumentError: GPUs have no part for quasi-cyclic codes."""
        del noise, code_seed, count
        raise ArgumentError(
            f"quasi-cyclic codes ('qc') do not run on {self.devices[0]}: take "
            "expand-convolute codes ('ec'), or the processor (device='cpu')"
        )

    def hash_blocks(
        self,
        blocks: DeviceBlocks,
        first_index: int,
        tag: int,
        key: bytes,
        delta: IndexArray | None = None,
    ) -> DeviceBlocks:
        """h(x, i), or h(x ^ delta, i), of the blocks of transfers from `first_index` on."""
        return DeviceBlocks(
            self._each(
                blocks,
                lambda own, part, first: own.hash_blocks(
                    part, first_index + first, tag, key, delta
                ),
            )
        )

    def chi_sum(self, leaves: DeviceBlocks, chi_seed: bytes) -> IndexArray:
        """The sum of chi[i] leaves[i], of shape (2,)."""
        sums = self._each(leaves, lambda own, part, first: own.chi_sum(part, chi_seed, first))
        total: IndexArray = np.bitwise_xor.reduce([np.zeros(2, np.uint64), *sums], axis=0)
        return total

    def chi_at(self, positions: IndexArray, chi_seed: bytes) -> IndexArray:
        """The coefficients chi at positions (m,), of shape (m, 2), in the host's memory."""
        return self._own[0].chi_at(positions, chi_seed)

    def low_bits(self, blocks: DeviceBlocks) -> ByteArray:
        """The lowest bit of each block, as bytes in the host's memory: a receiver's choices."""
        bits = self._each(blocks, lambda own, part, _: own.low_bits(part))
        none: ByteArray = np.zeros(0, np.uint8)
        return np.concatenate([none, *bits])

    def transpose_bits(self, rows: ByteArray) -> DeviceBlocks:
        """Bit i of each of 128 rows to block i, on the first device."""
        return DeviceBlocks([self._own[0].transpose_bits(rows)])

    def _shares(self, items: Shared, together: int) -> list[Shared]:
        """Items divided among the devices, so many always together."""
        groups, devices = len(items) // together, len(self._own)
        ends = [groups * i // devices * together for i in range(devices + 1)]
        return [
            cast(Shared, np.ascontiguousarray(items[begin:end])) for begin, end in pairwise(ends)
        ]

    def _all(
        self, work: Callable[[EngineDevice, Item], Result], shares: Sequence[Item]
    ) -> list[Result]:
        """Every device's share of the work, at the same time."""
        run_all = map if self._together is None else self._together.map
        return list(run_all(work, self._own, shares))

    def _each(
        self, blocks: DeviceBlocks, work: Callable[[EngineDevice, EngineBlocks, int], Result]
    ) -> list[Result]:
        """work(device, part, its first block's number) for each part, where it is."""
        run_all = map if self._together is None else self._together.map
        devices = [self._at[number] for number in self._numbers(blocks)]
        return list(run_all(work, devices, blocks.parts, blocks.firsts))

    def _numbers(self, blocks: DeviceBlocks) -> list[int]:
        """The devices of the parts. Raises ArgumentError if one is none of these."""
        numbers = [part.device for part in blocks.parts]
        for number in numbers:
            if number not in self._at:
                found = Device(self.devices[0].kind, number)
                raise ArgumentError(
                    f"blocks on {found}, expected them on {', '.join(map(str, self.devices))}"
                )
        return numbers

    def _joined(self, parts: list[EngineBlocks]) -> EngineBlocks:
        return parts[0] if len(parts) == 1 else self._at[parts[0].device].join(parts)

    @staticmethod
    def _on(own: EngineDevice, blocks: DeviceBlocks) -> EngineBlocks:
        """The blocks on a device in one part, copied there if they are not."""
        if len(blocks.parts) == 1 and blocks.parts[0].device == own.number:
            return blocks.parts[0]
        return own.join(list(blocks.parts))


def _firsts(shares: Sequence[Sized]) -> list[int]:
    """How many items stand before each share."""
    return list(accumulate((len(share) for share in shares), initial=0))[:-1]
