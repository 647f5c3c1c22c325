"""Fronts that open a table on Ray: one that runs with other options, or cannot be opened."""

import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from nescio.errors import ArgumentError, FileError, ResourceError
from nescio.service._build import BuildOptions, Here, build, open_output, open_rows
from nescio.service._cluster import ClusterOptions, open_table
from nescio.service._cluster import _admin as admin
from nescio.service._cluster._open import array_sources, built_sources
from service.cluster.conftest import FIELDS

pytestmark = [pytest.mark.timeout(180), pytest.mark.load, pytest.mark.cluster]


def test_a_front_of_other_rows_or_without_the_data_folder_is_refused(sharded, tmp_path):
    table = sharded(replicas=1)
    np.save(tmp_path / "other.npy", np.load(tmp_path / "table.npy")[::-1])
    other = array_sources(tmp_path / "other.npy", table.options, spare=lambda _: 0, **FIELDS)
    with pytest.raises(ArgumentError, match=r"found rows of .*table.npy in shard 0 on the cluster"):
        open_table(table.name, other, table.options)
    with pytest.raises(ArgumentError, match="found data folder .* expected no data folder"):
        open_table(table.name, table.sources, replace(table.options, data=None))
    table.check()  # nothing was drained
    said = []
    options = replace(table.options, replicas=2, threads=2)
    second = open_table(table.name, table.sources, options, said.append)
    table.check(second)
    second.stop()
    assert said == [f"table {table.name} runs with --replicas 1, not 2; --max-replicas 1, not 2; "
                    "--threads 1, not 2"]  # fmt: skip


@pytest.fixture
def built(tmp_path):
    """Builds tables of random rows in three shards; returns a table's folder."""

    def make(name, seed):
        rows = np.random.default_rng(seed).integers(256, size=(2_000, 16), dtype=np.uint8)
        np.save(tmp_path / f"{name}.npy", rows)
        opened = open_rows([str(tmp_path / f"{name}.npy")])
        place = open_output(str(tmp_path / name))
        build(opened, place, BuildOptions(3, threads=1), Here(lambda *_: None))
        return tmp_path / name

    return make


def actors_of(ray, name, seconds=20.0):
    """Lists the actors of a table, when they have ended or after some seconds."""
    end = time.monotonic() + seconds
    while True:
        found = [one for one in ray.util.list_named_actors() if one.startswith(f"{name}/")]
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.2)


def test_files_of_a_build_that_are_damaged_or_mixed(ray_cluster, built, tmp_path):
    options = ClusterOptions(party=0, threads=1, data=tmp_path / "data")
    folder, other = built("words", 1), built("others", 2)
    path = folder / "shard-00001"
    good = path.read_bytes()
    for bad, text in [
        (good[:-1] + bytes([good[-1] ^ 1]), f"^{path} .*$"),
        ((other / "shard-00001").read_bytes(), "^table 'built': the file of shard 1 is of another"),
    ]:
        path.write_bytes(bad)
        begin = time.monotonic()
        with pytest.raises(FileError, match=text) as caught:
            open_table("built", built_sources(folder, options), options)
        assert "\n" not in str(caught.value)
        assert time.monotonic() - begin < 60  # 3 s on a quiet machine
        assert not (tmp_path / "data" / "built" / "base").exists()
        assert actors_of(ray_cluster, "built") == []
    path.write_bytes(good)
    open_table("built", built_sources(folder, options), options).stop()
    admin.drain("built")
    with pytest.raises(FileError, match="give a table that was built again a new data folder"):
        open_table("built", built_sources(other, options), options)
    assert actors_of(ray_cluster, "built") == []


def test_a_table_without_memory_is_refused(sharded, ray_cluster, tmp_path, monkeypatch):
    table = sharded(replicas=1, data=False)
    monkeypatch.setattr("nescio.service._cluster._shard._OVERHEAD_BYTES", 1 << 50)
    begin = time.monotonic()
    with pytest.raises(ResourceError, match="found nodes of at most .* bytes of memory, expected"):
        open_table("large", table.sources, table.options)
    assert time.monotonic() - begin < 5
    assert actors_of(ray_cluster, "large", 0.0) == []
    table.check()


def test_a_head_opens_its_table_when_its_file_is_back(sharded, ray_cluster, tmp_path, fresh_rows):
    table = sharded(shards=2, replicas=1)
    table.change("update", [1], fresh_rows(1))
    path, away = tmp_path / "table.npy", tmp_path / "away.npy"
    path.rename(away)
    table.kill(1, 0)
    table.kill_head()
    with pytest.raises(FileError, match="table.npy"):
        open_table(table.name, table.sources, table.options)
    assert f"{table.name}/shard-0-replica-0" in actors_of(ray_cluster, table.name, 0.0)
    away.rename(path)
    table.change("update", [1, 60_000], fresh_rows(2), seconds=60.0)
    with suppress(ResourceError):  # the front has not asked since its replica was killed
        table.check(rows=(1, 60_000))
    table.wait_fronts()
    table.check(rows=(1, 60_000))


def test_the_head_refuses_numbers_of_replicas(sharded):
    table = sharded(replicas=1, data=False)
    for count in (0, 65):
        with pytest.raises(ArgumentError, match=f"replicas: found {count}, expected 1 to 64"):
            admin.scale(table.name, count)
    table.check()
