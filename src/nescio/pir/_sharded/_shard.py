"""A part of a table: changed in two steps, and answered like a table of its own.

A shard gets queries to the whole table, and evaluates their keys over its own rows alone. Its
answers are sums over these rows: added to those of all other shards of the same version, they are
answers of the table. A change is prepared first, which changes nothing; then, when the head of the
table knows the id after it, it is made. Queries to versions before it are answered as those of a
whole table are (_history.py), so that shards may make a change at different times.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from ... import _core
from ..._arrays import ByteArray, IndexArray
from ...errors import ArgumentError, IndexRangeError, MismatchError
from .. import _wire as wire
from .._hash_tree import TreeChange
from .._params import TableParams
from .._rows import NO_DIGEST
from .._server import Server
from .._state import TableState, new_version
from .._table import Table
from .._wire import QueryMessage
from ._change import RowUpdate
from ._cut import Part
from ._frozen import Frozen


@dataclass(frozen=True, slots=True)
class Prepared:
    """A change that a shard is ready to make.

    `rows` has the numbers of the records, their old and their new bytes; `tops` the numbers and the
    new hashes of the tops.
    """

    before: bytes
    rows: tuple[IndexArray, ByteArray, ByteArray]
    changes: _core.RowChanges
    tree: TreeChange

    @property
    def tops(self) -> tuple[IndexArray, ByteArray]:
        """The numbers of the tops that change, and their new hashes."""
        numbers = self.tree.old_tops[0]
        return numbers, self.tree.tops[numbers.astype(np.int64)]

    @property
    def overwritten(self) -> list[tuple[IndexArray, ByteArray]]:
        """The numbers and the old bytes of the records, then of the rows of each hash table."""
        return [(numbers, old) for numbers, old, _ in (self.rows, *self.tree.rows)]


class ShardTable(Table):
    """The rows of a part of a table. Its parameters are those of the whole table."""

    part: Part
    _frozen: list[Frozen]

    @classmethod
    def of(cls, state: TableState, part: Part, pool: _core.ThreadPool) -> "ShardTable":
        """Returns the table of a state that `build_shard` or `read_shard` made."""
        table = cls.__new__(cls)
        table._begin(state, pool)
        table.part = part
        table._frozen = []
        return table

    @property
    def is_fresh(self) -> bool:
        """True for rows of a table whose digest is not known yet."""
        return self.params.digest == NO_DIGEST

    def identify(self, params: TableParams) -> None:
        """Takes over the parameters of a table whose digest was not known when it was built.

        Raises MismatchError for a table that has a digest: its rows may be those of a change.
        """
        if not self.is_fresh:
            raise wire.wrong_table("a base", params.id, self.params)
        self._lock.write(lambda: self._rename(params))
        self._ids.add(params.id)

    def _rename(self, params: TableParams) -> None:
        self._state = replace(self._state, params=params)

    def window(self, number: int) -> tuple[int, int]:
        """Returns the first row in memory and their number, of the records or a hash table."""
        return self.part.window(self.params, number)

    def own_tops(self) -> ByteArray:
        """Returns the tops of the part."""
        return self._state.tree.tops[self.part.first : self.part.end]

    @contextmanager
    def frozen(self) -> Iterator[Frozen]:
        """Gives the current version, which outlasts changes made until the block ends."""
        with self.changing():
            frozen = Frozen(self._state, self.part, self._lock, self._pool)
            self._lock.write(lambda: self._frozen.append(frozen))
        try:
            yield frozen
        finally:
            self._lock.write(lambda: self._frozen.remove(frozen))

    def prepare(self, update: RowUpdate) -> Prepared:
        """Computes what a change of the part's rows needs, and changes nothing.

        Raises MismatchError for a change of another version than the current one, and
        IndexRangeError for rows of other shards.
        """
        with self.changing():
            state = self._state
            if update.before != state.params.id:
                raise wire.wrong_table("a change", update.before, state.params)
            first, end = self.part.rows(state.params)
            outside = (update.indices < np.uint64(first)) | (update.indices >= np.uint64(end))
            if outside.any():
                raise IndexRangeError(
                    f"found row {update.indices[outside][0]}, expected {first} to {end - 1}"
                )
            rows = state.overlaid(update.indices, update.rows)
            groups = state.params.layouts[0].bins
            changes = _core.RowChanges(rows[0], rows[2], groups, self._pool)
            tree = TreeChange.of(state.tree, state.params.hashes, rows[0], rows[2], self._pool)
            return Prepared(state.params.id, rows, changes, tree)

    def commit(self, prepared: Prepared, after: TableParams) -> None:
        """Makes a prepared change, whose version has the parameters `after`.

        Raises MismatchError if another change was made since it was prepared.
        """
        with self.changing():
            old = self._state
            if prepared.before != old.params.id:
                raise wire.wrong_table("a prepared change", prepared.before, old.params)
            state = new_version(old, prepared.tree.tops, prepared.rows[0], after.version)
            state = replace(state, params=after)
            state = self._keeping.updated(state, old, prepared.rows, prepared.tree)
            tables = [(old.records, prepared.changes), *prepared.tree.tables]

            def write() -> None:
                for frozen in self._frozen:
                    frozen.note(prepared.overwritten)
                _core.replace_all(tables, self._pool)
                self._state = state

            self._lock.write(write)
            self._changed(after)

    def make(self, update: RowUpdate) -> None:
        """Makes a change that is known to be made elsewhere. Raises the errors of `prepare`."""
        if update.after is None:
            raise ArgumentError("found a change without the parameters after it")
        self.commit(self.prepare(update.of(self.params, self.part)), update.after)


class ShardServer(Server):
    """Answers queries to a table from the rows of one shard."""

    def answer_parts(
        self, queries: Sequence[QueryMessage | MismatchError]
    ) -> list[bytes | MismatchError]:
        """Answers checked queries, errors excepted: an answer's shares, without its header."""
        good = [query for query in queries if isinstance(query, QueryMessage)]
        found = iter(self.answer_batch(good) if good else ())
        return [
            _shares(next(found)) if isinstance(query, QueryMessage) else query for query in queries
        ]

    def checked(self, query: bytes) -> QueryMessage | MismatchError:
        """Checks a query; returns the error for a version that the shard does not answer."""
        try:
            return self.check(query)
        except MismatchError as error:
            return error


def _shares(answer: bytes | MismatchError) -> bytes | MismatchError:
    return answer if isinstance(answer, MismatchError) else answer[wire.HEADER_BYTES :]
