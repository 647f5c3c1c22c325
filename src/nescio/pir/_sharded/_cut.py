"""The cut of a table into shards.

A shard has some of the tops, and of each hash table and of the records what is below these tops. So
every hash that a change of its rows needs is in the same shard. In memory a part begins with the
tile of its first row (core/pir/layout.h): rows of that tile that belong to the shard before are
zeros, which add nothing to an answer.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ... import _core
from ..._arrays import as_count
from ...errors import ArgumentError
from .._hash_shape import ARITY
from .._params import TableParams


class Part(NamedTuple):
    """A shard's part of a table: tops first..end-1, and what is below them."""

    first: int
    end: int

    def span(self, params: TableParams, level: int) -> tuple[int, int]:
        """Returns the first and the end of its records (level 0), or rows of a hash table."""
        shape = params.hashes
        scale, total = ARITY ** (shape.height - level), shape.levels[level].total
        return self.first * scale, min(self.end * scale, total)

    def rows(self, params: TableParams) -> tuple[int, int]:
        """Returns the first and the end of the part's rows."""
        first, end = self.span(params, 0)
        return first * params.record_rows, min(end * params.record_rows, params.rows)

    def window(self, params: TableParams, level: int) -> tuple[int, int]:
        """Returns the first row in memory and their number, of the records or a hash table."""
        first, end = self.span(params, level)
        first -= first % _core.TILE_ROWS
        return first, end - first

    def bytes(self, params: TableParams) -> int:
        """The memory of the records and of the hash tables."""
        return sum(
            _core.table_bytes(*layout, window=self.window(params, level))
            for level, layout in enumerate(params.layouts)
        )


def cut(params: TableParams, shards: int) -> list[Part]:
    """Cuts a table into shards of about as many rows each.

    Raises ArgumentError for a table in bins, or with fewer tops than shards.
    """
    shards = as_count(shards, "shards", 1, 1 << 16)
    if params.is_cut:
        raise ArgumentError(
            "found a table in bins, which is not cut into shards: expected a table of one bin; "
            "serve the bins as tables of their own"
        )
    tops = params.hashes.tops
    if shards > tops:
        raise ArgumentError(
            f"shards: found {shards}, expected at most {tops} for a table of {params.rows} rows"
        )
    return [Part(tops * i // shards, tops * (i + 1) // shards) for i in range(shards)]


def check_parts(params: TableParams, parts: Sequence[Part]) -> None:
    """Raises ArgumentError unless parts have every top of a table once, in order."""
    end = 0
    for part in parts:
        if part.first != end or part.end <= part.first:
            raise ArgumentError(
                f"parts: found tops {part.first} to {part.end}, expected {end} next"
            )
        end = part.end
    if end != params.hashes.tops:
        raise ArgumentError(f"parts: found {end} tops, expected {params.hashes.tops}")
