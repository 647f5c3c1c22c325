"""ResNet-32 on CIFAR-10, whole: quality, the offline phase and the online phase over links."""

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.infer.party import Parties, Run
from benchmarks.infer.party import run as run_parties
from benchmarks.infer.resnet_model import Images, load_images, load_layers
from nescio._report import Case, Report, check_writable
from nescio.errors import NescioError
from nescio.mpc import Step
from nescio.mpc._maps import Floats, Ring
from nescio.mpc._material import decode_client, decode_server
from nescio.mpc._quantize import FloatLayer, Quantized, quantize
from nescio.mpc._quantize import run as run_floats
from nescio.mpc._store import Store
from nescio.net import Link

__all__ = ["run"]

_CALIBRATION = 768
_AT_ONCE = 32  # images of the simulator
_DRAWS = 4  # of the dithers of all images
_CHUNK = 40  # prepared inferences on the disk
_LINKS: tuple[tuple[str, str | None, str | None], ...] = (
    ("none", None, None),
    ("1 ms, 1 Gbit/s", "1ms", "1gbit"),
    ("40 ms, 100 Mbit/s", "40ms", "100mbit"),
)

_QUALITY = (
    ("table_bits", "table bits", "10"),
    ("images", "images", "6,"),
    ("float_right", "float right", "11.3%"),
    ("right", "right", "7.2%"),
    ("agree", "agree", "7.2%"),
    ("lookups", "lookups", "11,"),
    ("wraps", "wraps", "6,"),
)
_OFFLINE = (
    ("phase", "phase", ">9"),
    ("client_bytes", "client sends B", "14,"),
    ("server_bytes", "server sends B", "14,"),
    ("client_cpu_ms", "client CPU ms", "13.1f"),
    ("server_cpu_ms", "server CPU ms", "13.1f"),
    ("table_bytes", "B a table", "9.2f"),
    ("table_cpu_us", "CPU us a table, party", "21.2f"),
)
_ONLINE = (
    ("link", "link", ">17"),
    ("inferences", "runs", "4"),
    ("online_bytes", "bytes", "9,"),
    ("relu_bytes", "B a ReLU", "8.3f"),
    ("rounds", "rounds", "6"),
    ("client_cpu_ms", "client CPU ms", "13.1f"),
    ("server_cpu_ms", "server CPU ms", "13.1f"),
    ("store_cpu_ms", "of it stores", "12.1f"),
    ("online_seconds", "median s", "8.3f"),
    ("floor_seconds", "floor s", "7.3f"),
    ("equal", "= simulator", ">11"),
)


class _Setting(NamedTuple):
    """Everything of one width of tables."""

    quantized: Quantized
    inputs: Ring
    threads: int
    folder: Path

    @property
    def relus(self) -> int:
        """The number of tables of an inference."""
        return sum(layer.size for layer in self.quantized.network.layers[:-1])


def run(arguments: argparse.Namespace) -> int:
    """Prints the tables of every width. Raises FileError, and NescioError for a wrong outcome."""
    check_writable(arguments.json)
    print("loading, and running the float model", flush=True)
    layers = load_layers(Path(arguments.model))
    images = load_images(Path(arguments.images), _CALIBRATION)
    floats = _float_outputs(layers, images.test)
    cases: list[Case] = []
    for bits in arguments.table_bits:
        quantized = quantize(layers, images.calibration, bits=bits)
        print(f"\n{bits} table bits: quality, a mean of {_DRAWS} draws of the dithers", flush=True)
        cases.append(_quality(quantized, bits, images, floats))
        Report(_QUALITY).add(cases[-1])
        with tempfile.TemporaryDirectory() as folder:
            inputs = quantized.encode(images.test)
            setting = _Setting(quantized, inputs, arguments.threads, Path(folder))
            for case in _protocol(setting, arguments.inferences, arguments.check):
                cases.append({"table_bits": bits, **case})
                if arguments.json is not None:
                    Path(arguments.json).write_text(json.dumps(cases, indent=1) + "\n")
    return 0


def _float_outputs(layers: Sequence[FloatLayer], images: Floats) -> Floats:
    parts = range(0, len(images), _AT_ONCE)
    found = [list(run_floats(layers, images[first : first + _AT_ONCE]))[-1] for first in parts]
    return np.concatenate(found)


