"""A party's Ray cluster: one that runs, or one of its own on this machine.

Nothing is reported to Ray's makers. A local cluster listens on loopback, has no dashboard and a
token of its own.
"""

import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ...errors import ArgumentError, ResourceError

INLINE_BYTES = 4 << 20
"""Keys and answers of a batch up to this size go with the call, not through the object store."""

Ray = Any
"""The module `ray`, which has no types of its own."""

Actor = Any
"""A handle of an actor, whose methods are called by `remote`."""

_LOOK_UP_SECONDS = 1.0
_LOOPBACK = "127.0.0.2"  # for 127.0.0.1 Ray takes an address that others reach
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


def namespace(party: int) -> str:
    """Returns the namespace of a party's actors."""
    return f"nescio-party-{party}"


@contextmanager
def connected(address: str, party: int, option: str = "--cluster") -> Iterator[None]:
    """Connects to a cluster by its address, or starts one on this machine ("local") and ends it.

    Errors name the `option` of the address. Raises ResourceError if there is no cluster there.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == "local":
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # not in the user's home
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    ray = import_ray(option)
    folder = tempfile.mkdtemp(prefix="nescio-ray-")
    try:
        _connect(ray, address, party, folder, option)
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _connect(ray: Ray, address: str, party: int, folder: str, option: str) -> None:
    common: dict[str, Any] = {
        "namespace": namespace(party),
        "log_to_driver": False,
        "logging_level": "WARNING",
    }
    try:
        if address == "local":
            ray.init(
                "local",
                include_dashboard=False,
                object_store_memory=_OBJECT_BYTES,
                _node_ip_address=_LOOPBACK,
                _temp_dir=folder,
                _system_config={"max_direct_call_object_size": INLINE_BYTES},
                **common,
            )
        else:
            ray.init(address, **common)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise ResourceError(
            f"{option}: found no Ray cluster at {address!r} ({error}): start one with `ray start "
            "--head`, or give 'local'"
        ) from error


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
