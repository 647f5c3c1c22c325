"""Counts of bytes, frames and rounds of each step of a protocol, from the channel, and times."""

import time
from typing import NamedTuple

from ..net import Channel, Counts


class Step(NamedTuple):
    """A party's counts in one phase, for one layer or, as layer 0, for the whole network.

    `seconds` is the time, with waiting for the other party, and `cpu_seconds` the CPU time of all
    threads of this process. Phases of `prepare`: "agreement", "keys", "products", "tables",
    "places", "store". Those of an inference: "agreement", "store", "input", "lookups" of each
    layer, "outputs" of the last one.
    """

    phase: str
    layer: int
    counts: Counts
    seconds: float
    cpu_seconds: float


class Steps:
    """Splits the counts of a channel into steps; steps of one name are added up."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._found: dict[tuple[str, int], Step] = {}
        self._before = self._now()

    def end(self, phase: str, layer: int = 0) -> None:
        """Ends a step: it has everything since the last one."""
        (counts, seconds, cpu), self._before = self._before, self._now()
        now, end, cpu_end = self._before
        empty = Step(phase, layer, Counts(), 0.0, 0.0)
        old = self._found.get((phase, layer), empty)
        added = old.counts.plus(now.since(counts))
        times = old.seconds + end - seconds, old.cpu_seconds + cpu_end - cpu
        self._found[phase, layer] = Step(phase, layer, added, *times)

    def _now(self) -> tuple[Counts, float, float]:
        return self._channel.counts, time.perf_counter(), time.process_time()

    @property
    def found(self) -> list[Step]:
        """The steps, in the order of their first ends."""
        return list(self._found.values())
