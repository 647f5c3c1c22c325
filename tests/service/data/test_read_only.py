"""Data folders that cannot be written: a server starts, answers lookups and refuses changes."""

import contextlib
import errno
import os
import subprocess

import httpx
import numpy as np
import pytest

import nescio
from nescio.errors import FileError
from nescio.service import create_app
from nescio.service._data import Folder, recover
from nescio.service._spawn import spawned
from service.conftest import QUOTAS, TOKENS, running
from service.data.tables import all_rows, begin, change, fresh_rows, message, names_in, restart

_WRITES = os.O_RDWR | os.O_WRONLY | os.O_CREAT


class Patched:
    """Stands in for a disk that turns read-only: files are opened for reading only."""

    def __init__(self, path, monkeypatch):
        self.path = path
        self._patch = monkeypatch

    @contextlib.contextmanager
    def read_only(self):
        opened = os.open

        def fail(path, flags, mode=0o777, **options):
            if flags & _WRITES and str(path).startswith(str(self.path)):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
            return opened(path, flags, mode, **options)

        with self._patch.context() as patch:
            patch.setattr("os.open", fail)
            yield


class Mounted:
    """A small disk in memory."""

    def __init__(self, path, monkeypatch):
        self.path = path
        path.mkdir()
        self._mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", str(path))

    @contextlib.contextmanager
    def read_only(self):
        self._mount("-o", "remount,ro", str(self.path))
        yield
        self._mount("-o", "remount,rw", str(self.path))

    @staticmethod
    def _mount(*words):
        try:
            subprocess.run(["mount", *words], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"needs the right to mount: {error}")


@pytest.fixture(params=[Patched, Mounted])
def disk(request, tmp_path, monkeypatch):
    made = request.param(tmp_path / "disk", monkeypatch)
    yield made
    if request.param is Mounted:
        subprocess.run(["umount", "--lazy", str(made.path)], check=False)


def stopped(kept):
    """Ends a kept table as a crash does, so that nothing on its disk is open."""
    kept.snapshots.wait()
    kept._writer.close()
    kept.folder.close()


def test_a_start_on_a_read_only_disk_answers_and_refuses_changes(disk, caplog):
    kept = begin(disk.path / "words")
    change(kept.table, "update", [1], fresh_rows(1, 1))
    stopped(kept)
    before = {path: path.read_bytes() for path in kept.folder.path.iterdir()}
    with disk.read_only():
        found = recover(Folder(kept.folder.path), threads=1)
        table = found.kept.table
        assert "all changes are refused until a restart" in caplog.text
        assert "Read-only file system" in caplog.text
        server = nescio.Server(table, party=0, threads=1)
        app = create_app({"words": server}, party=0, quotas=QUOTAS, admin_token=TOKENS[0])
        with running(app) as url:
            headers = {"Authorization": f"Bearer {TOKENS[0]}"}
            body = message(table, "update", [2], fresh_rows(2, 1))
            reply = httpx.post(f"{url}/v1/tables/words/rows", content=body, headers=headers)
            assert reply.status_code == 507
            assert reply.json()["error"]["code"] == "not_durable"
            assert "Read-only file system" in reply.json()["error"]["message"]
            assert str(disk.path) not in reply.text
            key = nescio.Client(table.params, table.tops).query([1]).keys[0]
            assert httpx.post(f"{url}/v1/tables/words/answer", content=key).status_code == 200
        assert np.array_equal(all_rows(table), all_rows(kept.table))
        found.kept.snapshots.start()
        found.kept.snapshots.wait()
        found.kept.close()
        assert {path: path.read_bytes() for path in kept.folder.path.iterdir()} == before
    again = recover(Folder(kept.folder.path), threads=1).kept
    change(again.table, "update", [3], fresh_rows(3, 1))  # the disk was mended
    stopped(again)


