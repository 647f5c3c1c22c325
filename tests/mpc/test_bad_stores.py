"""Stores that are damaged, used up, of another preparation, or on a disk that takes no more."""

import errno
import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc.relay import relayed
from mpc.sessions import Dealt, input_of, small_network
from nescio.errors import FileError, MismatchError, NescioError, PeerRefusedError, ResourceError
from nescio.mpc._session import Client, Server, prepare
from nescio.mpc._store import Contents, Store
from nescio.mpc._store_writer import StoreWriter
from nescio.net import Channel

COUNT = 4
CANNOT = "its store of prepared inferences cannot be read or written"


@pytest.fixture
def random():
    return np.random.default_rng(6)


@pytest.fixture
def dealt(random, tmp_path):
    return Dealt(small_network(random), tmp_path, COUNT)


def flip(path, offset, bits=0x40):
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ bits]))


def errors_of(dealt, x):
    return relayed(dealt.infer(x), dealt.serve()).errors


def works(dealt, x, number):
    """Tests the outputs of the next inference, which is prepared inference `number`."""
    outcome = relayed(dealt.infer(x), dealt.serve())
    assert outcome.errors == [None, None]
    assert np.array_equal(outcome.values[0][0], dealt.expected(number, x))


# ---- both parties --------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [0, 1])
def test_a_damaged_part_ends_both_and_the_next_one_is_whole(dealt, random, which):
    path, x = (dealt.client, dealt.server)[which], input_of(dealt.network, random)
    with Store(path) as store:
        at = store.contents.parts_at
    flip(path, at + 5)
    errors = errors_of(dealt, x)
    assert isinstance(errors[which], FileError)
    assert "prepared inference 0 is damaged; use the next" in str(errors[which])
    assert isinstance(errors[1 - which], PeerRefusedError)
    assert errors[1 - which].reason == CANNOT
    works(dealt, x, 1)


@pytest.mark.parametrize("which", [0, 1])
def test_a_store_that_is_used_up_ends_both(dealt, random, which):
    with Store((dealt.client, dealt.server)[which]) as store:
        store.use(COUNT - 1)
    errors = errors_of(dealt, input_of(dealt.network, random))
    assert any(isinstance(error, ResourceError) for error in errors)
    for error in errors:
        assert isinstance(error, ResourceError | PeerRefusedError)
        assert "prepare more" in str(error) or "were all used" in str(error)


def test_a_session_that_uses_all_ends_both(dealt, random):
    x = input_of(dealt.network, random)
    outcome = relayed(dealt.infer(*[x] * (COUNT + 1)), dealt.serve(COUNT + 1))
    assert any(isinstance(error, ResourceError) for error in outcome.errors)
    for error in outcome.errors:
        assert isinstance(error, ResourceError | PeerRefusedError)


def test_stores_of_different_preparations_end_both(dealt, random, tmp_path):
    (tmp_path / "other").mkdir()
    other = Dealt(dealt.network, tmp_path / "other", COUNT, session="cd" * 32)
    outcome = relayed(dealt.infer(input_of(dealt.network, random)), other.serve())
    for error in outcome.errors:
        assert isinstance(error, MismatchError)
        assert "use the two stores of one preparation" in str(error)
    for path in (dealt.client, other.server):
        with Store(path) as store:
            assert store.left == COUNT


def test_a_mark_that_was_taken_back_gives_nothing(dealt):
    """The part itself is gone."""
    with Store(dealt.client) as store:
        store.use(0)
    flip(dealt.client, store.contents.flags_at, 2)
    with Store(dealt.client) as store, pytest.raises(FileError, match="is damaged"):
        store.use(0)


# ---- files ---------------------------------------------------------------------------------------


