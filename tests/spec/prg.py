"""The generators in plain Python, written from their standards; slow, for reading and checking.

`aes128`: AES-128 (FIPS 197) under a fixed key in the Matyas-Meyer-Oseas form with sigma
(Guo, Katz, Wang and Yu 2020). `chacha20`: the ChaCha20 block function (RFC 8439, section 2.3) with
a 128-bit key. A node is 16 bytes; its control bit is the lowest bit of byte 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

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
    """Key expansion, section 5.2."""
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
    """The cipher, section 5.1; the state is column-major."""
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


# ---- ChaCha20, RFC 8439 --------------------------------------------------------------------------


def chacha20_block(state: list[int]) -> list[int]:
    """The block function on its 16 words, section 2.3."""
    x = list(state)
    for _ in range(10):
        for a, b, c, d in (
            (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
            (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
        ):  # fmt: skip
            for p, q, r, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[p] = (x[p] + x[q]) & 0xFFFFFFFF
                y = x[r] ^ x[p]
                x[r] = (y << bits | y >> (32 - bits)) & 0xFFFFFFFF
    return [(v + w) & 0xFFFFFFFF for v, w in zip(x, state, strict=True)]


def _words(data: bytes) -> list[int]:
    return [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]


# ---- The generators ------------------------------------------------------------------------------


def xor(a: bytes, b: bytes) -> bytes:
    """The bytewise XOR of two strings of one length."""
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


def control_bit(node: bytes) -> int:
    """The control bit t of a node."""
    return node[0] & 1


@dataclass(frozen=True)
class Generator:
    """`children(s)`: arity nodes; `leaf(s)`: 64 bytes, independent of them."""

    name: str
    number: int
    arity: int
    children: Callable[[bytes], list[bytes]]
    leaf: Callable[[bytes], bytes]


def _aes128_hash(node: bytes, tweak: int) -> bytes:
    """F(sigma(s) ^ tweak), where F(x) = AES(x) ^ x and sigma(hi || lo) = (hi ^ lo) || hi."""
    low, high = node[:8], node[8:]
    x = xor(high + xor(high, low), tweak.to_bytes(16, "little"))
    return xor(aes128_encrypt(b"Nescio fixed key", x), x)


def _chacha20_stream(node: bytes, counter: int) -> bytes:
    key = _words(node)
    output = chacha20_block([*_words(b"expand 16-byte k"), *key, *key, counter, 0, 0, 0])
    return b"".join(w.to_bytes(4, "little") for w in output)


def _chacha20_children(node: bytes) -> list[bytes]:
    stream = _chacha20_stream(node, 0)
    return [stream[i : i + 16] for i in range(0, 64, 16)]


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
        Generator("chacha20", 2, 4, _chacha20_children, lambda s: _chacha20_stream(s, 1)),
    )
}
