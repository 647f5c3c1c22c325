"""A model of the table: which rows a lookup may return, and which an acknowledged change wrote."""

import threading
from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from nescio._arrays import Array

WORDS = 16
"""32-bit words of a row: the update that wrote it, its index, and words that depend on both."""

_FACTORS = np.uint32(0x9E3779B1), np.uint32(0x85EBCA6B)


def rows_of(stamps: Array, indices: Array, words: int = WORDS) -> Array:
    """Makes the rows that updates `stamps` write at `indices`: uint32 (n, words), all different."""
    rows = np.empty((len(indices), words), np.uint32)
    rows[:, 0] = stamps
    rows[:, 1] = indices
    mixed = rows[:, :1] * _FACTORS[0] + rows[:, 1:2] * _FACTORS[1]
    rows[:, 2:] = mixed * np.arange(1, 2 * words - 4, 2, dtype=np.uint32)
    return rows


class Update(NamedTuple):
    """A change of rows: its number, which is the table's version after it, and what it writes."""

    number: int
    indices: Array
    words: int = WORDS

    @property
    def rows(self) -> Array:
        """The new rows."""
        return rows_of(np.full(len(self.indices), self.number), self.indices, self.words)


class Seen(NamedTuple):
    """A lookup's judgment: if a version has these rows, and by how many changes it was old."""

    right: bool
    behind: int


class Model:
    """The table at every version. Version n is the table after update n; the file is version 1.

    `begun` is the newest update that an operator has sent, `done` the newest one that both servers
    have acknowledged. May be used from several threads.
    """

    def __init__(self, rows: int, kept: int, words: int = WORDS) -> None:
        self.rows, self.words = rows, words
        self.begun = self.done = 1
        self._kept = kept  # older versions that servers may still answer
        self._writers: dict[int, list[int]] = {}  # the changes of a row, beside the first
        self._lock = threading.Lock()

    def initial(self) -> Array:
        """Makes the rows of the file that both servers start with."""
        return rows_of(np.ones(self.rows, int), np.arange(self.rows), self.words)

    def newest(self) -> Array:
        """Makes the rows of the newest version."""
        stamps = np.ones(self.rows, int)
        for index, writers in self._writers.items():
            stamps[index] = writers[-1]
        return rows_of(stamps, np.arange(self.rows), self.words)

    def begin(self, indices: Array) -> Update:
        """Begins the next update."""
        with self._lock:
            self.begun += 1
            for index in set(indices.tolist()):
                self._writers.setdefault(index, [1]).append(self.begun)
            return Update(self.begun, indices, self.words)

    def acknowledge(self, update: Update) -> None:
        """Counts an update as made at both servers."""
        self.done = update.number

    def judge(self, indices: Array, rows: Array, first: int) -> Seen:
        """Compares the rows of a lookup that began when `first` was done.

        They must all be those of one version: of `first`, a later one that has begun, or one of
        those before it that servers keep.
        """
        if not _genuine(indices, rows):
            return Seen(right=False, behind=0)
        with self._lock:
            spans = [
                self._span(index, stamp)
                for index, stamp in zip(indices.tolist(), rows[:, 0].tolist(), strict=True)
            ]
            newest = self.begun
        oldest = max((begin for begin, _ in spans), default=1)
        end = min((end for _, end in spans), default=newest)
        right = oldest <= end and end >= first - self._kept and oldest <= newest
        return Seen(right, max(0, first - end))

    def missing(self, indices: Array, rows: Array) -> tuple[set[int], int]:
        """Compares rows with those of the newest version, after the last update.

        Returns the acknowledged updates of which a row is missing, and the number of wrong rows.
        """
        lost: set[int] = set()
        wrong = 0
        for place, (index, row) in enumerate(zip(indices.tolist(), rows, strict=True)):
            expected = self._writers.get(index, [1])[-1]
            found = int(row[0])
            if not _genuine(indices[place : place + 1], row[None]) or found > expected:
                wrong += 1
            elif found < expected:
                lost.add(expected)
        return lost, wrong

    def _span(self, index: int, stamp: int) -> tuple[int, int]:
        """Returns the first and last version in which update `stamp` is the last one of a row."""
        writers = self._writers.get(index, [1])
        place = bisect_right(writers, stamp)
        if not place or writers[place - 1] != stamp:
            return 1, 0  # that update did not write this row
        return stamp, writers[place] - 1 if place < len(writers) else self.begun


def _genuine(indices: Array, rows: Array) -> bool:
    """Tests if rows are such as an update writes at these indices."""
    return bool(np.array_equal(rows_of(rows[:, 0], indices, rows.shape[1]), rows))
