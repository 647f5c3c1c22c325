"""Median times of a function, and times by step."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

__all__ = ["Clock", "median_seconds", "medians_in_turns"]


def median_seconds(work: Callable[[], object], seconds: float, min_runs: int = 5) -> float:
    """Returns the median time of `work`, run for about `seconds` and at least `min_runs` times.

    A first run, which is not counted, fills caches and wakes threads. The median, because a mean
    would include the load that other processes put on a shared machine.
    """
    return medians_in_turns([work], seconds, min_runs)[0]


def medians_in_turns(
    works: Sequence[Callable[[], object]], seconds: float, min_runs: int = 5
) -> list[float]:
    """Returns the median times of functions that run in turns, to compare them.

    The load of a shared machine changes within seconds; in turns, it is the same for all of them.
    """
    times: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    end = time.perf_counter() + seconds
    while len(times[0]) < min_runs or time.perf_counter() < end:
        for work, own in zip(works, times, strict=True):
            begin = time.perf_counter()
            work()
            own.append(time.perf_counter() - begin)
    return [statistics.median(own) for own in times]


class Clock:
    """Adds up the seconds that each named step takes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Adds the time of the block to a step."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            taken = time.perf_counter() - begin
            self.seconds[name] = self.seconds.get(name, 0.0) + taken
