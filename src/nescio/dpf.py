"""Distributed point functions, for people who build protocols.

A point function is `payload` at one point `alpha` and 0 everywhere else. `generate` makes two keys
from it; evaluated anywhere, the two keys give shares that add up to the function's value, while one
key alone says nothing of `alpha` or `payload` (Boyle, Gilboa and Ishai 2016).

    key0, key1 = nescio.dpf.generate(42, domain=1_000_000)
    share0, share1 = nescio.dpf.evaluate_all(key0), nescio.dpf.evaluate_all(key1)
    (share0 ^ share1).nonzero()         # 42

Outputs, their shares as NumPy arrays, and how shares add up:

    "bit"    bool                       XOR
    "u8"     uint8                      mod 2^8
    "u32"    uint32                     mod 2^32
    "u64"    uint64                     mod 2^64
    "u128"   uint64, last axis 2: low and high half        mod 2^128

Security: each key is pseudorandom to a party that holds it alone, for polynomially bounded
parties; the two key holders must not collude. A key says openly its domain, output, generator and
party. See docs/security.md for the assumption that each generator rests on; those whose name begins
with `insecure_` have no claim to 128-bit security and are there for comparison.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, get_args, overload

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import (
    Array,
    ByteArray,
    as_array,
    as_bytes,
    as_count,
    as_indices,
    as_threads,
    byte_rows,
    shown,
)
from .errors import ArgumentError

__all__ = [
    "GENERATORS",
    "OUTPUTS",
    "Generator",
    "KeyInfo",
    "Output",
    "combine",
    "evaluate",
    "evaluate_all",
    "evaluate_range",
    "generate",
    "insecure_generate",
    "inspect",
    "key_bytes",
]

Output = Literal["bit", "u8", "u32", "u64", "u128"]
Generator = Literal[
    "aes128",
    "chacha20",
    "chacha12",
    "chacha8",
    "salsa20",
    "sha256",
    "insecure_siphash",
    "insecure_highwayhash",
]
OUTPUTS: tuple[Output, ...] = ("bit", "u8", "u32", "u64", "u128")
GENERATORS: tuple[Generator, ...] = get_args(Generator)

Keys = bytes | bytearray | memoryview | ByteArray | Sequence[bytes]

_BITS = {"bit": 1, "u8": 8, "u32": 32, "u64": 64, "u128": 128}
_DTYPES: dict[str, type[np.generic]] = {
    "u8": np.uint8,
    "u32": np.uint32,
    "u64": np.uint64,
    "u128": np.uint64,
}
_WORD = (1 << 64) - 1
MAX_DOMAIN = 1 << 40


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """What a key says openly."""

    domain: int
    output: Output
    generator: Generator
    party: int


def check_generator(name: object) -> Generator:
    """The generator of that name. Raises ArgumentError, saying why there is none or which are."""
    for generator in GENERATORS:
        if name == generator:
            return generator
    if f"insecure_{name}" in GENERATORS:
        _core.key_bytes(1, "bit", str(name))  # which says why not
    raise ArgumentError(f"there is no generator {shown(name)}; there are: {', '.join(GENERATORS)}")


def key_bytes(domain: int, *, output: Output = "bit", generator: Generator = "chacha20") -> int:
    """The length of each key in bytes."""
    return _core.key_bytes(_domain(domain), output, generator)


def inspect(key: bytes) -> KeyInfo:
    """Checks a whole key and returns what it says openly. Raises MalformedKeyError."""
    return _info(_core.Keys(as_bytes(key, "a key").reshape(1, -1)))


@overload
def generate(
    alpha: int,
    *,
    domain: int,
    output: Output = ...,
    generator: Generator = ...,
    payload: object = ...,
) -> tuple[bytes, bytes]: ...


@overload
def generate(
    alpha: Sequence[int] | Array,
    *,
    domain: int,
    output: Output = ...,
    generator: Generator = ...,
    payload: object = ...,
) -> tuple[list[bytes], list[bytes]]: ...


def generate(
    alpha: object,
    *,
    domain: int,
    output: Output = "bit",
    generator: Generator = "chacha20",
    payload: object = None,
) -> tuple[bytes, bytes] | tuple[list[bytes], list[bytes]]:
    """Keys of the function that is `payload` at `alpha` and 0 elsewhere on 0..domain-1.

    `alpha` is one point, which gives two keys as bytes, or n points, which give two lists of n.
    `payload` is one integer for all of them, or n; None is 1. For "u128" an array of payloads may
    also be uint64 of shape (n, 2). The domain has 1 to 2^40 points. Secrets come from the operating
    system. The engine's time is independent of points and payloads; to read Python integers into
    arrays is not, so pass arrays where that matters.

    Raises IndexRangeError for a point outside the domain, ArgumentError for a payload that does not
    fit the output, or an unknown output or generator.

    Source: Boyle, Gilboa and Ishai 2016, Figure 1.
    """
    return _generate(alpha, domain, output, generator, payload=payload, roots=None)


def insecure_generate(
    alpha: object,
    *,
    domain: int,
    roots: Array,
    output: Output = "bit",
    generator: Generator = "chacha20",
    payload: object = None,
) -> tuple[bytes, bytes] | tuple[list[bytes], list[bytes]]:
    """`generate` with the parties' root seeds given: for test vectors and nothing else.

    `roots` is uint8 of shape (n, 2, 16). Whoever can guess a root can find the point.
    """
    given = np.ascontiguousarray(as_array(roots, "roots"), np.uint8)
    if given.size != 32 * as_array(alpha, "alpha").size:
        raise ArgumentError(f"roots need 32 bytes a point: found {given.size} bytes")
    pairs = given.reshape(-1).view(np.uint64).reshape(-1, 2)
    return _generate(alpha, domain, output, generator, payload=payload, roots=pairs)


def evaluate_all(key: Keys, *, packed: bool = False, threads: int = 1) -> Array:
    """Shares at every point: shape (domain,), or (n, domain) for n keys of one shape.

    With `packed`, shares of "bit" keys come eight to a byte, the lowest bit first. `threads` of 0
    takes every processor. Memory beyond the result is O(threads x depth).

    Raises MalformedKeyError, or MismatchError for keys of different shapes.
    """
    keys = _read(key)
    return _evaluate_range(keys, range(keys.info.domain), packed=packed, threads=threads)


def evaluate_range(
    key: Keys, start: int, stop: int, *, packed: bool = False, threads: int = 1
) -> Array:
    """Shares at start..stop-1: shape (stop - start,), or (n, stop - start) for n keys.

    As `evaluate_all`; packed bits need a `start` that is a multiple of 8. Raises IndexRangeError
    if the range leaves the domain.
    """
    first = as_count(start, "start", 0, MAX_DOMAIN)
    last = as_count(stop, "stop", first, MAX_DOMAIN)
    return _evaluate_range(_read(key), range(first, last), packed=packed, threads=threads)


def evaluate(key: Keys, points: object, *, threads: int = 1) -> Array:
    """Shares at some points: shape (m,), or (n, m) for n keys.

    `points` are m integers, or for n keys (n, m): each key's own. Raises IndexRangeError for a
    point outside the domain.

    Source: Boyle, Gilboa and Ishai 2016, Figure 1.
    """
    keys = _read(key)
    wanted = as_indices(points, keys.info.domain, "a point")
    count = len(keys.keys)
    if wanted.ndim > 2 or (wanted.ndim == 2 and (keys.single or len(wanted) != count)):
        raise ArgumentError(
            f"points have shape (m,), or ({count}, m) for {count} keys: found {wanted.shape}"
        )
    lists = np.atleast_1d(wanted)
    grid = np.ascontiguousarray(np.broadcast_to(lists, (count, lists.shape[-1])))
    raw = _core.evaluate_points(keys.keys, grid, _pool(threads))
    shares = _as_shares(raw, keys.info.output)
    shares = shares[:, 0] if wanted.ndim == 0 else shares
    return _unless_single(shares, keys)


def combine(share0: object, share1: object, output: Output) -> Array:
    """The sum of two parties' shares in the output group; same shape and dtype as the shares.

    Packed bits add up as "bit" too. Raises ArgumentError unless both have one shape and dtype.
    """
    if output not in _BITS:
        raise ArgumentError(f"there is no output {output!r}; there are: {', '.join(OUTPUTS)}")
    a, b = as_array(share0, "share0"), as_array(share1, "share1")
    kinds = (np.bool_, np.uint8) if output == "bit" else (_DTYPES[output],)
    if a.shape != b.shape or a.dtype != b.dtype or a.dtype not in kinds:
        raise ArgumentError(
            f"shares of one shape and of the output's dtype add up: found {a.shape} {a.dtype} "
            f"and {b.shape} {b.dtype} for {output}"
        )
    raw = [np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (a, b)]
    total: Array = _core.combine(output, *raw).view(a.dtype).reshape(a.shape)
    return total


def _generate(
    alpha: object,
    domain: int,
    output: Output,
    generator: Generator,
    *,
    payload: object,
    roots: npt.NDArray[np.uint64] | None,
) -> tuple[bytes, bytes] | tuple[list[bytes], list[bytes]]:
    points = as_indices(alpha, _domain(domain), "alpha")
    if points.ndim > 1:
        raise ArgumentError(f"alpha is one point or a flat list of them: found {points.shape}")
    flat = np.atleast_1d(points)
    payloads = _payloads(payload, len(flat), output)
    keys = _core.generate(flat, payloads, domain, output, generator, roots)
    if points.ndim == 0:
        return keys[0].tobytes(), keys[1].tobytes()
    return [row.tobytes() for row in keys[0]], [row.tobytes() for row in keys[1]]


def _domain(domain: int) -> int:
    return as_count(domain, "domain", 1, MAX_DOMAIN)


def _payloads(payload: object, count: int, output: Output) -> npt.NDArray[np.uint64]:
    """Payloads as (count, 2) halves of 128 bits, reduced mod the output's size."""
    if output not in _BITS:
        raise ArgumentError(f"there is no output {output!r}; there are: {', '.join(OUTPUTS)}")
    if isinstance(payload, np.ndarray) and payload.shape == (count, 2) and output == "u128":
        if payload.dtype != np.uint64:
            raise ArgumentError(f"payload: found halves of {payload.dtype}, expected uint64")
        return np.ascontiguousarray(payload)
    values = np.asarray(1 if payload is None else payload, dtype=object)
    if values.shape not in ((), (count,)):
        raise ArgumentError(f"payload: found shape {values.shape}, expected one or {count}")
    bits = _BITS[output]
    low = 0 if bits == 1 else -(1 << (bits - 1))
    for value in values.flat:
        if not isinstance(value, int | np.integer) or not low <= int(value) < 1 << bits:
            raise ArgumentError(f"payload: found {shown(value)}, which does not fit {output}")
    reduced = [int(value) % (1 << bits) for value in np.broadcast_to(values, count)]
    halves = [(value & _WORD, value >> 64) for value in reduced]
    return np.array(halves, np.uint64).reshape(count, 2)


