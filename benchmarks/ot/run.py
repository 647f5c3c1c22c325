"""`python -m benchmarks.ot steps`: each step of silent OT alone, with its lower bound."""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from nescio._arrays import Array, as_count, as_threads
from nescio._device import parse_device_list
from nescio._report import Case, Column, Report, check_writable
from nescio._timing import median_seconds
from nescio.bench.results import Results
from nescio.bench.timing import WrongResultError, check_duration
from nescio.errors import ArgumentError
from nescio.ot import parameters

from .machine import DeviceMachine, HostMachine, Machine, Run
from .work import Step, steps

MEASURED = "measured"
NO_PART = "no GPU part"

_MAX_OTS = 1 << 25
_MIN_RUNS = 3
_SLOW_SECONDS = 1.0
_KEY = ("step", "family", "parameters", "n", "device")

_NAMES: list[Column] = [
    ("step", "step", "14"),
    ("family", "family", "6"),
    ("parameters", "set", "4"),
    ("n", "OTs", ">10,d"),
    ("device", "device", "8"),
]
_COLUMNS: list[Column] = [
    *_NAMES,
    ("way", "way", "8"),
    ("milliseconds", "ms", ">9,.2f"),
    ("nanoseconds_per_ot", "ns/OT", ">8,.2f"),
    ("limit_milliseconds", "limit ms", ">9,.2f"),
    ("limit_of", "limit of", "6"),
    ("times_limit", "x limit", ",.1f"),
    ("status", "status", ""),
]
_SUMMARY: list[Column] = [
    *_NAMES,
    ("cpu_milliseconds", "CPU ms", ">9,.2f"),
    ("naive_way", "naive", "8"),
    ("naive_milliseconds", "naive ms", ">9,.2f"),
    ("way", "ours", "8"),
    ("milliseconds", "ours ms", ">9,.2f"),
    ("speedup", "speed-up", ">7,.1f"),
]
_NOTES = """\
Each step alone, with its blocks in memory; a device copies seeds, sums and the bits to transpose.
Results were compared first: those of a tier with another tier's, those of a device with the CPU's.
limit: the longest of the step's AES calls, random reads and bytes of memory, each measured alone in
a simple loop, which a step can beat slightly. Random reads are not measured on devices, carry-less
products (qc) nowhere.
"""
_SUMMARY_TITLE = "Naive and ours, as in Table I of the paper (cuOT); CPU: its widest tier measured"


def run(arguments: argparse.Namespace) -> int:
    """Measures every step, prints each, and writes JSON if requested."""
    check_duration(arguments.seconds)
    sizes = [as_count(n, "n", 1, _MAX_OTS) for n in arguments.n]
    chosen = parameters.primal(arguments.set)
    check_writable(arguments.plot)
    if arguments.plot:
        from . import plot  # noqa: F401, PLC0415 - fails now, not at the end, if missing
    machines = [_machine(name, arguments) for name in arguments.device]
    with Results(arguments.json) as results:
        report = Report(_COLUMNS)
        for n in sizes:
            for step in steps(n, chosen):
                for case in _cases(step, machines, arguments.seconds):
                    report.add(case)
                    results.add(case)
    print(_NOTES)
    _print_summary(results.cases)
    if arguments.plot:
        from .plot import plot_steps  # noqa: PLC0415 - matplotlib is needed only here

        plot_steps(Path(arguments.plot), results.cases)
    return 0


def _machine(name: str, arguments: argparse.Namespace) -> Machine:
    places = parse_device_list(name)
    if not places:
        return HostMachine(arguments.tier, as_threads(arguments.threads))
    if len(places) > 1:
        raise ArgumentError(f"device: found {name!r}, expected a single device")
    return DeviceMachine(name)


def _cases(step: Step, machines: Sequence[Machine], duration: float) -> Iterator[Case]:
    for machine in machines:
        known: Case = {
            "step": step.name,
            "family": step.family,
            "parameters": step.parameters,
            "n": step.n,
            "device": machine.name,
            "device_name": machine.about,
            "threads": machine.threads,
        }
        ways = machine.ways(step)
        if not ways:
            yield {**known, "way": None, "status": NO_PART}
        for way in ways:
            yield {**known, "way": way, **_measured(step, machine, way, duration)}


def _measured(step: Step, machine: Machine, way: str, duration: float) -> Case:
    run_part = machine.prepare(step, way)
    what = f"{step.name}, {step.n} OTs, {machine.name}, {way}"
    _verify(step, run_part, machine.reference(step, way), what)
    seconds = _seconds(lambda: _all_parts(step, run_part), duration)
    limit = machine.limit(step.work, way)
    return {
        "milliseconds": seconds * 1e3,
        "nanoseconds_per_ot": seconds / step.n * 1e9,
        "million_per_second": step.n / seconds / 1e6,
        "limit_milliseconds": limit.longest * 1e3,
        "limit_of": limit.name,
        "times_limit": seconds / limit.longest,
        "aes_milliseconds": limit.aes * 1e3,
        "reads_milliseconds": None if limit.reads is None else limit.reads * 1e3,
        "memory_milliseconds": limit.memory * 1e3,
        "aes_calls": step.work.calls,
        "reads": step.work.reads,
        "bytes": step.work.bytes,
        "verified": True,
        "status": MEASURED,
    }


def _all_parts(step: Step, run_part: Run) -> None:
    for part in step.parts:
        run_part(part)


def _seconds(work: Callable[[], object], duration: float) -> float:
    """Returns the median time; the time of a single run if that takes long."""
    begin = time.perf_counter()
    work()
    once = time.perf_counter() - begin
    return once if once > _SLOW_SECONDS else median_seconds(work, duration, _MIN_RUNS)


def _verify(step: Step, run_part: Run, reference: Run, what: str) -> None:
    """Raises WrongResultError unless both runs give the same for every part."""
    for part in dict.fromkeys(step.parts):
        for found, expected in zip(run_part(part), reference(part), strict=True):
            if not np.array_equal(_on_host(found), _on_host(expected)):
                raise WrongResultError(f"{what}: differs from another implementation")


def _on_host(blocks: object) -> Array:
    if isinstance(blocks, np.ndarray):
        return blocks
    copied: Array = blocks.to_host()  # type: ignore[attr-defined]
    return copied


def summary(cases: Sequence[Case]) -> Iterator[Case]:
    """Yields a line per step, size and device: the first implementation and the last.

    A step with one implementation has no naive one. `cpu_milliseconds` is the time of the CPU's
    last implementation, on the lines of devices, if the CPU was measured too.
    """
    lines: dict[tuple[object, ...], list[Case]] = {}
    for case in cases:
        if case["status"] == MEASURED:
            lines.setdefault(tuple(case[field] for field in _KEY), []).append(case)
    for key, own in lines.items():
        naive, ours = own[0], own[-1]
        line = {field: ours[field] for field in (*_KEY, "way", "milliseconds")}
        processor = lines.get((*key[:-1], HostMachine.name))
        if processor and ours["device"] != HostMachine.name:
            line["cpu_milliseconds"] = processor[-1]["milliseconds"]
        if naive is not ours:
            line["naive_way"], line["naive_milliseconds"] = naive["way"], naive["milliseconds"]
            line["speedup"] = _number(naive) / _number(ours)
        yield line


def _number(case: Case) -> float:
    milliseconds = case["milliseconds"]
    assert isinstance(milliseconds, float)
    return milliseconds


def _print_summary(cases: Sequence[Case]) -> None:
    print(_SUMMARY_TITLE)
    report = Report(_SUMMARY)
    for line in summary(cases):
        report.add(line)
