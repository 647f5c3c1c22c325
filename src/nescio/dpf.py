"""Distributed point functions, for protocol builders.

A point function is `payload` at one point `alpha` and 0 at every other point. `generate` makes two
keys for it. At any point, the two keys evaluate to shares whose sum is the function's value. One
key alone reveals nothing about `alpha` or `payload` (Boyle, Gilboa and Ishai 2016).

    key0, key1 = nescio.dpf.generate(42, domain=1_000_000)
    share0, share1 = nescio.dpf.evaluate_all(key0), nescio.dpf.evaluate_all(key1)
    (share0 ^ share1).nonzero()         # 42

Outputs, the dtype of their shares, and the addition of shares:

    "bit"    bool                       XOR
    "u8"     uint8                      mod 2^8
    "u32"    uint32                     mod 2^32
    "u64"    uint64                     mod 2^64
    "u128"   uint64, last axis 2: low and high half        mod 2^128

Security: each key is pseudorandom to a polynomially bounded party that holds only this key; the two
key holders must not collude. A key's domain, output, generator and party are public. See
docs/security.md for the assumption of each generator. Generators whose name begins with `insecure_`
claim no 128-bit security; they are for comparison.
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
    """The public fields of a key."""

    domain: int
    output: Output
    generator: Generator
    party: int


def check_generator(name: object) -> Generator:
    """Checks a generator's name. Raises ArgumentError, which lists the valid names."""
    for generator in GENERATORS:
        if name == generator:
            return generator
    if f"insecure_{name}" in GENERATORS:
        _core.key_bytes(1, "bit", str(name))  # raises an error with the reason
    raise ArgumentError(f"generator: found {shown(name)}, expected one of {', '.join(GENERATORS)}")


def key_bytes(domain: int, *, output: Output = "bit", generator: Generator = "chacha20") -> int:
    """Returns the length of each key in bytes."""
    return _core.key_bytes(_domain(domain), output, generator)


