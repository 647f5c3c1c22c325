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

from benchmarks.infer.outcomes import Expected, lookups_of, offline, online
from benchmarks.infer.party import Parties
from benchmarks.infer.party import run as run_parties
from benchmarks.infer.resnet_model import Images, load_images, load_layers
from nescio._report import Case, Report, check_writable
from nescio.mpc._maps import Floats, Ring
from nescio.mpc._plans.floats import FloatLayer
from nescio.mpc._plans.floats import run as run_floats
from nescio.mpc._plans.quantize import Quantized, quantize
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
        return lookups_of(self.quantized.network)


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
    relus = lookups_of(quantized.network)
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
    for case in offline(prepared, total, setting.relus):
        report.add(case)
        yield case
    print("online, two processes over loopback with an emulated link")
    report = Report(_ONLINE)
    expected = Expected(network, setting.inputs, parties, total)
    for number, (name, rtt, rate) in enumerate(_LINKS):
        link = None if rtt is None else Link.parse(rtt=rtt, rate=rate)
        part = range(number * inferences, (number + 1) * inferences)
        found = run_parties(replace(parties, link=link), [expected.inputs[k] for k in part])
        case = online(found, setting.relus, link)
        expected.check(found.outputs, part)
        report.add({"link": name, **case})
        yield {"link": name, **case}
    yield _checked(setting, parties, check)


def _checked(setting: _Setting, parties: Parties, count: int) -> Case:
    """Runs `count` images without a link, and compares their logits with the simulator's."""
    network = setting.quantized.network
    for first in range(0, count, _CHUNK):
        own = range(first, min(count, first + _CHUNK))
        for path in (parties.client, parties.server):
            path.unlink()
        run_parties(parties, len(own))
        expected = Expected(network, setting.inputs, parties, len(own), first)
        found = run_parties(parties, [expected.inputs[k] for k in range(len(own))])
        expected.check(found.outputs, range(len(own)))
        print(f"logits of {own.stop} of {count} images are the simulator's", flush=True)
    print(f"{count} more images: logits equal to the simulator's, bit for bit")
    return {"checked_images": count, "equal": True}
