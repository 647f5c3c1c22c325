"""Lookups while rows change, for SOAK_SECONDS (default 4): no wrong row is ever decoded."""

import os
import threading
import time

import numpy as np
import pytest

import nescio
from nescio.errors import MismatchError
from nescio.service import RemoteTable, TableAdmin, create_app
from service.conftest import running

pytestmark = pytest.mark.load

SECONDS = float(os.environ.get("SOAK_SECONDS", "4"))
ROWS = 5000  # at least
TOKENS = ["the token of party 0", "the token of party 1"]
READERS = 3


def fresh_rows(stamp, count):
    """Makes rows that are all different."""
    rows = np.zeros((count, 6), "u4")
    rows[:, 0] = stamp
    rows[:, 1] = np.arange(count)
    rows[:, 2:] = (rows[:, :1] * 0x9E3779B1 + rows[:, 1:2] * 0x85EBCA6B) >> np.arange(4)
    return rows


class History:
    """The table at each version: versions < begun were begun, versions < done are complete."""

    def __init__(self):
        self.versions = [fresh_rows(0, ROWS)]
        self.begun = self.done = 1

    def change(self, admin, random):
        """Changes the table at random, on the servers and in this copy."""
        rows = self.versions[-1]
        stamp = len(self.versions)
        kind = random.choice(["update", "update", "update", "insert", "delete"])
        if kind == "update":
            where = random.integers(ROWS, size=random.integers(1, 200))
            new = fresh_rows(stamp, len(where))
            after = rows.copy()
            after[where] = new
        elif kind == "insert" or len(rows) == ROWS:
            where = random.integers(len(rows) + 1, size=random.integers(1, 20))
            new = fresh_rows(stamp, len(where))
            after = np.insert(rows, where, new, axis=0)
            kind = "insert"
        else:
            where = random.choice(len(rows), size=len(rows) - ROWS, replace=False)
            after = np.delete(rows, where, axis=0)
        self.versions.append(after)
        self.begun += 1
        arguments = [where] if kind == "delete" else [where, new]
        getattr(admin, kind)(*arguments)
        self.done += 1

    def holds(self, indices, rows, first, last):
        """Tests if one version of first..last has all of these rows at these indices."""
        return any(np.array_equal(self.versions[v][indices], rows) for v in range(first, last + 1))


@pytest.mark.timeout(int(SECONDS) + 120)
@pytest.mark.parametrize("kept", [1, 2, 16])
def test_lookups_and_changes_together(kept):
    """With kept versions, a lookup may get rows as old as these, and is hardly ever refused."""
    history = History()
    tables = [nescio.Table(history.versions[0]) for _ in range(2)]
    for table in tables:
        table.keep_versions(kept)
    apps = [
        create_app(
            {"words": nescio.Server(table, party=party, threads=1)},
            party=party,
            admin_token=TOKENS[party],
        )
        for party, table in enumerate(tables)
    ]
    end = time.monotonic() + SECONDS
    wrong, done, refused = [], [0] * READERS, [0] * READERS

    def read(reader, urls):
        random = np.random.default_rng(reader)
        with RemoteTable(urls, "words", retries=10) as remote:
            while time.monotonic() < end:
                indices = random.integers(ROWS, size=random.integers(1, 40))
                first = history.done - 1
                try:
                    rows = remote.lookup(indices)
                except MismatchError:  # the table changed at every try
                    refused[reader] += 1
                    continue
                oldest = max(0, first + 1 - kept)
                if not history.holds(indices, rows, oldest, history.begun - 1):
                    wrong.append((indices, rows))
                done[reader] += 1

    with running(apps[0]) as one, running(apps[1]) as two:
        threads = [threading.Thread(target=read, args=(i, (one, two))) for i in range(READERS)]
        for thread in threads:
            thread.start()
        random = np.random.default_rng(100)
        with TableAdmin((one, two), "words", TOKENS) as admin:
            while time.monotonic() < end:
                history.change(admin, random)
                time.sleep(random.exponential(0.05))
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()

    assert not wrong
    assert min(done) > SECONDS
    assert history.done > SECONDS
    assert sum(refused) < sum(done) / 10
    for table in tables:
        assert np.array_equal(table[np.arange(len(table))], history.versions[-1])
    assert tables[0].params == nescio.Table(history.versions[-1], version=str(history.done)).params
    print(f"{sum(done)} lookups, {history.done} versions, {sum(refused)} refusals")
