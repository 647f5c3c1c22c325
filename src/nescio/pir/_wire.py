"""The wire format of queries and answers, and its only parser.

A message is a header of 32 bytes and `count` records of one length, all little-endian:

    offset  bytes
    0       2      "NQ" for a query, "NA" for an answer
    2       1      version of this format, 2
    3       1      party that receives the query or sends the answer: 0 or 1
    4       4      number of records
    8       4      bytes of a record
    12      1      tables: 1, or 1 and the number of hash tables
    13      3      zero
    16      16     id of the table's parameters
    32      ...    records

A record is a lookup: a key (see core/dpf/key.h) or an answer for the table's records, then one for
each hash table, lowest first. A lookup of a table of many bins has as many keys, or answers, for
each of these tables as the bins take: bin by bin, and those of a bin one after the other.

docs/wire-format.md describes the format for implementations in other languages.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from .. import _core
from .._arrays import ByteArray, as_bytes
from ..errors import MalformedMessageError, MismatchError
from ._params import ID_BYTES, TableParams

VERSION = 2
HEADER_BYTES = 32
_HEADER = struct.Struct("<2sBBIIB3s16s")
_TABLES = 12
_MAGIC = {"a query": b"NQ", "an answer": b"NA"}


class QueryMessage(NamedTuple):
    """A checked query: its party, the id of its table, the number of lookups, and the keys.

    `keys` has those for the records, then those for each hash table if the client checks the
    answer; of each table, those for each group of bins. `bin_keys` is the number of keys for a bin,
    at most, which determines the work of a batch.
    """

    party: int
    table: bytes
    lookups: int
    bin_keys: int
    keys: tuple[tuple[_core.Keys, ...], ...]
    message: bytes = b""
    """The bytes of the query, if they arrived as such."""


class AnswerMessage(NamedTuple):
    """A checked answer: its party, and shares of records and of rows of each hash table.

    Shares have shape (lookups x slots, bytes).
    """

    party: int
    shares: tuple[ByteArray, ...]


def encode_query(params: TableParams, party: int, keys: Sequence[ByteArray]) -> bytes:
    """Encodes a query for one party: the keys of each lookup for records and each hash table."""
    return _encode("a query", params, party, keys)


def encode_answer(params: TableParams, party: int, answers: Sequence[ByteArray]) -> bytes:
    """Encodes a party's answer: shares of records, and of rows of each hash table."""
    return _encode("an answer", params, party, answers)


def encode_shares(table: bytes, party: int, lookups: int, tables: int, shares: ByteArray) -> bytes:
    """Encodes an answer whose shares are already those of the format, for a version's id."""
    size = len(shares) // max(1, lookups)
    header = _HEADER.pack(
        _MAGIC["an answer"], VERSION, party, lookups, size, tables, bytes(3), table
    )
    return header + shares.tobytes()


def parse_query(params: TableParams, data: object) -> QueryMessage:
    """Parses a query to a table, and checks every bit of every key.

    Raises MalformedMessageError or MalformedKeyError for bytes that are not a query, MismatchError
    for a query to another table or with keys of another kind.
    """
    party, tables, records = _parse("a query", params, data, params.key_widths)
    keys = []
    for part, layout, widths in zip(
        _split(records, params.key_widths[:tables]),
        params.layouts,
        params.group_key_widths,
        strict=False,
    ):
        totals = [group.slots * width for group, width in zip(layout.bins, widths, strict=True)]
        own = [
            _core.Keys(group.reshape(-1, width))
            for group, width in zip(_split(part, totals), widths, strict=True)
        ]
        if len(records):
            for group_keys, group in zip(own, layout.bins, strict=True):
                _check_keys(group_keys, group.rows, layout.output, params.generator, party)
        keys.append(tuple(own))
    count = len(records)
    message = data if isinstance(data, bytes) else b""
    return QueryMessage(party, params.id, count, count * params.bin_keys, tuple(keys), message)


def table_of(data: object) -> bytes:
    """Returns the id of the table that an unchecked query names; shorter if the query is short."""
    return as_bytes(data, "a query")[HEADER_BYTES - ID_BYTES : HEADER_BYTES].tobytes()


def estimate(params: TableParams, data: bytes) -> tuple[int, int]:
    """Returns the lookups in a query that is not checked yet, and the bytes of its answer."""
    tables = 1 if data[_TABLES : _TABLES + 1] == b"\x01" else len(params.key_widths)
    count = max(0, len(data) - HEADER_BYTES) // sum(params.key_widths[:tables])
    return count, HEADER_BYTES + count * sum(params.answer_widths[:tables])


def least_lookups(params: TableParams, length: int) -> int:
    """Returns the least number of lookups in a query of a length, which has not arrived yet."""
    return max(0, length - HEADER_BYTES) // sum(params.key_widths)


def cut_query(data: bytes, first: int, count: int) -> bytes:
    """Cuts `count` lookups, from `first` on, out of a checked query: a query of its own."""
    *start, _, size, tables, zero, table = _HEADER.unpack_from(data)
    begin = HEADER_BYTES + first * size
    records = memoryview(data)[begin : begin + count * size]
    return _HEADER.pack(*start, count, size, tables, zero, table) + records


