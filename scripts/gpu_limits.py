"""Limits of architectures and rates of cards, and what follows from them for a kernel.

Limits of multiprocessors: CUDA C++ Programming Guide 13.0, "Technical specifications per compute
capability". Registers are allocated to a warp in units of 256, shared memory to a block in units of
256 (7.5) or 128 bytes; from 8.0 on the system takes 1 KB of a block's shared memory.
"""

import re
from collections import Counter
from dataclasses import dataclass

from gpu_kernels import Kernel


@dataclass(frozen=True)
class Limits:
    """Limits of one multiprocessor of an architecture."""

    warps: int
    blocks: int
    shared: int  # bytes
    shared_unit: int
    shared_system: int  # bytes taken from each block
    registers: int = 1 << 16


ARCHITECTURES = {
    75: Limits(warps=32, blocks=16, shared=64 << 10, shared_unit=256, shared_system=0),
    80: Limits(warps=64, blocks=32, shared=164 << 10, shared_unit=128, shared_system=1024),
    90: Limits(warps=64, blocks=32, shared=228 << 10, shared_unit=128, shared_system=1024),
}


@dataclass(frozen=True)
class Card:
    """Rates per second of a whole card."""

    name: str
    processors: int
    clock: float
    memory: float  # bytes
    cache: float  # bytes of the second-level cache
    bits: float  # products of bits by mma.sync
    bytes: float  # products of bytes by mma.sync
    source: str

    def per_clock(self, count: float) -> float:
        """Returns the rate of something that each multiprocessor does `count` times per clock."""
        return count * self.processors * self.clock


CARDS = (
    Card(
        "H200",
        132,
        1.9e9,
        4.27e12,
        6.2e12,
        5.1e15,
        0.64e15,
        "memory and mma.sync: measured (docs/performance.md); clock: from the measured 1.61e13 "
        "integer operations/s; cache: at least, 2.1 GB that the product read in 0.344 ms (ncu)",
    ),
    Card(
        "RTX 4090",
        128,
        2.52e9,
        1.008e12,
        5.0e12,
        2.64e15,
        0.33e15,
        "clock, memory and bytes: data sheet (660.6 dense int8 TOPS); bits: 8 x bytes, the ratio "
        "measured on an H200; cache: assumed",
    ),
)

# Lanes of a multiprocessor per clock (CUDA C++ Programming Guide, "Throughput of native arithmetic
# instructions"), instructions of its four schedulers, and bytes of its shared memory.
INTEGER_LANES = 64
POPCOUNT_LANES = 16
ISSUED = 4
SHARED_BYTES = 128

_AES = 32 << 10  # AesGpu::kSharedBytes
_WALK = 128 * 64  # GpuPlan::kRun leaves
_XOR = 256  # kXorScratchBytes
_OT_AES = "GrowLevel|HashTransfers|ChiFactors|ChiAt|ExpandRows|EncodePrimal|MakeWords"


def launch_shared(name: str) -> int:
    """Returns the shared memory in bytes that the launch of a kernel adds: its shared_bytes()."""
    numbers = [int(n) for n in re.findall(r"\b\d+\b", name)]
    aes = _AES if "Aes128" in name else 0
    if name.startswith("MatrixProduct"):
        rows, warps_m, warps_n = numbers[-3:]
        return 3 * 64 * (16 * rows * warps_m + 64 * warps_n)
    if name.startswith("BitProduct"):  # of 4096 columns
        fused = "true" in name
        sums = (2 if fused else 1) * 8 * numbers[0] * 16 * 8
        return sums + (numbers[0] * (2 * 8 * 4 + 16 * 32 * 8) if fused else 0)
    for pattern, size in (
        ("PlainProduct", 8 * 8 * 64),
        ("BoundedWalk|MultiplyLeaves", aes + _WALK),
        (_OT_AES, _AES + _XOR),
        ("ChiSum|SumLevel", _XOR),
        ("ChainSegments", 2 * 125 * 4),
        ("WriteVectors", 8 * 4),
        ("GroupProduct", 2 * 256 * 4),
    ):
        if re.match(pattern, name):
            return size
    return aes


