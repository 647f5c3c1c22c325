"""Timing of benchmarks: functions that take turns, and interrupted runs."""

import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..errors import ArgumentError, NescioError

_MAX_SECONDS = 3600
_BURST_SECONDS = 0.01
_MIN_ROUNDS = 9


class WrongResultError(NescioError):
    """The code under test gives wrong results, so its time is meaningless."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: this is a bug in Nescio, please report it")


def check_duration(seconds: float, what: str = "seconds") -> None:
    """Raises ArgumentError unless a benchmark may take that long."""
    if not 0 < seconds <= _MAX_SECONDS:
        raise ArgumentError(f"{what}: found {seconds}, expected more than 0, up to an hour")


class Run(NamedTuple):
    """One timed run."""

    seconds: float
    processor_seconds: float
    """CPU time of all threads."""
    interrupted: bool


def interleaved(
    works: Mapping[object, Callable[[], object]], seconds: float
) -> dict[object, float]:
    """Returns the median time of each work; works take turns, about `seconds` each in total.

    A turn is a burst of runs. The first run of a burst is not counted: it brings the work's data
    back into the cache. With turns, load from other processes affects all works alike.
    """
    times: dict[object, list[Run]] = {name: [] for name in works}
    burst = min(_BURST_SECONDS, seconds / _MIN_ROUNDS)
    end = time.perf_counter() + seconds * len(works)
    rounds = 0
    while rounds < _MIN_ROUNDS or time.perf_counter() < end:
        for name, work in works.items():
            times[name] += _burst(work, burst)
        rounds += 1
    return {name: typical_seconds(own) for name, own in times.items()}


def typical_seconds(runs: Sequence[Run]) -> float:
    """Returns the median time of the runs that the system did not interrupt.

    Long works are interrupted more often, so counting those runs would make them look slower than
    they are. If every run was interrupted, each counts with its CPU time where that is less.
    """
    whole = [run.seconds for run in runs if not run.interrupted]
    return statistics.median(whole or [min(run.seconds, run.processor_seconds) for run in runs])


def _burst(work: Callable[[], object], seconds: float) -> list[Run]:
    work()
    runs: list[Run] = []
    end = time.perf_counter() + seconds
    while not runs or time.perf_counter() < end:
        before = _interruptions()
        processor = time.process_time()
        begin = time.perf_counter()  # last, and read again first
        work()
        taken = time.perf_counter() - begin
        processor = time.process_time() - processor
        runs.append(Run(taken, processor, _interruptions() != before))
    return runs


def _interruptions() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
