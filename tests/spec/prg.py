"""The generators in plain Python, written from their standards; slow, for reading and checking.

`aes128` is AES-128 (FIPS 197) under a fixed key in Matyas-Meyer-Oseas mode with sigma (Guo, Katz,
Wang and Yu 2020). The other generators are keyed by the node. A stream cipher's first block gives
the children and its second block the leaf. A hash is applied to the node and one more byte. A node
is 16 bytes; its control bit is the lowest bit of byte 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from .hashes import highwayhash, sha256, siphash
from .streams import chacha_stream, salsa20_stream

# ---- AES-128, FIPS 197 ---------------------------------------------------------------------------


def _times2(a: int) -> int:
    return (a << 1) ^ (0x11B if a & 0x80 else 0)


def _multiply(a: int, b: int) -> int:
    product = 0
    while b:
        if b & 1:
            product ^= a
        a, b = _times2(a), b >> 1
    return product


def _sub_byte(a: int) -> int:
    inverse = next((b for b in range(256) if _multiply(a, b) == 1), 0)
    result = 0x63
    for i in range(5):
        result ^= (inverse << i | inverse >> (8 - i)) & 0xFF
    return result


SBOX = bytes(_sub_byte(a) for a in range(256))


@cache
def aes128_round_keys(key: bytes) -> tuple[bytes, ...]:
    """Expand a key, section 5.2."""
    words = [key[i : i + 4] for i in range(0, 16, 4)]
    round_constant = 1
    for i in range(4, 44):
        word = words[-1]
        if i % 4 == 0:
            word = bytes(SBOX[b] for b in word[1:] + word[:1])
            word = bytes([word[0] ^ round_constant]) + word[1:]
            round_constant = _times2(round_constant)
        words.append(xor(words[i - 4], word))
    return tuple(b"".join(words[i : i + 4]) for i in range(0, 44, 4))


def aes128_encrypt(key: bytes, block: bytes) -> bytes:
    """Encrypt a block, section 5.1; the state is column-major."""
    keys = aes128_round_keys(key)
    state = xor(block, keys[0])
    for round_number in range(1, 11):
        state = bytes(SBOX[b] for b in state)
        state = bytes(state[(p + 4 * (p % 4)) % 16] for p in range(16))  # ShiftRows
        if round_number < 10:
            state = b"".join(_mix_column(state[c : c + 4]) for c in range(0, 16, 4))
        state = xor(state, keys[round_number])
    return state


def _mix_column(a: bytes) -> bytes:
    return bytes(
        _times2(a[r]) ^ _times2(a[(r + 1) % 4]) ^ a[(r + 1) % 4] ^ a[(r + 2) % 4] ^ a[(r + 3) % 4]
        for r in range(4)
    )


# ---- The generators ------------------------------------------------------------------------------


def xor(a: bytes, b: bytes) -> bytes:
    """Return the bytewise XOR of two strings of equal length."""
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


def control_bit(node: bytes) -> int:
    """Return the control bit t of a node."""
    return node[0] & 1


@dataclass(frozen=True)
class Generator:
    """A generator: `children(s)` returns `arity` nodes, `leaf(s)` 64 bytes independent of them."""

    name: str
    number: int
    arity: int
    children: Callable[[bytes], list[bytes]]
    leaf: Callable[[bytes], bytes]


def _aes128_hash(node: bytes, tweak: int) -> bytes:
    """Return F(sigma(s) ^ tweak), with F(x) = AES(x) ^ x and sigma(hi || lo) = (hi ^ lo) || hi."""
    low, high = node[:8], node[8:]
    x = xor(high + xor(high, low), tweak.to_bytes(16, "little"))
    return xor(aes128_encrypt(b"Nescio fixed key", x), x)


def _split(data: bytes) -> list[bytes]:
    return [data[i : i + 16] for i in range(0, len(data), 16)]


def _stream(name: str, number: int, block: Callable[[bytes, int], bytes]) -> Generator:
    """Build a generator from a stream cipher: block 0 is the four children, block 1 the leaf."""
    return Generator(name, number, 4, lambda s: _split(block(s, 0)), lambda s: block(s, 1))


def _hash(name: str, number: int, size: int, digest: Callable[[bytes, int], bytes]) -> Generator:
    """Build a generator from a function of a node and a number that returns `size` bytes.

    The first numbers give the 32 bytes of the two children, the next ones the 64 bytes of the leaf.
    """

    def outputs(node: bytes, first: int, length: int) -> bytes:
        return b"".join(digest(node, first + j) for j in range(length // size))

    return Generator(
        name, number, 2, lambda s: _split(outputs(s, 0, 32)), lambda s: outputs(s, 32 // size, 64)
    )


GENERATORS = {
    g.name: g
    for g in (
        Generator(
            "aes128",
            1,
            2,
            lambda s: [_aes128_hash(s, j) for j in range(2)],
            lambda s: b"".join(_aes128_hash(s, 2 + j) for j in range(4)),
        ),
        _stream("chacha20", 2, lambda s, j: chacha_stream(s, j, 20)),
        _stream("chacha12", 3, lambda s, j: chacha_stream(s, j, 12)),
        _stream("chacha8", 4, lambda s, j: chacha_stream(s, j, 8)),
        _stream("salsa20", 5, salsa20_stream),
        _hash("sha256", 6, 32, lambda s, j: sha256(s + bytes([j]))),
        _hash("insecure_siphash", 7, 8, lambda s, j: siphash(s, bytes([j]))),
        _hash(
            "insecure_highwayhash", 8, 32, lambda s, j: highwayhash(s + s, bytes([j]) + bytes(31))
        ),
    )
}
