"""Private lookups in plain Python: the executable specification of `nescio.pir` and its messages.

A table is a list of rows of bytes. Its public parameters are a JSON object. A message is a header
of 32 bytes and records of equal length. See docs/wire-format.md.
"""

import hashlib
import json
import struct
from typing import Any

from . import dpf

HEADER = struct.Struct("<2sBBIQ16s")

Params = dict[str, Any]


def params(
    rows: list[bytes], shape: list[int], dtype: str, output: str, generator: str, version: str
) -> Params:
    """Return the public parameters of a table."""
    return {
        "format": 1,
        "rows": len(rows),
        "row_shape": shape,
        "dtype": dtype,
        "output": output,
        "generator": generator,
        "version": version,
        "digest": digest(rows),
    }


def digest(rows: list[bytes]) -> str:
    """Hash runs of 4,096 rows, then hash the concatenated hashes."""
    runs = [b"".join(rows[i : i + 4096]) for i in range(0, len(rows), 4096)]
    hashes = b"".join(hashlib.sha256(run).digest() for run in runs)
    return hashlib.sha256(hashes).hexdigest()


def canonical_json(parameters: Params) -> str:
    """Serialize with sorted names, without spaces, in ASCII."""
    return json.dumps(parameters, sort_keys=True, separators=(",", ":"))


def params_id(parameters: Params) -> bytes:
    """Return the identifier that binds messages to a table."""
    return hashlib.sha256(canonical_json(parameters).encode()).digest()[:16]


def message(magic: bytes, parameters: Params, party: int, records: list[bytes]) -> bytes:
    """Build a query or an answer."""
    length = len(records[0])
    header = HEADER.pack(magic, 1, party, len(records), length, params_id(parameters))
    return header + b"".join(records)


def queries(
    parameters: Params, indices: list[int], roots: list[tuple[bytes, bytes]]
) -> tuple[bytes, bytes]:
    """Build the queries for both parties."""
    shape = dpf.Shape(parameters["rows"], parameters["output"], parameters["generator"])
    pairs = [dpf.generate(shape, i, 1, root) for i, root in zip(indices, roots, strict=True)]
    keys = [[dpf.serialize(pair[party]) for pair in pairs] for party in (0, 1)]
    return message(b"NQ", parameters, 0, keys[0]), message(b"NQ", parameters, 1, keys[1])


def elements(row: bytes, output: str) -> list[int]:
    """Convert a row to a vector of output elements: bytes, or zero-padded little-endian words."""
    size = max(8, dpf.OUTPUT_BITS[output]) // 8
    padded = row + bytes(-len(row) % size)
    return [int.from_bytes(padded[i : i + size], "little") for i in range(0, len(padded), size)]


def answer_key(parameters: Params, rows: list[bytes], key: dpf.Key) -> bytes:
    """Multiply the share vector of one key by the table."""
    output = parameters["output"]
    size = max(8, dpf.OUTPUT_BITS[output]) // 8
    total = [0] * len(elements(rows[0], output))
    for share, row in zip(dpf.evaluate_all(key), rows, strict=True):
        for i, element in enumerate(elements(row, output)):
            if output == "bit":
                total[i] ^= share * element
            else:
                total[i] = (total[i] + share * element) % (1 << 8 * size)
    return b"".join(value.to_bytes(size, "little") for value in total)


def answer(parameters: Params, rows: list[bytes], query: bytes) -> bytes:
    """Return one party's answer to its query."""
    _, _, party, count, length, _ = HEADER.unpack_from(query)
    keys = [dpf.parse(query[32 + i * length : 32 + (i + 1) * length]) for i in range(count)]
    return message(b"NA", parameters, party, [answer_key(parameters, rows, key) for key in keys])


def decode(parameters: Params, answer0: bytes, answer1: bytes) -> list[bytes]:
    """Return the rows that the client queried."""
    output = parameters["output"]
    size = max(8, dpf.OUTPUT_BITS[output]) // 8
    _, _, _, count, length, _ = HEADER.unpack_from(answer0)
    row_bytes = length  # true for the tables of the vectors, whose rows are whole elements
    rows = []
    for i in range(32, 32 + count * length, length):
        vectors = [elements(a[i : i + length], output) for a in (answer0, answer1)]
        values = [
            a ^ b if output == "bit" else (a + b) % (1 << 8 * size)
            for a, b in zip(*vectors, strict=True)
        ]
        rows.append(b"".join(v.to_bytes(size, "little") for v in values)[:row_bytes])
    return rows
