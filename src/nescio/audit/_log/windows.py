"""Counts over windows that overlap, as counts over windows that do not.

Where windows share ends, differences of their counts are counts of shorter windows: from [0, 20)
and [0, 10) follows [10, 20). F(t), how often a user took part before round t, is known up to a
constant at all ends that a chain of windows connects; its differences between neighbouring ends say
all that the windows said, and those of one chain do not overlap.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from .._arrays import IntArray

__all__ = [
    "Batch",
    "agree",
    "batches",
    "disjoint",
    "free_rounds",
    "log_binomial",
    "log_choices",
    "refine",
    "window_sums",
]

Windows = tuple[tuple[int, int], ...]

MAX_BATCHES = 16
"""Kinds of gaps in the counts for which the span is cut anew; beyond, all users share one cut."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Users who are looked for together.

    `users`: (k,), their numbers. `shared`: windows whose counts all of them have, exactly;
    `shared_counts`: (k, shared). `apart`: windows that do not overlap; `lower` and `upper`:
    (k, apart), what the counts there may be.
    """

    users: IntArray
    shared: Windows
    shared_counts: IntArray
    apart: Windows
    lower: IntArray
    upper: IntArray


def batches(windows: Windows, counts: IntArray, error: int, users: IntArray) -> Iterator[Batch]:
    """The users, together with those who have counts for the same windows.

    `counts` is (all users, windows); `users` are those who are looked for.
    """
    known = counts[users] >= 0
    patterns, which = np.unique(known, axis=0, return_inverse=True)
    which = which.reshape(-1)
    if len(patterns) > MAX_BATCHES or error:
        yield _mixed(windows, counts[users], error, users)
        return
    for i, pattern in enumerate(patterns):
        chosen = users[which == i]
        mine = tuple(w for w, is_known in zip(windows, pattern, strict=True) if is_known)
        mine, theirs = refine(mine, counts[np.ix_(chosen, np.flatnonzero(pattern))])
        keep = disjoint(mine)
        apart = tuple(mine[j] for j in keep)
        yield Batch(chosen, mine, theirs, apart, theirs[:, keep], theirs[:, keep])


def _mixed(windows: Windows, counts: IntArray, error: int, users: IntArray) -> Batch:
    """Users with gaps in different places, or inexact counts: only bounds differ between them."""
    keep = disjoint(windows)
    apart = tuple(windows[j] for j in keep)
    chosen = counts[:, keep]
    length = np.array([stop - start for start, stop in apart], np.int64)
    least = np.where(chosen < 0, 0, np.clip(chosen - error, 0, length))
    most = np.where(chosen < 0, length, np.clip(chosen + error, 0, length))
    common = [] if error else np.flatnonzero((counts >= 0).all(axis=0)).tolist()
    shared = tuple(windows[j] for j in common)
    return Batch(users, shared, counts[:, common], apart, least, most)


def refine(windows: Windows, counts: IntArray) -> tuple[Windows, IntArray]:
    """Windows and counts (users, windows), without gaps, that say the same in the shortest way."""
    neighbours: dict[int, list[tuple[int, IntArray]]] = {}
    for (start, stop), count in zip(windows, counts.T, strict=True):
        neighbours.setdefault(start, []).append((stop, count))
        neighbours.setdefault(stop, []).append((start, -count))
    before: dict[int, IntArray] = {}
    short: list[tuple[tuple[int, int], IntArray]] = []
    for point in sorted(neighbours):
        if point in before:
            continue
        chain = _chain(point, neighbours, len(counts))
        before.update(chain)
        ends = sorted(chain)
        short += [((a, b), chain[b] - chain[a]) for a, b in pairwise(ends)]
    short.sort(key=lambda item: item[0])
    columns = [count for _, count in short]
    table = np.stack(columns, axis=1) if columns else np.zeros((len(counts), 0), np.int64)
    return tuple(window for window, _ in short), table


def _chain(
    first: int, neighbours: dict[int, list[tuple[int, IntArray]]], users: int
) -> dict[int, IntArray]:
    """F at all ends that are connected with the first, where it is 0."""
    found = {first: np.zeros(users, np.int64)}
    waiting = [first]
    while waiting:
        point = waiting.pop()
        for other, count in neighbours[point]:
            if other not in found:
                found[other] = found[point] + count
                waiting.append(other)
    return found


def disjoint(windows: Windows) -> list[int]:
    """The most windows of which no two overlap, by number: always the one that stops first."""
    chosen: list[int] = []
    reached = 0
    for j in sorted(range(len(windows)), key=lambda j: (windows[j][1], -windows[j][0])):
        if windows[j][0] >= reached:
            chosen.append(j)
            reached = windows[j][1]
    return chosen


def window_sums(columns: npt.NDArray[np.uint8], windows: Windows) -> IntArray:
    """How many ones rows of `columns` (k, rounds) have in each window: (k, windows)."""
    before = np.zeros((len(columns), columns.shape[1] + 1), np.int64)
    np.cumsum(columns, axis=1, out=before[:, 1:])
    ends = np.array(windows, np.int64).reshape(-1, 2)
    return np.asarray(before[:, ends[:, 1]] - before[:, ends[:, 0]])


def agree(
    columns: npt.NDArray[np.uint8], windows: Windows, counts: IntArray, error: int
) -> npt.NDArray[np.bool_]:
    """(k,): which rows of `columns` have the counts (k, windows), where those are known."""
    wrong = np.abs(window_sums(columns, windows) - counts) > error
    return np.asarray(~(wrong & (counts >= 0)).any(axis=1))


def free_rounds(batch: Batch, empty: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """(users, rounds): True where a user's counts do not determine the participation."""
    free = np.ones((len(batch.users), len(empty)), np.bool_)
    for i, (start, stop) in enumerate(batch.apart):
        none = batch.upper[:, i] == 0
        every = batch.lower[:, i] == (~empty[start:stop]).sum()
        free[none | every, start:stop] = False
    free[:, empty] = False
    return free


def log_choices(batch: Batch, empty: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """(users,): the natural logarithm of how many binary columns have a user's counts, or more."""
    outside = ~empty
    total = np.zeros(len(batch.users))
    for i, (start, stop) in enumerate(batch.apart):
        length = int((~empty[start:stop]).sum())
        outside[start:stop] = False
        exactly = np.array([log_binomial(length, k) for k in range(length + 1)])
        up_to = np.logaddexp.accumulate(exactly)
        least, most = (np.minimum(x[:, i], length) for x in (batch.lower, batch.upper))
        total += np.where(least == most, exactly[most], up_to[most])
    return total + math.log(2) * int(outside.sum())


def log_binomial(n: int, k: int) -> float:
    """The natural logarithm of n over k."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