class _Keys(NamedTuple):
    """Checked keys, what the first says, and whether it was one key alone."""

    keys: _core.Keys
    info: KeyInfo
    single: bool


def _read(key: Keys) -> _Keys:
    rows, single = byte_rows(key, "a key")
    keys = _core.Keys(rows)
    return _Keys(keys, _info(keys), single)


def _info(keys: _core.Keys) -> KeyInfo:
    if not len(keys):
        return KeyInfo(0, "bit", "chacha20", 0)
    return KeyInfo(keys.domain, keys.output, keys.generator, int(keys.parties()[0]))  # type: ignore[arg-type]


def _evaluate_range(keys: _Keys, points: range, *, packed: bool, threads: int) -> Array:
    output = keys.info.output
    if packed and output != "bit":
        raise ArgumentError(f"only shares of 'bit' keys can be packed, not of {output!r}")
    unpack = output == "bit" and not packed
    # Packed bits begin at a byte; what stands before the first point is cut off again below.
    begin = points.start - points.start % 8 if unpack else points.start
    raw = _core.evaluate_range(keys.keys, begin, points.stop, _pool(threads))
    if unpack:
        bits = np.unpackbits(raw, axis=1, count=points.stop - begin, bitorder="little")
        return _unless_single(bits[:, points.start - begin :].view(bool), keys)
    return _unless_single(raw if packed else _as_shares(raw, output), keys)


def _as_shares(raw: ByteArray, output: Output) -> Array:
    """Rows of bytes as rows of shares."""
    if output == "bit":
        return raw.view(bool)
    shares: Array = raw.view(_DTYPES[output])
    return shares.reshape(len(raw), -1, 2) if output == "u128" else shares


def _unless_single(shares: Array, keys: _Keys) -> Array:
    """The shares of all keys; without the first axis if there was one key alone."""
    alone: Array = shares[0] if keys.single else shares
    return alone


@lru_cache(maxsize=8)
def _pool(threads: int) -> _core.ThreadPool:
    return _core.ThreadPool(as_threads(threads))
