"""The faults of a cluster in short: nothing is lost, no row is wrong, no lookup fails."""

import shutil
import tempfile
from pathlib import Path

import pytest

from benchmarks.faults.cluster import actors
from benchmarks.faults.settings import Settings

SHORT = Settings(kills=2, seconds=1.5)

pytestmark = [pytest.mark.timeout(300), pytest.mark.load, pytest.mark.cluster]


@pytest.fixture
def folder():
    made = tempfile.mkdtemp(prefix="nescio-faults-")
    yield Path(made)
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.parametrize("fault", [actors.replicas, actors.front], ids=lambda one: one.__name__)
def test_a_fault_fails_no_lookup(fault, raylets, ray_cluster, folder):
    del ray_cluster
    outcome = fault(raylets, SHORT, folder)
    assert outcome.good, outcome
    assert outcome.refused == 0
    assert outcome.times > 0
    assert min(outcome.lookups, outcome.updates) > 0


def test_without_another_replica_lookups_are_refused(raylets, ray_cluster, folder):
    del ray_cluster
    outcome = actors.single(raylets, SHORT, folder)
    assert outcome.good, outcome
    assert outcome.refused > 0
    assert all("503" in text for text in outcome.texts.values())
