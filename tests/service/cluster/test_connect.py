"""Connections to Ray clusters: what a local one opens, and those that do not come about."""

import contextlib
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import pytest

from commands.conftest import assert_one_sentence, nescio
from nescio.errors import ArgumentError, ResourceError
from nescio.service._cluster import _connect, _folder


@pytest.fixture
def fake_ray(monkeypatch):
    """Puts an object with the functions of Ray that are used in place of it."""
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_MODE", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, "")
    ray = types.SimpleNamespace(ended=0, actors=[], is_initialized=lambda: False)

    def end():
        ray.ended += 1

    ray.shutdown = end
    ray.init = lambda *_, **__: None
    ray.util = types.SimpleNamespace(
        list_named_actors=lambda all_namespaces: ray.actors if all_namespaces else [],
        get_node_ip_address=lambda: "127.0.0.1",
    )
    monkeypatch.setattr(_connect, "import_ray", lambda _: ray)
    constants = types.SimpleNamespace(ENABLE_RAY_CLUSTER=True)
    monkeypatch.setitem(sys.modules, "ray._private.ray_constants", constants)
    return ray


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        # Ray 2.60 raises a bare Exception if its processes need more than some seconds to start.
        ("local", Exception("The current node timed out during startup"), "try again when it has"),
        ("10.0.0.1:6379", ConnectionError("refused"), "found no Ray cluster at '10.0.0.1:6379'"),
        ("10.0.0.1:6379", AssertionError("no token"), "start one with `ray start --head`"),
    ],
)
def test_the_reason_is_said(fake_ray, address, error, message):
    def init(*_, **__):
        raise error

    fake_ray.init = init
    with (
        pytest.raises(ResourceError, match=str(error)) as found,
        _connect.connected(address, 0),
    ):
        raise AssertionError("connected")
    assert message in str(found.value)
    assert fake_ray.ended == 1


def test_a_cluster_that_does_not_listen_on_loopback_is_ended(fake_ray):
    fake_ray.util.get_node_ip_address = lambda: "192.0.2.7"
    with (
        pytest.raises(ResourceError, match=r"found address 192\.0\.2\.7, expected 127\.0\.0\.1"),
        _connect.connected("local", 0),
    ):
        raise AssertionError("connected")
    assert fake_ray.ended == 1


def test_a_connection_of_the_caller_is_not_ended(fake_ray):
    fake_ray.is_initialized = lambda: True
    with (
        pytest.raises(ResourceError, match="this process is connected to a Ray cluster"),
        _connect.connected("10.0.0.1:6379", 0),
    ):
        raise AssertionError("connected")
    assert fake_ray.ended == 0


def test_a_cluster_of_the_other_party_is_refused(fake_ray):
    fake_ray.actors = [{"name": "words/head", "namespace": "nescio-party-1"}]
    with (
        pytest.raises(ArgumentError, match="tables of party 1, expected one of party 0 alone"),
        _connect.connected("10.0.0.1:6379", 0),
    ):
        raise AssertionError("connected")
    assert fake_ray.ended == 1
    for party in (1, None):  # None only runs tasks, as a build does
        with _connect.connected("10.0.0.1:6379", party):
            pass


# ---- The folder of a local cluster ---------------------------------------------------------------


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_folder_is_of_its_user_alone_and_does_not_stay(folders):
    with _folder.ray_folder() as path:
        (parent,) = folders.iterdir()
        assert Path(path).parent == parent
        assert stat.S_IMODE(parent.stat().st_mode) == 0o700
        Path(path).mkdir()
    assert list(folders.iterdir()) == []


HOLDER = """
import sys, tempfile, pathlib
from nescio.service._cluster._folder import ray_folder
tempfile.tempdir = sys.argv[1]
with ray_folder() as path:
    pathlib.Path(path).mkdir()
    print(path, flush=True)
    sys.stdin.read()
"""


def test_the_folder_of_a_killed_process_goes_at_the_next_start(folders):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folders)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    left = Path(holder.stdout.readline().strip())
    without_lock = folders / "nescio-ray-other"  # of a process that makes its lock just now
    without_lock.mkdir()
    link = folders / "nescio-ray-link"
    link.symlink_to(left.parent)
    try:
        with _folder.ray_folder():
            assert left.is_dir()
    finally:
        holder.kill()
        holder.communicate(timeout=20)
    assert left.is_dir()
    with _folder.ray_folder():
        assert not left.exists()
    assert sorted(folders.iterdir()) == [link, without_lock]


def test_a_cluster_that_is_not_there_is_found_so_at_once():
    begin = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    found = nescio("cluster", "status", "--cluster", address, "--party", 0)
    assert_one_sentence(found)
    assert f"found no Ray cluster at '{address}'" in found.stderr
    assert found.stdout == ""
    assert time.monotonic() - begin < 30


# ---- On Ray --------------------------------------------------------------------------------------


def family(pid):
    """Returns a process and all its descendants."""
    parents = {}
    for one in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(one.parent.name)] = int(one.read_text().rpartition(")")[2].split()[1])
    found = {pid}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def listeners(pids):
    """Returns the addresses on which processes listen, as /proc has them."""
    sockets = set()
    for pid in pids:
        for one in Path(f"/proc/{pid}/fd").iterdir():
            try:
                sockets.add(str(one.readlink()))
            except FileNotFoundError:
                continue
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found.append(fields[1].split(":")[0])
    return found


LOCAL = """
import os, sys
from nescio.service._cluster import connected
with connected("local", 0):
    import ray
    class Child:
        def pid(self):
            return os.getpid()
    child = ray.remote(Child).options(num_cpus=0).remote()
    folder = ray._private.worker._global_node.get_session_dir_path()
    print(ray.get(child.pid.remote()), folder, flush=True)
    sys.stdin.read()
"""


@pytest.mark.load
@pytest.mark.timeout(180)
def test_a_local_cluster_is_not_reached_from_elsewhere():
    """Ray's processes, those of actors, and the one that starts it listen on loopback alone."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    with subprocess.Popen(
        [sys.executable, "-c", LOCAL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    ) as process:
        worker, session = process.stdout.readline().split()
        pids = family(process.pid)
        assert int(worker) in pids
        found = listeners(pids)
        parent = Path(session).parents[1]
        mode = stat.S_IMODE(parent.stat().st_mode)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(found) >= 5
    assert set(found) <= {"0100007F", "0000000000000000FFFF00000100007F"}
    assert parent.name.startswith("nescio-ray-")
    assert mode == 0o700
    assert not parent.exists()


@pytest.mark.load
@pytest.mark.timeout(180)
def test_commands_of_the_other_party_are_refused(sharded, raylets, tmp_path):
    sharded(shards=1, replicas=1).check()
    address = raylets.address
    status = ["cluster", "status", "--cluster", address, "--party"]
    serve = ["serve", tmp_path / "table.npy", "--name", "other", "--cluster", address, "--party"]
    for command in (status, serve):
        refused = nescio(*command, 1)
        assert_one_sentence(refused)
        assert "tables of party 0, expected one of party 1 alone" in refused.stderr
    assert nescio(*status, 0).returncode == 0
