"""A client-side cache of recent rows, simulated over a log."""

from collections import OrderedDict

import numpy as np

from ....errors import ArgumentError
from .._columns import Bools
from .._log import AccessLog

__all__ = ["missed"]


def missed(log: AccessLog, cache_rows: int) -> Bools:
    """Marks the accesses that a cache of each user's `cache_rows` latest rows does not have.

    Users begin with an empty cache, and go through their inferences by time. Returns booleans, one
    for each of `log.rows`. Rows that a layout drops would not enter a client's cache, so with drops
    the cache has somewhat fewer rows than here. Rows that arrive unasked would take free places.

    Raises ArgumentError for a log without users or times.
    """
    if log.users is None or log.times is None:
        lacks = " and ".join(name for name in ("users", "times") if getattr(log, name) is None)
        raise ArgumentError(
            f"cache_rows: found a log without {lacks}, expected both: a client-side cache depends "
            "on what the same user looked up before; add the columns, or score without a cache"
        )
    found = np.ones(len(log.rows), np.bool_)
    cache: OrderedDict[int, None] = OrderedDict()
    user = -1
    for number in np.lexsort((log.times, log.users)).tolist():
        if log.users[number] != user:
            user = int(log.users[number])
            cache.clear()
        first = int(log.offsets[number])
        _inference(cache, cache_rows, log[number].tolist(), found[first:])
    return found


def _inference(
    cache: OrderedDict[int, None], cache_rows: int, rows: list[int], found: Bools
) -> None:
    """Looks up the rows of one inference; those that the cache has are used last afterwards."""
    fetched = []
    for at, row in enumerate(rows):
        if row in cache:
            cache.move_to_end(row)
            found[at] = False
        else:
            fetched.append(row)
    cache.update(dict.fromkeys(fetched))
    while len(cache) > cache_rows:
        cache.popitem(last=False)
