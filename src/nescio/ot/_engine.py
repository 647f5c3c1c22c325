"""What the engine's modules for devices offer for oblivious transfers."""

from collections.abc import Sequence
from typing import Any, Protocol

from .._arrays import ByteArray, IndexArray

Blocks = Any
"""128-bit blocks: uint64 of shape (n, 2), the lower half first; of a device, `DeviceBlocks`."""


class EngineBlocks(Protocol):
    """Blocks in one device's memory, as the engine's modules have them; a slice shares them."""

    @property
    def device(self) -> int: ...
    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> "EngineBlocks": ...
    def to_host(self) -> IndexArray: ...
    def __dlpack__(self, **arguments: object) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


class EngineDevice(Protocol):
    """One device, as the engine's modules have it."""

    @property
    def number(self) -> int: ...
    def upload(self, blocks: IndexArray) -> EngineBlocks: ...
    def join(self, parts: list[EngineBlocks]) -> EngineBlocks: ...
    def grow_trees(
        self,
        seeds: IndexArray,
        depth: int,
        delta: IndexArray,
        key: bytes,
        *,
        first_tree: int = 0,
        way: str = "fused",
    ) -> tuple[EngineBlocks, IndexArray]: ...
    def puncture_trees(
        self, sides: IndexArray, choices: ByteArray, depth: int, key: bytes, *, first_tree: int = 0
    ) -> EngineBlocks: ...
    def encode_primal(
        self,
        noise: EngineBlocks,
        seeds: EngineBlocks,
        code_seed: bytes,
        first_row: int,
        way: str = "fused",
    ) -> None: ...
    def encode_ec(self, noise: EngineBlocks, code_seed: bytes) -> None: ...
    def hash_blocks(
        self,
        blocks: EngineBlocks,
        first_index: int,
        tag: int,
        key: bytes,
        delta: IndexArray | None,
    ) -> EngineBlocks: ...
    def chi_sum(self, leaves: EngineBlocks, chi_seed: bytes, first: int) -> IndexArray: ...
    def chi_at(self, positions: IndexArray, chi_seed: bytes) -> IndexArray: ...
    def low_bits(self, blocks: EngineBlocks) -> ByteArray: ...
    def transpose_bits(self, rows: ByteArray) -> EngineBlocks: ...


class OtEngine(Protocol):
    """A module of the engine for one kind of device."""

    def OtDevice(self, device: int) -> EngineDevice: ...  # noqa: N802 - a class


class Sink(Protocol):
    """Gathers `count` blocks."""

    count: int
    done: int

    def room(self, leaves: int) -> Blocks | None:
        """Memory for the leaves of an extension, or None where kernels bring their own."""

    def place(self, count: int) -> Blocks | None:
        """Where the next blocks are to stand; None if they stay where they are."""

    def take(self, blocks: Blocks, count: int, *, placed: bool = False) -> Blocks:
        """Adds the first `count` blocks, which may be in their place already, and gives them."""

    def all(self) -> Blocks:
        """What was gathered."""


class Kernels(Protocol):
    """What parties do with blocks. Sizes, dtypes and sources: `nescio._core`, `DeviceKernels`."""

    def sink(self, count: int) -> Sink: ...
    def empty(self, count: int) -> Blocks: ...
    def upload(self, blocks: IndexArray) -> Blocks: ...
    def to_host(self, blocks: Blocks) -> IndexArray: ...
    def keep(self, several: Sequence[Blocks]) -> Blocks: ...
    def grow(
        self,
        seeds: IndexArray,
        depth: int,
        delta: IndexArray,
        key: bytes,
        room: Blocks | None,
    ) -> tuple[Blocks, IndexArray]: ...
    def puncture(
        self,
        sides: IndexArray,
        choices: ByteArray,
        depth: int,
        key: bytes,
        room: Blocks | None,
    ) -> Blocks: ...
    def encode_primal(self, noise: Blocks, seeds: Blocks, code_seed: bytes) -> Blocks: ...
    def encode_ec(self, noise: Blocks, code_seed: bytes, place: Blocks | None) -> Blocks: ...
    def encode_qc(self, noise: Blocks, code_seed: bytes, count: int) -> Blocks: ...
    def hash_blocks(
        self, blocks: Blocks, first: int, tag: int, key: bytes, delta: IndexArray | None
    ) -> Blocks: ...
    def chi_sum(self, leaves: Blocks, chi_seed: bytes) -> IndexArray: ...
    def read_choices(self, blocks: Blocks, out: ByteArray) -> None: ...
