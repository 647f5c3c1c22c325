"""Base oblivious transfers from elliptic curves, from which every session starts.

For each transfer the sender gets two random keys, and the receiver gets the key that it chose.

Protocol: Masny and Rindal, "Endemic Oblivious Transfer" (CCS 2019), from Diffie-Hellman, with
libsodium's operations on the prime-order subgroup of edwards25519 (base point G). For each i, with
choice c and H(b, P) a hash of session, i, b and P to the subgroup:

    sender    -> receiver   nonce, A = a G                      one A for all transfers of a session
    receiver  -> sender     nonce, r_0, r_1 for each i          r_{1-c} = u G,
                                                                r_c = k G - H(c, r_{1-c})
    sender's keys           KDF(b, a (r_b + H(b, r_{1-b})))     b = 0, 1
    receiver's key          KDF(c, k A)

Both points are uniform in the subgroup for either choice, so any sender, even a malicious one,
learns nothing of the choice. The later of the two hashes fixes one of the two points
r_b + H(b, r_{1-b}) to a value whose logarithm nobody knows, so any receiver, even a malicious one,
gets one key.

*Security*: against malicious parties, in the random-oracle model, if the gap Diffie-Hellman problem
is hard in the subgroup. The transfers are endemic: a malicious party may bias or choose its own
outputs (the receiver its one key, the sender both) but cannot learn the other party's.

*Batches*: McQuoid, Rosulek and Roy, "Batching Base Oblivious Transfers" (Asiacrypt 2021), show an
attack on batches that repeat one instance: a receiver that sends the same points twice gets related
keys, which break an extension. Here both hashes take the session and the transfer's index, so two
transfers use independent random oracles. Only the sender's message is shared, which the paper
allows: A is a Diffie-Hellman share and may be combined with any number of other shares. A session's
identifier hashes a fresh nonce from each party, A and the count, so two sessions use independent
oracles too.
"""

import contextlib
import hashlib
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import NoReturn

import numpy as np

from .._arrays import Array, ByteArray, as_array, as_count
from ..errors import ArgumentError, MalformedMessageError, ResourceError
from ..net import Channel
from ._randomness import Randomness

try:
    from nacl import bindings as sodium
    from nacl.exceptions import CryptoError
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "nescio.ot needs PyNaCl: pip install 'nescio[ot]'", name=error.name
    ) from error

__all__ = ["KEY_BYTES", "MAX_TRANSFERS", "receive_base", "send_base"]

KEY_BYTES = 16
MAX_TRANSFERS = 1 << 16

SENDER_KIND, RECEIVER_KIND = "OTBS", "OTBR"
NONCE_BYTES = 16
POINT_BYTES = 32
_PAIR_BYTES = 2 * POINT_BYTES
_WIDE_SCALAR_BYTES = 64
_FRAME = 32  # transfers in a frame of the receiver

_SESSION_TAG = b"Nescio base OT 1: session"
_CURVE_TAG = b"Nescio base OT 1: hash to curve"
_KEY_TAG = b"Nescio base OT 1: key"

_LABEL = struct.Struct("<IB")  # index, branch

_FIELD = (1 << 255) - 19
_Y_MASK = (1 << 255) - 1
_ORDER_TWO = bytes([0xEC]) + bytes([0xFF] * 30) + bytes([0x7F])  # the point (0, -1)
_BASE_POINT = bytes([0x58]) + bytes([0x66] * 31)


def send_base(
    channel: Channel,
    count: int,
    randomness: Randomness,
    *,
    threads: int = 1,
    idle: Callable[[], None] | None = None,
) -> ByteArray:
    """Runs the sender's side of `count` transfers: two keys each, uint8 of shape (count, 2, 16).

    Sends 48 bytes, then receives 16 + 64 count, in frames of up to 32 transfers: both parties
    compute at the same time. `threads` divide the transfers, because libsodium releases the
    interpreter's lock. `idle` is called before the first wait. Raises ArgumentError for an invalid
    count, MalformedMessageError for a point outside the prime-order subgroup, ResourceError for a
    libsodium that does not check points; channel errors pass through.
    """
    as_count(count, "count", 1, MAX_TRANSFERS)
    _require_point_checks()
    nonce, secret = randomness.draw(NONCE_BYTES), _scalar(randomness.draw(_WIDE_SCALAR_BYTES))
    share = sodium.crypto_scalarmult_ed25519_base_noclamp(secret)
    channel.send(SENDER_KIND, nonce + share)
    if idle is not None:
        idle()
    keys, session = bytearray(), b""
    for part in _frames(count):
        head = NONCE_BYTES * (part.start == 0)
        reply = bytes(channel.receive(RECEIVER_KIND, head + _PAIR_BYTES * len(part)))
        session = session or _session(count, nonce, reply[:head], share)
        pairs = np.frombuffer(reply, np.uint8, offset=head).reshape(len(part), _PAIR_BYTES)
        work = partial(_sender_keys, session, secret, part.start, pairs)
        keys += b"".join(_each(work, len(part), threads))
    return np.frombuffer(keys, np.uint8).reshape(count, 2, KEY_BYTES)


