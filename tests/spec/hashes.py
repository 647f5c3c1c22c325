"""SHA-256 (FIPS 180-4), SipHash-2-4 (Aumasson and Bernstein 2012) and HighwayHash-256 (Alakuijala,
Cox and Wassenberg 2016) in plain Python."""

from math import isqrt

# ---- SHA-256, FIPS 180-4 -------------------------------------------------------------------------

_32, _64 = (1 << 32) - 1, (1 << 64) - 1


def _primes(count: int) -> list[int]:
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % p for p in found):
            found.append(candidate)
        candidate += 1
    return found


def _cube_root(n: int) -> int:
    root = round(n ** (1 / 3))
    while root**3 > n:
        root -= 1
    while (root + 1) ** 3 <= n:
        root += 1
    return root


# The first bits of the fractional parts of roots of primes, sections 4.2.2 and 5.3.3.
_ROUND_CONSTANTS = [_cube_root(p << 96) & _32 for p in _primes(64)]
_INITIAL = [isqrt(p << 64) & _32 for p in _primes(8)]


def sha256(message: bytes) -> bytes:
    """Compute SHA-256, section 6.2."""
    padded = message + b"\x80" + bytes(-(len(message) + 9) % 64)
    padded += (8 * len(message)).to_bytes(8, "big")
    state = _INITIAL
    for i in range(0, len(padded), 64):
        state = _sha256_compress(state, padded[i : i + 64])
    return b"".join(word.to_bytes(4, "big") for word in state)


def _sha256_compress(state: list[int], block: bytes) -> list[int]:
    w = [int.from_bytes(block[i : i + 4], "big") for i in range(0, 64, 4)]
    for t in range(16, 64):
        s0 = _right(w[t - 15], 7) ^ _right(w[t - 15], 18) ^ w[t - 15] >> 3
        s1 = _right(w[t - 2], 17) ^ _right(w[t - 2], 19) ^ w[t - 2] >> 10
        w.append((w[t - 16] + s0 + w[t - 7] + s1) & _32)
    a, b, c, d, e, f, g, h = state
    for k, word in zip(_ROUND_CONSTANTS, w, strict=True):
        choice, majority = (e & f) ^ (~e & g), (a & b) ^ (a & c) ^ (b & c)
        t1 = h + (_right(e, 6) ^ _right(e, 11) ^ _right(e, 25)) + choice + k + word
        t2 = (_right(a, 2) ^ _right(a, 13) ^ _right(a, 22)) + majority
        a, b, c, d, e, f, g, h = (t1 + t2) & _32, a, b, c, (d + t1) & _32, e, f, g
    return [(x + y) & _32 for x, y in zip(state, (a, b, c, d, e, f, g, h), strict=True)]


def _right(x: int, bits: int) -> int:
    return (x >> bits | x << (32 - bits)) & _32


# ---- SipHash-2-4, sections 2.1 to 2.4 of its paper -----------------------------------------------


def siphash(key: bytes, message: bytes) -> bytes:
    """Compute SipHash-2-4: 64 bits, little-endian."""
    k0, k1 = _words(key)
    v = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]
    length = len(message)
    for word in _words(message + bytes(7 - length % 8) + bytes([length % 256])):
        v[3] ^= word
        for _ in range(2):
            _sip_round(v)
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        _sip_round(v)
    return (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")


def _sip_round(v: list[int]) -> None:
    # v_a += v_b, v_b = (v_b <<< bits) ^ v_a, and in half of the steps v_a <<<= 32
    for a, b, bits, turn in ((0, 1, 13, 32), (2, 3, 16, 0), (0, 3, 21, 0), (2, 1, 17, 32)):
        v[a] = (v[a] + v[b]) & _64
        v[b] = _left(v[b], bits) ^ v[a]
        v[a] = _left(v[a], turn)


# ---- HighwayHash-256 -----------------------------------------------------------------------------

_MUL0 = (0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3)
_MUL1 = (0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377)

# The source of each of 16 bytes.
_ZIPPER = (3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7)


class HighwayHash:
    """HighwayHash-256 of whole packets of 32 bytes, under a 32-byte key."""

    def __init__(self, key: bytes) -> None:
        words = _words(key)
        self.mul0, self.mul1 = list(_MUL0), list(_MUL1)
        self.v0 = [m ^ k for m, k in zip(_MUL0, words, strict=True)]
        self.v1 = [m ^ _left(k, 32) for m, k in zip(_MUL1, words, strict=True)]

    def update(self, packet: list[int]) -> None:
        """Absorb a packet of four words."""
        for i in range(4):
            self.v1[i] = (self.v1[i] + self.mul0[i] + packet[i]) & _64
            self.mul0[i] ^= (self.v1[i] & _32) * (self.v0[i] >> 32)
            self.v0[i] = (self.v0[i] + self.mul1[i]) & _64
            self.mul1[i] ^= (self.v0[i] & _32) * (self.v1[i] >> 32)
        self.v0 = [(x + y) & _64 for x, y in zip(self.v0, _zipper_merge(self.v1), strict=True)]
        self.v1 = [(x + y) & _64 for x, y in zip(self.v1, _zipper_merge(self.v0), strict=True)]

    def finish(self) -> bytes:
        """Run ten more rounds on the state itself, and reduce its 1,024 bits to 256."""
        for _ in range(10):
            self.update([_left(self.v0[i], 32) for i in (2, 3, 0, 1)])
        halves = []
        for i in (0, 2):
            a0, a1 = (self.v0[j] + self.mul0[j] & _64 for j in (i, i + 1))
            a2, a3 = (self.v1[j] + self.mul1[j] & _64 for j in (i, i + 1))
            high = (a3 & _64 >> 2) << 64 | a2
            halves.append(((a1 << 64 | a0) ^ high << 1 ^ high << 2) & (1 << 128) - 1)
        return b"".join(half.to_bytes(16, "little") for half in halves)


def highwayhash(key: bytes, message: bytes) -> bytes:
    """Compute HighwayHash-256 of a message of whole packets."""
    state = HighwayHash(key)
    for i in range(0, len(message), 32):
        state.update(_words(message[i : i + 32]))
    return state.finish()


def _zipper_merge(v: list[int]) -> list[int]:
    data = b"".join(word.to_bytes(8, "little") for word in v)
    return _words(bytes(data[half + i] for half in (0, 16) for i in _ZIPPER))


def _words(data: bytes) -> list[int]:
    return [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]


def _left(x: int, bits: int) -> int:
    return (x << bits | x >> (64 - bits)) & _64