def join_answers(answers: Sequence[bytes]) -> bytes:
    """Joins answers to the parts of one query, in their order."""
    if len(answers) == 1:
        return answers[0]
    *start, _, size, tables, zero, table = _HEADER.unpack_from(answers[0])
    count = sum(_HEADER.unpack_from(answer)[3] for answer in answers)
    header = _HEADER.pack(*start, count, size, tables, zero, table)
    return b"".join((header, *(memoryview(answer)[HEADER_BYTES:] for answer in answers)))


def parse_answer(params: TableParams, data: object, count: int, tables: int) -> AnswerMessage:
    """Parses an answer of `count` lookups. Raises MalformedMessageError or MismatchError."""
    party, records = _parse_answer(params, data, count, tables)
    widths = params.answer_widths[:tables]
    shares = (
        part.reshape(count * params.slots, width // params.slots)
        for part, width in zip(_split(records, widths), widths, strict=True)
    )
    return AnswerMessage(party, tuple(shares))


def check_answer(params: TableParams, data: object, query: bytes) -> None:
    """Checks everything of an answer but its shares, which only both answers together reveal.

    `query` is the message that the server got. Raises MalformedMessageError, or MismatchError for
    an answer of another table or party.
    """
    _, _, expected, count, _, tables, _, _ = _HEADER.unpack_from(query)
    party, _ = _parse_answer(params, data, count, tables)
    if party != expected:
        raise MismatchError(
            f"an answer: found party {party}, expected {expected}",
            found=f"party {party}",
            expected=f"party {expected}",
        )


def _parse_answer(
    params: TableParams, data: object, count: int, tables: int
) -> tuple[int, ByteArray]:
    """Parses the party and the records of an answer of `count` lookups."""
    party, found, records = _parse("an answer", params, data, params.answer_widths)
    if (len(records), found) != (count, tables):
        raise MalformedMessageError(
            f"an answer: found {len(records)} lookups of {found} tables, "
            f"expected {count} of {tables}"
        )
    return party, records


def wrong_table(kind: str, table: bytes, params: TableParams) -> MismatchError:
    """Makes the error for a message to another table or version than that of `params`."""
    return MismatchError(
        f"{kind} for another table or version: found table {table.hex()}, "
        f"expected {params.id.hex()}, which is {params.describe()}; "
        "fetch the table's parameters again",
        found=table.hex(),
        expected=params.id.hex(),
    )


def _split(records: ByteArray, widths: Sequence[int]) -> Iterator[ByteArray]:
    """Yields the parts of all records, by table."""
    for first, end in pairwise(accumulate(widths, initial=0)):
        yield np.ascontiguousarray(records[:, first:end])


def _encode(kind: str, params: TableParams, party: int, parts: Sequence[ByteArray]) -> bytes:
    count, size = len(parts[0]), sum(part.shape[1] for part in parts)
    message = np.empty(HEADER_BYTES + count * size, np.uint8)
    _HEADER.pack_into(
        message.data, 0,
        _MAGIC[kind], VERSION, party, count, size, len(parts), bytes(3), params.id,
    )  # fmt: skip
    np.concatenate(parts, axis=1, out=message[HEADER_BYTES:].reshape(count, size))
    return message.tobytes()


def _parse(
    kind: str, params: TableParams, data: object, widths: Sequence[int]
) -> tuple[int, int, ByteArray]:
    """Parses the party, the number of tables and the records of a message."""
    raw = as_bytes(data, kind)
    if len(raw) < HEADER_BYTES:
        raise MalformedMessageError(
            f"not {kind}: found {len(raw)} bytes, expected a header of {HEADER_BYTES} bytes"
        )
    magic, version, party, count, found_bytes, tables, zero, table = _HEADER.unpack_from(raw.data)
    if magic != _MAGIC[kind]:
        raise MalformedMessageError(
            f"not {kind}: found {magic!r} at the beginning, expected {_MAGIC[kind]!r}"
        )
    if version != VERSION:
        raise MalformedMessageError(f"{kind}: found format version {version}, expected {VERSION}")
    if party > 1:
        raise MalformedMessageError(f"{kind}: found party {party}, expected 0 or 1")
    if any(zero):
        raise MalformedMessageError(f"{kind}: found {zero!r} at byte 13, expected zeros")
    if table != params.id:
        raise wrong_table(kind, table, params)
    if tables not in (1, len(widths)):
        raise MalformedMessageError(
            f"{kind}: found {tables} tables, expected 1, or {len(widths)} with the hash tables"
        )
    record_bytes = sum(widths[:tables])
    if found_bytes != record_bytes or len(raw) != HEADER_BYTES + count * record_bytes:
        raise MalformedMessageError(
            f"{kind}: found {count} records of {found_bytes} bytes in {len(raw)} bytes, expected "
            f"records of {record_bytes} bytes, {HEADER_BYTES + count * record_bytes} bytes in all"
        )
    return party, tables, raw[HEADER_BYTES:].reshape(count, record_bytes)


def _check_keys(keys: _core.Keys, rows: int, output: str, generator: str, party: int) -> None:
    parties = keys.parties()
    odd = int(parties[parties != party][0]) if (parties != party).any() else party
    found = (keys.domain, keys.output, keys.generator, odd)
    expected = (rows, output, generator, party)
    if found != expected:
        raise MismatchError(
            f"a key for another table or party: found {_describe(*found)}, "
            f"expected {_describe(*expected)}",
            found=_describe(*found),
            expected=_describe(*expected),
        )


def _describe(domain: int, output: str, generator: str, party: int) -> str:
    return f"{output} over {domain} records from {generator} for party {party}"
