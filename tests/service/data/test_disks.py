"""Disks that are full or fail: changes are refused, lookups go on."""

import errno
import os
import resource
import shutil
import sys

import httpx
import numpy as np
import pytest

import nescio
from nescio.errors import FileError
from nescio.pir._change import head_of
from nescio.service import create_app
from nescio.service._data import Folder
from service.conftest import QUOTAS, TOKENS, running
from service.data.tables import (
    all_rows,
    begin,
    change,
    fresh_rows,
    message,
    new_table,
    restart,
)


@pytest.fixture
def full(monkeypatch):
    """Limits the length of files from now on: a write fails as on a full disk.

    Python would write bytecode in part, for other processes too.
    """
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_change_that_does_not_fit_is_not_made(tmp_path, full):
    kept = begin(tmp_path / "words")
    change(kept.table, "update", [1], fresh_rows(1, 1))
    before, params, end = all_rows(kept.table), kept.table.params, kept._writer.end
    for room in (0, 1, 71, 72, 100, 200):
        full(end + room)
        with pytest.raises(FileError, match="the journal cannot be written: File too large"):
            change(kept.table, "update", np.arange(100), fresh_rows(2, 100))
        assert kept.table.params == params
        assert np.array_equal(all_rows(kept.table), before)
        assert kept.folder.file("journal", 1).stat().st_size == end
    full(resource.RLIM_INFINITY)
    change(kept.table, "update", [2], fresh_rows(3, 1))  # there is room again
    found = restart(kept)
    assert (found.changes, found.torn_bytes) == (2, 0)
    assert np.array_equal(all_rows(found.kept.table), all_rows(kept.table))


def failing(number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    return fail


def test_after_a_failed_synchronization_changes_wait_for_a_restart(tmp_path, monkeypatch):
    kept = begin(tmp_path / "words")
    with monkeypatch.context() as patch:
        patch.setattr("os.fdatasync", failing(errno.EIO))
        with pytest.raises(FileError, match="could not be synchronized: Input/output error"):
            change(kept.table, "update", [1], fresh_rows(1, 1))
    with pytest.raises(FileError, match="could not be synchronized"):
        change(kept.table, "update", [1], fresh_rows(1, 1))
    found = restart(kept)
    assert (found.changes, found.torn_bytes) == (0, 0)
    change(found.kept.table, "update", [1], fresh_rows(1, 1))


def test_a_part_of_a_record_that_cannot_be_removed_ends_all_changes(tmp_path, full, monkeypatch):
    kept = begin(tmp_path / "words")
    full(kept._writer.end + 100)
    with monkeypatch.context() as patch:
        patch.setattr("os.ftruncate", failing(errno.EROFS))
        with pytest.raises(FileError, match="cannot be written"):
            change(kept.table, "update", np.arange(100), fresh_rows(2, 100))
    full(resource.RLIM_INFINITY)
    with pytest.raises(FileError, match="has a part of a change: Read-only file system"):
        change(kept.table, "update", [1], fresh_rows(1, 1))
    found = restart(kept)
    assert (found.changes, found.torn_bytes) == (0, 100)


def test_a_snapshot_that_does_not_fit_leaves_everything(tmp_path, full, caplog):
    kept = begin(tmp_path / "words")
    change(kept.table, "update", [1], fresh_rows(1, 1))
    full(4096)
    kept.snapshots.start()
    kept.snapshots.wait()
    full(resource.RLIM_INFINITY)
    assert kept.snapshots.failed == 1
    assert "table words: no snapshot was taken, the journal grows" in caplog.text
    change(kept.table, "update", [2], fresh_rows(2, 1))
    found = restart(kept)
    assert found.changes == 2
    assert np.array_equal(all_rows(found.kept.table), all_rows(kept.table))
    found.kept.snapshots.start()
    found.kept.snapshots.wait()
    assert found.kept.snapshots.taken == 1


def test_a_disk_that_loses_its_files_does_not_end_a_server(tmp_path):
    """The table is in memory. A mapped file would end the process with SIGBUS."""
    kept = begin(tmp_path / "words", new_table(20_000))
    found = restart(kept)
    os.truncate(kept.folder.file("snapshot", 1), 0)
    assert np.array_equal(all_rows(found.kept.table), fresh_rows(0, 20_000))


@pytest.mark.parametrize("away", ["moved", "removed", "replaced"])
def test_a_folder_that_is_no_longer_there_gets_no_changes(tmp_path, away):
    """A start would not find them. The check of /readyz shows `failure`."""
    path = tmp_path / "words"
    kept = begin(path)
    change(kept.table, "update", [1], fresh_rows(1, 1))
    if away == "removed":
        shutil.rmtree(path)
    else:
        path.rename(tmp_path / "other")
    if away == "replaced":
        shutil.copytree(tmp_path / "other", path)
    params = kept.table.params
    with pytest.raises(FileError, match="journal-1 is no longer at its path"):
        change(kept.table, "update", [2], fresh_rows(2, 1))
    assert "no longer at its path" in kept.failure
    with pytest.raises(FileError, match="no longer at its path"):
        kept.check()
    assert kept.table.params == params
    if away == "moved":
        (tmp_path / "other").rename(path)
        with pytest.raises(FileError, match="no longer at its path"):  # until a start reads it
            change(kept.table, "update", [2], fresh_rows(2, 1))
        assert restart(kept).kept.table.params == params


def test_a_snapshot_into_a_folder_that_was_moved_refuses_changes(tmp_path, caplog):
    kept = begin(tmp_path / "words")
    (tmp_path / "words").rename(tmp_path / "other")
    kept.snapshots.start()
    kept.snapshots.wait()
    assert kept.snapshots.failed == 1
    assert "journal-1 is no longer at its path" in caplog.text
    assert "no longer at its path" in kept.failure


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written: Not a directory; expected a folder"):
        Folder(tmp_path / "file" / "words")


def test_the_service_refuses_changes_and_goes_on_with_lookups(tmp_path, full):
    kept = begin(tmp_path / "words")
    table = kept.table
    server = nescio.Server(table, party=0, threads=1)
    app = create_app({"words": server}, party=0, quotas=QUOTAS, admin_token=TOKENS[0])
    client = nescio.Client(table.params, table.tops)
    with running(app) as url:

        def post(path, body):
            headers = {"Authorization": f"Bearer {TOKENS[0]}"}
            return httpx.post(f"{url}/v1/tables/words/{path}", content=body, headers=headers)

        body = message(table, "update", np.arange(100), fresh_rows(1, 100))
        full(kept._writer.end + 100)
        reply = post("rows", body)
        full(resource.RLIM_INFINITY)
        assert reply.status_code == 507
        assert reply.json()["error"]["code"] == "not_durable"
        assert "File too large" in reply.json()["error"]["message"]
        assert str(tmp_path) not in reply.text
        assert post("answer", client.query([1]).keys[0]).status_code == 200
        kept._writer.failure = "the disk is gone"
        assert post("rows/check", head_of(body)).status_code == 507
        assert post("rows", body).json()["error"]["code"] == "not_durable"
        kept._writer.failure = None
        assert post("rows", body).status_code == 200
        params = table.params
        (tmp_path / "words").rename(tmp_path / "moved")
        reply = post("rows", message(table, "update", [1], fresh_rows(3, 1)))
        assert reply.status_code == 507
        assert "no longer at its path" in reply.json()["error"]["message"]
        assert str(tmp_path) not in reply.text
        assert table.params == params
        (tmp_path / "moved").rename(tmp_path / "words")
    assert restart(kept).kept.table.params == table.params
