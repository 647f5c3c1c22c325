"""Correlated transfers from base transfers in plain Python: the specification of `nescio.ot._iknp`.

Ishai, Kilian, Nissim and Petrank (CRYPTO 2003) with the check of Roy, "SoftSpokenOT" (CRYPTO 2022),
for the repetition code. A column is a list of bits, one for each row; a block an integer of 128
bits, bit j of which belongs to column j.
"""

import hashlib

COLUMNS = 128
MASK_ROWS = 128


def rows_for(count: int, malicious: bool) -> int:
    """Return the number of rows: whole bytes, and another block for the check."""
    return (count + 7) // 8 * 8 + (MASK_ROWS if malicious else 0)


def bits(data: bytes) -> list[int]:
    """Return the bits of each byte, lowest first."""
    return [byte >> i & 1 for byte in data for i in range(8)]


def pack(column: list[int]) -> bytes:
    """Pack bits into bytes."""
    number = sum(bit << i for i, bit in enumerate(column))
    return number.to_bytes(len(column) // 8, "little")


def column(j: int, key: bytes, rows: int, session: bytes = b"") -> list[int]:
    """Expand the key of a base transfer to a column; `session` is of this session alone."""
    message = b"Nescio seeds 2: column" + session + j.to_bytes(4, "little") + key
    return bits(hashlib.shake_128(message).digest(rows // 8))


def multiply(a: int, b: int) -> int:
    """Multiply in GF(2^128), modulo x^128 + x^7 + x^2 + x + 1."""
    product = 0
    for i in range(128):
        if b >> i & 1:
            product ^= a << i
    for i in reversed(range(128, 256)):
        if product >> i & 1:
            product ^= (1 << 128 | 0x87) << (i - 128)
    return product


def column_hash(vector: list[int], chi: int) -> int:
    """Return the sum of block_b chi^b over the blocks of 128 bits."""
    result = 0
    for begin in reversed(range(0, len(vector), 128)):
        block = sum(bit << i for i, bit in enumerate(vector[begin : begin + 128]))
        result = multiply(result, chi) ^ block
    return result


class Receiver:
    """The receiver, which has choices and both keys of each base transfer."""

    def __init__(self, keys: list[list[bytes]], choices: bytes, rows: int) -> None:
        self.x = bits(choices)
        self.t = [column(j, pair[0], rows) for j, pair in enumerate(keys)]
        self.others = [column(j, pair[1], rows) for j, pair in enumerate(keys)]

    def columns(self) -> bytes:
        """Return the corrections for the sender's columns."""
        return b"".join(
            pack([a ^ b ^ c for a, b, c in zip(t, other, self.x, strict=True)])
            for t, other in zip(self.t, self.others, strict=True)
        )

    def proof(self, challenge: bytes) -> bytes:
        """Return the answer to a challenge."""
        chi = int.from_bytes(challenge, "little")
        hashes = [column_hash(vector, chi) for vector in (self.x, *self.t)]
        return b"".join(value.to_bytes(16, "little") for value in hashes)

    def output(self, count: int, malicious: bool) -> tuple[list[int], list[int]]:
        """Return the choices, and t with the choices as lowest bits."""
        skip = MASK_ROWS if malicious else 0
        x = self.x[skip : skip + count]
        t = blocks(self.t, skip, count)
        return x, [block & ~1 | bit for block, bit in zip(t, x, strict=True)]


class Sender:
    """The sender, which has delta, its keys of the base transfers and the receiver's columns."""

    def __init__(self, keys: list[bytes], delta: int, columns: bytes, rows: int) -> None:
        self.delta = delta
        self.q = []
        for j, key in enumerate(keys):
            sent = bits(columns[j * rows // 8 : (j + 1) * rows // 8])
            d = delta >> j & 1
            self.q.append([a ^ d * b for a, b in zip(column(j, key, rows), sent, strict=True)])

    def accepts(self, challenge: bytes, proof: bytes) -> bool:
        """Verify the receiver's proof."""
        chi = int.from_bytes(challenge, "little")
        x, *t = (int.from_bytes(proof[i : i + 16], "little") for i in range(0, len(proof), 16))
        return all(
            column_hash(q, chi) == t[j] ^ (self.delta >> j & 1) * x for j, q in enumerate(self.q)
        )

    def output(self, count: int, malicious: bool) -> list[int]:
        """Return the blocks r, with lowest bits zero."""
        return [b & ~1 for b in blocks(self.q, MASK_ROWS if malicious else 0, count)]


def blocks(columns: list[list[int]], skip: int, count: int) -> list[int]:
    """Return rows skip to skip + count - 1 as blocks."""
    return [
        sum(values[i] << j for j, values in enumerate(columns)) for i in range(skip, skip + count)
    ]
