"""Private lookups in plain Python: the executable specification of `nescio.pir` and its messages.

A table is a list of rows of bytes. Rows are joined to records, which lookups get. The public
parameters are a JSON object. Hash tables above the records let a client check what it gets. A
message is a header of 32 bytes and parts of equal length. See docs/wire-format.md.
"""

import hashlib
import json
import struct
from typing import Any

from . import dpf

HEADER = struct.Struct("<2sBBIIB3x16s")
ARITY = 16
MAX_TOPS = 4096

Params = dict[str, Any]


def params(
    rows: list[bytes],
    shape: list[int],
    dtype: str,
    output: str,
    generator: str,
    version: str,
    record_rows: int,
) -> Params:
    """Return the public parameters of a table."""
    records = join(rows, record_rows)
    return {
        "format": 2,
        "rows": len(rows),
        "row_shape": shape,
        "dtype": dtype,
        "output": output,
        "generator": generator,
        "version": version,
        "digest": digest(rows, shape, dtype, record_rows),
        "hashes": {
            "arity": ARITY,
            "levels": levels(len(records)),
            "tops": len(hash_tables(records)[1]),
        },
        "record_rows": record_rows,
    }


def usual_record_rows(row_bytes: int) -> int:
    """Return the rows of a record that Nescio chooses: a power of two, at most 256 bytes if two."""
    count = 1
    while 2 * count * row_bytes <= 256:
        count *= 2
    return count


def join(rows: list[bytes], record_rows: int) -> list[bytes]:
    """Join rows to records; zeros fill the last one."""
    parts = [b"".join(rows[i : i + record_rows]) for i in range(0, len(rows), record_rows)]
    return [part.ljust(record_rows * len(rows[0]), b"\0") for part in parts]


