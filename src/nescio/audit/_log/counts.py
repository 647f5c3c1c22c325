"""Participation counts of columns."""

import numpy as np

from .._arrays import BoolArray, Columns, IntArray
from .windows import Windows

__all__ = ["agree", "window_sums"]


def window_sums(columns: Columns, windows: Windows) -> IntArray:
    """Counts the ones in each window for rows of `columns` (k, rounds): (k, windows)."""
    before = np.zeros((len(columns), columns.shape[1] + 1), np.int64)
    np.cumsum(columns, axis=1, out=before[:, 1:])
    ends = np.array(windows, np.int64).reshape(-1, 2)
    return np.asarray(before[:, ends[:, 1]] - before[:, ends[:, 0]])


def agree(columns: Columns, windows: Windows, counts: IntArray, error: int) -> BoolArray:
    """(k,): True for rows of `columns` that have the known ones of the counts (k, windows)."""
    wrong = np.abs(window_sums(columns, windows) - counts) > error
    return np.asarray(~(wrong & (counts >= 0)).any(axis=1))
