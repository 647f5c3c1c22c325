"""Fixtures of the tests of tables."""

import pytest

from pir.test_lookup import random_table

ROWS = 9000  # one hash table, whose last row has 8 hashes


@pytest.fixture
def values(rng):
    return random_table(rng, (ROWS, 5), "i4")
