"""The steps of silent OT, each alone: inputs, and lower bounds of their work.

A step for n OTs is divided into parts as an extension is: for primal LPN into iterations of the
set's N leaves and rows, for dual LPN into extensions of up to 2^23 outputs.

Source: Gan, Yuki, Rogers, Ghodsi, "cuOT", sections III-A to III-C and IV-A.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nescio import _core
from nescio._arrays import ByteArray, IndexArray
from nescio.ot import parameters

__all__ = ["CODE", "KEY", "Bits", "Blocks", "Code", "Part", "Step", "Trees", "Work", "steps"]

KEY = b"Nescio OT bench "
"""The public base of the keys that trees and transfers are hashed under."""
CODE = b"Nescio OT codes "
"""The public seed of the codes."""

_BLOCK = 16
_DUAL_OUTPUTS = 1 << 23
_HASH_CALLS = 2
_WORDS_OF_CALL = 4
_EC_READS = 7
_EC_WORDS = _EC_READS + 2  # positions, and a mask for each of two accumulations
_BITS_OF_CALL = 128


class Part(NamedTuple):
    """The trees, or the blocks, of one call."""

    begin: int
    end: int


class Work(NamedTuple):
    """AES calls, random reads among `among` blocks, and bytes of memory read or written."""

    calls: float
    reads: float
    among: int
    bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step, run part by part; a part may occur several times."""

    name: str
    family: str | None = None
    parameters: str | None = None
    n: int
    parts: tuple[Part, ...]
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees(Step):
    """The trees of either party; parts count trees. Arrays are those of `_core.grow_trees`."""

    depth: int
    delta: IndexArray
    seeds: IndexArray
    sides: IndexArray
    choices: ByteArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Code(Step):
    """The product of a code with noise; parts count blocks of the noise.

    `seeds` are the seeds of primal LPN, `outputs` the outputs of one part of dual LPN.
    """

    noise: IndexArray
    seeds: IndexArray
    outputs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks(Step):
    """A step on n blocks."""

    blocks: IndexArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Bits(Step):
    """A matrix of 128 rows of n bits, n rounded up to bytes."""

    rows: ByteArray


def steps(n: int, chosen: parameters.Primal) -> Iterator[Step]:
    """Yields all steps of n OTs; the inputs of only one step are in memory at a time."""
    extensions = -(-n // _DUAL_OUTPUTS)
    outputs = -(-n // extensions)
    ec, qc = (parameters.dual(code, outputs) for code in ("ec", "qc"))
    for name in ("sender_trees", "receiver_trees"):
        yield _primal_trees(name, n, chosen)
        yield _dual_trees(name, n, ec, extensions)
    yield _primal_code(n, chosen)
    yield _dual_code(n, ec, extensions)
    yield _dual_code(n, qc, extensions)
    whole = (Part(0, n),)
    hashed = Work(_HASH_CALLS * n, 0, 1, 2 * _BLOCK * n)
    yield Blocks(name="hash", n=n, parts=whole, work=hashed, blocks=_random_blocks(n))
    checked = Work(0, 0, 1, _BLOCK * n)
    yield Blocks(name="check", n=n, parts=whole, work=checked, blocks=_random_blocks(n))
    yield Bits(
        name="transpose",
        n=n,
        parts=whole,
        work=Work(0, 0, 1, 2 * _BLOCK * n),
        rows=np.random.default_rng().integers(0, 256, (128, -(-n // 8)), dtype=np.uint8),
    )


def _primal_trees(name: str, n: int, chosen: parameters.Primal) -> Trees:
    """Returns the trees for n leaves, rounded up; a part is one iteration."""
    trees = -(-n >> chosen.depth)
    parts = _cut(trees, chosen.t)
    return _trees(name, "primal", chosen.name, n, parts, chosen.depth)


def _dual_trees(name: str, n: int, chosen: parameters.Dual, extensions: int) -> Trees:
    """Returns the trees of all extensions; every extension grows the same trees."""
    parts = (Part(0, chosen.t),) * extensions
    return _trees(name, "dual", chosen.code, n, parts, chosen.depth)


def _trees(  # noqa: PLR0917 - called by the two functions above only
    name: str, family: str, chosen: str, n: int, parts: tuple[Part, ...], depth: int
) -> Trees:
    trees = max(part.end for part in parts)
    leaves = sum(part.end - part.begin for part in parts) << depth
    seeds, delta = _random_blocks(trees), _random_blocks(1)[0]
    delta[0] |= np.uint64(1)
    _, sums = _core.grow_trees(seeds, depth, delta, KEY, _core.ThreadPool(0))
    choices = np.random.default_rng().integers(0, 2, trees * depth, dtype=np.uint8)
    return Trees(
        name=name,
        family=family,
        parameters=chosen,
        n=n,
        parts=parts,
        work=Work(leaves, 0, 1, _BLOCK * leaves),
        depth=depth,
        delta=delta,
        seeds=seeds,
        sides=sums ^ delta * choices[:, np.newaxis],
        choices=choices,
    )


def _primal_code(n: int, chosen: parameters.Primal) -> Code:
    """Returns the n rows of the code; a part is one iteration."""
    ones = chosen.row_weight * n
    return Code(
        name="code",
        family="primal",
        parameters=chosen.name,
        n=n,
        parts=_cut(n, chosen.n),
        work=Work(ones / _WORDS_OF_CALL, ones, chosen.k, 2 * _BLOCK * n),
        noise=_random_blocks(n),
        seeds=_random_blocks(chosen.k),
    )


def _dual_code(n: int, chosen: parameters.Dual, extensions: int) -> Code:
    """Returns the outputs of all extensions; every extension has the same noise."""
    rows = chosen.size * extensions
    if chosen.code == "ec":
        work = Work(_EC_WORDS * rows / _WORDS_OF_CALL, _EC_READS * rows, chosen.size, 0)
    else:
        work = Work(rows / _BITS_OF_CALL, 0, 1, 0)
    return Code(
        name="code",
        family="dual",
        parameters=chosen.code,
        n=n,
        parts=(Part(0, chosen.n),) * extensions,
        work=work._replace(bytes=3 * _BLOCK * rows),
        noise=_random_blocks(chosen.n),
        seeds=_random_blocks(0),
        outputs=chosen.outputs,
    )


def _cut(total: int, size: int) -> tuple[Part, ...]:
    return tuple(Part(begin, min(total, begin + size)) for begin in range(0, total, size))


def _random_blocks(count: int) -> IndexArray:
    """Returns random blocks for a measurement; they are not secret."""
    return np.random.default_rng().integers(0, 1 << 64, (count, 2), dtype=np.uint64)
