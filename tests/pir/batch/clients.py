"""Clients of batch tables in one process, and the rows that they must get."""

import numpy as np

from nescio.pir import LocalTable
from nescio.pir.batch import BatchClient, FullPart, HotPart, Layout, Together, build

ROWS = 500
VALUES = np.random.default_rng(1).integers(-9, 9, (ROWS, 2, 3), np.int16)
PARTIAL = Layout(ROWS, FullPart(8), HotPart(np.arange(0, 60), 4, keys=2))
EXACT = Layout(ROWS, FullPart(8, hashes=4, seed=1), lookups=8)
NEAR = Together(
    np.arange(0, ROWS, 2), np.stack([np.arange(1, ROWS, 2), np.arange(0, ROWS, 2)], 1) % 7
)


def client_of(layout, **options):
    return BatchClient(LocalTable(build(VALUES, layout, threads=1).table, threads=1), **options)


def check(result, sets, values=VALUES):
    """Checks that all rows that are found are those of the table, and the others are missing."""
    assert len(result.rows) == len(result.found) == len(result.missing) == len(sets)
    arrays = [np.array(own, np.int64) for own in sets]
    for own, rows, found, missing in zip(
        arrays, result.rows, result.found, result.missing, strict=True
    ):
        assert rows.dtype == values.dtype
        assert rows.shape == (len(own), *values.shape[1:])
        assert np.array_equal(rows[found], values[own[found]])
        assert not rows[~found].any()
        lost = own[~found].tolist()
        assert missing.tolist() == list(dict.fromkeys(lost))
        assert not set(lost) & set(own[found].tolist())
    assert np.array_equal(result.carried_rows, values[result.carried])
