"""Rows that inferences look up together, counted by the engine."""

from typing import NamedTuple

import numpy as np

from ... import _core
from ._columns import Integers, distinct

__all__ = ["Pairs", "count_pairs"]

MAX_SET = 256
"""Rows of one inference whose pairs are counted; of a larger one, as many are drawn."""

_SEED = 18


class Pairs(NamedTuple):
    """The rows that are looked up together most often.

    `rows` (m,) is ascending; `neighbors` (m, count) has the row's neighbors, the most frequent one
    first, and -1 where a row has fewer. Both are int64.
    """

    rows: Integers
    neighbors: Integers


def count_pairs(
    offsets: Integers, rows: Integers, people: Integers, count: int, min_count: int
) -> Pairs:
    """Finds up to `count` neighbors of each row: those that most inferences have with it.

    `offsets` and `rows` are those of a log, `people` (n,) numbers the user of each inference. A
    pair counts only if at least `min_count` users have it. Equal numbers go by the row's index.
    Inferences with more than 256 rows count by a random sample of 256 of them.
    """
    owners = np.repeat(np.arange(len(people)), np.diff(offsets))
    kept = _sampled(offsets, owners)
    owners, rows = owners[kept], rows[kept]
    _, users = np.unique(people, return_inverse=True)
    common = _common(users[owners], rows, min_count)
    order = np.argsort(users[owners[common]], kind="stable")  # the sets of a user one by one
    owners, rows = owners[common][order], rows[common][order]
    if not len(rows):
        return Pairs(np.zeros(0, np.int64), np.zeros((0, count), np.int64))
    names, numbers = np.unique(rows, return_inverse=True)
    begins = np.flatnonzero(np.diff(owners, prepend=-1))
    found = _core.count_pairs(
        np.append(begins, len(rows)),
        numbers,
        users[owners[begins]],
        len(names),
        count,
        min_count,
        _core.ThreadPool(),
    )
    known = found[:, 0] >= 0
    return Pairs(names[known], np.where(found < 0, -1, names[found])[known])


def _sampled(offsets: Integers, owners: Integers) -> Integers:
    """Returns the accesses that count: at most MAX_SET of each set, drawn with a fixed seed."""
    lengths = np.diff(offsets)
    if lengths.max(initial=0) <= MAX_SET:
        return np.arange(len(owners))
    chance = np.random.default_rng(_SEED).random(len(owners))
    order = np.lexsort((chance, owners))
    rank = np.arange(len(owners)) - np.repeat(offsets[:-1], lengths)
    return np.sort(order[rank < MAX_SET])


def _common(users: Integers, rows: Integers, min_count: int) -> Integers:
    """Returns the accesses to rows that at least `min_count` users have: others have no pairs."""
    if min_count <= 1:
        return np.arange(len(rows))
    order = np.argsort(users, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(users))])
    _, own = distinct(offsets, rows[order])
    names, counts = np.unique(own, return_counts=True)
    return np.flatnonzero(counts[np.searchsorted(names, rows)] >= min_count)