def receive_base(
    channel: Channel, choices: Array, randomness: Randomness, *, threads: int = 1
) -> ByteArray:
    """Runs the receiver's side: the chosen key of each transfer, uint8 of shape (count, 16).

    `choices` is of shape (count,), bool or uint8 of zeros and ones. Receives 48 bytes, then sends
    16 + 64 count. No branch and no index depends on a choice. Raises ArgumentError for other
    choices, MalformedMessageError for a point outside the prime-order subgroup, ResourceError for
    a libsodium that does not check points; channel errors pass through.
    """
    bits = as_bits(choices, "choices")
    count = as_count(len(bits), "the number of choices", 1, MAX_TRANSFERS)
    _require_point_checks()
    hello = bytes(channel.receive(SENDER_KIND, NONCE_BYTES + POINT_BYTES))
    share = _checked_point(hello[NONCE_BYTES:], "the sender's point")
    nonce = randomness.draw(NONCE_BYTES)
    session = _session(count, hello[:NONCE_BYTES], nonce, share)
    labels = _labels(bits)
    secrets: list[bytes] = []
    pairs: ByteArray = np.empty((count, _PAIR_BYTES), np.uint8)
    for part in _frames(count):
        frame = slice(part.start, part.stop)
        scalars = [_scalars(randomness) for _ in part]
        secrets += [secret for secret, _ in scalars]
        points = _receiver_points(session, labels[frame], scalars, threads)
        own, other = points[:, 0], points[:, 1]
        swap = (own ^ other) & (0 - bits[frame])[:, None]
        pairs[frame] = np.concatenate((own ^ swap, other ^ swap), axis=1)
        head = nonce if part.start == 0 else b""
        channel.send(RECEIVER_KIND, head + pairs[frame].tobytes())

    def key_of(index: int) -> bytes:
        shared = sodium.crypto_scalarmult_ed25519_noclamp(secrets[index], share)
        return _key(session, labels[index], pairs[index].tobytes(), shared)

    keys = bytearray().join(_each(key_of, count, threads))
    return np.frombuffer(keys, np.uint8).reshape(count, KEY_BYTES)


def _frames(count: int) -> list[range]:
    """Divides the transfers into those of each frame."""
    return [range(i, min(i + _FRAME, count)) for i in range(0, count, _FRAME)]


def _each(work: Callable[[int], bytes], count: int, threads: int) -> list[bytes]:
    """Returns the results of `work` for 0 to count - 1, in order."""
    if threads == 1:
        return [work(index) for index in range(count)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, range(count)))


def as_bits(value: object, what: str) -> ByteArray:
    """Returns secret bits as uint8 of shape (n,). Raises ArgumentError unless all are 0 or 1."""
    array = as_array(value, what)
    if array.ndim != 1 or array.dtype not in (np.dtype(bool), np.dtype(np.uint8)):
        raise ArgumentError(
            f"{what}: found {array.dtype} of shape {array.shape}, expected bool or uint8 of "
            "shape (n,)"
        )
    bits = np.ascontiguousarray(array).view(np.uint8)
    if np.bitwise_or.reduce(bits, initial=0) > 1:
        raise ArgumentError(f"{what}: found values other than 0 and 1")
    return bits


def _scalars(randomness: Randomness) -> tuple[bytes, bytes]:
    """Draws the secrets of a transfer: k, and the logarithm of the uniform point r_{1-c}."""
    coins = randomness.draw(2 * _WIDE_SCALAR_BYTES)
    return _scalar(coins[:_WIDE_SCALAR_BYTES]), _scalar(coins[_WIDE_SCALAR_BYTES:])


def _receiver_points(
    session: bytes, labels: list[bytes], scalars: list[tuple[bytes, bytes]], threads: int
) -> ByteArray:
    """Computes r_c and r_{1-c} of each transfer: uint8 of shape (transfers, 2, 32)."""

    def points_of(index: int) -> bytes:
        point, free = map(sodium.crypto_scalarmult_ed25519_base_noclamp, scalars[index])
        hashed = _hash_to_curve(session, labels[index], free)
        return bytes(sodium.crypto_core_ed25519_sub(point, hashed) + free)

    raw = bytearray().join(_each(points_of, len(labels), threads))
    return np.frombuffer(raw, np.uint8).reshape(len(labels), 2, POINT_BYTES)


def _sender_keys(session: bytes, secret: bytes, first: int, pairs: ByteArray, place: int) -> bytes:
    """Computes both keys of transfer `first` + `place`, concatenated; `pairs` starts at `first`.

    A point r_b is in the subgroup if and only if r_b + H(b, r_{1-b}) is, because H maps to the
    subgroup. The multiplication of the sum checks that, so it is not checked twice.
    """
    index, pair = first + place, pairs[place].tobytes()
    points = [pair[:POINT_BYTES], pair[POINT_BYTES:]]
    if not all(map(_is_canonical, points)):
        _refuse_points(points, index)
    keys = b""
    for branch in range(2):
        label = _LABEL.pack(index, branch)
        hashed = _hash_to_curve(session, label, points[1 - branch])
        try:
            public = sodium.crypto_core_ed25519_add(points[branch], hashed)
            shared = sodium.crypto_scalarmult_ed25519_noclamp(secret, public)
        except CryptoError:
            _refuse_points(points, index)
        keys += _key(session, label, pair, shared)
    return keys


