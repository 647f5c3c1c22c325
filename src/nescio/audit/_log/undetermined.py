"""Rounds whose participation a user's counts do not determine."""

import numpy as np

from .._arrays import BoolArray
from .windows import Batch

__all__ = ["free_rounds"]


def free_rounds(batch: Batch, empty: BoolArray) -> BoolArray:
    """(users, rounds): True where a user's counts do not determine the participation."""
    free = np.ones((len(batch.users), len(empty)), np.bool_)
    for i, (start, stop) in enumerate(batch.apart):
        never = batch.upper[:, i] == 0
        always = batch.lower[:, i] == (~empty[start:stop]).sum()
        free[never | always, start:stop] = False
    free[:, empty] = False
    return free
