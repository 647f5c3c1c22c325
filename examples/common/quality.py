"""Qualities of predictions."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def roc_auc(labels: Array, scores: Array) -> float:
    """Computes the area under the ROC curve: equal scores count half.

    It is the probability that a positive example has a higher score than a negative one. `labels`
    are booleans (n,), `scores` floats (n,). Returns nan without positives or without negatives.
    """
    values, place = np.unique(scores, return_inverse=True)
    return _area(place + len(values) * np.asarray(labels, bool), len(values), None)


def _area(cells: Array, values: int, weights: Array | None) -> float:
    """Computes the area for examples that count as often as `weights` say.

    `cells` (n,) numbers the scores from 0 in their order, with `values` added where the label is 1.
    """
    zeros, ones = np.bincount(cells, weights, 2 * values).reshape(2, values).astype(np.float64)
    pairs = zeros.sum() * ones.sum()
    below = np.cumsum(zeros) - zeros / 2  # equal scores count half
    return float(ones @ below / pairs) if pairs else float("nan")


def auc_interval(
    labels: Array, scores: Array, groups: Array, trials: int = 200, seed: int = 0
) -> tuple[float, float]:
    """Estimates a 95 % interval of the AUC over other users: a bootstrap over whole groups.

    `groups` (n,) numbers the user of each example.
    """
    random = np.random.default_rng(seed)
    users, own = np.unique(groups, return_inverse=True)
    values, place = np.unique(scores, return_inverse=True)
    cells, found = place + len(values) * np.asarray(labels, bool), []
    for _ in range(trials):
        drawn = np.bincount(random.integers(0, len(users), len(users)), minlength=len(users))
        found.append(_area(cells, len(values), drawn[own]))
    low, high = np.nanquantile(found, (0.025, 0.975))
    return float(low), float(high)
