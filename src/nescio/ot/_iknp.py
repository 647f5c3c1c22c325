"""IKNP: a few thousand correlated transfers from 128 base transfers, the seeds of silent OT.

The sender has delta and gets r; the receiver gets random choices x and t, with r[i] ^ t[i] equal
to x[i] delta. Delta's lowest bit is one, so the lowest bits can be set as silent OT needs them:
those of r are zero, and those of t are the choices.

Protocol: Ishai, Kilian, Nissim and Petrank, "Extending Oblivious Transfers Efficiently" (CRYPTO
2003), section 3, with delta fixed (correlated transfers). The *sender* chooses among the keys of
128 base transfers by delta's bits; each key expands to a column with one bit per row:

    receiver -> sender   u_j = G(k_j0) ^ G(k_j1) ^ x               for each column j < 128
    receiver has         t_j = G(k_j0)
    sender has           q_j = G(k_jd) ^ d u_j = t_j ^ d x         d = bit j of delta

A malicious receiver can use different x in different columns. With `malicious`, 128 rows are added
in front, and the parties run the check of Roy, "SoftSpokenOT" (CRYPTO 2022), for the repetition
code: a linear universal hash h of each column, whose key chi the sender draws after it has all u_j.

    sender   -> receiver   chi, an element of GF(2^128)
    receiver -> sender     h(x), and h(t_j) for each column j
    sender refuses unless  h(q_j) = h(t_j) ^ d h(x)                for each column j

h(v) = v_0 + v_1 chi + v_2 chi^2 + ... over the blocks of 128 rows.

- *Sound*: let column j be made with x_j. It passes for both values of d only if h(t_j) is right and
  h(x_j) is the h(x) that was sent; otherwise for one value at most. Different x_j and x_k of B + 1
  blocks have the same hash for at most B of the 2^128 chi. So all columns but g have one x, and a
  receiver passes if it guesses g bits of delta: with probability 2^-g, plus 128^2 B 2^-129 for a
  collision. It then knows those g bits, which correlated transfers allow; the others stay secret.
- *Private*: the first block has coefficient one and is dropped afterwards, so h(x) is uniform for
  every chi, and the sender can compute h(t_j) = h(q_j) + d h(x) itself.

Keller, Orsini and Scholl (CRYPTO 2015) send one hash over all columns, the sum of t_i chi_i. Less
is known about its security: Roy found an error in their proof (the lemma about which delta pass is
false). A hash for each column costs 2 KB more and does not need that lemma.

After a ConsistencyError, never use that delta again: the failed check told the receiver something
about it. Outputs are endemic, like those of the base transfers.
"""

import hashlib
import hmac
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from .. import _core
from .._arrays import Array, ByteArray, as_count
from ..errors import ConsistencyError
from ..net import Channel
from ._blocks import as_delta, wipe
from ._randomness import Randomness

__all__ = ["MAX_SEEDS", "seed_receiver", "seed_sender"]

MAX_SEEDS = 1 << 16

COLUMNS_KIND, CHALLENGE_KIND, PROOF_KIND = "OTSU", "OTSC", "OTSP"
COLUMNS = 128
BLOCK_BYTES = 16
MASK_ROWS = 128

_COLUMN_TAG = b"Nescio seeds 2: column"
_MODULUS = 1 << 128 | 0x87  # x^128 + x^7 + x^2 + x + 1

BlockArray = npt.NDArray[np.uint64]


