"""Private lookups in plain Python: the executable specification of `nescio.pir` and its messages.

A table is a list of rows of bytes, divided into bins. Rows are joined to records, which lookups
get: one for each slot. A slot is a key for a bin. The public parameters are a JSON object. Hash
tables above the records of each bin let a client check what it gets. A message is a header of 32
bytes and parts of equal length. See docs/wire-format.md.
"""

import hashlib
import json
import struct
from typing import Any

from . import dpf

HEADER = struct.Struct("<2sBBIIB3x16s")
ARITY = 16
MAX_TOPS = 4096
MAX_TOPS_OF_BINS = 16384

Params = dict[str, Any]
Bins = list[list[int]]  # groups: the number of bins, the rows of each, the keys for each


def params(
    rows: list[bytes],
    shape: list[int],
    dtype: str,
    output: str,
    generator: str,
    version: str,
    record_rows: int,
    bins: Bins | None = None,
    layout: bytes = b"",
) -> Params:
    """Return the public parameters of a table."""
    fields = {
        "bins": bins or [[1, len(rows), 1]],
        "dtype": dtype,
        "layout": hashlib.sha256(layout).hexdigest() if layout else "",
        "record_rows": record_rows,
        "row_shape": shape,
        "rows": len(rows),
    }
    return {
        **fields,
        "format": 3,
        "output": output,
        "generator": generator,
        "version": version,
        "digest": digest(rows, fields),
        "hashes": hashes_of(fields),
    }


def bin_rows(bins: Bins) -> list[int]:
    """Return the number of rows of each bin."""
    return [rows for count, rows, _ in bins for _ in range(count)]


def slot_bins(bins: Bins) -> list[int]:
    """Return the bin of each slot of a lookup."""
    keys = [keys for count, _, keys in bins for _ in range(count)]
    return [number for number, own in enumerate(keys) for _ in range(own)]


def cut(rows: list[bytes], bins: Bins) -> list[list[bytes]]:
    """Divide rows into bins."""
    contents, first = [], 0
    for count in bin_rows(bins):
        contents.append(rows[first : first + count])
        first += count
    return contents


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


