"""Base oblivious transfers in plain Python: the executable specification of `nescio.ot._base_ot`.

The group is edwards25519 of RFC 8032, section 5.1, with points as (X, Y, Z, T) of section 5.1.4.
The map to the curve is Elligator 2 (Bernstein, Hamburg, Krasnova and Lange, CCS 2013) as in
libsodium: bits 0 to 254 of the string are the field element, bit 255 is the sign of x, and the
result is multiplied by the cofactor. The protocol is that of Masny and Rindal (CCS 2019).
"""

import hashlib
import itertools

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # of -1
MONTGOMERY_A = 486662

Point = tuple[int, int, int, int]

IDENTITY: Point = (0, 1, 1, 0)


# ---- The curve -----------------------------------------------------------------------------------


def affine(x: int, y: int) -> Point:
    """Return the point with the given coordinates."""
    return x, y, 1, x * y % P


def add(p: Point, q: Point) -> Point:
    """Add two points, RFC 8032 section 5.1.4."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def negate(p: Point) -> Point:
    """Return the inverse of a point."""
    return -p[0] % P, p[1], p[2], -p[3] % P


def multiply(scalar: int, p: Point) -> Point:
    """Multiply the point by `scalar`."""
    result = IDENTITY
    for bit in f"{scalar:b}":
        result = add(result, result)
        if bit == "1":
            result = add(result, p)
    return result


def square_root(square: int) -> int | None:
    """Return a square root modulo p or None, section 5.1.3."""
    root = pow(square, (P + 3) // 8, P)
    for candidate in (root, root * ROOT % P):
        if candidate * candidate % P == square % P:
            return candidate
    return None


def encode(p: Point) -> bytes:
    """Encode a point in 32 bytes, section 5.1.2: y, with the lowest bit of x as the highest bit."""
    inverse = pow(p[2], -1, P)
    x, y = p[0] * inverse % P, p[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def decode(data: bytes) -> Point | None:
    """Decode a point, section 5.1.3; return None for invalid bytes."""
    number = int.from_bytes(data, "little")
    y, sign = number % 2**255, number >> 255
    x = square_root((y * y - 1) * pow(D * y * y + 1, -1, P))
    if y >= P or x is None or (x == 0 and sign):
        return None
    return affine(P - x if x & 1 != sign else x, y)


BASE = decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def is_valid(data: bytes) -> bool:
    """Check that the bytes encode a point of the prime-order subgroup other than the identity."""
    point = decode(data)
    return (
        point is not None
        and encode(point) != encode(IDENTITY)
        and encode(multiply(L, point)) == encode(IDENTITY)
    )


def from_uniform(data: bytes) -> Point:
    """Map to the Montgomery curve by Elligator 2, then to the Edwards curve; multiply by 8."""
    number = int.from_bytes(data, "little")
    r, sign = number % 2**255, number >> 255
    u = -MONTGOMERY_A * pow(1 + 2 * r * r, -1, P) % P
    v = square_root(u**3 + MONTGOMERY_A * u * u + u)
    if v is None:
        u = (-u - MONTGOMERY_A) % P
        v = square_root(u**3 + MONTGOMERY_A * u * u + u)
    x = square_root(-(MONTGOMERY_A + 2)) * u * pow(v, -1, P) % P if v else 0
    y = (u - 1) * pow(u + 1, -1, P) % P
    return multiply(8, affine(P - x if x & 1 != sign else x, y))


# ---- The protocol --------------------------------------------------------------------------------


def hash_to_curve(session: bytes, index: int, branch: int, point: bytes) -> Point:
    """Evaluate a random oracle into the prime-order subgroup."""
    label = index.to_bytes(4, "little") + bytes([branch])
    digest = hashlib.sha512(b"Nescio base OT 1: hash to curve" + session + label + point).digest()
    return add(from_uniform(digest[:32]), from_uniform(digest[32:]))


def key(session: bytes, index: int, branch: int, points: list[bytes], shared: bytes) -> bytes:
    """Derive a key of 16 bytes."""
    label = index.to_bytes(4, "little") + bytes([branch])
    message = b"Nescio base OT 1: key" + session + label + points[0] + points[1] + shared
    return hashlib.sha256(message).digest()[:16]


def session_name(count: int, sender_nonce: bytes, receiver_nonce: bytes, share: bytes) -> bytes:
    """Derive the session identifier, the prefix of every hash of a session."""
    fields = count.to_bytes(4, "little") + sender_nonce + receiver_nonce + share
    return hashlib.sha256(b"Nescio base OT 1: session" + fields).digest()


def scalar(coins: bytes) -> int:
    """Reduce 64 bytes to a scalar."""
    return int.from_bytes(coins, "little") % L


class Sender:
    """The sender, which gets two keys per transfer. `draw(n)` returns n random bytes."""

    def __init__(self, draw) -> None:
        self.nonce, self.secret = draw(16), scalar(draw(64))
        self.share = encode(multiply(self.secret, BASE))

    def hello(self) -> bytes:
        """Return the sender's only message."""
        return self.nonce + self.share

    def keys(self, count: int, reply: bytes) -> list[list[bytes]]:
        """Return two keys for each transfer."""
        session = session_name(count, self.nonce, reply[:16], self.share)
        keys = []
        for i in range(count):
            points = [reply[16 + 64 * i :][:32], reply[48 + 64 * i :][:32]]
            assert all(is_valid(point) for point in points)
            keys.append([self._key(session, i, branch, points) for branch in (0, 1)])
        return keys

    def _key(self, session: bytes, i: int, branch: int, points: list[bytes]) -> bytes:
        hashed = hash_to_curve(session, i, branch, points[1 - branch])
        public = add(decode(points[branch]), hashed)
        return key(session, i, branch, points, encode(multiply(self.secret, public)))


def frames(reply: bytes) -> list[bytes]:
    """Divide the receiver's reply into frames: the nonce and 32 transfers, then 32 each."""
    ends = [0, *range(16 + 64 * 32, len(reply), 64 * 32), len(reply)]
    return [reply[a:b] for a, b in itertools.pairwise(ends)]


def receive(draw, choices: list[int], hello: bytes) -> tuple[bytes, list[bytes]]:
    """Return the receiver's only message, and its key for each choice."""
    share, nonce = hello[16:], draw(16)
    assert is_valid(share)
    session = session_name(len(choices), hello[:16], nonce, share)
    message, keys = nonce, []
    for i, choice in enumerate(choices):
        secret, free = scalar(draw(64)), encode(multiply(scalar(draw(64)), BASE))
        hashed = hash_to_curve(session, i, choice, free)
        own = encode(add(multiply(secret, BASE), negate(hashed)))
        points = [free, own] if choice else [own, free]
        message += points[0] + points[1]
        shared = encode(multiply(secret, decode(share)))
        keys.append(key(session, i, choice, points, shared))
    return message, keys
