"""Rows that inferences look up together, counted in bounded memory."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ._columns import Integers, distinct

__all__ = ["Pairs", "count_pairs"]

MAX_SET = 256
"""Rows of one inference whose pairs are counted; of a larger one, as many are drawn."""

_BLOCK = 1 << 22
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
    names, numbers = np.unique(rows, return_inverse=True)
    offsets, numbers = _sampled(offsets, numbers)
    offsets, numbers = _frequent(offsets, numbers, people, min_count)
    _, people = np.unique(people, return_inverse=True)
    owners, neighbors = [], []
    for first, second in _blocks(offsets, numbers, people, len(names), min_count):
        starts = np.flatnonzero(np.diff(first, prepend=-1))
        lengths = np.diff(starts, append=len(first))
        rank = np.arange(len(first)) - np.repeat(starts, lengths)
        table = np.full((len(starts), count), -1, np.int64)
        near = rank < count
        table[np.repeat(np.arange(len(starts)), lengths)[near], rank[near]] = names[second[near]]
        owners.append(names[first[starts]])
        neighbors.append(table)
    return Pairs(
        np.concatenate([np.zeros(0, np.int64), *owners]),
        np.concatenate([np.zeros((0, count), np.int64), *neighbors]),
    )


def _sampled(offsets: Integers, rows: Integers) -> tuple[Integers, Integers]:
    """Keeps at most MAX_SET rows of each set, drawn at random with a fixed seed."""
    lengths = np.diff(offsets)
    if lengths.max(initial=0) <= MAX_SET:
        return offsets, rows
    owners = np.repeat(np.arange(len(lengths)), lengths)
    chance = np.random.default_rng(_SEED).random(len(rows))
    order = np.lexsort((chance, owners))
    rank = np.arange(len(rows)) - np.repeat(offsets[:-1], lengths)
    kept = np.sort(order[rank < MAX_SET])
    return _offsets(np.minimum(lengths, MAX_SET)), rows[kept]


def _frequent(
    offsets: Integers, rows: Integers, people: Integers, min_count: int
) -> tuple[Integers, Integers]:
    """Removes rows that fewer than `min_count` users have: so do all of their pairs."""
    if min_count <= 1:
        return offsets, rows
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    _, mine = distinct(*_joined(people[owners], rows))
    kept = np.bincount(mine, minlength=int(rows.max(initial=0)) + 1)[rows] >= min_count
    return _offsets(np.bincount(owners[kept], minlength=len(offsets) - 1)), rows[kept]


def _joined(people: Integers, rows: Integers) -> tuple[Integers, Integers]:
    """Returns the rows of each user as sets with offsets."""
    order = np.argsort(people, kind="stable")
    return _offsets(np.bincount(people)), rows[order]


def _offsets(lengths: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


class _Bits(NamedTuple):
    """The bits of the second row, and of the user, in a number that stands for a pair."""

    row: int
    user: int


class _Accesses(NamedTuple):
    """Accesses by ascending row: the row, the beginning and length of its set, and the user."""

    rows: Integers
    starts: Integers
    lengths: Integers
    users: Integers

    def part(self, begin: int, end: int) -> "_Accesses":
        return _Accesses(*(column[begin:end] for column in self))


def _blocks(
    offsets: Integers, rows: Integers, people: Integers, limit: int, min_count: int
) -> Iterator[tuple[Integers, Integers]]:
    """Yields pairs of rows by ascending first row; per first row, the most frequent one first.

    A block has whole first rows, in about _BLOCK pairs together, so that memory stays bounded.
    """
    sets = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.argsort(rows, kind="stable")
    sets = sets[order]
    accesses = _Accesses(rows[order], offsets[sets], np.diff(offsets)[sets], people[sets])
    alone = len(np.unique(people)) == len(people)  # each user has one inference
    bits = _Bits(limit.bit_length(), 0 if alone else int(people.max(initial=0)).bit_length())
    ends = np.append(np.flatnonzero(np.diff(accesses.rows)) + 1, len(rows))
    work = np.cumsum(accesses.lengths)[ends - 1] if len(rows) else ends
    begin = first = 0
    while begin < len(rows):
        done = work[first - 1] if first else 0
        first = max(first + 1, int(np.searchsorted(work, done + _BLOCK, side="right")))
        end = int(ends[first - 1])
        part = accesses.part(begin, end)
        yield _ranked(_keys(part, rows, bits), bits, min_count, int(part.rows[0]))
        begin = end


def _keys(part: _Accesses, rows: Integers, bits: _Bits) -> Integers:
    """Returns (first row, second row, user) of each pair as one number, sorted.

    The first row is counted from the part's first one.
    """
    ends = np.cumsum(part.lengths)
    shift = np.repeat(part.starts - (ends - part.lengths), part.lengths)
    seconds = rows[np.arange(ends[-1]) + shift]
    own = (part.rows - part.rows[0]) << (bits.row + bits.user)
    if bits.user:
        own |= part.users
    keys = np.repeat(own, part.lengths) | seconds << bits.user
    keys = keys[seconds != np.repeat(part.rows, part.lengths)]
    return np.sort(keys)


def _ranked(keys: Integers, bits: _Bits, min_count: int, base: int) -> tuple[Integers, Integers]:
    """Counts sorted pairs; returns those of enough users, the most frequent first per first row."""
    pairs = keys >> bits.user
    starts: Integers = _starts(pairs)
    counts: Integers = np.diff(starts, append=len(pairs))
    enough = counts
    if bits.user and min_count > 1:
        enough = np.diff(np.searchsorted(_starts(keys), starts), append=len(_starts(keys)))
    kept = enough >= min_count
    pairs, counts = pairs[starts[kept]], counts[kept]
    first, second = pairs >> bits.row, pairs & ((1 << bits.row) - 1)
    order = np.lexsort((-counts, first))
    return first[order] + base, second[order]


def _starts(keys: Integers) -> Integers:
    """Returns where runs of equal numbers begin."""
    changes = np.concatenate([[True], keys[1:] != keys[:-1]])
    return np.flatnonzero(changes[: len(keys)])