def _is_canonical(point: bytes) -> bool:
    """Tests for the one encoding of a y coordinate, and that it is not the identity's, y = 1."""
    return 1 < int.from_bytes(point, "little") & _Y_MASK < _FIELD


def _refuse_points(points: list[bytes], index: int) -> NoReturn:
    """Raises MalformedMessageError: for a point outside the subgroup, or for the points' sum."""
    for branch, point in enumerate(points):
        _checked_point(point, f"point {branch} of transfer {index}")
    raise MalformedMessageError(
        f"transfer {index}: found points whose sum in a branch is the identity, expected any other "
        "point; the receiver does not follow the protocol"
    )


def _labels(bits: ByteArray) -> list[bytes]:
    """Packs each transfer's index and branch for the hashes, in the format _LABEL.

    It slices an array, because Python caches one object for every integer and every byte up to 255:
    an object made from a choice would be a look-up at a secret address.
    """
    labels = np.empty((len(bits), _LABEL.size), np.uint8)
    labels[:, :-1] = np.arange(len(bits), dtype="<u4").view(np.uint8).reshape(-1, 4)
    labels[:, -1] = bits
    return [label.tobytes() for label in labels]


def _session(count: int, sender_nonce: bytes, receiver_nonce: bytes, share: bytes) -> bytes:
    """Hashes the session's identifier, 32 bytes, unique for a party that draws its own nonce."""
    fields = struct.pack("<I", count) + sender_nonce + receiver_nonce + share
    return hashlib.sha256(_SESSION_TAG + fields).digest()


def _hash_to_curve(session: bytes, label: bytes, point: bytes) -> bytes:
    """Hashes to the prime-order subgroup, as a random oracle.

    The sum of two images of Elligator 2 under independent uniform strings is indifferentiable from
    uniform (Brier et al., CRYPTO 2010; RFC 9380, section 10.1). `from_uniform` is Elligator 2
    followed by a multiplication by the cofactor, so the result is in the subgroup.
    """
    digest = hashlib.sha512(_CURVE_TAG + session + label + point).digest()
    return sodium.crypto_core_ed25519_add(
        sodium.crypto_core_ed25519_from_uniform(digest[:POINT_BYTES]),
        sodium.crypto_core_ed25519_from_uniform(digest[POINT_BYTES:]),
    )


def _key(session: bytes, label: bytes, pair: bytes, shared: bytes) -> bytes:
    return hashlib.sha256(_KEY_TAG + session + label + pair + shared).digest()[:KEY_BYTES]


def _scalar(coins: bytes) -> bytes:
    """Reduces 64 uniform bytes to a scalar, within 2^-259 of uniform modulo the order."""
    return sodium.crypto_core_ed25519_scalar_reduce(coins)


def _checked_point(point: bytes, what: str) -> bytes:
    """Returns the point. Raises MalformedMessageError if it is not in the subgroup."""
    if not sodium.crypto_core_ed25519_is_valid_point(point):
        raise MalformedMessageError(
            f"{what}: found {point.hex()}, expected the canonical encoding of a point of the "
            "prime-order subgroup of edwards25519 other than the identity"
        )
    return point


@lru_cache(maxsize=1)
def _require_point_checks() -> None:
    """Raises ResourceError unless libsodium has the needed operations and checks points fully.

    Before December 2025 libsodium accepted the sum of a valid point and (0, -1) as a point of the
    subgroup (CVE-2025-69277). PyNaCl 1.6.2 includes the fixed libsodium, but may be built with the
    system's instead.
    """
    if not (sodium.has_crypto_core_ed25519 and sodium.has_crypto_scalarmult_ed25519):
        raise ResourceError(
            "this libsodium was built without the operations of edwards25519; install PyNaCl with "
            "its own libsodium: pip install --force-reinstall 'PyNaCl>=1.6.2'"
        )
    mixed = sodium.crypto_core_ed25519_add(_BASE_POINT, _ORDER_TWO)
    if sodium.crypto_core_ed25519_is_valid_point(mixed) or _multiplies(mixed):
        raise ResourceError(
            "this libsodium accepts points outside the prime-order subgroup (CVE-2025-69277): "
            "pip install 'PyNaCl>=1.6.2'"
        )


def _multiplies(point: bytes) -> bool:
    """Tests that libsodium multiplies a point, which it must refuse outside the subgroup."""
    with contextlib.suppress(CryptoError):
        sodium.crypto_scalarmult_ed25519_noclamp(bytes([1]) + bytes(31), point)
        return True
    return False
