"""The client of a private lookup."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from .. import _core
from .._arrays import Array, ByteArray, IndexArray, as_array, as_indices
from ..errors import (
    ArgumentError,
    ForgedAnswerError,
    IndexRangeError,
    LayoutChangedError,
    MismatchError,
)
from . import _wire as wire
from ._hash_shape import ARITY, HASH_BYTES
from ._params import Layout, TableParams
from ._tops import check_tops

_SELECTED_BYTES = 1 << 20  # of temporary arrays, while rows are taken from their records


@dataclass(frozen=True, slots=True)
class Query:
    """A query: send `keys[0]` to party 0 and `keys[1]` to party 1, never both to one server.

    `shape` is the shape of the indices; for a table in bins, without its last axis. The indices
    themselves are secret: a query that is stored or sent as an object reveals them.
    """

    keys: tuple[bytes, bytes] = field(repr=False)
    shape: tuple[int, ...]
    indices: IndexArray = field(repr=False, compare=False)

    @property
    def count(self) -> int:
        """The number of lookups; both servers learn it."""
        return prod(self.shape)


class Client:
    """Looks up rows of a table without revealing which rows.

    Two-server private information retrieval from distributed point functions (Gilboa and Ishai
    2014; Boyle, Gilboa and Ishai 2016).

    `tops` are the hashes that the table's rows are checked against (`table.tops`, or
    `GET /v1/tables/{name}/tops`); they must hash to `params.digest`. `verify=False` needs none, and
    does not check rows.

    Security model: the two servers do not collude, and at least one is honest about the digest in
    `params`, or the caller knows the digest. Each server learns the table, the time and the number
    of rows of a lookup, but not which rows: its keys are pseudorandom. A server that answers
    wrongly is detected whichever rows were looked up, and so learns nothing from the refusal; it
    can prevent lookups, but not change them. With `verify=False` both servers must follow the
    protocol, and wrong answers are not detected. The engine's running time does not depend on the
    indices. Converting Python integers to an array is not constant-time: pass an array where that
    matters.

    The servers' parameters choose the generator. A generator without a claim of 128-bit security
    (`insecure_siphash`, `insecure_highwayhash`) raises ArgumentError unless `insecure_generator` is
    true.
    """

    def __init__(
        self,
        params: TableParams,
        tops: object = None,
        *,
        verify: bool = True,
        insecure_generator: bool = False,
    ) -> None:
        if not isinstance(params, TableParams):
            raise ArgumentError(
                f"params: found {type(params).__name__}, expected TableParams; "
                "parse JSON with TableParams.from_json"
            )
        if params.generator.startswith("insecure_") and not insecure_generator:
            raise ArgumentError(
                f"the table's generator is {params.generator}, which claims no 128-bit security: "
                "one key may reveal the rows to its server; to use it nevertheless, pass "
                "insecure_generator=True (nescio lookup --insecure-generator)"
            )
        self.params = params
        self._tops = _checked_tops(params, tops) if verify else None
        self._tables = len(params.key_widths) if verify else 1

    @property
    def verifies(self) -> bool:
        """True if rows are checked against the digest."""
        return self._tops is not None

    @property
    def query_bytes(self) -> int:
        """The bytes that a query has for each lookup."""
        return sum(self.params.key_widths[: self._tables])

    @property
    def answer_bytes(self) -> int:
        """The bytes that an answer has for each lookup."""
        return sum(self.params.answer_widths[: self._tables])

    def query(self, indices: object) -> Query:
        """Generates keys for the rows at `indices`: one integer, or n integers of any shape.

        A lookup of a table in bins (`params.is_cut`) gets `params.slots` rows: the last axis of
        `indices` has a place in the bin of each slot, which is less than `params.slot_rows`.

        A lookup takes `query_bytes` bytes for each server; n may be 0. Raises IndexRangeError for
        an index out of range (negative ones included), ArgumentError for values that are not
        integers, or have another last axis.
        """
        places = self.places(indices)
        shape = places.shape[: places.ndim - self.params.is_cut]
        flat, params = places.reshape(-1, self.params.slots), self.params
        keys = [
            self._keys(_divided(flat, params.record_rows * ARITY**level), layout)
            for level, layout in enumerate(params.layouts[: self._tables])
        ]
        queries = [wire.encode_query(params, party, [k[party] for k in keys]) for party in (0, 1)]
        return Query((queries[0], queries[1]), shape, flat.copy())

    def check_layout(self, layout: str | None) -> None:
        """Raises LayoutChangedError if places are for a layout of another digest; None is any."""
        found = self.params.layout
        if layout is not None and found != layout:
            raise LayoutChangedError(
                "the table has another layout than the one of these places: found "
                f"{found[:12] or 'none'}, expected {layout[:12]}; fetch the layout again",
                found=found,
                expected=layout,
            )

    def places(self, indices: object) -> IndexArray:
        """Converts the indices of a query to an array. Raises the errors of `query`."""
        params = self.params
        if not params.is_cut:
            return as_indices(indices, params.rows, "an index")
        places = as_indices(indices, int(params.slot_rows.max()), "a place")
        if places.ndim < 1 or places.shape[-1] != params.slots:
            advice = "; use a BatchClient or a KeyedClient" if params.layout else ""
            raise ArgumentError(
                f"places: found shape {places.shape}, expected (..., {params.slots}): a place in "
                f"the bin of each slot{advice}"
            )
        beyond = (places >= params.slot_rows).reshape(-1, params.slots).any(axis=0)
        if beyond.any():
            slot = int(beyond.argmax())
            raise IndexRangeError(
                f"a place in the bin of slot {slot} is out of range: expected 0 to "
                f"{int(params.slot_rows[slot]) - 1}"
            )
        return places

    def _keys(self, points: IndexArray, layout: Layout) -> tuple[ByteArray, ByteArray]:
        """Generates the keys of both parties for one table: (lookups, bytes) each."""
        parts: tuple[list[ByteArray], list[ByteArray]] = ([], [])
        first = 0
        for group in layout.bins:
            own = np.ascontiguousarray(points[:, first : first + group.slots]).reshape(-1)
            first += group.slots
            ones = np.zeros((len(own), 2), np.uint64)
            ones[:, 0] = 1
            pair = _core.generate(own, ones, group.rows, layout.output, self.params.generator)
            for keys, part in zip(pair, parts, strict=True):
                part.append(keys.reshape(len(points), group.slots * keys.shape[1]))
        return _beside(parts[0]), _beside(parts[1])

    def decode(self, query: Query, answer0: bytes, answer1: bytes) -> Array:
        """Decodes the rows: the value of `table[indices]` on the plaintext table.

        For a table in bins the shape is that of the places, then that of a row. The answers may be
        in either order. All rows are checked before any is returned. Raises ForgedAnswerError if
        they are not those of the digest: one of the two servers has answered wrongly, and nobody
        can tell which. Raises MalformedMessageError for bytes that are not an answer to this query,
        MismatchError for an answer from another table or two answers from one party.
        """
        first, second = (
            wire.parse_answer(self.params, a, query.count, self._tables) for a in (answer0, answer1)
        )
        if first.party == second.party:
            raise MismatchError(
                f"both answers are from party {first.party}: expected one from each party",
                found=f"parties {first.party} and {second.party}",
                expected="parties 0 and 1",
            )
        parts = [
            _core.combine(layout.output, own.reshape(-1), other.reshape(-1)).reshape(own.shape)
            for layout, own, other in zip(self.params.layouts, first.shares, second.shares)  # noqa: B905
        ]
        records = np.ascontiguousarray(parts[0][:, : self.params.record_bytes])
        if self._tops is not None:
            self._check(query, self._tops, records, parts)
        values: Array = self._rows_of(records, query.indices.reshape(-1)).view(self.params.dtype)
        slots = (self.params.slots,) if self.params.is_cut else ()
        return values.reshape((*query.shape, *slots, *self.params.row_shape))

    def _rows_of(self, records: ByteArray, indices: IndexArray) -> ByteArray:
        """Selects a row of each record, in time and memory accesses independent of the indices."""
        count, width = self.params.record_rows, self.params.row_bytes
        if count == 1:
            return records
        places, selected = np.arange(count, dtype=np.uint64), np.empty((len(records), width), "u1")
        step = max(1, _SELECTED_BYTES // (8 * count + records.shape[1]))
        for first in range(0, len(records), step):
            own = slice(first, first + step)
            wanted = indices[own, None] & np.uint64(count - 1) == places
            masks = np.uint8(0) - wanted.astype(np.uint8)
            rows = records[own].reshape(-1, count, width) & masks[:, :, None]
            np.bitwise_or.reduce(rows, axis=1, out=selected[own])
        return selected

    def _check(
        self, query: Query, tops: ByteArray, records: ByteArray, parts: list[ByteArray]
    ) -> None:
        """Checks all records in time that depends only on their number."""
        padding = parts[0][:, self.params.record_bytes :]
        places = _divided(query.indices, self.params.record_rows)
        numbers = (places + self.params.slot_numbers).reshape(-1)
        ranges = np.tile(self.params.slot_tops.reshape(-1), len(places))
        good = _core.check_rows(numbers, records, parts[1:], tops, ranges=ranges)
        if padding.any() or not good:
            raise ForgedAnswerError(
                "the answers do not fit the table's digest "
                f"{self.params.digest[:12]}: one of the two servers answered wrongly, and which "
                "one cannot be told. Expected rows of "
                f"{self.params.describe()}. Use none of these rows, and tell both operators"
            )


def _checked_tops(params: TableParams, tops: object) -> ByteArray:
    if tops is None:
        raise ArgumentError(
            "tops: found None, expected the hashes that rows are checked against (table.tops, or "
            "GET /v1/tables/{name}/tops); to look up rows without a check, pass verify=False"
        )
    found = as_array(tops, "tops")
    if found.dtype != np.uint8 or found.ndim != 2:
        raise ArgumentError(
            f"tops: found shape {found.shape} of {found.dtype}, expected "
            f"({params.hashes.tops}, {HASH_BYTES}) of uint8"
        )
    return check_tops(params, found.copy())  # the caller may change its array


def _beside(parts: Sequence[ByteArray]) -> ByteArray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _divided(indices: IndexArray, power: int) -> IndexArray:
    """Divides by a power of two. The time of a division may depend on the secret indices."""
    return indices >> np.uint64(power.bit_length() - 1)
