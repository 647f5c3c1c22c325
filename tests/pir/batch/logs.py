"""Access logs for tests: popular rows, and rows that occur together."""

import numpy as np

from nescio.pir.batch import AccessLog

ROWS = 600


def sessions(rng, inferences=400, rows=ROWS, longest=12, known=True):
    """Makes a log of users who look up popular rows, often with the next one."""
    users = np.sort(rng.integers(0, 30, inferences))
    times = rng.random(inferences)
    sets = []
    for user in users:
        count = int(rng.integers(2, longest + 1))
        popular = np.minimum(rng.zipf(1.3, count), rows) - 1
        own = (popular * 7 + (user % 3)) % rows
        sets.append([*own, *((own[: count // 2] + 1) % rows)])
    return AccessLog(sets, users, times) if known else AccessLog(sets)
