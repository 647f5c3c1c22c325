"""A party's Ray cluster: one that runs, or one of its own on this machine.

Nothing is reported to Ray's makers. The processes of a local cluster listen on loopback alone, have
no dashboard and a token of its own, and keep their sockets and files where other users cannot
enter.
"""

import importlib
import logging
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from ...errors import ArgumentError, ResourceError
from ._folder import ray_folder

INLINE_BYTES = 4 << 20
"""Keys and answers of a batch up to this size go with the call, not through the object store."""

HEAD = "/head"
"""The end of the names of actors at the heads of tables."""

Ray = Any
"""The module `ray`, which has no types of its own."""

Actor = Any
"""A handle of an actor, whose methods are called by `remote`."""

_LOOK_UP_SECONDS = 1.0
_REACH_SECONDS = 5.0
_LOOPBACK = "127.0.0.1"
_OBJECT_BYTES = 256 << 20  # of a local cluster: the keys and answers of some batches


def import_ray(option: str = "--cluster") -> Ray:
    """Imports Ray for an option of a command, without its field in records of logs.

    Raises ArgumentError if it is not installed.
    """
    factory = logging.getLogRecordFactory()
    try:
        import ray  # noqa: PLC0415 - reads the environment at its import
    except ImportError as error:
        raise ArgumentError(f"{option} needs the package 'ray': install nescio[cluster]") from error
    logging.setLogRecordFactory(factory)
    return ray


def head_name(table: str) -> str:
    """Returns the name of the actor at the head of a table."""
    return table + HEAD


def namespace(party: int) -> str:
    """Returns the namespace of a party's actors."""
    return f"nescio-party-{party}"


@contextmanager
def connected(address: str, party: int | None, option: str = "--cluster") -> Iterator[None]:
    """Connects to a cluster by its address, or starts one on this machine ("local") and ends it.

    A `party` has actors there; None only runs tasks. Errors name the `option` of the address.
    Raises ResourceError if there is no cluster there, ArgumentError if it is the other party's.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == "local":
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # not in the user's home
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_worker_niceness", "0")  # 15: shards wait for all other processes
        os.environ.setdefault("RAY_agent_register_timeout_ms", "120000")  # on a busy machine
    ray = import_ray(option)
    if ray.is_initialized():  # not by this function, which must not end it
        raise ResourceError(
            f"{option}: this process is connected to a Ray cluster, expected no connection: end it "
            "with ray.shutdown()"
        )
    with ExitStack() as closing:
        folder = closing.enter_context(ray_folder()) if address == "local" else ""
        closing.callback(ray.shutdown)
        try:
            if folder:
                _start(ray, party, folder)
            else:
                _check_reachable(address)
                ray.init(address, **_common(party))
        except Exception as error:  # Ray's own kinds, and bare ones for a start that takes too long
            raise _not_connected(address, option, error) from error
        if party is not None:
            _check_party(ray, party, option)
        yield


def _check_reachable(address: str) -> None:
    """Raises OSError if nobody listens at HOST:PORT: Ray tries for more than a minute."""
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS).close()


def _common(party: int | None) -> dict[str, Any]:
    own = {} if party is None else {"namespace": namespace(party)}
    return {"log_to_driver": False, "logging_level": "WARNING", **own}


def _start(ray: Ray, party: int | None, folder: str) -> None:
    """Starts a cluster whose processes listen on loopback alone."""
    # Ray takes an address that others reach for 127.0.0.1, and listens on all of them for any
    # other one, unless it is told that this machine is not part of a larger cluster.
    constants: Any = importlib.import_module("ray._private.ray_constants")
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    try:
        ray.init(
            "local",
            include_dashboard=False,
            object_store_memory=_OBJECT_BYTES,
            _node_ip_address=_LOOPBACK,
            _temp_dir=folder,
            _system_config={"max_direct_call_object_size": INLINE_BYTES},
            **_common(party),
        )
    finally:
        constants.ENABLE_RAY_CLUSTER = before
    if (found := ray.util.get_node_ip_address()) != _LOOPBACK:
        raise RuntimeError(f"found address {found}, expected {_LOOPBACK}")


def _not_connected(address: str, option: str, error: Exception) -> ResourceError:
    if address == "local":
        return ResourceError(
            f"{option}: a Ray cluster did not start on this machine ({error}): try again when it "
            "has less other work, or give the address of a cluster that runs"
        )
    return ResourceError(
        f"{option}: found no Ray cluster at {address!r} ({error}): start one with `ray start "
        "--head` on this machine, or let this machine join one, or give 'local'"
    )


def _check_party(ray: Ray, party: int, option: str) -> None:
    """Raises ArgumentError for a cluster that has actors of the other party."""
    other = namespace(1 - party)
    if any(one["namespace"] == other for one in ray.util.list_named_actors(all_namespaces=True)):
        raise ArgumentError(
            f"{option}: found a cluster with tables of party {1 - party}, expected one of party "
            f"{party} alone: who runs a cluster of both sees the rows of every lookup. Check "
            "--party, and give each party a cluster of its own"
        )


class NamedActor:
    """The actor that has a name now: another one may get it, as in a rolling restart.

    Methods are those of a handle.
    """

    def __init__(self, ray: Ray, name: str) -> None:
        self._ray = ray
        self._name = name
        self._found: Actor = ray.get_actor(name)
        self._looked_at = time.monotonic()

    def __getattr__(self, method: str) -> Actor:
        """Returns a method of the actor, which is looked up again every second."""
        now = time.monotonic()
        if now - self._looked_at > _LOOK_UP_SECONDS:
            self._looked_at = now
            with suppress(ValueError):  # nobody has the name for the moment
                self._found = self._ray.get_actor(self._name)
        return getattr(self._found, method)
