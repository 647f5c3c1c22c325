"""`python -m benchmarks.faults cluster`: each fault of a cluster in turn, as a table."""

import argparse
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks._main import chosen
from benchmarks.faults.scene import Outcome
from benchmarks.faults.settings import Settings
from benchmarks.faults.suite import Fault, print_table
from nescio.service._cluster import connected

from . import actors
from .raylets import Raylets


class _ClusterFault(NamedTuple):
    """A fault by name, which needs a cluster."""

    name: str
    run: Callable[[Raylets, Settings, Path], Outcome]


_FAULTS = (
    _ClusterFault("replica", actors.replicas),
    _ClusterFault("stopped", actors.stopped),
    _ClusterFault("node", actors.node),
    _ClusterFault("head", actors.head),
    _ClusterFault("front", actors.front),
    _ClusterFault("single", actors.single),
)


def run(arguments: argparse.Namespace) -> int:
    """Starts a cluster of three nodes, makes each chosen fault happen, and prints a line for it.

    Returns 1 if a fault did harm, or if a lookup failed though each shard had another replica.
    """
    settings = Settings(
        kills=arguments.kills,
        seconds=arguments.seconds,
        seed=arguments.seed,
        limit=arguments.limit,
    )
    selected = chosen(_FAULTS, arguments.only, "fault")
    folder = tempfile.mkdtemp(prefix="nescio-ray-")
    try:
        raylets = Raylets(Path(folder))
        try:
            with connected(raylets.address, 0):
                faults = [Fault(one.name, partial(one.run, raylets)) for one in selected]
                return print_table(faults, settings, arguments.json)
        finally:
            raylets.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
