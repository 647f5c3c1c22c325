"""`python -m benchmarks.infer figures`: the networks, tables and figures of the thesis's chapter 4.

subjects.py makes the networks, quality.py compiles and simulates them, protocol.py runs both
parties, spu_peer.py runs SPU, oblivious.py splits the offline phase, published.py has the figures
of others, figures_text.py prints and figures_plot.py draws.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from benchmarks._main import chosen, make_folder
from benchmarks.infer import figures_text, oblivious, protocol, spu_peer
from benchmarks.infer.figures_plot import draw
from benchmarks.infer.networks import NETWORKS
from benchmarks.infer.published import garbled
from benchmarks.infer.quality import compiled, quality
from benchmarks.infer.subjects import Paths, Subject, subject
from benchmarks.quant.data import DEFAULT
from nescio._report import Case
from nescio.errors import ArgumentError, FileError, NescioError
from nescio.mpc import Plan

__all__ = ["STEPS", "run"]

STEPS = ("parties", "spu", "transfers", "quality")
BITS = 8  # of the tables of the runs
_JSON, _TABLES = "private-inference.json", "private-inference.md"
_SPU_NETWORKS = ("LeNet", "ResNet-32")


@dataclass
class _Run:
    """The cases of a run, each with the name of its table, and what was left out and why."""

    arguments: argparse.Namespace
    folder: Path
    begin: float = field(default_factory=time.monotonic)
    cases: list[Case] = field(default_factory=list)
    transfers: list[oblivious.Ours] = field(default_factory=list)

    def add(self, table: str, *cases: Case) -> None:
        """Adds cases, and writes all of them."""
        self.cases += [{"table": table, **case} for case in cases]
        (self.folder / _JSON).write_text(json.dumps(self.cases, indent=1) + "\n")

    def note(self, text: str) -> None:
        """Adds a sentence for the end of the tables."""
        self.say(text)
        self.add("notes", {"note": text})

    def say(self, text: str) -> None:
        """Prints a sentence with the seconds since the start."""
        print(f"{time.monotonic() - self.begin:6.0f} s  {text}", flush=True)

    def step(self, what: str, work: Callable[[], None]) -> None:
        """Runs a step, unless the time is over; its error is a note, and the run goes on."""
        if time.monotonic() - self.begin > self.arguments.limit:
            self.note(f"{what}: left out, because {self.arguments.limit:.0f} s are over (--limit)")
            return
        self.say(what)
        try:
            work()
        except NescioError as error:
            self.note(f"{what}: {type(error).__name__}: {error}")


def run(arguments: argparse.Namespace) -> int:
    """Measures, and prints all tables at the end. Raises ArgumentError, or FileError."""
    _check(arguments)
    if arguments.again is not None:
        cases = [case for name in arguments.again for case in _read(Path(name))]
        return _shown(cases, make_folder(arguments.out))
    own = _Run(arguments, make_folder(arguments.out))
    own.add("machine", {"cpu": _processor(), "cores": os.cpu_count(), "load": os.getloadavg()[0]})
    paths = _paths(own)
    for architecture in chosen(NETWORKS, arguments.networks, "--networks"):
        own.step(
            f"{architecture.name}: weights, images, compile",
            lambda name=architecture.name: _network(own, name, paths),  # type: ignore[misc]
        )
    return _shown(own.cases, own.folder)


def _check(arguments: argparse.Namespace) -> None:
    for option, least in (("inferences", 1), ("calibration", 8), ("divisor", 1)):
        if getattr(arguments, option) < least:
            found = getattr(arguments, option)
            raise ArgumentError(f"--{option}: found {found}, expected at least {least}")
    for step in arguments.steps:
        if step not in STEPS:
            raise ArgumentError(f"--steps: found {step!r}, expected some of {', '.join(STEPS)}")


def _read(path: Path) -> list[Case]:
    """Reads the results of an earlier run. Raises FileError."""
    try:
        cases: list[Case] = json.loads(path.read_text())
        if not all(isinstance(case, dict) and "table" in case for case in cases):
            raise ValueError("other JSON")
    except (OSError, ValueError, TypeError) as error:
        raise FileError(f"--again: {path}: found {error}, expected {_JSON} of a run") from error
    return cases


def _shown(cases: list[Case], folder: Path) -> int:
    figures_text.write(cases)
    with (folder / _TABLES).open("w") as file:
        figures_text.write_markdown(cases, file)
    for path in draw(folder, cases):
        print(path)
    return 0


def _paths(own: _Run) -> Paths:
    """Finds the files, and says what is missing."""
    arguments = own.arguments
    given = arguments.data or os.environ.get("NESCIO_DATA")
    data = Path(given or DEFAULT)
    if given and not data.is_dir():
        raise ArgumentError(f"--data: {data}: the folder does not exist")
    files = [None if name is None else Path(name) for name in (arguments.images, arguments.model)]
    found = Paths.of(data if data.is_dir() else None, *files)
    for path, what in (
        (found.mnist, "mnist: LeNet gets random weights, and no accuracy"),
        (found.images, "cifar10/cifar10_lossless_head.npz: the images are smooth noise"),
        (found.model, "models/resnet32-cifar10-d509ac18.th: ResNet-32 gets random weights"),
    ):
        if path is None:
            own.note(f"{data} has no {what}")
    return found


def _network(own: _Run, name: str, paths: Paths) -> None:
    """Runs all steps of a network."""
    arguments = own.arguments
    made = subject(name, paths, arguments.calibration, arguments.divisor)
    plan, case = compiled(made, BITS)
    own.add("networks", case)
    own.add("garbled", *garbled(name, cast(int, case["lookups"])))
    steps: dict[str, Callable[[], None]] = {
        "parties": lambda: _parties(own, made, plan),
        "spu": lambda: _spu(own, made),
        "transfers": lambda: _transfers(own, name, plan),
        "quality": lambda: _quality(own, made),
    }
    for step in arguments.steps:
        own.step(f"{name}: {step}", steps[step])


def _parties(own: _Run, made: Subject, plan: Plan) -> None:
    name, inputs = made.architecture.name, plan.public.encode(made.test[:64])
    with tempfile.TemporaryDirectory() as folder:
        counts = own.arguments.inferences, own.arguments.threads
        found = protocol.measure(
            protocol.Setting(name, plan.network, inputs, *counts, Path(folder))
        )
    own.add("phases", *found.offline)
    own.add("online", *found.online)
    own.add("sums", found.sums)


def _spu(own: _Run, made: Subject) -> None:
    arguments, name = own.arguments, made.architecture.name
    if name not in _SPU_NETWORKS:
        return
    if not spu_peer.has_spu(arguments.spu_python):
        own.note(
            f"{name}: {arguments.spu_python} has no SPU; `pip install spu==0.9.5` into a Python "
            "3.11, and name it with --spu-python"
        )
        return
    left = arguments.limit - (time.monotonic() - own.begin)
    limit = max(1.0, min(arguments.spu_limit, left))
    case = spu_peer.measure(made, arguments.spu_python, own.arguments.threads[0], 1, limit)
    own.add("spu", case)
    if "failed" in case:
        own.note(f"{name} by SPU: {case['failed']}")


def _transfers(own: _Run, name: str, plan: Plan) -> None:
    """Splits the offline phase; transfers are measured once in a run."""
    if not own.transfers:
        own.transfers.append(oblivious.measure())
    phases = list(_of(own.cases, "phases", network=name, link="loopback"))
    sums = [*_of(own.cases, "sums", network=name)]
    if not sums:
        own.note(f"{name}: transfers need the step parties, which has no result")
        return
    first = [one for one in phases if one["threads"] == own.arguments.threads[0]]
    kinds = oblivious.shares(name, plan.network.public, first, own.transfers[0])
    own.add("shares", *kinds)
    links = [link for _, link in protocol.LINKS]
    rounds = cast(float, sums[-1]["offline_rounds"])
    own.add("other transfers", *oblivious.with_other(name, kinds, rounds, links, own.transfers[0]))


def _quality(own: _Run, made: Subject) -> None:
    arguments = own.arguments
    for case in quality(made, arguments.table_bits, BITS, arguments.quality_seconds):
        own.add("quality", case)


def _of(cases: list[Case], table: str, **fields: object) -> Iterator[Case]:
    wanted = {"table": table, **fields}
    return (case for case in cases if all(case.get(key) == own for key, own in wanted.items()))


def _processor() -> str:
    """Returns the processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"