def bin_records(fields: Params) -> list[int]:
    """Return the number of records of each bin."""
    return [-(-rows // fields["record_rows"]) for rows in bin_rows(fields["bins"])]


def levels(records: list[int]) -> int:
    """Return the number of hash tables: the fewest with at most so many hashes above them."""
    level, most = 0, MAX_TOPS if len(records) == 1 else MAX_TOPS_OF_BINS
    while sum(-(-count // ARITY**level) for count in records) > most:
        level += 1
    return level


def first_tops(records: list[int]) -> list[int]:
    """Return the number of the first top hash of each bin, and that of all of them."""
    height, firsts = levels(records), [0]
    for count in records:
        firsts.append(firsts[-1] + -(-count // ARITY**height))
    return firsts


def hashes_of(fields: Params) -> dict[str, int]:
    """Return the description of the hash tables."""
    records = bin_records(fields)
    return {"arity": ARITY, "levels": levels(records), "tops": first_tops(records)[-1]}


def hash_record(level: int, number: int, record: bytes) -> bytes:
    """Hash a record of the table (level 0), or a row of the hash table of a level."""
    return hashlib.sha256(b"NescioL%d" % level + number.to_bytes(8, "little") + record).digest()


def hash_tables(rows: list[bytes], fields: Params) -> tuple[list[list[list[bytes]]], list[bytes]]:
    """Return the tables of each bin (its records, then its hash tables), and the top hashes."""
    counts = bin_records(fields)
    height, bins, tops = levels(counts), [], []
    for first, content in zip(first_tops(counts), cut(rows, fields["bins"]), strict=False):
        tables = [join(content, fields["record_rows"])]
        for level in range(height + 1):
            number = first * ARITY ** (height - level)
            hashes = [hash_record(level, number + i, row) for i, row in enumerate(tables[-1])]
            if level < height:
                runs = [b"".join(hashes[i : i + ARITY]) for i in range(0, len(hashes), ARITY)]
                tables.append([run.ljust(32 * ARITY, b"\0") for run in runs])
        bins.append(tables)
        tops += hashes
    return bins, tops


def digest(rows: list[bytes], fields: Params) -> str:
    """Hash what the rows' bytes mean, and the hashes above the last hash table."""
    text = canonical_json({**fields, "hashes": hashes_of(fields)}).encode()
    head = b"NescioDg" + len(text).to_bytes(8, "little") + text
    return hashlib.sha256(head + b"".join(hash_tables(rows, fields)[1])).hexdigest()


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


def shapes(parameters: Params, checked: bool) -> list[list[dpf.Shape]]:
    """Return the shapes of a lookup's keys, slot by slot: for records, then for hash tables."""
    records, generator = bin_records(parameters), parameters["generator"]
    return [
        [
            dpf.Shape(
                -(-records[number] // ARITY**level),
                "bit" if level else parameters["output"],
                generator,
            )
            for number in slot_bins(parameters["bins"])
        ]
        for level in range(levels(records) + 1 if checked else 1)
    ]


def queries(
    parameters: Params, lookups: list[list[int]], roots: list[list[list[tuple[bytes, bytes]]]]
) -> tuple[bytes, bytes]:
    """Build the queries for both parties.

    A lookup has a place in its bin for each slot; `roots[i][level][slot]` is a pair for a key.
    """
    tables = len(roots[0])
    records: tuple[list[bytes], list[bytes]] = ([], [])
    for places, own in zip(lookups, roots, strict=True):
        pairs = [
            dpf.generate(shape, place // parameters["record_rows"] // ARITY**level, 1, root)
            for level, shapes_ in enumerate(shapes(parameters, tables > 1))
            for shape, place, root in zip(shapes_, places, own[level], strict=True)
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


def patch(output: str, old: list[bytes], new: list[bytes]) -> dict[int, list[int]]:
    """Return the differences old - new of the rows that an update changed, in the output group."""
    size = max(8, dpf.OUTPUT_BITS[output]) // 8
    return {
        i: [
            x ^ y if output == "bit" else (x - y) % (1 << 8 * size)
            for x, y in zip(elements(a, output), elements(b, output), strict=True)
        ]
        for i, (a, b) in enumerate(zip(old, new, strict=True))
        if a != b
    }


def older_answer(
    output: str, answer: bytes, patches: list[dict[int, list[int]]], key: dpf.Key
) -> bytes:
    """Make the answer of an older version of the current one and of all later patches."""
    size = max(8, dpf.OUTPUT_BITS[output]) // 8
    total, shares = elements(answer, output), dpf.evaluate_all(key)
    for differences in patches:
        for row, difference in differences.items():
            for i, element in enumerate(difference):
                if output == "bit":
                    total[i] ^= shares[row] * element
                else:
                    total[i] = (total[i] + shares[row] * element) % (1 << 8 * size)
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
    bins, _ = hash_tables(rows, parameters)
    records = []
    for i in range(count):
        at, parts = 32 + i * length, []
        for level, own in enumerate(shapes(parameters, tables > 1)):
            for shape, number in zip(own, slot_bins(parameters["bins"]), strict=True):
                key = dpf.parse(query[at : at + shape.key_bytes])
                parts.append(answer_key(shape.output, bins[number][level], key))
                at += shape.key_bytes
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
    """Return the records that the client queried, slot by slot, and the rows of each hash table."""
    _, _, _, count, length, tables, _ = HEADER.unpack_from(answer0)
    slots = len(slot_bins(parameters["bins"]))
    own, size = length // slots - 512 * (tables - 1), parameters["record_rows"] * row_bytes
    records: list[bytes] = []
    above: list[list[bytes]] = [[] for _ in range(tables - 1)]
    for at in range(32, 32 + count * length, length):
        for first in range(at, at + slots * own, own):
            share0, share1 = answer0[first : first + own], answer1[first : first + own]
            record = combine(parameters["output"], share0, share1)
            assert record[size:] == bytes(own - size)
            records.append(record[:size])
        for i in range(slots * (tables - 1)):
            first = at + slots * own + 512 * i
            above[i // slots].append(
                combine("bit", answer0[first : first + 512], answer1[first : first + 512])
            )
    return records, above


def numbers_of(parameters: Params, lookups: list[list[int]]) -> list[int]:
    """Return the numbers in the hash tree of the records that lookups get, slot by slot."""
    records = bin_records(parameters)
    unit = ARITY ** levels(records)
    firsts = [first_tops(records)[number] * unit for number in slot_bins(parameters["bins"])]
    return [
        first + place // parameters["record_rows"]
        for places in lookups
        for first, place in zip(firsts, places, strict=True)
    ]


def row_of(parameters: Params, record: bytes, index: int) -> bytes:
    """Return the row with an index from its record."""
    row_bytes = len(record) // parameters["record_rows"]
    at = index % parameters["record_rows"] * row_bytes
    return record[at : at + row_bytes]
