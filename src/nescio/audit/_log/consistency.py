"""Consistency of a log: counts with each other and with the rounds, rounds with the users.

F(t), the number of rounds before t in which a user took part, grows by 0 or 1 per round, and a
count is a difference F(stop) - F(start). Such a system of difference constraints has a solution,
and then an integer one, unless its graph has a cycle of negative length (Bellman and Ford). So the
check is exact for every single user. Sums over users are compared with the participants of the
rounds.
"""

import numpy as np

from ...errors import ArgumentError
from .._arrays import BoolArray, IntArray

__all__ = ["check_counts", "check_size"]

_FAR = np.int64(1) << 40


def check_counts(
    windows: tuple[tuple[int, int], ...],
    counts: IntArray,
    error: int,
    participants: IntArray | None,
    empty: BoolArray,
) -> None:
    """Raises ArgumentError if no participation matrix has these counts.

    `counts` is (users, windows), -1 for unknown; each may be off by `error`. `participants` is
    (rounds,) or None; `empty` marks rounds without participants.
    """
    filled_before = np.concatenate(([0], np.cumsum(~empty)))
    for i, (start, stop) in enumerate(windows):
        _check_length(i, (start, stop), counts[:, i], error, filled_before)
        if participants is not None:
            total = int(participants[start:stop].sum())
            _check_total(i, (start, stop), counts[:, i], error, total)
    if windows:
        _check_together(windows, counts, error, filled_before)


def _check_length(
    i: int, window: tuple[int, int], counts: IntArray, error: int, filled_before: IntArray
) -> None:
    upper = int(filled_before[window[1]] - filled_before[window[0]])
    if (counts > upper + error).any():
        user = int(np.argmax(counts))
        raise ArgumentError(
            f"counts: user {user} took part {counts[user]} times in window {i}, rounds "
            f"{window[0]} to {window[1] - 1}, expected at most {upper} (its rounds with "
            "participants); log counts and rounds from the same clock"
        )


def _check_total(i: int, window: tuple[int, int], counts: IntArray, error: int, total: int) -> None:
    known = counts[counts >= 0]
    slack = error * len(known)
    complete = len(known) == len(counts)
    found = int(known.sum())
    if found > total + slack or (complete and found < total - slack):
        raise ArgumentError(
            f"counts: all users together took part {found} times in window {i}, rounds {window[0]} "
            f"to {window[1] - 1}, but participants says {total}; log both from the same clock, or "
            "pass count_error if counts are inexact"
        )


def _check_together(
    windows: tuple[tuple[int, int], ...], counts: IntArray, error: int, filled_before: IntArray
) -> None:
    """Checks that the counts of overlapping windows agree, for all users at once."""
    points = np.unique(np.array(windows))
    filled = filled_before[points]
    starts = np.searchsorted(points, [start for start, _ in windows])
    stops = np.searchsorted(points, [stop for _, stop in windows])
    # length[point, user]: the shortest path to F(point); edges as in F(stop) <= F(start) + upper.
    length = np.zeros((len(points), len(counts)), np.int64)
    upper = np.where(counts < 0, _FAR, counts + error).T
    lower = np.where(counts < 0, -_FAR, counts - error).T
    bound = -int(filled[-1] - filled[0]) - 1
    while True:
        before = length.copy()
        for i, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            np.minimum(length[stop], length[start] + upper[i], out=length[stop])
            np.minimum(length[start], length[stop] - lower[i], out=length[start])
        # Between neighbors: F(b) - F(a) is at least 0 and at most the rounds with participants.
        length = np.minimum.accumulate(length - filled[:, None], axis=0) + filled[:, None]
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


def check_size(rounds: int, dimensions: int, users: int, idle: BoolArray) -> None:
    """Raises ArgumentError if the log has too few rounds or dimensions for its users."""
    active = users - int(idle.sum())
    if rounds <= active:
        raise ArgumentError(
            f"aggregates: found {rounds} rounds of {active} active users, expected more rounds "
            "than users, because otherwise any participation fits; log at least "
            f"{active + 1} rounds, better {2 * active}"
        )
    if dimensions < active:
        raise ArgumentError(
            f"aggregates: found {dimensions} dimensions, expected at least {active}, one for each "
            "active user; log more parameters of the update"
        )
