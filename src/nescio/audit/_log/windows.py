"""Conversion of counts over overlapping windows to counts over windows that do not overlap.

Where windows share ends, differences of their counts are counts of shorter windows: [0, 20) and
[0, 10) give [10, 20). F(t), the number of rounds before t in which a user took part, is known up to
a constant at all ends that a chain of windows connects. Its differences between neighboring ends
contain all the information in the windows, and the windows of one chain do not overlap.
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
    "batches",
    "disjoint",
    "log_binomial",
    "log_choices",
    "refine",
]

Windows = tuple[tuple[int, int], ...]

MAX_BATCHES = 16
"""Maximum patterns of known counts with an affine set each; beyond it, all users share one."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Users whose columns are searched together: they have counts for the same windows.

    `users`: (k,), their numbers. `shared`: windows whose exact counts are known for all of them;
    `shared_counts`: (k, shared). `apart`: windows that do not overlap; `lower` and `upper`: (k,
    apart), bounds of the counts there.
    """

    users: IntArray
    shared: Windows
    shared_counts: IntArray
    apart: Windows
    lower: IntArray
    upper: IntArray

    def part(self, places: IntArray) -> "Batch":
        """Returns a batch of the users at `places`."""
        return Batch(
            self.users[places],
            self.shared,
            self.shared_counts[places],
            self.apart,
            self.lower[places],
            self.upper[places],
        )


def batches(windows: Windows, counts: IntArray, error: int, users: IntArray) -> Iterator[Batch]:
    """Groups users by the windows for which they have counts.

    `counts` is (all users, windows); `users` are those to group.
    """
    known = counts[users] >= 0
    patterns, which = np.unique(known, axis=0, return_inverse=True)
    which = which.reshape(-1)
    if len(patterns) > MAX_BATCHES or error:
        yield _mixed(windows, counts[users], error, users)
        return
    for i, pattern in enumerate(patterns):
        chosen = users[which == i]
        kept = tuple(w for w, is_known in zip(windows, pattern, strict=True) if is_known)
        kept, theirs = refine(kept, counts[np.ix_(chosen, np.flatnonzero(pattern))])
        chosen_windows = disjoint(kept)
        apart = tuple(kept[j] for j in chosen_windows)
        bounds = theirs[:, chosen_windows]
        yield Batch(chosen, kept, theirs, apart, bounds, bounds)


def _mixed(windows: Windows, counts: IntArray, error: int, users: IntArray) -> Batch:
    """Makes one batch of users with different gaps or inexact counts; only bounds differ."""
    keep = disjoint(windows)
    apart = tuple(windows[j] for j in keep)
    chosen = counts[:, keep]
    length = np.array([stop - start for start, stop in apart], np.int64)
    lower = np.where(chosen < 0, 0, np.clip(chosen - error, 0, length))
    upper = np.where(chosen < 0, length, np.clip(chosen + error, 0, length))
    common = [] if error else np.flatnonzero((counts >= 0).all(axis=0)).tolist()
    shared = tuple(windows[j] for j in common)
    return Batch(users, shared, counts[:, common], apart, lower, upper)


def refine(windows: Windows, counts: IntArray) -> tuple[Windows, IntArray]:
    """Returns the shortest windows, and their counts (users, windows), that imply the given ones.

    All counts must be known.
    """
    neighbors: dict[int, list[tuple[int, IntArray]]] = {}
    for (start, stop), count in zip(windows, counts.T, strict=True):
        neighbors.setdefault(start, []).append((stop, count))
        neighbors.setdefault(stop, []).append((start, -count))
    before: dict[int, IntArray] = {}
    short: list[tuple[tuple[int, int], IntArray]] = []
    for point in sorted(neighbors):
        if point in before:
            continue
        chain = _chain(point, neighbors, len(counts))
        before.update(chain)
        ends = sorted(chain)
        short += [((a, b), chain[b] - chain[a]) for a, b in pairwise(ends)]
    short.sort(key=lambda item: item[0])
    columns = [count for _, count in short]
    table = np.stack(columns, axis=1) if columns else np.zeros((len(counts), 0), np.int64)
    return tuple(window for window, _ in short), table


def _chain(
    first: int, neighbors: dict[int, list[tuple[int, IntArray]]], users: int
) -> dict[int, IntArray]:
    """Returns F at all ends connected to the first one, where F is 0."""
    found = {first: np.zeros(users, np.int64)}
    waiting = [first]
    while waiting:
        point = waiting.pop()
        for other, count in neighbors[point]:
            if other not in found:
                found[other] = found[point] + count
                waiting.append(other)
    return found


def disjoint(windows: Windows) -> list[int]:
    """Selects a largest set of windows that do not overlap, by index: the one that stops first."""
    chosen: list[int] = []
    reached = 0
    for j in sorted(range(len(windows)), key=lambda j: (windows[j][1], -windows[j][0])):
        if windows[j][0] >= reached:
            chosen.append(j)
            reached = windows[j][1]
    return chosen


def log_choices(batch: Batch, empty: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """(users,): natural logarithm of an upper bound on the binary columns with a user's counts."""
    outside = ~empty
    total = np.zeros(len(batch.users))
    for i, (start, stop) in enumerate(batch.apart):
        length = int((~empty[start:stop]).sum())
        outside[start:stop] = False
        exactly = np.array([log_binomial(length, k) for k in range(length + 1)])
        up_to = np.logaddexp.accumulate(exactly)
        lower, upper = (np.minimum(x[:, i], length) for x in (batch.lower, batch.upper))
        total += np.where(lower == upper, exactly[upper], up_to[upper])
    return total + math.log(2) * int(outside.sum())


def log_binomial(n: int, k: int) -> float:
    """Natural logarithm of n over k."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
