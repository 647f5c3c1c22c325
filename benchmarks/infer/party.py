"""One party of private inference, in its own process, and both of them together."""

import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from nescio.bench.parties import connect, report, reporting, two_parties
from nescio.mpc import Client, Network, PublicNetwork, Server, Step, prepare
from nescio.mpc._maps import Ring
from nescio.net import Channel, Link

__all__ = ["Parties", "Run", "peak_bytes", "run"]

Reports = tuple[list[list[Step]], list[Ring], int]
"""The steps of each run, the client's outputs, and the party's peak memory."""


@dataclass(frozen=True)
class Parties:
    """The network, or its public part at the client, both parties' stores, and their link."""

    network: Network | PublicNetwork
    client: Path
    server: Path
    link: Link | None = None
    threads: int = 1


class Run(NamedTuple):
    """The reports of both parties: steps of each run, the client's outputs, and peaks of memory."""

    client: list[list[Step]]
    server: list[list[Step]]
    outputs: list[Ring]
    client_bytes: int
    server_bytes: int


def run(parties: Parties, work: int | Sequence[Ring]) -> Run:
    """Prepares `work` inferences, or infers from inputs, in two processes over loopback.

    Raises NescioError if a party does.
    """
    os.environ["OPENBLAS_NUM_THREADS"] = str(parties.threads)  # its threads wait busily
    assert isinstance(parties.network, Network)
    public = replace(parties, network=parties.network.public)
    todo = work if isinstance(work, int) else list(work)
    roles = {"server": (parties, todo), "client": (public, todo)}
    with two_parties(_party, roles) as (serving, asking):
        (client, outputs, mine), (server, _, theirs) = report(asking), report(serving)
    return Run(client, server, outputs, mine, theirs)


def _party(
    role: str, pipe: Connection, port: int | None, parties: Parties, work: int | list[Ring]
) -> None:
    """Runs a party, and sends its report."""
    with reporting(pipe), connect(pipe, port, parties.link) as channel:
        if isinstance(work, int):
            path = parties.server if role == "server" else parties.client
            steps = prepare(channel, parties.network, path, work, threads=parties.threads)
            pipe.send(([steps], [], peak_bytes()))
        elif role == "server":
            pipe.send(_serve(channel, parties, len(work)))
        else:
            pipe.send(_infer(channel, parties, work))


def _serve(channel: Channel, parties: Parties, count: int) -> Reports:
    assert isinstance(parties.network, Network)
    found = []
    with Server(channel, parties.network, parties.server, threads=parties.threads) as server:
        for _ in range(count):
            server.serve()
            found.append(server.counts)
    return found, [], peak_bytes()


def _infer(channel: Channel, parties: Parties, inputs: list[Ring]) -> Reports:
    assert isinstance(parties.network, PublicNetwork)
    found, outputs = [], []
    with Client(channel, parties.network, parties.client, threads=parties.threads) as client:
        for image in inputs:
            outputs.append(client.infer(image))
            found.append(client.counts)
    return found, outputs, peak_bytes()


def peak_bytes() -> int:
    """Returns the peak of this process's resident memory.

    Linux hands the peak of `getrusage` on from a parent to the process that it starts, so the
    status of the process itself is read where there is one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
