"""The places of a keyed table's keys: with which seed and size they fit, and when they grow.

Everything follows from the keys and the order of the operations, so that two servers agree.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ... import _core
from ...errors import ArgumentError
from ._keys import PackedKeys, Words, next_seed
from ._layout import MAX_ROWS, SUBTABLES

Slots: TypeAlias = npt.NDArray[np.int64]
"""Rows of the physical table: subtable j begins with slot j * rows."""

Name: TypeAlias = Callable[[int], str]
"""Describes the key with a number for an error message."""

_MAX_TRIES = 128
_TRIES_PER_SIZE = 4
_MAX_GROWTH = 8


def least_rows(keys: int) -> int:
    """Returns the fewest rows of a subtable for so many keys: at most 0.9 of all rows are used."""
    return max(1, -(-10 * keys // 27))


def is_full(rows: int, keys: int) -> bool:
    """Tests if so many keys would use more than 0.9 of the rows."""
    return 10 * keys > 9 * SUBTABLES * rows


def grown(rows: int) -> int:
    """Returns the next size of a subtable."""
    return rows + -(-rows // 8)


def check_rows(rows: int) -> None:
    """Raises ArgumentError for subtables that are too large."""
    if rows > MAX_ROWS:
        raise ArgumentError(
            f"keys: they need {SUBTABLES} subtables of {rows} rows, expected at most 2^32 rows: "
            "split the table"
        )


def build(
    keys: PackedKeys, seed: bytes, pool: _core.ThreadPool
) -> tuple[bytes, Words, _core.Cuckoo]:
    """Places keys; returns the seed that worked, the hashed keys and their places.

    After a failure the next seed is tried; after each fourth one, the subtables also grow. Raises
    ArgumentError for equal keys.
    """
    rows = least_rows(len(keys))
    for tries in range(1, _MAX_TRIES + 1):
        check_rows(rows)
        words, places = keys.hashed(seed, pool), _core.Cuckoo(rows)
        if places.insert(words):
            return seed, words, places
        check_different(words, keys.describe)
        seed = next_seed(seed)
        rows = rows if tries % _TRIES_PER_SIZE else grown(rows)
    raise _no_places(len(keys))


def enlarged(places: _core.Cuckoo, new: Words) -> _core.Cuckoo:
    """Returns larger subtables with the keys of `places`, by slot, and then new ones.

    Raises ArgumentError if no size has places for them: somebody has chosen the keys for that.
    """
    words = np.concatenate([places.entries()[1], new])
    rows = max(grown(places.rows), least_rows(len(words)))
    while rows <= max(64, _MAX_GROWTH * least_rows(len(words))):
        check_rows(rows)
        larger = _core.Cuckoo(rows)
        if larger.insert(words):
            return larger
        rows = grown(rows)
    raise _no_places(len(words))


def check_different(words: Words, name: Name) -> None:
    """Raises ArgumentError if two hashed keys are equal; `name` describes the key of a number."""
    order = np.argsort(words[:, 0], kind="stable")
    ordered = words[order]
    for at in np.flatnonzero((ordered[1:] == ordered[:-1]).all(axis=1))[:1]:
        first, second = int(order[at]), int(order[at + 1])
        raise ArgumentError(
            f"keys: found {name(second)} twice, as key {first} and as key {second}, expected "
            "different keys"
        )


def _no_places(keys: int) -> ArgumentError:
    return ArgumentError(
        f"keys: found {keys} that have no places in subtables of any size: somebody may have "
        "chosen them for that; build the table anew, with another seed"
    )
