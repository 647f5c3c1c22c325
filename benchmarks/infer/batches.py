"""Throughput of ResNet-32 online: inputs that run together, over links, by threads.

Both parties are processes. The prepared inferences are those of a dealer, and each run begins with
copies of the same stores: they hide nothing, and take the time of any others.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.infer.party import Parties
from benchmarks.infer.resnet_model import load_images, load_layers
from nescio._report import Case, Report, check_writable
from nescio.bench.parties import connect, report, reporting, two_parties
from nescio.errors import ArgumentError, NescioError
from nescio.mpc import Client, Network, PublicNetwork, Server, insecure_dealer
from nescio.mpc._maps import Ring
from nescio.mpc._material import decode_client
from nescio.mpc._online import dithers_of
from nescio.mpc._plans.quantize import quantize
from nescio.mpc._store import Store
from nescio.net import Channel, Link

__all__ = ["run"]

_CALIBRATION = 768
_RUNS = 8  # inferences that are timed in a session, if a batch is not larger
_LINKS: dict[str, tuple[str, str] | None] = {
    "none": None,
    "1 ms, 1 Gbit/s": ("1ms", "1gbit"),
    "40 ms, 100 Mbit/s": ("40ms", "100mbit"),
}
_COLUMNS = (
    ("link", "link", ">17"),
    ("threads", "threads", "7"),
    ("batch", "batch", "5"),
    ("per_second", "inferences/s", "12.2f"),
    ("seconds", "batch s", "8.3f"),
    ("floor_seconds", "floor s", "7.3f"),
    ("rounds", "rounds", "6"),
    ("bytes", "B an inference", "14,"),
    ("client_cpu_ms", "client CPU ms", "13.1f"),
    ("server_cpu_ms", "server CPU ms", "13.1f"),
)


class _Ends(NamedTuple):
    """The clock and the CPU time of a party when each batch ended."""

    clock: list[float]
    cpu: list[float]

    def add(self) -> None:
        """Adds now."""
        self.clock.append(time.perf_counter())
        self.cpu.append(time.process_time())


class _Session(NamedTuple):
    """The ends of each batch at both parties, and the client's outputs and counts."""

    client: _Ends
    server: _Ends
    outputs: Ring
    bytes: int
    rounds: int


def run(arguments: argparse.Namespace) -> int:
    """Prints the table. Raises FileError, and NescioError for a wrong outcome."""
    check_writable(arguments.json)
    if min(arguments.batches) < 1 or max(arguments.batches) > 512:
        raise ArgumentError(f"--batches: found {arguments.batches}, expected sizes from 1 to 512")
    layers = load_layers(Path(arguments.model))
    images = load_images(Path(arguments.images), _CALIBRATION)
    quantized = quantize(layers, images.calibration, bits=8)
    count = max(batch * _runs(batch) for batch in arguments.batches)
    inputs = np.resize(quantized.encode(images.test[:count]), (count, *quantized.network.inputs))
    with tempfile.TemporaryDirectory() as folder:
        print(f"dealing {count} inferences", flush=True)
        place = _Place(quantized.network, inputs, Path(folder))
        cases = []
        for case in _measured(place, arguments):
            cases.append(case)
            if arguments.json is not None:
                Path(arguments.json).write_text(json.dumps(cases, indent=1) + "\n")
    return 0


class _Place:
    """The network, inputs, and stores that each run copies, with the simulator's outputs."""

    def __init__(self, network: Network, inputs: Ring, folder: Path) -> None:
        self.network, self.inputs, self.folder = network, inputs, folder
        self._whole = folder / "client.all", folder / "server.all"
        insecure_dealer(network, *self._whole, len(inputs), seed=1)
        with Store(self._whole[0]) as store:
            self._contents = store.contents
        self._expected = np.stack([self._simulated(number) for number in range(len(inputs))])

    def _simulated(self, number: int) -> Ring:
        contents = self._contents
        with self._whole[0].open("rb") as file:
            file.seek(contents.parts_at + number * contents.size)
            client = decode_client(self.network.public, bytearray(file.read(contents.size)))
        outputs = self.network.simulate(self.inputs[number][None], dithers_of(client)).outputs
        found: Ring = outputs[0]
        return found

    def parties(self, count: int) -> Parties:
        """Returns parties with new copies of the stores, without what lies behind `count`."""
        client, server = (path.with_suffix(".now") for path in self._whole)
        for whole, path in zip(self._whole, (client, server), strict=True):
            with Store(whole) as store:
                contents = store.contents
            with whole.open("rb") as source, path.open("wb") as copy:
                copy.truncate(contents.file_bytes)
                copy.write(source.read(contents.parts_at))
                for _ in range(count):
                    copy.write(source.read(contents.size))
                os.fsync(copy.fileno())
        return Parties(self.network, client, server)

    def check(self, outputs: Ring) -> None:
        """Raises NescioError for outputs that are not the simulator's."""
        if not np.array_equal(outputs, self._expected[: len(outputs)]):
            raise NescioError("outputs differ from the simulator's")


