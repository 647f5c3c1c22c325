"""Inferences while rows change, for SOAK_SECONDS (default 4): rows of one version each."""

import threading
import time

import numpy as np
import pytest

from nescio.errors import MismatchError
from nescio.pir.batch import BatchClient, BatchServer, FullPart, HotPart, Layout, Together, build
from nescio.service import RemoteTable, TableAdmin, create_app
from service.conftest import running

from .test_soak import SECONDS, TOKENS

pytestmark = pytest.mark.load

ROWS = 2000
NEAR = Together(np.arange(500), np.arange(500)[:, None] + [1, 700])
LAYOUT = Layout(ROWS, FullPart(8, hashes=2), HotPart(np.arange(300), 4, keys=2), NEAR)


def rows_of(version):
    """Returns the table's rows, of which each tells its version and its number."""
    numbers = np.arange(ROWS, dtype="u4")
    return np.stack([np.full(ROWS, version, "u4"), numbers, numbers ^ version], axis=1)


@pytest.mark.timeout(int(SECONDS) + 120)
@pytest.mark.parametrize("options", [{}, {"cache_rows": 100, "carry": True}])
def test_inferences_and_changes_together(options):
    servers = [BatchServer(build(rows_of(0), LAYOUT), party=party) for party in (0, 1)]
    apps = [
        create_app({"items": server}, party=party, admin_token=TOKENS[party])
        for party, server in enumerate(servers)
    ]
    end, failures, results = time.monotonic() + SECONDS, [], []

    def infer(number):
        random = np.random.default_rng(number)
        try:
            with RemoteTable(urls, "items") as remote:
                client = BatchClient(remote, **options)
                while time.monotonic() < end:
                    sets = [random.integers(ROWS, size=12), random.integers(400, size=20)]
                    results.append(check(client, sets))
        except BaseException as error:
            failures.append(error)
            raise

    with running(apps[0]) as first, running(apps[1]) as second:
        urls = [first, second]
        threads = [threading.Thread(target=infer, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        with TableAdmin(urls, "items", TOKENS) as admin:
            version = 0
            while time.monotonic() < end:
                version += 1
                admin.update(np.arange(ROWS), rows_of(version))
                time.sleep(0.2)
        for thread in threads:
            thread.join()
    assert not failures
    assert version > 2
    assert len(set(filter(None, results))) > 2  # several versions were seen


def check(client, sets):
    """Looks up sets, and checks that all rows are of one version; returns it."""
    try:
        result = client.lookup(sets)
    except MismatchError:  # the table changed at every try
        return None
    for own, rows, found in zip(sets, result.rows, result.found, strict=True):
        assert np.array_equal(rows[found, 1], own[found])
    arrived = np.concatenate(
        [rows[found] for rows, found in zip(result.rows, result.found, strict=True)]
        + [result.carried_rows]
    )
    versions = set(arrived[:, 0].tolist())
    assert len(versions) == 1
    assert np.array_equal(result.carried_rows[:, 1], result.carried)
    return versions.pop()
