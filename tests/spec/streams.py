"""ChaCha (RFC 8439, section 2.3) and Salsa20 (Bernstein, "Salsa20 specification") in plain Python,
with keys of 128 bits."""

CONSTANTS = b"expand 16-byte k"


def chacha_block(state: list[int], rounds: int = 20) -> list[int]:
    """Apply the block function to 16 words, RFC 8439, section 2.3, with `rounds` rounds."""
    x = list(state)
    for _ in range(rounds // 2):
        for a, b, c, d in (
            (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
            (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
        ):  # fmt: skip
            for p, q, r, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[p] = (x[p] + x[q]) & 0xFFFFFFFF
                x[r] = _rotate(x[r] ^ x[p], bits)
    return [(v + w) & 0xFFFFFFFF for v, w in zip(x, state, strict=True)]


def chacha_stream(key: bytes, counter: int, rounds: int) -> bytes:
    """Return block `counter` of the keystream of a 16-byte key, with a nonce of zero."""
    words = to_words(key)
    return from_words(
        chacha_block([*to_words(CONSTANTS), *words, *words, counter, 0, 0, 0], rounds)
    )


def salsa20_hash(data: bytes) -> bytes:
    """Apply the Salsa20 hash function to 64 bytes, section 8."""
    state = to_words(data)
    x = list(state)
    for _ in range(10):
        for a, b, c, d in (
            (0, 4, 8, 12), (5, 9, 13, 1), (10, 14, 2, 6), (15, 3, 7, 11),
            (0, 1, 2, 3), (5, 6, 7, 4), (10, 11, 8, 9), (15, 12, 13, 14),
        ):  # fmt: skip
            for target, p, q, bits in ((b, a, d, 7), (c, b, a, 9), (d, c, b, 13), (a, d, c, 18)):
                x[target] ^= _rotate((x[p] + x[q]) & 0xFFFFFFFF, bits)
    return from_words([(v + w) & 0xFFFFFFFF for v, w in zip(x, state, strict=True)])


def salsa20_expand(key: bytes, n: bytes) -> bytes:
    """Expand a 16-byte key and 16 bytes n, section 9."""
    t0, t1, t2, t3 = (CONSTANTS[i : i + 4] for i in range(0, 16, 4))
    return salsa20_hash(t0 + key + t1 + n + t2 + key + t3)


def salsa20_stream(key: bytes, counter: int) -> bytes:
    """Return block `counter` of the keystream of a 16-byte key, nonce zero, section 10."""
    return salsa20_expand(key, bytes(8) + counter.to_bytes(8, "little"))


def to_words(data: bytes) -> list[int]:
    """Convert bytes to little-endian words of 32 bits."""
    return [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]


def from_words(words: list[int]) -> bytes:
    """Convert words to bytes: the inverse of `to_words`."""
    return b"".join(word.to_bytes(4, "little") for word in words)


def _rotate(x: int, bits: int) -> int:
    return (x << bits | x >> (32 - bits)) & 0xFFFFFFFF


class Words:
    """The ChaCha20 keystream of a 32-byte key and three nonce words (RFC 8439, section 2.4)."""

    def __init__(self, key: bytes, nonce: tuple[int, int, int]) -> None:
        self._head = [*to_words(b"expand 32-byte k"), *to_words(key)]
        self._nonce = nonce
        self._counter = 0
        self._left = b""

    def read(self, count: int) -> int:
        """Return the next bytes as a little-endian number."""
        while len(self._left) < count:
            block = chacha_block([*self._head, self._counter, *self._nonce])
            self._left += from_words(block)
            self._counter += 1
        value, self._left = self._left[:count], self._left[count:]
        return int.from_bytes(value, "little")
