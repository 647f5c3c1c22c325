"""Outcomes of two parties: bytes and times by phase, and the outputs of the simulator."""

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.infer.party import Parties, Run
from nescio._report import Case
from nescio.errors import NescioError
from nescio.mpc import Network, Step
from nescio.mpc._maps import Ring
from nescio.mpc._material import decode_client, decode_server
from nescio.mpc._store import Store
from nescio.net import Link

__all__ = ["Expected", "lookups_of", "offline", "online"]


def lookups_of(network: Network) -> int:
    """Returns the number of tables of an inference."""
    return sum(layer.size for layer in network.layers[:-1])


class Expected:
    """The outputs of the simulator for what both parties prepared; nobody but a test has both."""

    def __init__(
        self, network: Network, images: Ring, parties: Parties, count: int, first: int = 0
    ) -> None:
        chosen = np.arange(first, first + count) % len(images)
        self.inputs, self._outputs = images[chosen], list[Ring]()
        for number in range(count):
            client = decode_client(network.public, _part(parties.client, number))
            server = decode_server(network.public, _part(parties.server, number))
            masks = [client.mask, *(own.mask for own in client.layers if own.mask is not None)]
            errors = [
                layer.total(masks) - theirs.subtracted + mine.share
                for layer, mine, theirs in zip(
                    network.layers, client.layers, server.layers, strict=True
                )
            ]
            dithers = [own.share for own in client.layers[:-1]]
            batch = self.inputs[number][None]
            self._outputs.append(network.simulate(batch, dithers, errors).outputs[0])

    def check(self, outputs: Sequence[Ring], part: Sequence[int]) -> None:
        """Raises NescioError for outputs that are not the simulator's."""
        for number, found in zip(part, outputs, strict=True):
            if not np.array_equal(found, self._outputs[number]):
                raise NescioError(f"inference {number}: logits differ from the simulator's")


def _part(path: Path, number: int) -> bytearray:
    """Reads a part of a store that is not used yet."""
    with Store(path) as store:
        contents = store.contents
    with path.open("rb") as file:
        file.seek(contents.parts_at + number * contents.size)
        return bytearray(file.read(contents.size))


def offline(found: Run, count: int, relus: int) -> Iterator[Case]:
    """Yields the means of each phase; keys and prepared weights are made once per session.

    The client waits for the server's weights in its first products, whose time goes to the keys.
    """
    waited = 0.0
    for mine, theirs in zip(found.client[0], found.server[0], strict=True):
        once, seconds = mine.phase in ("agreement", "keys"), mine.seconds
        if mine.phase == "keys":
            seconds = max(seconds, theirs.seconds)
            waited = seconds - mine.seconds
        elif mine.phase == "products":
            seconds = max(0.0, seconds - waited)
        share = 1 if once else count
        case: Case = {
            "phase": mine.phase,
            "client_bytes": mine.counts.sent_bytes // share,
            "server_bytes": theirs.counts.sent_bytes // share,
            "client_cpu_ms": 1e3 * mine.cpu_seconds / share,
            "server_cpu_ms": 1e3 * theirs.cpu_seconds / share,
            "seconds": seconds / share,
        }
        if mine.phase == "tables":
            both = mine.counts.sent_bytes + theirs.counts.sent_bytes
            cpu = mine.cpu_seconds + theirs.cpu_seconds
            case |= {"table_bytes": both / count / relus}
            case |= {"table_cpu_us": 1e6 * cpu / count / relus / 2}
        yield case


def online(found: Run, relus: int, link: Link | None) -> Case:
    """Returns medians; without the first run, which has the agreement and cold caches."""
    warm = range(1, len(found.outputs)) if len(found.outputs) > 1 else range(1)
    mine, theirs = ([own[k] for k in warm] for own in (found.client, found.server))
    sent = sum(step.counts.sent_bytes + step.counts.received_bytes for step in mine[-1])
    rounds = sum(step.counts.rounds for step in mine[-1])
    floor = 0.0 if link is None else rounds * link.rtt_seconds + link.transfer_seconds(sent)
    return {
        "inferences": len(mine),
        "online_bytes": sent,
        "relu_bytes": sent / relus,
        "rounds": rounds,
        "client_cpu_ms": 1e3 * _median(mine, "cpu_seconds"),
        "server_cpu_ms": 1e3 * _median(theirs, "cpu_seconds"),
        "store_cpu_ms": 1e3 * sum(_median(_stores(own), "cpu_seconds") for own in (mine, theirs)),
        "online_seconds": _median(mine, "seconds"),
        "floor_seconds": floor,
        "equal": True,
    }


def _stores(runs: Sequence[Sequence[Step]]) -> list[list[Step]]:
    return [[step for step in steps if step.phase == "store"] for steps in runs]


def _median(runs: Sequence[Sequence[Step]], name: str) -> float:
    sums = [float(sum(getattr(step, name) for step in steps)) for steps in runs]
    return statistics.median(sums)
