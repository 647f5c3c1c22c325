"""The sum of what all shards answer."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from ... import _core
from ..._arrays import Array, ByteArray
from .._params import TableParams


def add_answers(params: TableParams, lookups: int, parts: Sequence[ByteArray]) -> ByteArray:
    """Adds the shares of all shards for some lookups: flat arrays of one length.

    They are those of `lookups` lookups with equally many tables each, one after the other.
    """
    total = np.array(parts[0])
    outputs = [layout.output for layout in params.layouts]
    if all(output == "bit" for output in outputs):
        for part in parts[1:]:
            np.bitwise_xor(_words(total), _words(part), out=_words(total))
        return total
    rows = total.reshape(lookups, -1)
    ends = [end for end in accumulate(params.answer_widths) if end <= rows.shape[1]]
    for part in parts[1:]:
        other = part.reshape(rows.shape)
        for output, (first, end) in zip(outputs, pairwise([0, *ends]), strict=False):
            own = np.ascontiguousarray(rows[:, first:end]).reshape(-1)
            added = np.ascontiguousarray(other[:, first:end]).reshape(-1)
            rows[:, first:end] = _core.combine(output, own, added).reshape(lookups, end - first)
    return total


def _words(array: ByteArray) -> Array:
    """Views bytes as words, which NumPy adds several times as fast."""
    return array.view(np.uint64) if len(array) % 8 == 0 else array