def _quality(quantized: Quantized, bits: int, images: Images, floats: Floats) -> Case:
    """Returns means over some draws of the dithers."""
    found = [_classes(quantized, images.test) for _ in range(_DRAWS)]
    classes = np.stack([own for own, _ in found])
    expected = floats.argmax(1)
    relus = sum(layer.size for layer in quantized.network.layers[:-1])
    return {
        "table_bits": bits,
        "images": len(expected),
        "float_right": float((expected == images.labels).mean()),
        "right": float((classes == images.labels).mean()),
        "agree": float((classes == expected).mean()),
        "lookups": relus * len(expected),
        "wraps": round(statistics.mean(wraps for _, wraps in found)),
    }


def _classes(quantized: Quantized, images: Floats) -> tuple[Ring, int]:
    """Returns the class of each image, and the number of wrong lookups."""
    found, wraps = [], 0
    for first in range(0, len(images), _AT_ONCE):
        part = quantized.encode(images[first : first + _AT_ONCE])
        simulated = quantized.network.simulate(part)
        found.append(simulated.outputs.view(np.int32).argmax(1))
        wraps += sum(simulated.wraps)
    return np.concatenate(found), wraps


def _protocol(setting: _Setting, inferences: int, check: int) -> Iterator[Case]:
    """Runs both phases, and yields their cases; checks every outcome."""
    network = setting.quantized.network
    mine, theirs = (setting.folder / role for role in ("client", "server"))
    parties = Parties(network, mine, theirs, threads=setting.threads)
    total = len(_LINKS) * inferences
    print(f"offline, a mean of {total} inferences in one session, {setting.threads} thread(s)")
    prepared = run_parties(parties, total)
    report = Report(_OFFLINE)
    for case in _offline(prepared, total, setting.relus):
        report.add(case)
        yield case
    print("online, two processes over loopback with an emulated link")
    report = Report(_ONLINE)
    expected = _Expected(setting, parties, total)
    for number, (name, rtt, rate) in enumerate(_LINKS):
        link = None if rtt is None else Link.parse(rtt=rtt, rate=rate)
        part = range(number * inferences, (number + 1) * inferences)
        found = run_parties(replace(parties, link=link), [expected.inputs[k] for k in part])
        case = _online(found, setting.relus, link)
        expected.check(found.outputs, part)
        report.add({"link": name, **case})
        yield {"link": name, **case}
    yield _checked(setting, parties, check)


def _checked(setting: _Setting, parties: Parties, count: int) -> Case:
    """Runs `count` images without a link, and compares their logits with the simulator's."""
    for first in range(0, count, _CHUNK):
        own = range(first, min(count, first + _CHUNK))
        for path in (parties.client, parties.server):
            path.unlink()
        run_parties(parties, len(own))
        expected = _Expected(setting, parties, len(own), first)
        found = run_parties(parties, [expected.inputs[k] for k in range(len(own))])
        expected.check(found.outputs, range(len(own)))
        print(f"logits of {own.stop} of {count} images are the simulator's", flush=True)
    print(f"{count} more images: logits equal to the simulator's, bit for bit")
    return {"checked_images": count, "equal": True}


class _Expected:
    """The outputs of the simulator for what both parties prepared; nobody but a test has both."""

    def __init__(self, setting: _Setting, parties: Parties, count: int, first: int = 0) -> None:
        network = setting.quantized.network
        images = np.arange(first, first + count) % len(setting.inputs)
        self.inputs, self._outputs = setting.inputs[images], list[Ring]()
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


def _offline(found: Run, count: int, relus: int) -> Iterator[Case]:
    """Yields the means of each phase; keys and prepared weights are made once per session."""
    for mine, theirs in zip(found.client[0], found.server[0], strict=True):
        once = mine.phase in ("agreement", "keys")
        share = 1 if once else count
        case: Case = {
            "phase": mine.phase,
            "client_bytes": mine.counts.sent_bytes // share,
            "server_bytes": theirs.counts.sent_bytes // share,
            "client_cpu_ms": 1e3 * mine.cpu_seconds / share,
            "server_cpu_ms": 1e3 * theirs.cpu_seconds / share,
            "seconds": mine.seconds / share,
        }
        if mine.phase == "tables":
            both = mine.counts.sent_bytes + theirs.counts.sent_bytes
            cpu = mine.cpu_seconds + theirs.cpu_seconds
            case |= {"table_bytes": both / count / relus}
            case |= {"table_cpu_us": 1e6 * cpu / count / relus / 2}
        yield case


def _online(found: Run, relus: int, link: Link | None) -> Case:
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
