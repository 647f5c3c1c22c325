"""The room and the time for a table's shards, and the pings of its head, without Ray."""

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nescio.errors import ResourceError
from nescio.pir._rows import RowKind, new_params
from nescio.pir._sharded import cut
from nescio.service._cluster import _starting
from nescio.service._cluster._head_replicas import HeadReplicas
from nescio.service._cluster._shard import ShardOptions, ShardSource
from nescio.service._cluster._starting import check_room, start_seconds, wait_opened
from service.cluster.fakes import FakeRay, Method, RayActorError

OWN = ShardOptions(0, 1, 4)
GB = 1 << 30


def sources_of(gigabytes, shards=4):
    kind = RowKind(gigabytes << 22, (256,), np.dtype(np.uint8))
    fields = {"version": "1", "output": "bit", "generator": "chacha20"}
    params = new_params(kind, record_rows=None, bins=(), layout=b"", **fields)
    return [ShardSource(params, part, Path("rows"), True) for part in cut(params, shards)]


def test_shards_that_no_node_has_the_memory_for_are_refused():
    with pytest.raises(ResourceError) as caught:
        check_room(FakeRay(memory=8 * GB), "words", sources_of(64), OWN)
    text = str(caught.value)
    assert text.startswith("table 'words': found nodes of at most 8,589,934,592 bytes of memory")
    assert text.endswith("for a shard: cut the table into more shards, or add a larger node")
    check_room(FakeRay(memory=32 * GB, nodes=4), "words", sources_of(64), OWN)


def test_gpus_that_no_node_has_are_refused():
    own = ShardOptions(0, 1, 4, ("cuda:0", "cuda:1"))
    with pytest.raises(ResourceError, match="bytes of memory, expected .* memory and 2 GPUs for a"):
        check_room(FakeRay(), "words", sources_of(4), own)


def test_a_cluster_that_others_fill_is_refused(monkeypatch):
    monkeypatch.setattr(_starting, "_FREE_SECONDS", 0.0)
    ray = FakeRay(memory=4 * GB, nodes=2)
    check_room(ray, "words", sources_of(4), OWN)
    ray.used = 7 * GB
    with pytest.raises(
        ResourceError, match=r"found 1,073,741,824 bytes .* free on 2 nodes, .* 4 s"
    ):
        check_room(ray, "words", sources_of(4), OWN)
    ray.actors = {f"words/shard-{shard}-replica-3": None for shard in range(4)}
    check_room(ray, "words", sources_of(4), OWN)  # they run


def test_the_time_to_start_grows_with_the_table():
    assert 600 < start_seconds(sources_of(1)) < 670
    assert 200e9 / 20e6 < start_seconds(sources_of(200)) < 1.5 * 200e9 / 20e6


def test_shards_that_have_read_their_rows_are_counted():
    ray = FakeRay()

    def fail():
        raise RuntimeError

    for name, ping in [("0-replica-0", bytes), ("0-replica-1", bytes), ("1-replica-0", fail)]:
        ray.actors[f"words/shard-{name}"] = SimpleNamespace(ping=Method(ping))
    ray.actors["words/head"] = None
    opened = [False, True]
    wait = ray.wait
    ray.wait = lambda refs, **more: (
        ([], refs) if refs == [bool] and not opened.pop(0) else wait(refs, **more)
    )
    said = []
    assert wait_opened(ray, "words", lambda: bool, sources_of(1), said.append) is False
    assert said == ["table words: 1 of 4 shards have their rows, 0 s"]


def test_a_head_that_is_started_again_is_asked_again(monkeypatch):
    def restarts():
        raise RayActorError("The actor is restarting")

    calls = [restarts, restarts, lambda: 5]
    assert wait_opened(FakeRay(), "words", lambda: calls.pop(0), sources_of(1), print) == 5
    monkeypatch.setattr(_starting, "_BACK_SECONDS", 0.0)
    with pytest.raises(ResourceError, match="its head did not start: The actor is restarting"):
        wait_opened(FakeRay(), "words", lambda: restarts, sources_of(1), print)


class Versions:
    """The versions of a table, as its head has them."""

    def __init__(self):
        self.params = SimpleNamespace(id=b"1")

    @contextmanager
    def try_changing(self):
        yield True


@pytest.fixture
def watched():
    """The only replica of a table, which is up, and its head's replicas."""

    def start(*_):
        return SimpleNamespace(ping=Method(lambda: ident[0]))

    ident = [b"1"]
    head = HeadReplicas(FakeRay(start=start), "words", sources_of(1, 1), OWN, 1, list)
    head.table = Versions()
    head.all[0].up = True
    return head, head.all[0], ident


def test_a_change_while_a_ping_is_answered_leaves_nobody_out(watched):
    head, replica, _ = watched
    get = head.ray.get

    def change_meanwhile(ref, timeout=None):
        head.table.params.id = b"2"
        return get(ref, timeout)

    head.ray.get = change_meanwhile
    head.pulse()
    assert replica.up


def test_a_replica_with_the_rows_of_another_version_is_left_out(watched):
    head, replica, ident = watched
    head.pulse()
    assert replica.up
    ident[0] = b"0"
    head.pulse()
    assert not replica.up


def test_one_replica_of_each_shard_starts_first():
    started = []
    ray = FakeRay(start=lambda name, *_: started.append(name))
    HeadReplicas(ray, "w", sources_of(1, 2), OWN, 2, list)
    assert [name[2:] for name in started] == [
        "shard-0-replica-0", "shard-1-replica-0", "shard-0-replica-1", "shard-1-replica-1"
    ]  # fmt: skip
