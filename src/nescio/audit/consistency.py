"""Whether counts can be true at all: with each other, and with the rounds.

F(t), how often a user took part before round t, grows by 0 or 1 a round, and a count is a
difference F(stop) - F(start). Such a system of difference constraints has a solution, and then one
in integers, unless its graph has a cycle of negative length (Bellman and Ford); so the check is
exact for every user by itself. Sums over users are held against the participants of the rounds.
"""

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError

__all__ = ["check_counts"]

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
_FAR = np.int64(1) << 40


def check_counts(
    windows: tuple[tuple[int, int], ...],
    counts: IntArray,
    error: int,
    participants: IntArray | None,
    empty: BoolArray,
) -> None:
    """Raises ArgumentError for counts that cannot be true.

    `counts` is (users, windows), -1 for unknown; each may be off by `error`. `participants` is
    (rounds,) or None; `empty` says which rounds had nobody.
    """
    open_before = np.concatenate(([0], np.cumsum(~empty)))
    for i, (start, stop) in enumerate(windows):
        _check_length(i, (start, stop), counts[:, i], error, open_before)
        if participants is not None:
            total = int(participants[start:stop].sum())
            _check_total(i, (start, stop), counts[:, i], error, total)
    if windows:
        _check_together(windows, counts, error, open_before)


def _check_length(
    i: int, window: tuple[int, int], counts: IntArray, error: int, open_before: IntArray
) -> None:
    most = int(open_before[window[1]] - open_before[window[0]])
    if (counts > most + error).any():
        user = int(np.argmax(counts))
        raise ArgumentError(
            f"counts: user {user} took part {counts[user]} times in window {i}, rounds "
            f"{window[0]} to {window[1] - 1}, expected at most {most} (the rounds that somebody "
            "took part in); log counts and rounds from the same clock"
        )


def _check_total(i: int, window: tuple[int, int], counts: IntArray, error: int, total: int) -> None:
    known = counts[counts >= 0]
    slack = error * len(known)
    complete = len(known) == len(counts)
    found = int(known.sum())
    if found > total + slack or (complete and found < total - slack):
        raise ArgumentError(
            f"counts: all users together took part {found} times in window {i}, rounds {window[0]} "
            f"to {window[1] - 1}, and participants says {total}; log both from the same clock, or "
            "pass count_error if counts are inexact"
        )


def _check_together(
    windows: tuple[tuple[int, int], ...], counts: IntArray, error: int, open_before: IntArray
) -> None:
    """Every user's counts at once: overlapping windows have to agree."""
    points = np.unique(np.array(windows))
    room = open_before[points]
    starts = np.searchsorted(points, [start for start, _ in windows])
    stops = np.searchsorted(points, [stop for _, stop in windows])
    # length[point, user]: the shortest path to F(point); edges as in F(stop) <= F(start) + most.
    length = np.zeros((len(points), len(counts)), np.int64)
    most = np.where(counts < 0, _FAR, counts + error).T
    least = np.where(counts < 0, -_FAR, counts - error).T
    bound = -int(room[-1] - room[0]) - 1
    while True:
        before = length.copy()
        for i, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            np.minimum(length[stop], length[start] + most[i], out=length[stop])
            np.minimum(length[start], length[stop] - least[i], out=length[start])
        # Between neighbours: F(b) - F(a) is at least 0, and at most the rounds that had somebody.
        length = np.minimum.accumulate(length - room[:, None], axis=0) + room[:, None]
        length = np.minimum.accumulate(length[::-1], axis=0)[::-1]
        failed = length.min(axis=0) < bound
        if failed.any():
            raise ArgumentError(
                f"counts: user {int(np.argmax(failed))}'s counts in overlapping windows contradict "
                "each other; log counts of windows that do not overlap, or pass count_error if "
                "they are inexact"
            )
        if (length == before).all():
            return
