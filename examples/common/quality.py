"""Qualities of predictions, and sampled negatives."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def roc_auc(labels: Array, scores: Array) -> float:
    """Computes the area under the ROC curve: equal scores count half.

    It is the probability that a positive example has a higher score than a negative one. `labels`
    are booleans (n,), `scores` floats (n,). Returns nan without positives or without negatives.
    """
    positive = np.asarray(labels, bool)
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]  # equal scores share the mean rank
    ones = int(positive.sum())
    zeros = len(positive) - ones
    if not ones or not zeros:
        return float("nan")
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def auc_interval(
    labels: Array, scores: Array, groups: Array, trials: int = 200, seed: int = 0
) -> tuple[float, float]:
    """Estimates a 95 % interval of the AUC over other users: a bootstrap over whole groups.

    `groups` (n,) numbers the user of each example.
    """
    random = np.random.default_rng(seed)
    order = np.argsort(groups, kind="stable")
    _, firsts = np.unique(groups[order], return_index=True)
    own = np.split(order, firsts[1:])
    found = []
    for _ in range(trials):
        drawn = np.concatenate([own[i] for i in random.integers(0, len(own), len(own))])
        found.append(roc_auc(labels[drawn], scores[drawn]))
    low, high = np.nanquantile(found, (0.025, 0.975))
    return float(low), float(high)


def sample_negatives(
    positives: Array, items: int, each: int, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Samples `each` items for every positive example, none of which its user has chosen.

    `positives` (n, 2) has pairs of a user and an item below `items`. Items are drawn uniformly.
    Returns (n, each). Raises ValueError for a user who has chosen all items.
    """
    taken = np.unique(positives[:, 0].astype(np.int64) * items + positives[:, 1])
    users = np.repeat(positives[:, 0].astype(np.int64), each)
    if np.bincount(np.searchsorted(np.unique(users), taken // items)).max() >= items:
        raise ValueError(f"a user has chosen all {items} items: no negative is left")
    drawn = random.integers(0, items, len(users))
    while (again := np.isin(users * items + drawn, taken)).any():
        drawn[again] = random.integers(0, items, int(again.sum()))
    return drawn.reshape(len(positives), each)
