"""The codes of dual LPN in plain Python; slow, for reading and checking.

A block is an integer of 128 bits. Every code is public and derived from its seed; the blocks that
it encodes are secret.
"""

from collections.abc import Iterator
from itertools import pairwise

from .prg import aes128_encrypt

MASK_BITS = 24
ACCUMULATOR_SIZE = MASK_BITS + 1
EXPANDER_WEIGHT = 7


def words(key: bytes) -> Iterator[int]:
    """Generate AES-128-CTR under a public key, as little-endian words of 32 bits."""
    counter = 0
    while True:
        block = aes128_encrypt(key, counter.to_bytes(16, "little"))
        for i in range(0, 16, 4):
            yield int.from_bytes(block[i : i + 4], "little")
        counter += 1


def own_key(code_seed: bytes, number: int) -> bytes:
    """Return the key of stream `number` of a code: the seed with its lowest byte changed."""
    return bytes([code_seed[0] ^ number]) + code_seed[1:]


# ---- Expand-convolute codes: Raghuraman, Rindal and Tanguy, CRYPTO 2023 --------------------------


def convolve(y: list[int], key: bytes) -> list[int]:
    """Accumulate: add each block to the block 25 after it and to some of those in between."""
    y, n, masks = list(y), len(y), words(key)
    for i in range(n):
        mask = next(masks) % (1 << MASK_BITS) | 1 << MASK_BITS
        for j in range(ACCUMULATOR_SIZE):
            if mask >> j & 1:
                y[(i + 1 + j) % n] ^= y[i]
    return y


def expand(y: list[int], key: bytes) -> list[int]:
    """Apply a regular expander: each output is the sum of one block of each of seven parts."""
    n, stream = len(y), words(key)
    bounds = [j * n // EXPANDER_WEIGHT for j in range(EXPANDER_WEIGHT + 1)]
    out = []
    for _ in range(n):
        total = 0
        for begin, end in pairwise(bounds):
            total ^= y[begin + (next(stream) * (end - begin) >> 32)]
        out.append(total)
    return out


def encode_ec(noise: list[int], code_seed: bytes) -> list[int]:
    """Compress 2n blocks to n: the code is systematic, of rate 1/2, and accumulates twice."""
    n = len(noise) // 2
    y = noise[n:]
    for number in (1, 2):
        y = convolve(y, own_key(code_seed, number))
    return [a ^ b for a, b in zip(noise[:n], expand(y, own_key(code_seed, 3)), strict=True)]


# ---- Quasi-cyclic codes: Boyle et al., CCS 2019 --------------------------------------------------


def multiplier(p: int, code_seed: bytes) -> list[int]:
    """Return the p coefficients of the polynomial a of the code."""
    stream = words(own_key(code_seed, 4))
    bits: list[int] = []
    while len(bits) < p:
        word = next(stream)
        bits += [word >> i & 1 for i in range(32)]
    return bits[:p]


def encode_qc(noise: list[int], code_seed: bytes, count: int) -> list[int]:
    """Return the first blocks of e0 + a e1 in F_2[X] / (X^p - 1), for each bit of a block."""
    p = len(noise) // 2
    out = noise[:p]
    for i, bit in enumerate(multiplier(p, code_seed)):
        if bit:
            for j in range(p):
                out[(i + j) % p] ^= noise[p + j]
    return out[:count]
