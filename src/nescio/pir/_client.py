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
    """A question: `keys[0]` is for party 0, `keys[1]` for party 1, never both for one.

    `shape` is that of the indices that were asked for; the indices themselves are not kept.
    """

    keys: tuple[bytes, bytes] = field(repr=False)
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many rows were asked for; both servers learn this."""
        return prod(self.shape)


class Client:
    """Asks for rows of a table without saying which.

    Two-server private information retrieval from distributed point functions (Gilboa and Ishai
    2014; Boyle, Gilboa and Ishai 2016).

    Security model: two servers that do not share what they receive; each may look at everything
    it gets, but answers as the protocol says. Each server learns the table, when and how many rows
    are asked for, and nothing of which: its keys are pseudorandom. A server that answers wrongly
    goes unnoticed. The engine's time does not depend on the indices; to read Python integers into
    an array does, so pass an array where that matters.

    The servers' parameters choose the generator. One that nobody claims 128-bit security for
    (`insecure_siphash`, `insecure_highwayhash`) is refused with ArgumentError unless
    `insecure_generator` is true.
    """

    def __init__(self, params: TableParams, *, insecure_generator: bool = False) -> None:
        if not isinstance(params, TableParams):
            raise ArgumentError(
                f"a client is made from TableParams, not {type(params).__name__}: "
                "read JSON with TableParams.from_json"
            )
        if params.generator.startswith("insecure_") and not insecure_generator:
            raise ArgumentError(
                f"the table's generator is {params.generator}, for which nobody claims 128-bit "
                "security: one key may tell its server what is asked; insecure_generator=True "
                "(nescio lookup --insecure-generator) takes it all the same"
            )
        self.params = params

    def query(self, indices: object) -> Query:
        """Keys for the rows at `indices`: an integer, or integers of any shape (n of them).

        Each key has `params.key_bytes` bytes; n may be 0. Raises IndexRangeError for an index that
        the table does not have (negative ones too), ArgumentError for anything but integers.
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
        """The rows that were asked for: what `table[indices]` would be on the plain table.

        The answers may come in either order. Raises MalformedMessageError for bytes that are no
        answer to this query, MismatchError for an answer from another table or twice from one
        party.
        """
        answers = [wire.parse_answer(self.params, a, query.count) for a in (answer0, answer1)]
        if answers[0].party == answers[1].party:
            raise MismatchError(
                f"both answers are from party {answers[0].party}: one from each is needed",
                found=f"parties {answers[0].party} and {answers[1].party}",
                expected="parties 0 and 1",
            )
        total = _core.combine(self.params.output, *(a.rows.reshape(-1) for a in answers))
        rows = total.reshape(query.count, self.params.answer_bytes)[:, : self.params.row_bytes]
        values: Array = np.ascontiguousarray(rows).view(self.params.dtype)
        return values.reshape((*query.shape, *self.params.row_shape))