def test_an_unfinished_change_is_ignored_and_cut_off_later(disk):
    kept = begin(disk.path / "words")
    change(kept.table, "update", [1], fresh_rows(1, 1))
    path = kept.folder.file("journal", 1)
    with path.open("ab") as file:
        file.write(b"NCRD and no more")
    stopped(kept)
    size = path.stat().st_size
    with disk.read_only():
        found = recover(Folder(kept.folder.path), threads=1)
        assert "16 bytes of an unfinished change ignored" in found.describe()
        assert np.array_equal(all_rows(found.kept.table), all_rows(kept.table))
        stopped(found.kept)
        assert path.stat().st_size == size
    found = recover(Folder(kept.folder.path), threads=1)
    assert "16 bytes of an unfinished change cut off" in found.describe()
    assert path.stat().st_size == size - 16
    stopped(found.kept)


def test_a_tail_that_cannot_be_cut_off(tmp_path, monkeypatch, caplog):
    """A file system that copies what it overwrites needs room to make a file shorter."""
    kept = begin(tmp_path / "words")
    with kept.folder.file("journal", 1).open("ab") as file:
        file.write(b"NCRD and no more")

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("os.ftruncate", fail)
        found = restart(kept)
    assert "has a part of a change: No space left on device" in found.kept.failure
    assert "table words: all changes are refused" in caplog.text
    with pytest.raises(FileError, match="No space left"):
        change(found.kept.table, "update", [1], fresh_rows(1, 1))
    found = restart(found.kept)
    change(found.kept.table, "update", [1], fresh_rows(1, 1))


def test_a_folder_without_a_table_needs_to_be_written(disk):
    Folder(disk.path / "words").close()
    with disk.read_only(), contextlib.closing(Folder(disk.path / "words")) as folder:
        with pytest.raises(FileError, match="cannot be written: Read-only file system; expected"):
            recover(folder)
        assert names_in(folder) == {"lock"}


def test_one_process_at_a_time_on_a_read_only_disk(disk):
    kept = begin(disk.path / "words")
    stopped(kept)
    for lock in (True, False):  # a backup may lack the file
        if not lock:
            (kept.folder.path / "lock").unlink()
        with disk.read_only():
            folder = Folder(kept.folder.path)
            with pytest.raises(FileError, match="in use by another process"):
                Folder(kept.folder.path)
            folder.close()


def test_a_disk_that_turns_read_only_while_a_server_runs(tmp_path, monkeypatch):
    kept = begin(tmp_path / "words")
    change(kept.table, "update", [1], fresh_rows(1, 1))
    before = all_rows(kept.table)

    def fail(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        for name in ("pwrite", "ftruncate", "fsync", "fdatasync"):
            patch.setattr(f"os.{name}", fail)
        for stamp in (2, 3):
            with pytest.raises(FileError, match="Read-only file system"):
                change(kept.table, "update", [1], fresh_rows(stamp, 1))
        assert "Read-only file system" in kept.failure
        assert np.array_equal(all_rows(kept.table), before)
    found = restart(kept)
    assert (found.changes, found.torn_bytes) == (1, 0)
    change(found.kept.table, "update", [1], fresh_rows(2, 1))


def test_the_command_serves_a_read_only_folder(tmp_path, monkeypatch):
    disk = Mounted(tmp_path / "disk", monkeypatch)
    file = tmp_path / "words.npy"
    np.save(file, fresh_rows(0, 600))
    options = [
        str(file),
        "--party",
        "0",
        "--port",
        "0",
        "--data",
        str(disk.path),
        "--device",
        "cpu",
    ]
    try:
        with spawned(options) as server:
            server.url()
        with disk.read_only(), spawned(options) as server:
            url = server.url()
            assert httpx.get(f"{url}/healthz").status_code == 200
            reply = httpx.get(f"{url}/readyz")
            assert reply.status_code == 503
            assert "journal of words" in reply.text
            assert "Read-only file system" in reply.text
            server._log.seek(0)
            assert "table words: all changes are refused until a restart" in server._log.read()
    finally:
        subprocess.run(["umount", "--lazy", str(disk.path)], check=False)