def blocks_per_processor(kernel: Kernel, limits: Limits) -> int:
    """Returns how many blocks of a kernel one multiprocessor holds at once."""
    warps = -(-kernel.threads // 32)
    warp_registers = -(-kernel.registers * 32 // 256) * 256
    shared = kernel.shared + launch_shared(kernel.name) + limits.shared_system
    shared = -(-shared // limits.shared_unit) * limits.shared_unit
    by_registers = limits.registers // warp_registers // warps
    by_shared = limits.shared // shared if shared else limits.blocks
    return min(limits.blocks, limits.warps // warps, by_registers, by_shared)


@dataclass(frozen=True)
class Case:
    """Work whose time is predicted: how often a kernel's instructions run, and the bytes it moves.

    `warps` run the kernel, and its inner loop `rounds` times each. `outside` is false where most
    instructions outside the loop belong to other outputs.
    """

    kernel: str
    work: str
    warps: float
    rounds: float
    cache: float  # bytes
    memory: float = 0  # bytes
    outside: bool = True


_TABLE = 1 << 28  # 2^20 rows of 256 bytes
_NODES = 512 << 11  # leaves of 512 keys with shares of bits
_OT_LEAVES = 1 << 24  # of 2^23 dual transfers


def _product(kernel: str, work: str, m: int, n: int, chunks: int) -> Case:
    """Returns a product of m x n sums over chunks of 64 bytes, in tiles of 128 x 128."""
    tiles, warps = m * n / 128**2, 4 * 2 * 132
    return Case(kernel, work, warps, tiles * 4 * chunks / warps, tiles * chunks * 2**14, _TABLE)


CASES = (
    _product("MatrixProduct<BitOp, 4, 2, 2>", "product, bits", 512, 2048, 1 << 11),
    Case(
        "WriteLines<ChaChaCore<20>, false>",
        "leaves, bits",
        _NODES / 32,
        10,
        _NODES * 80,
        outside=False,
    ),
    Case("ExpandLevel<ChaChaCore<20>>", "levels, bits", _NODES / 96, 10, _NODES / 3 * 80),
    _product("MatrixProduct<ByteOp, 4, 2, 2>", "product, u32", 2048, 256, 1 << 14),
    Case(
        "WriteLines<ChaChaCore<20>, false>",
        "leaves, u32",
        _NODES / 4,
        10,
        _NODES * 640,
        outside=False,
    ),
    Case(
        "MatrixProduct<BitOp, 1, 1, 4>",
        "product, one key",
        132 * 16,
        2048 * 8 * 4 / 2112,
        0,
        _TABLE,
    ),
    Case(
        "GrowLevel<false>",
        "OT leaves, 2^24",
        132 * 32,
        _OT_LEAVES / 132 / 1024,
        0,
        _OT_LEAVES * 48,
    ),
    Case(
        "EncodePrimal",
        "primal code, 2^23 rows",
        132 * 32,
        2**22 / 132 / 1024,
        2**23 * 320,
        2**23 * 32,
    ),
    Case(
        "BitProduct<MatrixSums, 1, true>",
        "1-bit product, 4096 x 4096",
        2048,
        2,
        2.1e6,
        outside=False,
    ),
)


def operations(kernel: Kernel, case: Case) -> Counter[str]:
    """Returns the instructions by class that all warps of a case execute."""
    assert kernel.mix is not None
    total: Counter[str] = Counter()
    for name, count in kernel.mix.all.items():
        loop = kernel.mix.loop[name]
        once = count - loop if case.outside else 0
        total[name] = round(case.warps * (once + case.rounds * loop))
    return total


def predict(kernel: Kernel, case: Case, card: Card) -> tuple[float, str]:
    """Returns the seconds of a case, without launches, and the resource that takes them."""
    done = operations(kernel, case)
    bits = "ByteOp" not in kernel.name
    products = 16 * 8 * (256 if bits else 32)
    shared = 128 * done["shared"] + 512 * done["shared x4"]
    seconds = {
        "matrix": done["matrix"] * products / (card.bits if bits else card.bytes),
        "integer": 32 * done["integer"] / card.per_clock(INTEGER_LANES),
        "popcount": 32 * done["popcount"] / card.per_clock(POPCOUNT_LANES),
        "issue": done.total() / card.per_clock(ISSUED),
        "shared memory": shared / card.per_clock(SHARED_BYTES),
        "cache": case.cache / card.cache,
        "memory": case.memory / card.memory,
    }
    slowest = max(seconds, key=lambda name: seconds[name])
    return seconds[slowest], slowest
