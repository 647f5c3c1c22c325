"""The rows that inferences ask for: sets of any length, in which rows may repeat."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..._arrays import IndexArray, as_array, as_indices
from ...errors import ArgumentError

Numbers = npt.NDArray[np.int64]


class RowSets(NamedTuple):
    """Sets of different rows, one after the other, each in the order asked.

    Set s has the rows `offsets[s]` to `offsets[s + 1] - 1`. `asked[s]` has the places in `rows` of
    what was asked for, with repeats.
    """

    offsets: Numbers
    rows: IndexArray
    asked: list[Numbers]

    @classmethod
    def of(cls, sets: object, limit: int) -> "RowSets":
        """Converts one set (integers), or several (a sequence of them, or an array (n, k)).

        Raises IndexRangeError for a row that is not below `limit`, ArgumentError for other values.
        """
        own = [as_indices(one, limit, "a row") for one in _sequences(sets)]
        for one in own:
            if one.ndim != 1:
                raise ArgumentError(
                    f"sets of rows: found one of {one.ndim} dimensions, expected a list of rows "
                    "for each inference"
                )
        lengths = [len(one) for one in own]
        numbers = np.repeat(np.arange(len(own), dtype=np.uint64), lengths)
        every = np.concatenate(own) if own else np.zeros(0, np.uint64)
        # The rows of a set are different ones below `limit`, at most 2^40: a word holds both.
        order = np.lexsort((every, numbers))
        starts = np.ones(len(every), bool)
        starts[1:] = (np.diff(every[order]) != 0) | (np.diff(numbers[order]) != 0)
        group = np.cumsum(starts) - 1  # of each entry in that order
        firsts = order[starts]  # the sort is stable: the first of equal entries
        places = np.empty(len(firsts), np.int64)
        by_order = np.argsort(firsts, kind="stable")
        places[by_order] = np.arange(len(firsts))
        at = np.empty(len(every), np.int64)
        at[order] = places[group]
        rows = every[firsts[by_order]]
        counts = np.bincount(numbers[firsts].astype(np.int64), minlength=len(own))
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
        return cls(offsets, rows, np.split(at, np.cumsum(lengths)[:-1]) if own else [])


def _sequences(sets: object) -> Sequence[object]:
    """Returns the sets of one argument: a flat sequence is one set, also an empty one."""
    if isinstance(sets, list | tuple) and not all(isinstance(one, int) for one in sets):
        if all(np.ndim(one) == 0 for one in sets):  # NumPy's integers
            return [sets]
        return sets
    array = as_array(sets, "sets of rows")
    return list(array) if array.ndim == 2 else [array]
