"""Stores of prepared inferences: each part is used once at most, whatever happens."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from nescio.errors import FileError, ResourceError
from nescio.mpc._store import Contents, Store
from nescio.mpc._store_writer import StoreWriter

SIZE = 3000


def contents(count=5, size=SIZE):
    return Contents("client", "ab" * 32, "cd" * 32, count, size)


def part_of(number, size=SIZE):
    return np.random.default_rng(number).bytes(size)


@pytest.fixture
def path(tmp_path):
    with StoreWriter(tmp_path / "store", contents()) as writer:
        for number in range(5):
            writer.add(part_of(number))
    return tmp_path / "store"


def test_parts_come_back_in_any_rising_order(path):
    with Store(path) as store:
        assert store.contents == contents()
        assert (store.next, store.left) == (0, 5)
        assert store.use(0) == part_of(0)
        assert store.use(3) == part_of(3)
        assert (store.next, store.left) == (4, 1)


def test_a_used_part_is_never_given_again(path):
    with Store(path) as store:
        store.use(2)
        for number in range(3):
            with pytest.raises(FileError, match=f"prepared inference {number} was used before"):
                store.use(number)
    with Store(path) as store:
        assert store.next == 3
        with pytest.raises(FileError, match="was used before"):
            store.use(2)
        assert store.use(3) == part_of(3)


def pieces_of(sizes):
    """Returns memory in pieces."""
    return [memoryview(bytearray(size)) for size in sizes]


@pytest.mark.parametrize("sizes", [[SIZE], [0, 1, SIZE - 1, 0], [1] * SIZE, [7] * 400 + [200]])
def test_parts_are_read_together_in_pieces(path, sizes):
    parts = [pieces_of(sizes) for _ in range(3)]
    with Store(path) as store:
        store.use_all(1, parts)
        assert (store.next, store.left) == (4, 1)
        for number, pieces in enumerate(parts, 1):
            assert b"".join(pieces) == part_of(number)
        with pytest.raises(FileError, match="prepared inference 3 was used before"):
            store.use_all(3, parts[:1])
    with Store(path) as store:
        assert store.next == 4


def test_more_parts_than_are_left_are_not_marked(path):
    with Store(path) as store:
        store.use(2)
        with pytest.raises(ResourceError, match="found 3 inputs, expected at most 2"):
            store.use_all(3, [pieces_of([SIZE]) for _ in range(3)])
        assert store.left == 2
        assert store.use(3) == part_of(3)


def test_marks_are_on_the_disk_before_any_part_is_read(path, monkeypatch):
    """The marks of all parts, in one write."""
    seen, read = [], os.preadv

    def spy(*arguments):
        seen.append(path.read_bytes()[4096 : 4096 + 5])
        return read(*arguments)

    with Store(path) as store:
        monkeypatch.setattr(os, "preadv", spy)
        store.use_all(0, [pieces_of([SIZE]) for _ in range(4)])
    assert set(seen) == {b"\1\1\1\1\0"}


def test_used_parts_are_gone_from_the_file(path):
    with Store(path) as store:
        store.use(2)
        at = store.contents.parts_at
    data = path.read_bytes()
    assert data[at : at + 3 * SIZE] == bytes(3 * SIZE)
    assert data[at + 3 * SIZE : at + 4 * SIZE] == part_of(3)


def test_an_empty_store(path):
    with Store(path) as store:
        store.use(4)
        assert store.left == 0
        with pytest.raises(ResourceError, match="all 5 prepared inferences were used; prepare"):
            store.use(5)


def test_only_its_owner_can_read_a_store(path):
    assert path.stat().st_mode & 0o777 == 0o600


def test_two_processes_cannot_use_one_store(path):
    with Store(path), pytest.raises(FileError, match="in use by another process"):
        Store(path)
    Store(path).close()


def test_a_store_is_not_written_over(path):
    with pytest.raises(FileError, match="exists"):
        StoreWriter(path, contents())


@pytest.mark.parametrize("added", [0, 4])
def test_a_store_that_is_not_finished_leaves_no_file(tmp_path, added):
    writer = StoreWriter(tmp_path / "store", contents())
    for number in range(added):
        writer.add(part_of(number))
    with pytest.raises(FileError, match=f"found {added} parts, expected 5"):
        writer.__exit__(None, None, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("extra", [b"", bytes(SIZE + 1)])
def test_parts_of_another_size(tmp_path, extra):
    with pytest.raises(FileError, match=f"found part 1 of {len(extra)} bytes, expected 5 of"):
        with StoreWriter(tmp_path / "store", contents()) as writer:
            writer.add(extra)
    assert list(tmp_path.iterdir()) == []


def test_threads_never_get_the_same_part(path, monkeypatch):
    """All threads are in `use` before one of them has its part."""
    entered, sync = threading.Semaphore(0), os.fsync

    def slow(number):
        entered.acquire(timeout=0.2)
        sync(number)

    monkeypatch.setattr(os, "fsync", slow)
    given, refused = [], []
    with Store(path) as store:

        def use():
            entered.release()
            try:
                given.append(bytes(store.use(0)))
            except FileError as error:
                refused.append(str(error))

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert given == [part_of(0)]
    assert len(refused) == 3
    assert all("prepared inference 0 was used before" in text for text in refused)


FORK = """
    import os, sys
    from nescio.errors import FileError
    from nescio.mpc._store import Store
    with Store(sys.argv[1]) as store:
        child = os.fork()
        if child == 0:
            try:
                store.use(0)
                os.write(1, b"used\\n")
            except FileError as error:
                os.write(1, f"{error}\\n".encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.write(1, b"%d bytes\\n" % len(store.use(0)))
"""


def test_a_fork_cannot_use_the_store_of_its_parent(path):
    command = [sys.executable, "-c", textwrap.dedent(FORK), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    said, used = done.stdout.splitlines()
    assert "was opened before a fork" in said
    assert used == f"{SIZE} bytes"


def test_what_a_killed_writer_left_is_in_nobodys_way(tmp_path):
    """In a container, each process may have the same number."""
    for _ in range(2):
        before = set(tmp_path.iterdir())
        with (
            pytest.raises(FileError, match="found 0 parts"),
            StoreWriter(tmp_path / "s", contents()),
        ):
            (left,) = set(tmp_path.iterdir()) - before
        left.touch()
    assert len(list(tmp_path.iterdir())) == 2


def changed(path, offset, data):
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


@pytest.mark.parametrize(
    ("offset", "data"),
    [(0, b"X"), (8, b"\2"), (12, b"\xff\xff"), (12, bytes(4)), (20, b"?"), (50, b"?"), (60, b"9")],
)
def test_a_damaged_head_is_refused(path, offset, data):
    changed(path, offset, data)
    with pytest.raises(FileError, match="expected a store of prepared inferences"):
        Store(path)


@pytest.mark.parametrize("bytes_left", [0, 10, 60, 5000, 10_000])
def test_a_store_cut_short_is_refused(path, bytes_left):
    os.truncate(path, bytes_left)
    with pytest.raises(FileError, match="expected a store of prepared inferences"):
        Store(path)


def test_a_damaged_digest_is_refused(path):
    changed(path, contents().digests_at + 40, b"????")
    with pytest.raises(FileError, match="found a head that is damaged"):
        Store(path)


def test_a_damaged_part_is_lost_and_the_next_is_not(path):
    changed(path, contents().parts_at + SIZE + 7, b"????")
    with Store(path) as store:
        with pytest.raises(FileError, match="prepared inference 1 is damaged; use the next"):
            store.use(1)
        assert store.use(2) == part_of(2)


@pytest.mark.parametrize("make", [lambda p: None, lambda p: p.mkdir()])
def test_no_file(tmp_path, make):
    make(tmp_path / "store")
    with pytest.raises(FileError, match="store of prepared inferences: prepare makes one"):
        Store(tmp_path / "store")


PROGRAM = """
    import os, sys
    from nescio.mpc._store import Store
    with Store(sys.argv[1]) as store:
        for number in range(store.next, store.contents.count):
            store.use(number)
            os.write(1, b"%d\\n" % number)
"""


def test_a_killed_process_never_leaves_a_part_to_be_used_twice(tmp_path):
    """Kills users of one store at random; each part is reported by one of them at most."""
    path, count, random = tmp_path / "store", 4000, np.random.default_rng(1)
    with StoreWriter(path, contents(count, 64)) as writer:
        for number in range(count):
            writer.add(part_of(number, 64))
    reported = []
    for _ in range(6):
        command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            lines = [process.stdout.readline() for _ in range(int(random.integers(1, 60)))]
            process.send_signal(signal.SIGKILL)
            lines += process.stdout.readlines()
        reported += [int(line) for line in lines if line.endswith("\n")]
    assert len(reported) == len(set(reported)) > 6
    assert reported == sorted(reported)
    with Store(path) as store:
        assert store.next > max(reported)


def test_all_parts_of_a_batch_are_overwritten_after_a_crash(path):
    """Also those before the last one; parts that were overwritten before are not written again."""
    with Store(path) as store:
        store.use(0)
    first = contents().parts_at
    changed(path, first, b"no part any more")
    with Store(path) as store:
        store.use_all(1, [pieces_of([SIZE]) for _ in range(3)])
        crashed = path.read_bytes()
    assert crashed[first + SIZE : first + 4 * SIZE] != bytes(3 * SIZE)
    path.write_bytes(crashed)
    with Store(path) as store:
        assert (store.next, store.left) == (4, 1)
    data = path.read_bytes()
    assert data[first : first + 16] == b"no part any more"
    assert data[first + SIZE : first + 4 * SIZE] == bytes(3 * SIZE)
    assert data[first + 4 * SIZE :] == part_of(4)


def bytes_of(path, contents, number):
    with path.open("rb") as file:
        file.seek(contents.parts_at + number * contents.size)
        return file.read(contents.size)


def test_used_parts_are_overwritten(tmp_path):
    """Behind an inference; when the store is closed; and, after a crash, at the next use."""
    path = tmp_path / "store"
    contents = Contents("client", "ab" * 32, "cd" * 32, 4, 5000)
    with StoreWriter(path, contents) as writer:
        for number in range(4):
            writer.add(bytes([number + 1]) * 5000)
    zeros, last = bytes(5000), bytes([4]) * 5000
    with Store(path) as store:
        store.use(1)
        assert bytes_of(path, contents, 1) != zeros
        store.wipe_behind()
        store.use(2)  # waits for it, or does it
        assert [bytes_of(path, contents, number) for number in (0, 1)] == [zeros, zeros]
        crashed = path.read_bytes()
    assert bytes_of(path, contents, 2) == zeros
    path.write_bytes(crashed)
    with Store(path) as store:
        assert store.use(3) == last
        assert bytes_of(path, contents, 2) == zeros
    assert bytes_of(path, contents, 3) == zeros
