"""The client of a private lookup."""

from dataclasses import dataclass, field
from math import prod

import numpy as np

from .. import _core
from .._arrays import Array, as_indices
from ..errors import ArgumentError, MismatchError
from . import _wire as wire
from ._params import TableParams


@dataclass(frozen=True, slots=True)
class Query:
    """A query: send `keys[0]` to party 0 and `keys[1]` to party 1, never both to one server.

    `shape` is the shape of the indices; the indices themselves are not stored.
    """

    keys: tuple[bytes, bytes] = field(repr=False)
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of rows; both servers learn it."""
        return prod(self.shape)


class Client:
    """Looks up rows of a table without revealing which rows.

    Two-server private information retrieval from distributed point functions (Gilboa and Ishai
    2014; Boyle, Gilboa and Ishai 2016).

    Security model: the two servers do not collude and are semi-honest. Each server learns the
    table, the time and the number of rows of a lookup, but not which rows: its keys are
    pseudorandom. Wrong answers are not detected. The engine's running time does not depend on the
    indices. Converting Python integers to an array is not constant-time: pass an array where that
    matters.

    The servers' parameters choose the generator. A generator without a claim of 128-bit security
    (`insecure_siphash`, `insecure_highwayhash`) raises ArgumentError unless `insecure_generator` is
    true.
    """

    def __init__(self, params: TableParams, *, insecure_generator: bool = False) -> None:
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

    def query(self, indices: object) -> Query:
        """Generates keys for the rows at `indices`: one integer, or n integers of any shape.

        Each key has `params.key_bytes` bytes; n may be 0. Raises IndexRangeError for an index out
        of range (negative ones included), ArgumentError for values that are not integers.
        """
        rows = as_indices(indices, self.params.rows, "an index")
        payload = np.broadcast_to(np.array([1, 0], np.uint64), (rows.size, 2))
        keys = _core.generate(
            rows.reshape(-1),
            np.ascontiguousarray(payload),
            self.params.rows,
            self.params.output,
            self.params.generator,
        )
        queries = (wire.encode_query(self.params, party, keys[party]) for party in (0, 1))
        return Query((next(queries), next(queries)), rows.shape)

    def decode(self, query: Query, answer0: bytes, answer1: bytes) -> Array:
        """Decodes the rows: the value of `table[indices]` on the plaintext table.

        The answers may be in either order. Raises MalformedMessageError for bytes that are not an
        answer to this query, MismatchError for an answer from another table or two answers from
        one party.
        """
        answers = [wire.parse_answer(self.params, a, query.count) for a in (answer0, answer1)]
        if answers[0].party == answers[1].party:
            raise MismatchError(
                f"both answers are from party {answers[0].party}: expected one from each party",
                found=f"parties {answers[0].party} and {answers[1].party}",
                expected="parties 0 and 1",
            )
        total = _core.combine(self.params.output, *(a.rows.reshape(-1) for a in answers))
        rows = total.reshape(query.count, self.params.answer_bytes)[:, : self.params.row_bytes]
        values: Array = np.ascontiguousarray(rows).view(self.params.dtype)
        return values.reshape((*query.shape, *self.params.row_shape))