def _measured(place: _Place, arguments: argparse.Namespace) -> Iterator[Case]:
    """Yields medians; sessions alternate between the numbers of threads."""
    table = Report(_COLUMNS)
    for name, sizes in _LINKS.items():
        link = None if sizes is None else Link.parse(rtt=sizes[0], rate=sizes[1])
        for batch in arguments.batches:
            found = defaultdict(list)
            for _ in range(arguments.repeat):
                for threads in arguments.threads:
                    session = _run(place, batch, threads, link)
                    place.check(session.outputs)
                    found[threads].append(session)
            for threads, sessions in found.items():
                case = {"link": name, "threads": threads, **_case(sessions, batch, link)}
                table.add(case)
                yield case


def _case(sessions: Sequence[_Session], batch: int, link: Link | None) -> Case:
    """Returns medians of the time from one batch's end to the next one's, and their CPU time."""
    first = sessions[0]
    floor = 0.0
    if link is not None:
        floor = first.rounds * link.rtt_seconds + link.transfer_seconds(first.bytes)
    seconds = _median(own.client.clock for own in sessions)
    return {
        "batch": batch,
        "per_second": batch / seconds,
        "seconds": seconds,
        "floor_seconds": floor,
        "rounds": first.rounds,
        "bytes": first.bytes // batch,
        "client_cpu_ms": 1e3 * _median(own.client.cpu for own in sessions) / batch,
        "server_cpu_ms": 1e3 * _median(own.server.cpu for own in sessions) / batch,
    }


def _median(ends: Iterator[list[float]]) -> float:
    return statistics.median(gap for own in ends for gap in np.diff(own))


def _runs(batch: int) -> int:
    """Returns the batches of a session: one that is not timed, and some that are."""
    return 1 + max(1, _RUNS // batch)


def _run(place: _Place, batch: int, threads: int, link: Link | None) -> _Session:
    """Runs a session, in two processes."""
    runs = _runs(batch)
    parties = replace(place.parties(runs * batch), link=link, threads=threads)
    public = replace(parties, network=place.network.public)
    os.environ["OPENBLAS_NUM_THREADS"] = str(threads)
    inputs = place.inputs[: runs * batch].reshape(runs, batch, *place.network.inputs)
    roles = {"server": (parties, inputs), "client": (public, inputs)}
    with two_parties(_party, roles) as (serving, asking):
        client, outputs, sent, rounds = report(asking)
        return _Session(client, report(serving), outputs, sent, rounds)


def _party(role: str, pipe: Connection, port: int | None, parties: Parties, inputs: Ring) -> None:
    """Runs a party, and sends its report."""
    with reporting(pipe), connect(pipe, port, parties.link) as channel:
        if role == "server":
            pipe.send(_serve(channel, parties, inputs))
        else:
            pipe.send(_infer(channel, parties, inputs))


def _serve(channel: Channel, parties: Parties, inputs: Ring) -> _Ends:
    assert isinstance(parties.network, Network)
    options = {"threads": parties.threads, "batch": inputs.shape[1]}
    ends = _Ends([], [])
    with Server(channel, parties.network, parties.server, **options) as server:
        for _ in inputs:
            server.serve()
            ends.add()
    return ends


def _infer(channel: Channel, parties: Parties, inputs: Ring) -> tuple[_Ends, Ring, int, int]:
    """Returns the ends, the outputs, and the bytes and rounds of the last batch."""
    assert isinstance(parties.network, PublicNetwork)
    options = {"threads": parties.threads, "batch": inputs.shape[1]}
    ends, outputs = _Ends([], []), []
    with Client(channel, parties.network, parties.client, **options) as client:
        for some in inputs:
            outputs.append(client.infer_batch(some))
            ends.add()
        counts = [step.counts for step in client.counts]
    sent = sum(own.sent_bytes + own.received_bytes for own in counts)
    return ends, np.concatenate(outputs), sent, sum(own.rounds for own in counts)