def seed_sender(
    channel: Channel,
    delta: Array,
    count: int,
    randomness: Randomness,
    malicious: bool,
    *,
    session: bytes,
    threads: int = 1,
    idle: Callable[[], None] | None = None,
) -> BlockArray:
    """Runs the side with delta: r, uint64 of shape (count, 2), lowest bits zero.

    `delta` is uint64 of shape (2,), low half first, its lowest bit one. `randomness` gives the
    coins of the base transfers and chi. `session` is a public string of this session alone, hashed
    from nonces of both parties. `idle` is called before the longest wait. Raises
    ArgumentError for an invalid delta or count, MalformedMessageError for points outside the group
    and, if `malicious`, ConsistencyError for a receiver whose columns have different choices;
    channel errors pass through.
    """
    from ._base_ot import receive_base  # noqa: PLC0415 - needs PyNaCl, which devices do not

    rows = _rows(count, malicious)
    with _wiping() as secrets:
        secrets += [bits := _delta_bits(delta)]
        secrets += [keys := receive_base(channel, bits, randomness, threads=threads)]
        if idle is not None:
            idle()
        sent = _as_bytes(channel.receive(COLUMNS_KIND, COLUMNS * rows // 8)).reshape(COLUMNS, -1)
        secrets += [columns := _columns(keys, rows, session)]
        columns ^= sent & (0 - bits)[:, None]
        if malicious:
            _check(channel, columns, bits, randomness)
        blocks = _transpose(columns[:, MASK_ROWS // 8 * malicious :])[:count]
    blocks[:, 0] &= np.uint64(0xFFFF_FFFF_FFFF_FFFE)
    return blocks


@contextmanager
def _wiping() -> Iterator[list[ByteArray]]:
    """Wipes the arrays of a list at its end, also after an error."""
    secrets: list[ByteArray] = []
    try:
        yield secrets
    finally:
        wipe(*secrets)


def seed_receiver(
    channel: Channel,
    count: int,
    randomness: Randomness,
    malicious: bool,
    *,
    session: bytes,
    threads: int = 1,
    idle: Callable[[], None] | None = None,
) -> tuple[ByteArray, BlockArray]:
    """Runs the other side: choices, uint8 of shape (count,), and t, uint64 of shape (count, 2).

    The choices are drawn from `randomness`; t's lowest bits are the choices. Raises ArgumentError
    for an invalid count, MalformedMessageError for a point outside the group; channel errors pass
    through.
    """
    from ._base_ot import send_base  # noqa: PLC0415 - needs PyNaCl, which devices do not

    rows, masks = _rows(count, malicious), MASK_ROWS // 8 * malicious
    with _wiping() as secrets:
        keys = send_base(channel, COLUMNS, randomness, threads=threads, idle=idle)
        secrets += [keys, columns := _columns(keys[:, 0], rows, session)]
        secrets += [others := _columns(keys[:, 1], rows, session)]
        choices = _as_bytes(randomness.draw(rows // 8))
        others ^= columns
        others ^= choices
        channel.send(COLUMNS_KIND, others.tobytes())
        if malicious:
            _prove(channel, columns, choices)
        bits = _bits(choices[masks:])[:count]
        blocks = _transpose(columns[:, masks:])[:count]
    blocks[:, 0] = (blocks[:, 0] & np.uint64(0xFFFF_FFFF_FFFF_FFFE)) | bits
    return bits, blocks


def _check(channel: Channel, columns: ByteArray, bits: ByteArray, randomness: Randomness) -> None:
    """Runs the sender's side of the check. `columns` are q_j, `bits` are delta's."""
    challenge = randomness.draw(BLOCK_BYTES)
    channel.send(CHALLENGE_KIND, challenge)
    proof = _as_bytes(channel.receive(PROOF_KIND, BLOCK_BYTES * (1 + COLUMNS)))
    choices, claimed = proof[:BLOCK_BYTES], proof[BLOCK_BYTES:].reshape(COLUMNS, BLOCK_BYTES)
    expected = claimed ^ (choices & (0 - bits)[:, None])
    found = _hash(columns, challenge)
    if not hmac.compare_digest(found.tobytes(), expected.tobytes()):
        raise ConsistencyError(
            "the IKNP check failed: found columns with different choices, expected the same "
            f"choices in all {COLUMNS}; the receiver does not follow the protocol, so end the "
            "session and never use its delta again"
        )


def _prove(channel: Channel, columns: ByteArray, choices: ByteArray) -> None:
    """Runs the receiver's side of the check. `columns` are t_j."""
    challenge = bytes(channel.receive(CHALLENGE_KIND, BLOCK_BYTES))
    hashes = _hash(np.concatenate((choices[None], columns)), challenge)
    channel.send(PROOF_KIND, hashes.tobytes())


def _hash(vectors: ByteArray, challenge: bytes) -> ByteArray:
    """Hashes each row of `vectors`, which has packed bits: uint8 of shape (vectors, 16)."""
    table = _multiples(challenge)
    padding = -vectors.shape[1] % BLOCK_BYTES
    blocks = np.pad(vectors, ((0, 0), (0, padding))).view("<u8").astype(np.uint64)
    total = np.zeros((len(vectors), 2), np.uint64)
    for begin in reversed(range(0, blocks.shape[1], 2)):
        total = _multiplied(total, table) ^ blocks[:, begin : begin + 2]
    return total.astype("<u8").view(np.uint8)


def _multiplied(blocks: BlockArray, table: BlockArray) -> BlockArray:
    """Multiplies each block by chi: the sum of chi x^i over its bits i, all of them masked."""
    packed = blocks.astype("<u8").view(np.uint8)
    masks = 0 - _bits(packed).astype(np.uint64)
    halves = [np.bitwise_xor.reduce(masks & table[:, half], axis=1) for half in range(2)]
    return np.stack(halves, axis=1)


def _multiples(challenge: bytes) -> BlockArray:
    """Computes chi x^i in GF(2^128) for i < 128, all public: uint64 of shape (128, 2)."""
    power = int.from_bytes(challenge, "little")
    packed = bytearray()
    for _ in range(8 * BLOCK_BYTES):
        packed += power.to_bytes(BLOCK_BYTES, "little")
        power = (power << 1) ^ (power >> 127) * _MODULUS
    return np.frombuffer(packed, "<u8").reshape(-1, 2).astype(np.uint64)


def _columns(keys: ByteArray, rows: int, session: bytes) -> ByteArray:
    """Expands each column's key by G, SHAKE-128 (FIPS 202): uint8 of shape (128, rows / 8).

    A malicious sender can choose chi so that h(x) shows it 128 bits of a column that it must not
    know. The session is part of G's input, so a search for the key tests one session.
    """
    stretched = bytearray()
    for column, key in enumerate(keys):
        label = _COLUMN_TAG + session + struct.pack("<I", column)
        stream = hashlib.shake_128(label + key.tobytes())
        stretched += stream.digest(rows // 8)
    return np.frombuffer(stretched, np.uint8).reshape(COLUMNS, rows // 8)


def _transpose(columns: ByteArray) -> BlockArray:
    """Transposes columns of packed bits: bit i of column j becomes bit j of block i."""
    return _core.transpose_bits(np.ascontiguousarray(columns))


def _bits(packed: ByteArray) -> ByteArray:
    """Unpacks the bits of bytes, lowest first, along the last axis.

    It shifts and masks, because `numpy.unpackbits` looks bytes up in a table and they are secret.
    """
    bits: ByteArray = packed[..., np.newaxis] >> np.arange(8, dtype=np.uint8) & np.uint8(1)
    return bits.reshape(*packed.shape[:-1], -1)


def _rows(count: int, malicious: bool) -> int:
    """Counts the rows made for `count`: whole bytes of each column, plus those of the check."""
    rows = -(-as_count(count, "count", 1, MAX_SEEDS) // 8) * 8
    return rows + MASK_ROWS if malicious else rows


def _delta_bits(delta: Array) -> ByteArray:
    own = as_delta(delta)
    bits = _bits(own.astype("<u8", copy=False).view(np.uint8))
    wipe(own)
    return bits


def _as_bytes(data: bytes | bytearray) -> ByteArray:
    return np.frombuffer(data, np.uint8)
