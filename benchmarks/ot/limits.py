"""Lower bounds of the steps of silent OT on this CPU or on a device."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from nescio import _core
from nescio._device import Device
from nescio._timing import median_seconds
from nescio.pir._bins import Bins
from nescio.pir._device_table import open_shard

from .work import Work

_GENERATOR = "aes128"
_CALLS_OF_NODE = 2
_COPIED_BYTES = 1 << 27
_COPY_SECONDS = 0.05
_ROW_BYTES = 256
_ROWS = {"cuda": 1 << 20, "emulated": 1 << 12}


class Limit(NamedTuple):
    """The time of each part of a step's work alone; None if that rate is not known."""

    aes: float
    reads: float | None
    memory: float

    @property
    def longest(self) -> float:
        """The lower bound of the step's time."""
        return max(self._known().values())

    @property
    def name(self) -> str:
        """The part with the longest time."""
        known = self._known()
        return max(known, key=lambda part: known[part])

    def _known(self) -> dict[str, float]:
        return {part: time for part, time in self._asdict().items() if time is not None}


class HostLimits:
    """The limits of the CPU: AES and random reads on all threads, and copying memory.

    Times of AES and of reads are one thread's, divided by the number of threads.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._rates: dict[tuple[object, ...], float] = {}

    def of(self, work: Work, tier: str) -> Limit:
        """Returns the limits of work in a tier."""
        node = self._rate(("aes", tier), lambda: _core.seconds_per_node(_GENERATOR, False, tier))
        read = 0.0
        if work.reads:
            read = self._rate(("reads", work.among), lambda: _core.seconds_per_read(work.among))
        copied = min(int(work.bytes), _COPIED_BYTES)
        copy = self._rate(("copy", copied), lambda: copy_seconds(copied, self._threads))
        return Limit(
            work.calls * node / _CALLS_OF_NODE / self._threads,
            work.reads * read / self._threads,
            work.bytes / copied * copy,
        )

    def _rate(self, key: tuple[object, ...], measure: Callable[[], float]) -> float:
        if key not in self._rates:
            self._rates[key] = measure()
        return self._rates[key]


def copy_seconds(moved: int, threads: int) -> float:
    """Returns the time in which the threads read and write `moved` bytes in total by copying."""
    share = max(moved // 2 // threads, 1)
    pairs = [(np.ones(share, np.uint8), np.zeros(share, np.uint8)) for _ in range(threads)]
    if threads == 1:
        return median_seconds(lambda: np.copyto(pairs[0][1], pairs[0][0]), _COPY_SECONDS)
    with ThreadPoolExecutor(threads) as pool:
        return median_seconds(
            lambda: list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), pairs)), _COPY_SECONDS
        )


class DeviceLimits:
    """The limits of a device: AES with keys in shared memory, and reading memory.

    Both are measured once, by the probes of lookups. The rate of random reads is not known.
    """

    def __init__(self, device: Device) -> None:
        rows = _ROWS[device.kind]
        table = open_shard(
            device,
            bins=[Bins(1, rows)],
            first_row=0,
            rows=rows,
            row_bytes=_ROW_BYTES,
            output="bit",
        )
        self._call = 1 / table.calls_per_second(_GENERATOR, False) / _CALLS_OF_NODE
        self._byte = table.seconds_per_pass() / table.bytes

    def of(self, work: Work, way: str) -> Limit:
        """Returns the limits of work, which are the same for each implementation."""
        del way
        reads = None if work.reads else 0.0
        return Limit(work.calls * self._call, reads, work.bytes * self._byte)