def inspect(key: bytes) -> KeyInfo:
    """Checks a whole key and returns its public fields. Raises MalformedKeyError."""
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
    """Generates keys for the function that is `payload` at `alpha` and 0 elsewhere on 0..domain-1.

    `alpha` is one point, which gives two keys as bytes, or n points, which give two lists of n.
    `payload` is one integer for all points, or n integers; None is 1. For "u128" the payloads may
    also be an array of uint64 of shape (n, 2). The domain has 1 to 2^40 points. Seeds come from the
    operating system. The engine's running time is independent of points and payloads. Converting
    Python integers to arrays is not constant-time: pass arrays where that matters.

    Raises IndexRangeError for a point outside the domain, ArgumentError for a payload that does not
    fit the output, or for an unknown output or generator.

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
    """Runs `generate` with given root seeds of the parties: for test vectors only.

    `roots` is uint8 of shape (n, 2, 16). An attacker who guesses a root finds the point.
    """
    given = np.ascontiguousarray(as_array(roots, "roots"), np.uint8)
    if given.size != 32 * as_array(alpha, "alpha").size:
        raise ArgumentError(f"roots need 32 bytes a point: found {given.size} bytes")
    pairs = given.reshape(-1).view(np.uint64).reshape(-1, 2)
    return _generate(alpha, domain, output, generator, payload=payload, roots=pairs)


def evaluate_all(key: Keys, *, packed: bool = False, threads: int = 0) -> Array:
    """Evaluates keys at every point: shares of shape (domain,), or (n, domain) for n keys.

    All keys have one domain, output and generator. With `packed`, shares of "bit" keys are packed
    eight to a byte, the lowest bit first. `threads` of 0 uses all processors. Memory in addition to
    the result is O(threads x depth).

    Raises MalformedKeyError, or MismatchError for keys of different kinds.
    """
    keys = _read(key)
    return _evaluate_range(keys, range(keys.info.domain), packed=packed, threads=threads)


def evaluate_range(
    key: Keys, start: int, stop: int, *, packed: bool = False, threads: int = 0
) -> Array:
    """Evaluates keys at start..stop-1: shares of shape (stop - start,), or (n, stop - start).

    Arguments and errors are those of `evaluate_all`. Packed bits need a `start` that is a multiple
    of 8. Raises IndexRangeError if the range leaves the domain.
    """
    first = as_count(start, "start", 0, MAX_DOMAIN)
    last = as_count(stop, "stop", first, MAX_DOMAIN)
    return _evaluate_range(_read(key), range(first, last), packed=packed, threads=threads)


def evaluate(key: Keys, points: object, *, threads: int = 0) -> Array:
    """Evaluates keys at given points: shares of shape (m,), or (n, m) for n keys.

    `points` are m integers for all keys, or an array of shape (n, m) with m points per key.
    `threads` of 0 uses all processors. Raises IndexRangeError for a point outside the domain.

    Source: Boyle, Gilboa and Ishai 2016, Figure 1.
    """
    keys = _read(key)
    wanted = as_indices(points, keys.info.domain, "a point")
    count = len(keys.keys)
    if wanted.ndim > 2 or (wanted.ndim == 2 and (keys.single or len(wanted) != count)):
        raise ArgumentError(
            f"points: found shape {wanted.shape}, expected (m,) or ({count}, m) for {count} keys"
        )
    lists = np.atleast_1d(wanted)
    grid = np.ascontiguousarray(np.broadcast_to(lists, (count, lists.shape[-1])))
    raw = _core.evaluate_points(keys.keys, grid, _pool(threads))
    shares = _as_shares(raw, keys.info.output)
    shares = shares[:, 0] if wanted.ndim == 0 else shares
    return _unless_single(shares, keys)


def combine(share0: object, share1: object, output: Output) -> Array:
    """Adds the two parties' shares in the output group; keeps their shape and dtype.

    Packed bits are added with output "bit". Raises ArgumentError if shapes or dtypes differ.
    """
    if output not in _BITS:
        raise ArgumentError(f"output: found {output!r}, expected one of {', '.join(OUTPUTS)}")
    a, b = as_array(share0, "share0"), as_array(share1, "share1")
    kinds = (np.bool_, np.uint8) if output == "bit" else (_DTYPES[output],)
    if a.shape != b.shape or a.dtype != b.dtype or a.dtype not in kinds:
        raise ArgumentError(
            f"shares for {output}: found {a.shape} {a.dtype} and {b.shape} {b.dtype}, "
            "expected one shape and the dtype of the output"
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
        raise ArgumentError(f"alpha: found shape {points.shape}, expected one point or a 1-d array")
    flat = np.atleast_1d(points)
    payloads = _payloads(payload, len(flat), output)
    keys = _core.generate(flat, payloads, domain, output, generator, roots)
    if points.ndim == 0:
        return keys[0].tobytes(), keys[1].tobytes()
    return [row.tobytes() for row in keys[0]], [row.tobytes() for row in keys[1]]


def _domain(domain: int) -> int:
    return as_count(domain, "domain", 1, MAX_DOMAIN)


def _payloads(payload: object, count: int, output: Output) -> npt.NDArray[np.uint64]:
    """Converts payloads to (count, 2) halves of 128 bits, reduced modulo the output's size."""
    if output not in _BITS:
        raise ArgumentError(f"output: found {output!r}, expected one of {', '.join(OUTPUTS)}")
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
    """Checked keys, the public fields of the first, and if the caller passed a single key."""

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
    # Packed bits begin at a byte boundary; bits before the first point are cut off below.
    begin = points.start - points.start % 8 if unpack else points.start
    raw = _core.evaluate_range(keys.keys, begin, points.stop, _pool(threads))
    if unpack:
        bits = np.unpackbits(raw, axis=1, count=points.stop - begin, bitorder="little")
        return _unless_single(bits[:, points.start - begin :].view(bool), keys)
    return _unless_single(raw if packed else _as_shares(raw, output), keys)


def _as_shares(raw: ByteArray, output: Output) -> Array:
    """Converts rows of bytes to rows of shares."""
    if output == "bit":
        return raw.view(bool)
    shares: Array = raw.view(_DTYPES[output])
    return shares.reshape(len(raw), -1, 2) if output == "u128" else shares


def _unless_single(shares: Array, keys: _Keys) -> Array:
    """Removes the first axis if the caller passed a single key."""
    alone: Array = shares[0] if keys.single else shares
    return alone


@lru_cache(maxsize=8)
def _pool(threads: int) -> _core.ThreadPool:
    return _core.ThreadPool(as_threads(threads))
