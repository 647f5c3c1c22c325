"""Inference of a property of a user's data from what the user sent (Melis et al.).

The server makes updates from its own data with and without the property, and trains a classifier on
them. Melis, Song, De Cristofaro and Shmatikov, "Exploiting Unintended Feature Leakage in
Collaborative Learning" (2019), with ridge regression in place of their random forests.
"""

import torch
from torch import Tensor

from ...errors import ArgumentError

__all__ = ["auc", "property_scores", "summed"]

_STRENGTH = 1e-2


def property_scores(
    known: Tensor, has: Tensor, seen: Tensor, strength: float = _STRENGTH
) -> Tensor:
    """(k,): the score of the property for each row of `seen` (k, d).

    `known`: (n, d), updates or sums of them; `has`: bool (n,), True for those with the property.
    `strength` of the ridge is relative to the mean squared length of a row. Raises ArgumentError
    unless there are rows of both kinds.
    """
    if has.all() or not has.any():
        raise ArgumentError("property_scores: expected known updates with and without the property")
    centre = known.mean(dim=0)
    rows = (known - centre).double()
    products = rows @ rows.T
    ridge = strength * products.diagonal().mean() * torch.eye(len(rows), dtype=torch.float64)
    wanted = 2 * has.double() - 1
    weights = torch.linalg.solve(products + ridge, wanted - wanted.mean())
    return (seen - centre).double() @ (rows.T @ weights)


def auc(scores: Tensor, has: Tensor) -> float:
    """Returns the probability that a row with the property scores higher; ties count one half."""
    above = scores[has][:, None] - scores[~has][None, :]
    if not above.numel():
        raise ArgumentError("auc: expected rows with and without the property")
    return float((above > 0).double().mean() + (above == 0).double().mean() / 2)


def summed(
    targets: Tensor, others: Tensor, users: int, generator: torch.Generator, times: int = 1
) -> Tensor:
    """Returns sums of the updates of `users`: each row of `targets`, `times` times, plus others.

    Others are drawn with replacement: sums of many from a small pool would vary too little.
    """
    rows = []
    for target in targets.repeat(times, 1):
        chosen = torch.randint(len(others), (users - 1,), generator=generator)
        rows.append(target + others[chosen].sum(dim=0))
    return torch.stack(rows)
