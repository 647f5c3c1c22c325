"""The opening of a table by its head, without Ray: files of other builds, and files that fail."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nescio.errors import FileError, ResourceError
from nescio.pir._rows import NO_DIGEST
from nescio.service._cluster import _head_open
from nescio.service._cluster._base import Base, store_base, stored_base
from nescio.service._cluster._head_open import find_base
from nescio.service._cluster._head_replicas import HeadReplica
from nescio.service._cluster._messages import ShardInfo
from service.cluster.fakes import FakeRay, Method, at_start
from tests.pir.sharded.test_shards import sharded

RANDOM = np.random.default_rng(17)
VALUES = RANDOM.integers(256, size=(900, 16), dtype=np.uint8)
OTHERS = RANDOM.integers(256, size=(900, 16), dtype=np.uint8)


class Shards:
    """The replicas of a head, whose shards are tables in this process; `failing` do not start."""

    def __init__(self, tables, replicas=1, seen=False):
        self.ray = FakeRay()
        self.tables = list(tables)
        self.failing = {}
        self.restarted = 0
        self.sources = [SimpleNamespace(params=one.params, part=one.part) for one in tables]
        self.shards = [
            [self._replica(shard, number, seen) for number in range(replicas)]
            for shard in range(len(tables))
        ]

    def _replica(self, shard, number, seen):
        name = f"words/shard-{shard}-replica-{number}"
        actor = SimpleNamespace(info=Method(lambda: self._info(name, shard)))
        return HeadReplica(name, actor, up=False, number=number, seen=seen)

    def _info(self, name, shard):
        if name in self.failing:
            raise at_start(self.failing[name])
        table = self.tables[shard]
        return ShardInfo(
            table.part, table.is_fresh, table.own_tops(), table.params.id, "node", self.restarted,
            0, 0.0,
        )  # fmt: skip

    def start_ended(self):
        """Starts those whose files can be read again."""

    def restart(self, replica):
        self.restarted += 1


def built(values):
    head, tables, _ = sharded(values, "bit", 3)
    return head.params, tables


def test_the_base_of_a_built_table_is_stored(tmp_path):
    params, tables = built(VALUES)
    base = find_base("words", Shards(tables), params, tmp_path)
    assert base.params == params
    assert stored_base(tmp_path).params == params
    assert find_base("words", Shards(tables), params, tmp_path).params == params


@pytest.mark.parametrize("seen", [False, True])
def test_a_shard_of_another_build_is_refused(tmp_path, seen):
    params, tables = built(VALUES)
    tables[1] = built(OTHERS)[1][1]
    shards = Shards(tables, seen=seen)
    with pytest.raises(FileError, match="the file of shard 1 is of another build than table.json"):
        find_base("words", shards, params, tmp_path)
    assert shards.restarted == seen  # one that ran before may have had changes
    assert not (tmp_path / "base").exists()


def test_files_in_another_order_are_refused(tmp_path):
    params, tables = built(VALUES)
    shards = Shards(tables)
    shards.tables = [tables[1], tables[0], tables[2]]
    with pytest.raises(FileError, match="in the file of shard 0, expected 0 to"):
        find_base("words", shards, params, tmp_path)
    assert not (tmp_path / "base").exists()


def test_tops_that_do_not_have_the_digest_are_refused(tmp_path):
    params, _ = built(VALUES)
    other, others = built(OTHERS)
    for table in others:  # files that say that they are of this build
        table._rename(params)
    assert other != params
    with pytest.raises(FileError, match=f"expected {params.digest} of table.json"):
        find_base("words", Shards(others), params, tmp_path)
    assert not (tmp_path / "base").exists()


def test_a_table_that_was_built_again_is_refused_in_an_older_data_folder(tmp_path):
    params, tables = built(VALUES)
    find_base("words", Shards(tables), params, tmp_path)
    other, others = built(OTHERS)
    with pytest.raises(FileError, match="give a table that was built again a new data folder"):
        find_base("words", Shards(others), other, tmp_path)
    tables[2] = others[2]
    with pytest.raises(FileError, match="the file of its rows has changed"):
        find_base("words", Shards(tables), params, tmp_path)
    assert stored_base(tmp_path).params == params


def test_an_array_of_another_shape_is_refused_in_an_older_data_folder(tmp_path):
    params, tables = built(VALUES)
    store_base(tmp_path, Base(params, np.concatenate([one.own_tops() for one in tables])))
    array = replace(params, digest=NO_DIGEST, rows=901, bins=())
    with pytest.raises(FileError, match="its files are those of another table"):
        find_base("words", Shards(tables), array, tmp_path)


def test_a_damaged_file_is_one_sentence():
    params, tables = built(VALUES)
    shards = Shards(tables)
    shards.failing["words/shard-2-replica-0"] = FileError("/a/shard-00002 is not a shard: cut")
    with pytest.raises(FileError) as caught:
        find_base("words", shards, params, None)
    assert str(caught.value) == "/a/shard-00002 is not a shard: cut"
    assert shards.shards[2][0].ended  # is started again when the head tries again


def test_any_replica_of_a_shard_is_asked():
    params, tables = built(VALUES)
    shards = Shards(tables, replicas=2)
    shards.failing["words/shard-0-replica-0"] = FileError("gone")
    assert find_base("words", shards, params, None).params == params
    shards.failing["words/shard-0-replica-1"] = MemoryError("no memory")
    del shards.failing["words/shard-0-replica-0"]
    assert find_base("words", shards, params, None).params == params


def test_an_error_of_the_machine_is_one_line(monkeypatch):
    params, tables = built(VALUES)
    shards = Shards(tables)
    shards.failing["words/shard-0-replica-0"] = MemoryError("no memory")
    with pytest.raises(ResourceError) as caught:
        find_base("words", shards, params, None)
    assert str(caught.value) == (
        "replica words/shard-0-replica-0 did not start: builtins.MemoryError: no memory"
    )
    monkeypatch.setattr(_head_open, "start_seconds", lambda _: 0.0)
    with pytest.raises(ResourceError, match="shard-0-replica-0 did not start: waited 0 s"):
        find_base("words", shards, params, None)