def opened(path):
    """Returns all parts that a store gives."""
    parts = {}
    with Store(path) as store:
        for number in range(store.next, store.contents.count):
            try:
                parts[number] = bytes(store.use(number))
            except FileError as error:
                assert "is damaged" in str(error)  # noqa: PT017 - some parts may be whole
    return parts


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A file of a store, its parts, and a path for damaged copies."""
    folder = tmp_path_factory.mktemp("stores")
    parts = [np.random.default_rng(number).bytes(200) for number in range(COUNT)]
    with StoreWriter(folder / "store", Contents("client", "ab" * 32, "cd" * 32, 4, 200)) as writer:
        for part in parts:
            writer.add(part)
    return (folder / "store").read_bytes(), parts, folder / "damaged"


def places(data):
    """Draws places in a file: most of them in its sections, and few in the zeros between them."""
    used = [*range(300), *range(4096, 4104), *range(8192, 8192 + 32 * 5), *range(12288, len(data))]
    return st.sampled_from(used) | st.integers(0, len(data) - 1)


@given(st.data())
def test_a_store_with_any_changes_is_refused_or_gives_sound_parts(sound, data):
    whole, parts, path = sound
    damaged = bytearray(whole)
    for at in data.draw(st.lists(places(whole), min_size=1, max_size=3)):
        damaged[at] = data.draw(st.integers(0, 255))
    path.write_bytes(damaged)
    try:
        found = opened(path)
    except FileError as error:
        assert "expected a store of prepared inferences" in str(error)  # noqa: PT017 - or none
    else:
        assert all(part == parts[number] for number, part in found.items())


@given(st.data())
def test_a_store_of_any_other_length_is_refused(sound, data):
    whole, _, path = sound
    length = data.draw(places(whole) | st.sampled_from([0, 48, 4096, 8192, 12288]))
    more = data.draw(st.binary(min_size=1, max_size=9))
    for changed in (whole[:length], whole + more):
        path.write_bytes(changed)
        with pytest.raises(FileError):
            Store(path)


heads = st.dictionaries(
    st.sampled_from(["count", "plan", "role", "session", "size"]),
    st.none() | st.booleans() | st.integers() | st.floats() | st.lists(st.none()) | st.text(),
)


@given(heads)
def test_a_store_with_any_head_is_refused_before_its_digests_are_read(sound, head):
    """Also one that announces more than a machine's memory."""
    whole, _, path = sound
    fields = json.loads(whole[48 : 48 + int.from_bytes(whole[12:16], "little")])
    text = json.dumps(fields | head).encode()[:2048]
    if json.dumps(fields | head) == json.dumps(fields):
        return
    start = whole[:12] + len(text).to_bytes(4, "little") + bytes(32) + text
    path.write_bytes(start + whole[len(start) :])
    with pytest.raises(FileError, match="expected a store of prepared inferences"):
        Store(path)


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero"])
def test_devices_are_no_stores(path):
    with pytest.raises(FileError):
        Store(path)


# ---- the disk ------------------------------------------------------------------------------------

FULL = """
    import pathlib, resource, sys
    from nescio.errors import FileError
    from nescio.mpc._store import Contents
    from nescio.mpc._store_writer import StoreWriter

    folder, limit, size, count = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:])
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        with StoreWriter(folder / "s", Contents("client", "ab" * 32, "cd" * 32, count, size)) as w:
            for _ in range(count):
                w.add(bytes(size))
    except FileError as error:
        print(error)
    print(len(list(folder.iterdir())))
"""


def alone(program, *arguments):
    """Runs a program in a process of its own, and returns the lines that it prints."""
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("limit", "size", "count"), [(20000, 3000, 10), (90000, 300000, 2), (12300, 10, 3)]
)
def test_a_disk_that_is_full_leaves_no_file(tmp_path, limit, size, count):
    """Within a part, and when the head is written."""
    said, left = alone(FULL, tmp_path, limit, size, count)
    assert said == f"{tmp_path}/s: File too large"
    assert left == "0"


