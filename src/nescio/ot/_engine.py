"""Interfaces of the OT kernels: the engine's device modules, and the kernels that parties call."""

from typing import Any, Protocol

from .._arrays import ByteArray, IndexArray

Blocks = Any
"""128-bit blocks: uint64 of shape (n, 2), lower half first, or `DeviceBlocks` on a device."""


class EngineBlocks(Protocol):
    """Blocks in the memory of one device; a slice shares that memory."""

    @property
    def device(self) -> int: ...
    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> "EngineBlocks": ...
    def to_host(self) -> IndexArray: ...
    def __dlpack__(self, **arguments: object) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


class EngineDevice(Protocol):
    """The OT kernels of one device."""

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
    """The engine's module for one kind of device."""

    def OtDevice(self, device: int) -> EngineDevice: ...  # noqa: N802 - a class


class OutputBuffer(Protocol):
    """Collects the `count` blocks of one request; `done` of them are there."""

    count: int
    done: int

    def wipe(self) -> None:
        """Overwrites what was collected, after an error."""

    def touch(self) -> None:
        """Writes to new memory, whose pages are slow at their first use."""

    def scratch(self, leaves: int) -> Blocks | None:
        """Returns memory for the leaves of an extension, or None if kernels allocate it."""

    def out(self, count: int) -> Blocks | None:
        """Returns the memory of the next `count` blocks, or None if blocks stay where they are."""

    def append(self, blocks: Blocks, count: int, *, in_place: bool = False) -> Blocks:
        """Adds the first `count` blocks and returns them; `in_place` if `out` has them already."""

    def blocks(self) -> Blocks:
        """Returns all blocks collected."""


class Kernels(Protocol):
    """Operations of both parties on blocks. Sizes, dtypes, sources: `_core`, `DeviceKernels`."""

    def output_buffer(self, count: int, out: Blocks | None = None) -> OutputBuffer: ...
    def empty(self, count: int) -> Blocks: ...
    def upload(self, blocks: IndexArray) -> Blocks: ...
    def to_host(self, blocks: Blocks) -> IndexArray: ...
    def keep(self, blocks: Blocks) -> Blocks: ...
    def grow(
        self,
        seeds: IndexArray,
        depth: int,
        delta: IndexArray,
        key: bytes,
        scratch: Blocks | None,
    ) -> tuple[Blocks, IndexArray]: ...
    def puncture(
        self,
        sides: IndexArray,
        choices: ByteArray,
        depth: int,
        key: bytes,
        scratch: Blocks | None,
    ) -> Blocks: ...
    def encode_primal(self, noise: Blocks, seeds: Blocks, code_seed: bytes) -> Blocks: ...
    def encode_ec(self, noise: Blocks, code_seed: bytes, out: Blocks | None) -> Blocks: ...
    def encode_qc(self, noise: Blocks, code_seed: bytes, count: int) -> Blocks: ...
    def hash_blocks(
        self,
        blocks: Blocks,
        first: int,
        tag: int,
        key: bytes,
        delta: IndexArray | None,
        *,
        out: Blocks | None = None,
    ) -> Blocks: ...
    def chi_sum(self, leaves: Blocks, chi_seed: bytes) -> IndexArray: ...
    def read_choices(self, blocks: Blocks, out: ByteArray) -> None: ...
    def close(self) -> None: ...
