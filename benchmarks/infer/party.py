"""One party of private inference, in its own process, and both of them together."""

import multiprocessing
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from nescio.errors import NescioError
from nescio.mpc import Client, Network, PublicNetwork, Server, Step, prepare
from nescio.mpc._maps import Ring
from nescio.net import Channel, Link

__all__ = ["Parties", "Run", "run"]

_TIMEOUT = 600.0


@dataclass(frozen=True)
class Parties:
    """The network, or its public part at the client, both parties' stores, and their link."""

    network: Network | PublicNetwork
    client: Path
    server: Path
    link: Link | None = None
    threads: int = 1


class Run(NamedTuple):
    """The reports of both parties: steps of each run, and the client's outputs."""

    client: list[list[Step]]
    server: list[list[Step]]
    outputs: list[Ring]


def run(parties: Parties, work: int | Sequence[Ring]) -> Run:
    """Prepares `work` inferences, or infers from inputs, in two processes over loopback.

    Raises NescioError if a party does.
    """
    os.environ["OPENBLAS_NUM_THREADS"] = str(parties.threads)  # its threads wait busily
    context = multiprocessing.get_context("spawn")
    ends = [context.Pipe(), context.Pipe()]
    count = work if isinstance(work, int) else None
    inputs = [] if isinstance(work, int) else list(work)
    assert isinstance(parties.network, Network)
    public = replace(parties, network=parties.network.public)
    processes = [context.Process(target=_party, args=(ends[0][1], parties, count, inputs, None))]
    processes[0].start()
    try:
        port = _answer(ends[0][0], processes[0])
        task = (ends[1][1], public, count, inputs, port)
        processes.append(context.Process(target=_party, args=task))
        processes[1].start()
        (client, outputs), (server, _) = (_answer(ends[k][0], processes[k]) for k in (1, 0))
        return Run(client, server, outputs)
    finally:
        for process in processes:
            _end(process)


def _answer(pipe: Connection, process: BaseProcess) -> Any:  # noqa: ANN401 - what a party sends
    while not pipe.poll(1):
        if not process.is_alive() and not pipe.poll():
            raise NescioError(f"a party ended with exit code {process.exitcode}")
    found = pipe.recv()
    if isinstance(found, NescioError):
        raise found
    return found


def _end(process: BaseProcess) -> None:
    process.join(5)
    if process.is_alive():
        process.kill()
        process.join()


def _party(
    pipe: Connection, parties: Parties, count: int | None, inputs: list[Ring], port: int | None
) -> None:
    """Runs the client, or the server, which has no port and sends the one that it chose."""
    try:
        with _channel(pipe, parties.link, port) as channel:
            path = parties.server if port is None else parties.client
            if count is not None:
                steps = prepare(channel, parties.network, path, count, threads=parties.threads)
                pipe.send(([steps], []))
            elif isinstance(parties.network, Network):
                pipe.send((_serve(channel, parties, len(inputs)), []))
            else:
                pipe.send(_infer(channel, parties, inputs))
    except NescioError as error:
        pipe.send(error)


def _channel(pipe: Connection, link: Link | None, port: int | None) -> Channel:
    if port is not None:
        return Channel.connect("127.0.0.1", port, timeout=_TIMEOUT, link=link)
    with Channel.listener(timeout=_TIMEOUT, link=link) as listener:
        pipe.send(listener.port)
        return listener.accept()


def _serve(channel: Channel, parties: Parties, count: int) -> list[list[Step]]:
    assert isinstance(parties.network, Network)
    found = []
    with Server(channel, parties.network, parties.server, threads=parties.threads) as server:
        for _ in range(count):
            server.serve()
            found.append(server.counts)
    return found


def _infer(
    channel: Channel, parties: Parties, inputs: list[Ring]
) -> tuple[list[list[Step]], list[Ring]]:
    assert isinstance(parties.network, PublicNetwork)
    found, outputs = [], []
    with Client(channel, parties.network, parties.client, threads=parties.threads) as client:
        for image in inputs:
            outputs.append(client.infer(image))
            found.append(client.counts)
    return found, outputs