def levels(records: int) -> int:
    """Return the number of hash tables: the fewest with at most MAX_TOPS hashes above them."""
    level = 0
    while -(-records // ARITY**level) > MAX_TOPS:
        level += 1
    return level


def hash_record(level: int, number: int, record: bytes) -> bytes:
    """Hash a record of the table (level 0), or a row of the hash table of a level."""
    return hashlib.sha256(b"NescioL%d" % level + number.to_bytes(8, "little") + record).digest()


def hash_tables(records: list[bytes]) -> tuple[list[list[bytes]], list[bytes]]:
    """Return the hash tables, lowest first, and the hashes above them."""
    hashes = [hash_record(0, i, record) for i, record in enumerate(records)]
    tables = []
    for level in range(1, levels(len(records)) + 1):
        runs = [b"".join(hashes[i : i + ARITY]) for i in range(0, len(hashes), ARITY)]
        table = [run.ljust(32 * ARITY, b"\0") for run in runs]
        tables.append(table)
        hashes = [hash_record(level, i, record) for i, record in enumerate(table)]
    return tables, hashes


def digest(rows: list[bytes], shape: list[int], dtype: str, record_rows: int) -> str:
    """Hash what the rows' bytes mean, and the hashes above the last hash table."""
    records = join(rows, record_rows)
    tops = hash_tables(records)[1]
    fields = {
        "dtype": dtype,
        "hashes": {"arity": ARITY, "levels": levels(len(records)), "tops": len(tops)},
        "record_rows": record_rows,
        "row_shape": shape,
        "rows": len(rows),
    }
    text = canonical_json(fields).encode()
    head = b"NescioDg" + len(text).to_bytes(8, "little") + text
    return hashlib.sha256(head + b"".join(tops)).hexdigest()


def tops_message(parameters: Params, tops: list[bytes]) -> bytes:
    """Build the message with all hashes above the last hash table."""
    return HEADER.pack(b"NT", 2, 0, len(tops), 32, 0, params_id(parameters)) + b"".join(tops)


def tops_change(parameters: Params, old: list[bytes], new: list[bytes]) -> bytes:
    """Build the message with those that differ from an earlier version's."""
    changed = [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    header = HEADER.pack(b"NT", 2, 1, len(changed), 36, 0, params_id(parameters))
    return header + b"".join(i.to_bytes(4, "little") + new[i] for i in changed)


def check(
    numbers: list[int], records: list[bytes], above: list[list[bytes]], tops: list[bytes]
) -> bool:
    """Return True if all records are those of the table; `above` has hash rows, lowest first."""
    good = True
    for i, (number, record) in enumerate(zip(numbers, records, strict=True)):
        found = hash_record(0, number, record)
        for level, table in enumerate(above, 1):
            slot = 32 * (number // ARITY ** (level - 1) % ARITY)
            good &= table[i][slot : slot + 32] == found
            found = hash_record(level, number // ARITY**level, table[i])
        good &= tops[number // ARITY ** len(above)] == found
    return good


def canonical_json(parameters: Params) -> str:
    """Serialize with sorted names, without spaces, in ASCII."""
    return json.dumps(parameters, sort_keys=True, separators=(",", ":"))


def params_id(parameters: Params) -> bytes:
    """Return the identifier that binds messages to a table."""
    return hashlib.sha256(canonical_json(parameters).encode()).digest()[:16]


def message(
    magic: bytes, parameters: Params, party: int, tables: int, records: list[bytes]
) -> bytes:
    """Build a query or an answer over the first `tables` tables: the rows, then the hash tables."""
    ident = params_id(parameters)
    return HEADER.pack(magic, 2, party, len(records), len(records[0]), tables, ident) + b"".join(
        records
    )


def shapes(parameters: Params) -> list[dpf.Shape]:
    """Return the shapes of the keys: for the records, then for the hash tables."""
    records, generator = (
        -(-parameters["rows"] // parameters["record_rows"]),
        parameters["generator"],
    )
    above = [
        dpf.Shape(-(-records // ARITY**level), "bit", generator)
        for level in range(1, levels(records) + 1)
    ]
    return [dpf.Shape(records, parameters["output"], generator), *above]


def queries(
    parameters: Params, indices: list[int], roots: list[list[tuple[bytes, bytes]]]
) -> tuple[bytes, bytes]:
    """Build the queries for both parties; `roots[i]` has a pair for each table of lookup i."""
    tables = len(roots[0])
    records: tuple[list[bytes], list[bytes]] = ([], [])
    for index, own in zip(indices, roots, strict=True):
        pairs = [
            dpf.generate(shape, index // parameters["record_rows"] // ARITY**level, 1, root)
            for level, (shape, root) in enumerate(
                zip(shapes(parameters)[:tables], own, strict=True)
            )
        ]
        for party in (0, 1):
            records[party].append(b"".join(dpf.serialize(pair[party]) for pair in pairs))
    return (
        message(b"NQ", parameters, 0, tables, records[0]),
        message(b"NQ", parameters, 1, tables, records[1]),
    )


def elements(row: bytes, output: str) -> list[int]:
    """Convert a row to a vector of output elements: bytes, or zero-padded little-endian words."""
    size = max(8, dpf.OUTPUT_BITS[output]) // 8
    padded = row + bytes(-len(row) % size)
    return [int.from_bytes(padded[i : i + size], "little") for i in range(0, len(padded), size)]


def answer_key(output: str, rows: list[bytes], key: dpf.Key) -> bytes:
    """Multiply the share vector of one key by a table."""
    size = max(8, dpf.OUTPUT_BITS[output]) // 8
    total = [0] * len(elements(rows[0], output))
    for share, row in zip(dpf.evaluate_all(key), rows, strict=True):
        if share == 0:
            continue
        for i, element in enumerate(elements(row, output)):
            if output == "bit":
                total[i] ^= share * element
            else:
                total[i] = (total[i] + share * element) % (1 << 8 * size)
    return b"".join(value.to_bytes(size, "little") for value in total)


def bins_of(groups: list[tuple[int, int, int]], rows: list[bytes]) -> list[list[list[bytes]]]:
    """Cut rows into bins: for each group (bins, rows of each, keys to each), its bins."""
    left = iter(rows)
    return [[[next(left) for _ in range(size)] for _ in range(count)] for count, size, _ in groups]


def answer_lookups(
    output: str,
    groups: list[tuple[int, int, int]],
    rows: list[bytes],
    lookups: list[list[list[list[dpf.Key]]]],
) -> list[bytes]:
    """Answer lookups of a table with bins: for each lookup, group and bin, the bin's keys."""
    bins = bins_of(groups, rows)
    return [
        answer_key(output, bins[g][b], key)
        for lookup in lookups
        for g in range(len(groups))
        for b in range(groups[g][0])
        for key in lookup[g][b]
    ]


def answer(parameters: Params, rows: list[bytes], query: bytes) -> bytes:
    """Return one party's answer to its query."""
    _, _, party, count, length, tables, _ = HEADER.unpack_from(query)
    joined = join(rows, parameters["record_rows"])
    contents = [joined, *hash_tables(joined)[0]][:tables]
    outputs = [parameters["output"], *["bit"] * (tables - 1)]
    records = []
    for i in range(count):
        at, parts = 32 + i * length, []
        for shape, output, content in zip(shapes(parameters), outputs, contents, strict=False):
            size = shape.key_bytes
            parts.append(answer_key(output, content, dpf.parse(query[at : at + size])))
            at += size
        records.append(b"".join(parts))
    return message(b"NA", parameters, party, tables, records)


def combine(output: str, share0: bytes, share1: bytes) -> bytes:
    """Add two shares of a row."""
    size = max(8, dpf.OUTPUT_BITS[output]) // 8
    values = [
        a ^ b if output == "bit" else (a + b) % (1 << 8 * size)
        for a, b in zip(elements(share0, output), elements(share1, output), strict=True)
    ]
    return b"".join(value.to_bytes(size, "little") for value in values)


def decode(
    parameters: Params, row_bytes: int, answer0: bytes, answer1: bytes
) -> tuple[list[bytes], list[list[bytes]]]:
    """Return the records that the client queried, and the rows of each hash table."""
    _, _, _, count, length, tables, _ = HEADER.unpack_from(answer0)
    own, size = length - 512 * (tables - 1), parameters["record_rows"] * row_bytes
    records: list[bytes] = []
    above: list[list[bytes]] = [[] for _ in range(tables - 1)]
    for at in range(32, 32 + count * length, length):
        record = combine(parameters["output"], answer0[at : at + own], answer1[at : at + own])
        assert record[size:] == bytes(own - size)
        records.append(record[:size])
        for level in range(tables - 1):
            first = at + own + 512 * level
            above[level].append(
                combine("bit", answer0[first : first + 512], answer1[first : first + 512])
            )
    return records, above


def row_of(parameters: Params, record: bytes, index: int) -> bytes:
    """Return the row with an index from its record."""
    row_bytes = len(record) // parameters["record_rows"]
    at = index % parameters["record_rows"] * row_bytes
    return record[at : at + row_bytes]
