"""Lookups of keys while keys come, go and let the table grow, for SOAK_SECONDS (default 4)."""

import threading
import time

import numpy as np
import pytest

import nescio
from nescio.errors import MismatchError
from nescio.pir import KeyedClient, KeyedTable
from nescio.service import RemoteTable, TableAdmin, create_app
from service.conftest import running

from .test_soak import READERS, SECONDS, TOKENS

pytestmark = pytest.mark.load

STABLE = 2000
"""Keys below this stay; those up to a million come and go; no key above is ever there."""


def values_of(keys):
    return (np.asarray(keys)[:, None] * np.array([1, 3, 7]) % 65521).astype("u4")


def is_right(keys, values, found):
    """Tests one result, whatever the version of the table."""
    right = np.where(found[:, None], values_of(keys), 0)
    stable = found[keys < STABLE].all() and not found[keys >= 1 << 20].any()
    return stable and np.array_equal(values, right)


@pytest.mark.timeout(int(SECONDS) + 120)
def test_lookups_and_changes_of_keys_together():
    tables = [KeyedTable(range(STABLE), values_of(range(STABLE))) for _ in range(2)]
    apps = [
        create_app(
            {"words": nescio.Server(keyed.table, party=party, threads=1)},
            party=party,
            admin_token=TOKENS[party],
        )
        for party, keyed in enumerate(tables)
    ]
    first_rows = tables[0].layout.rows
    end = time.monotonic() + SECONDS
    wrong, done, refused = [], [0] * READERS, [0] * READERS

    def read(reader, urls):
        random = np.random.default_rng(reader)
        with RemoteTable(urls, "words", retries=10) as remote:
            client = KeyedClient(remote)
            while time.monotonic() < end:
                ranges = [(0, STABLE), (STABLE, 5 * STABLE), (1 << 20, 1 << 40)]
                keys = np.concatenate([random.integers(*own, size=8) for own in ranges])
                try:
                    values, found = client.lookup(keys)
                except MismatchError:  # the table changed at every try
                    refused[reader] += 1
                    continue
                if not is_right(keys, values, found):
                    wrong.append((keys, values, found))
                done[reader] += 1

    with running(apps[0]) as one, running(apps[1]) as two:
        threads = [threading.Thread(target=read, args=(i, (one, two))) for i in range(READERS)]
        for thread in threads:
            thread.start()
        random = np.random.default_rng(100)
        there = np.zeros(0, np.int64)
        with TableAdmin((one, two), "words", TOKENS) as admin:
            while time.monotonic() < end:
                keys = random.choice(np.arange(STABLE, 5 * STABLE), size=200, replace=False)
                admin.insert(keys, values_of(keys))
                there = np.union1d(there, keys)
                gone = random.choice(there, size=50, replace=False)
                admin.delete(gone)
                there = np.setdiff1d(there, gone)
                time.sleep(random.exponential(0.05))
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()

    assert not wrong
    assert min(done) > SECONDS
    assert sum(refused) < sum(done) / 10
    assert tables[0].params == tables[1].params
    assert tables[0].layout.rows > first_rows
    assert len(tables[0]) == STABLE + len(there)
    print(f"{sum(done)} lookups, version {tables[0].params.version}, {sum(refused)} refusals")
