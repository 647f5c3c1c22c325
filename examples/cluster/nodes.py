"""A party's Ray cluster: one that runs, or one of its own on this machine."""

import importlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import examples.cluster
from nescio.errors import ResourceError

_LOOPBACK = "127.0.0.1"
_OBJECT_BYTES = 80 << 20  # of a local cluster: results are in files


@contextmanager
def cluster(address: str, cpus: int) -> Iterator[None]:
    """Connects to a cluster, or starts one with `cpus` processors on this machine and ends it.

    Nothing is reported to Ray's makers. The processes of a local cluster listen on loopback alone,
    have no dashboard and a token of its own, and keep their files where other users cannot enter.
    Each party needs its own cluster: whoever controls one cluster of both has both halves of every
    store. Raises ResourceError for fewer processors than `cpus`, or a cluster that does not start.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == "local":
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # not in the user's home
        os.environ["RAY_AUTH_MODE"] = "token"
    import ray  # noqa: PLC0415 - reads the environment at its import

    # Workers get the functions of this package by value, so that nodes need only nescio.
    pickle: Any = ray.cloudpickle
    pickle.register_pickle_by_value(examples.cluster)
    folder = tempfile.mkdtemp(prefix="nr-")
    try:
        if address == "local":
            _start(cpus, folder)
        else:
            ray.init(address, log_to_driver=False)
        resources: Any = ray.cluster_resources  # without types in Ray
        found = int(resources().get("CPU", 0))
        if found < cpus:
            raise ResourceError(
                f"the cluster: found {found} CPUs, expected {cpus}: use fewer workers or threads"
            )
        yield
    finally:
        ray.shutdown()
        pickle.unregister_pickle_by_value(examples.cluster)
        shutil.rmtree(folder, ignore_errors=True)


def _start(cpus: int, folder: str) -> None:
    import ray  # noqa: PLC0415

    # Ray listens on loopback alone if this machine is not part of a larger cluster.
    constants: Any = importlib.import_module("ray._private.ray_constants")
    before, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    try:
        ray.init(
            "local",
            num_cpus=cpus,
            num_gpus=0,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=_OBJECT_BYTES,
            _node_ip_address=_LOOPBACK,
            _temp_dir=f"{folder}/r",  # which Ray makes 0777; `folder` is 0700
        )
    except Exception as error:  # Ray raises a bare one if the start takes too long
        raise ResourceError(f"a Ray cluster did not start on this machine ({error})") from error
    finally:
        constants.ENABLE_RAY_CLUSTER = before
