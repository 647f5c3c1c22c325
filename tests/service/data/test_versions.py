"""Older versions after a restart: the latest are answered, the others are known to be gone."""

import shutil

import httpx
import numpy as np
import pytest

import nescio
from nescio.errors import MismatchError, VersionGoneError
from nescio.pir._history import DEFAULT_VERSIONS
from nescio.service import create_app
from nescio.service._data import Folder, recover
from service.conftest import QUOTAS, running
from service.data.tables import all_rows, begin, change, fresh_rows, new_table, restart, same
from service.data.test_snapshots import MAKERS


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("nescio.pir._checksums.BLOCK_BYTES", 4096)


def updates(kept, count):
    """Makes updates of some rows; returns the parameters and tops before each."""
    seen = []
    for stamp in range(1, count + 1):
        seen.append((kept.table.params, kept.table.tops.copy()))
        change(kept.table, "update", [stamp % 600, 7], fresh_rows(stamp, 2))
    return seen


def answers_alike(table, original):
    """Checks that a table answers versions as the original does; returns their number."""
    servers = [nescio.Server(one, party=0, threads=1) for one in (table, original)]
    known = {params.id for params in original.versions}
    for params in table.versions:
        assert params.id in known
        assert table.layout_of(params.id) == original.layout_of(params.id)
        tops = table.tops_of(params.id)
        assert np.array_equal(tops, original.tops_of(params.id))
        wanted = [0, params.rows - 1, params.rows // 2]
        if params.is_cut:
            continue
        for key in nescio.Client(params, tops).query(wanted).keys[:1]:
            assert bytes(servers[0].answer(key)) == bytes(servers[1].answer(key))
    return len(table.versions)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("seed", range(4))
def test_every_version_after_a_restart_is_that_before(tmp_path, maker, seed):
    """Wherever changes fell between copies of blocks, and wherever the server crashed."""
    random = np.random.default_rng(seed)
    model = MAKERS[maker](random)
    kept = begin(tmp_path / "words", model.table)
    copies, most = 0, 0

    def check():
        nonlocal copies, most
        copies += 1
        crashed = tmp_path / f"crash-{copies}"
        shutil.copytree(kept.folder.path, crashed)
        for _ in range(2):  # the second start reads what the first one has noted
            found = recover(Folder(crashed), threads=1).kept
            assert same(found.table, model.table)
            most = max(most, answers_alike(found.table, model.table))
            found.close()

    def pause():
        for _ in range(random.poisson(0.3)):
            model.change()
        if random.random() < 0.03:
            check()

    check()
    for _ in range(2):
        for _ in range(random.integers(4)):
            model.change()
        check()
        kept._take(pause)
        for _ in range(random.integers(4)):
            model.change()
        check()
    assert most > 1


def test_the_latest_versions_are_answered_and_the_others_gone(tmp_path):
    kept = begin(tmp_path / "words", new_table(20_000))
    seen = updates(kept, DEFAULT_VERSIONS + 14)
    for _ in range(2):
        table = restart(kept).kept.table
        assert table.versions == kept.table.versions
        assert 2 < len(table.versions) <= DEFAULT_VERSIONS
        assert answers_alike(table, kept.table) == len(table.versions)
        for params, _ in seen[: -len(table.versions)]:
            with pytest.raises(VersionGoneError):
                table.tops_of(params.id)
        with pytest.raises(MismatchError) as caught:
            table.tops_of(bytes(16))
        assert not isinstance(caught.value, VersionGoneError)
        kept = table.journal


@pytest.mark.parametrize("count", [1, 2, 5, 100])
def test_as_many_versions_as_are_kept(tmp_path, count):
    kept = begin(tmp_path / "words", new_table(20_000))
    kept.table.keep_versions(count)
    updates(kept, 20)
    kept.folder.close()
    table = recover(Folder(kept.folder.path), threads=1, keep=count).kept.table
    assert len(table.versions) == min(count, 21)
    answers_alike(table, kept.table)
    updates(table.journal, 3)  # the limit stays
    assert len(table.versions) == min(count, 24)


def test_ids_from_before_a_snapshot_are_known(tmp_path):
    kept = begin(tmp_path / "words")
    first = kept.table.params.id
    updates(kept, 3)
    kept._take(lambda: None)
    table = restart(kept).kept.table
    assert len(table.versions) == 1
    with pytest.raises(VersionGoneError):
        table.tops_of(first)


def test_versions_of_large_changes_are_not_kept(tmp_path, monkeypatch):
    """The start stays fast: large changes are made as one."""
    kept = begin(tmp_path / "words", new_table(20_000))
    updates(kept, 3)
    monkeypatch.setattr("nescio.pir._durable._versions._LATEST_BYTES", 200)
    table = restart(kept).kept.table
    assert len(table.versions) == 3
    answers_alike(table, kept.table)
    monkeypatch.setattr("nescio.pir._durable._versions._LATEST_BYTES", 10)
    table = restart(table.journal).kept.table
    assert len(table.versions) == 1
    assert np.array_equal(all_rows(table), all_rows(kept.table))


def test_clients_in_flight_across_a_restart_are_answered(tmp_path):
    kept = begin(tmp_path / "words", new_table(20_000))
    seen = updates(kept, DEFAULT_VERSIONS + 4)
    table = restart(kept).kept.table
    server = nescio.Server(table, party=0, threads=1)
    status = []
    with running(create_app({"words": server}, party=0, quotas=QUOTAS)) as url:
        for params, tops in (*seen, (table.params, table.tops)):
            key = nescio.Client(params, tops).query([7]).keys[0]
            status.append(httpx.post(f"{url}/v1/tables/words/answer", content=key).status_code)
    assert status == [410] * 5 + [200] * DEFAULT_VERSIONS
