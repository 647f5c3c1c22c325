"""Times of works that take turns, on a machine that others use too."""

import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

_BURST_SECONDS = 0.01
_ROUNDS = 9


class Run(NamedTuple):
    """One run of what is timed."""

    seconds: float
    processor_seconds: float
    """Of all threads."""
    interrupted: bool


def interleaved(
    works: Mapping[object, Callable[[], object]], seconds: float
) -> dict[object, float]:
    """The median time of each work, run in turns, about `seconds` for each in all.

    A turn is a burst of runs, the first of them not counted: it brings the work's own data back
    into the cache. In turns, so that a neighbour's load falls on all of them.
    """
    times: dict[object, list[Run]] = {name: [] for name in works}
    burst = min(_BURST_SECONDS, seconds / _ROUNDS)
    end = time.perf_counter() + seconds * len(works)
    rounds = 0
    while rounds < _ROUNDS or time.perf_counter() < end:
        for name, work in works.items():
            times[name] += _burst(work, burst)
        rounds += 1
    return {name: typical_seconds(own) for name, own in times.items()}


def typical_seconds(runs: Sequence[Run]) -> float:
    """The median of the runs that the system did not interrupt for another process.

    With interrupted ones long works would look slower than short ones. Where it interrupted every
    run, the processor's own time counts, if that is less.
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