PREPARE = """
    import pathlib, resource, sys
    import numpy as np
    from mpc.relay import relayed
    from mpc.sessions import small_network
    from nescio.mpc import prepare

    folder = pathlib.Path(sys.argv[1])
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (14000, resource.RLIM_INFINITY))
    network = small_network(np.random.default_rng(1))
    outcome = relayed(
        lambda channel: prepare(channel, network.public, folder / "client", 40, threads=1),
        lambda channel: prepare(channel, network, folder / "server", 40, threads=1),
    )
    for error in outcome.errors:
        print(type(error).__name__, error)
    print(len(list(folder.iterdir())))
"""


def test_a_disk_that_gets_full_while_preparing_ends_both(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    *errors, left = alone(PREPARE, tmp_path)
    assert left == "0"
    assert any("FileError" in error and "File too large" in error for error in errors)
    for error in errors:
        assert error.startswith(("FileError", "PeerRefusedError the other party stopped"))


@pytest.mark.parametrize("name", ["pwrite", "fsync"])
def test_a_part_that_cannot_be_marked_is_not_given(dealt, monkeypatch, name):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Store(dealt.client) as store:
        with monkeypatch.context() as patched:
            patched.setattr(os, name, fail)
            with pytest.raises(FileError, match="No space left on device"):
                store.use(0)
        assert store.left == COUNT
        store.use(0)


@pytest.mark.parametrize("which", [0, 1])
def test_a_folder_that_takes_no_file_ends_both(dealt, tmp_path, which):
    (tmp_path / "file").touch()
    for bad in (tmp_path / "none" / "store", tmp_path / "file" / "store"):
        paths = [tmp_path / "new0", tmp_path / "new1"]
        paths[which] = bad
        errors = prepared(dealt, paths).errors
        assert isinstance(errors[which], FileError)
        assert str(bad) in str(errors[which])
        assert isinstance(errors[1 - which], PeerRefusedError)
        assert not any(path.exists() for path in paths)


def prepared(dealt, paths):
    return relayed(
        lambda channel: prepare(channel, dealt.public, paths[0], 1, threads=1),
        lambda channel: prepare(channel, dealt.network, paths[1], 1, threads=1),
    )


@pytest.mark.parametrize("which", [0, 1])
def test_a_party_that_cannot_begin_tells_the_other_at_once(dealt, tmp_path, which):
    """Without a channel that is a context manager, the other party would wait for its timeout."""
    kind, network = ((Client, dealt.public), (Server, dealt.network))[which]
    path, others = np.roll([dealt.client, dealt.server], -which)
    for begin in (
        lambda channel: kind(channel, network, tmp_path / "none"),
        lambda channel: kind(channel, network, others),
        lambda channel: prepare(channel, network, path, 1),
    ):
        channel, other = Channel.pair(timeout=5)
        with pytest.raises(FileError, match="expected one of a|expected a store|exists"):
            begin(channel)
        with pytest.raises(PeerRefusedError, match=CANNOT):
            other.receive("NEXT", 0)


@pytest.mark.parametrize("which", [0, 1])
def test_a_store_that_exists_ends_both_and_stays(dealt, tmp_path, which):
    paths = [tmp_path / "new0", tmp_path / "new1"]
    paths[which] = (dealt.client, dealt.server)[which]
    before = paths[which].read_bytes()
    errors = prepared(dealt, paths).errors
    assert isinstance(errors[which], FileError)
    assert "exists: use it, or choose another name" in str(errors[which])
    assert isinstance(errors[1 - which], NescioError)
    assert paths[which].read_bytes() == before
    assert not paths[1 - which].exists()


def test_a_store_that_appears_meanwhile_stays(tmp_path):
    writer = StoreWriter(tmp_path / "s", Contents("client", "ab" * 32, "cd" * 32, 1, 1))
    writer.add(b"1")
    (tmp_path / "s").write_text("somebody else's")
    with pytest.raises(FileError, match="File exists"):
        writer.__exit__(None, None, None)
    assert (tmp_path / "s").read_text() == "somebody else's"
    assert len(list(tmp_path.iterdir())) == 1
