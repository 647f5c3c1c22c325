"""The wire format of queries and answers, and its only parser.

A message is a header of 32 bytes and `count` records of one length, all little-endian:

    offset  bytes
    0       2      "NQ" for a query, "NA" for an answer
    2       1      version of this format, 1
    3       1      party that receives the query or sends the answer: 0 or 1
    4       4      number of records
    8       8      bytes of a record
    16      16     id of the table's parameters
    32      ...    keys (see core/dpf/key.h), or answers

docs/wire-format.md describes the format for implementations in other languages.
"""

import struct
from typing import NamedTuple

from .. import _core
from .._arrays import ByteArray, as_bytes
from ..errors import MalformedMessageError, MismatchError
from ._params import TableParams

VERSION = 1
HEADER_BYTES = 32
_HEADER = struct.Struct("<2sBBIQ16s")
_MAGIC = {"a query": b"NQ", "an answer": b"NA"}


class QueryMessage(NamedTuple):
    """A checked query: its party, the id of its table, and its keys."""

    party: int
    table: bytes
    keys: _core.Keys


class AnswerMessage(NamedTuple):
    """A checked answer: its party, and the shares of the rows, one row each."""

    party: int
    rows: ByteArray


def encode_query(params: TableParams, party: int, keys: ByteArray) -> bytes:
    """Encodes a query for one party: `keys` has shape (count, params.key_bytes)."""
    return _encode("a query", params, party, keys)


def encode_answer(params: TableParams, party: int, answers: ByteArray) -> bytes:
    """Encodes a party's answer: `answers` has shape (count, params.answer_bytes)."""
    return _encode("an answer", params, party, answers.reshape(-1, params.answer_bytes))


def parse_query(params: TableParams, data: object) -> QueryMessage:
    """Parses a query to a table, and checks every bit of every key.

    Raises MalformedMessageError or MalformedKeyError for bytes that are not a query, MismatchError
    for a query to another table or with keys of another kind.
    """
    party, records = _parse("a query", params, data, params.key_bytes)
    keys = _core.Keys(records)
    if len(keys):
        _check_keys(params, party, keys)
    return QueryMessage(party, params.id, keys)


def parse_answer(params: TableParams, data: object, count: int) -> AnswerMessage:
    """Parses an answer of `count` rows. Raises MalformedMessageError or MismatchError."""
    party, records = _parse("an answer", params, data, params.answer_bytes)
    if len(records) != count:
        raise MalformedMessageError(f"an answer: found {len(records)} rows, expected {count}")
    return AnswerMessage(party, records)


def wrong_table(kind: str, table: bytes, params: TableParams) -> MismatchError:
    """Makes the error for a message to another table or version than that of `params`."""
    return MismatchError(
        f"{kind} for another table or version: found table {table.hex()}, "
        f"expected {params.id.hex()}, which is {params.describe()}; "
        "fetch the table's parameters again",
        found=table.hex(),
        expected=params.id.hex(),
    )


def _encode(kind: str, params: TableParams, party: int, records: ByteArray) -> bytes:
    header = _HEADER.pack(_MAGIC[kind], VERSION, party, len(records), records.shape[1], params.id)
    return header + records.tobytes()


def _parse(
    kind: str, params: TableParams, data: object, record_bytes: int
) -> tuple[int, ByteArray]:
    """Parses the party and the records of a message."""
    raw = as_bytes(data, kind)
    if len(raw) < HEADER_BYTES:
        raise MalformedMessageError(
            f"not {kind}: found {len(raw)} bytes, expected a header of {HEADER_BYTES} bytes"
        )
    magic, version, party, count, found_bytes, table = _HEADER.unpack(raw[:HEADER_BYTES].tobytes())
    if magic != _MAGIC[kind]:
        raise MalformedMessageError(f"not {kind}: it does not begin with {_MAGIC[kind]!r}")
    if version != VERSION:
        raise MalformedMessageError(f"{kind}: found format version {version}, expected {VERSION}")
    if party > 1:
        raise MalformedMessageError(f"{kind}: found party {party}, expected 0 or 1")
    if table != params.id:
        raise wrong_table(kind, table, params)
    if found_bytes != record_bytes or len(raw) != HEADER_BYTES + count * record_bytes:
        raise MalformedMessageError(
            f"{kind} of {count} records of {found_bytes} bytes in {len(raw)} bytes: expected "
            f"records of {record_bytes} bytes, {HEADER_BYTES + count * record_bytes} bytes in all"
        )
    return party, raw[HEADER_BYTES:].reshape(count, record_bytes)


def _check_keys(params: TableParams, party: int, keys: _core.Keys) -> None:
    parties = keys.parties()
    odd = int(parties[parties != party][0]) if (parties != party).any() else party
    found = (keys.domain, keys.output, keys.generator, odd)
    expected = (params.rows, params.output, params.generator, party)
    if found != expected:
        raise MismatchError(
            f"a key for another table or party: found {_describe(*found)}, "
            f"expected {_describe(*expected)}",
            found=_describe(*found),
            expected=_describe(*expected),
        )


def _describe(domain: int, output: str, generator: str, party: int) -> str:
    return f"{output} over {domain} rows from {generator} for party {party}"
