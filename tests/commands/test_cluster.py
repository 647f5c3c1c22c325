"""`nescio cluster` without Ray: its options, and tables whose heads do not answer."""

import contextlib
import json

import pytest

from commands.conftest import assert_one_sentence, nescio_here
from nescio.errors import ResourceError
from nescio.service import _cluster
from nescio.service._cluster import _admin
from nescio.service._cluster._messages import ReplicaStatus

ADDRESS = ["--cluster", "10.0.0.1:6379", "--party", 0]


@pytest.mark.parametrize("replicas", [0, 65, -1, "many"])
def test_scale_takes_numbers_that_serve_takes(replicas):
    finished = nescio_here("cluster", "scale", *ADDRESS, "--table", "a", "--replicas", replicas)
    assert finished.returncode == 2
    assert "--replicas" in finished.stderr
    if replicas in (0, 65):
        assert f"found {replicas}, expected 1 to 64" in finished.stderr


@pytest.fixture
def three_tables(monkeypatch):
    """Puts a cluster in place whose second table does not answer."""

    def status(table):
        if table == "b":
            raise ResourceError("the head of table 'b' does not answer: timed out")
        return [ReplicaStatus(0, f"{table}/shard-0-replica-0", "up", None)]

    monkeypatch.setattr(_cluster, "connected", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(_admin, "tables", lambda: ["a", "b", "c"])
    monkeypatch.setattr(_admin, "status", status)


def test_status_shows_the_tables_whose_heads_answer(three_tables):
    finished = nescio_here("cluster", "status", *ADDRESS, "--json")
    found = [json.loads(line)["table"] for line in finished.stdout.splitlines()]
    assert found == ["a", "c"]
    assert_one_sentence(finished)
    assert "the head of table 'b' does not answer" in finished.stderr


def test_status_of_a_table_whose_head_does_not_answer(three_tables):
    finished = nescio_here("cluster", "status", *ADDRESS, "--table", "b")
    assert_one_sentence(finished)
    assert nescio_here("cluster", "status", *ADDRESS, "--table", "c").returncode == 0
