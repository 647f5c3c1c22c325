"""The measurement of one case of answers on GPUs, with its computed lower bound."""

from typing import NamedTuple

from .. import _core
from .._device import Device, describe
from .._report import Case, Column
from .._timing import median_seconds
from ..dpf import Generator, Output
from ..errors import ArgumentError
from ..pir import Server, Table
from ..pir._device_table import Strategy, Work
from ..pir._replica import DeviceReplica
from .answers import answer_fields, checked_query
from .gpu_limits import DeviceLimits, LimitSeconds
from .limits import Tree
from .memory import PeakMemory

NODES = (64, 128, 256, 512)  # values of the paper's K, for the strategies that have one
WALKS_WITH_NODES: tuple[Strategy, ...] = ("bounded",)

# Minimum number of timed answers. In a hurry, an answer slower than _SLOW_SECONDS is timed once.
_MIN_RUNS = 5
_HURRIED_RUNS = 3
_SLOW_SECONDS = 0.5

COLUMNS: list[Column] = [
    ("rows", "rows", "9,d"),
    ("row_bytes", "row B", "d"),
    ("output", "output", ""),
    ("generator", "generator", ">20"),
    ("place", "device", "10"),
    ("strategy", "strategy", "11"),
    ("nodes", "K", "3d"),
    ("batch", "batch", "5d"),
    ("queries_per_second", "queries/s", "9,.0f"),
    ("milliseconds", "ms", "9,.3f"),
    ("floor_milliseconds", "floor ms", "8,.3f"),
    ("memory_milliseconds", "memory ms", ",.3f"),
    ("product_milliseconds", "product ms", ",.3f"),
    ("generator_milliseconds", "generator ms", ",.3f"),
    ("times_limit", "x limit", ".2f"),
    ("utilisation", "util", ".0%"),
    ("prf_calls", "PRF calls", "13,d"),
    ("launches", "launches", "d"),
    ("peak_device_megabytes", "device MB", ",.2f"),
]
NOTES = """\
ms: the whole batch, from the bytes of its keys to the bytes of its answers. floor: lower bound,
computed before the run: the longest of reading the table once, the products, and the fewest calls
of the generator. memory, product, generator: each part alone at the device's peak rate, the
generator with as many calls as the strategy made. x limit: ms divided by the longest of these
three. util: generator ms divided by ms. device MB: peak memory in addition to the table."""


class Spec(NamedTuple):
    """The parameters of one case."""

    rows: int
    row_bytes: int
    output: Output
    generator: Generator
    strategy: Strategy
    nodes: int | None  # None for strategies without a K
    batch: int


def check_nodes(nodes: int) -> None:
    """Raises ArgumentError unless `nodes` is a supported number of nodes per step of a walk."""
    if nodes not in NODES:
        raise ArgumentError(f"nodes: found {nodes}, expected one of {', '.join(map(str, NODES))}")


class GpuBench:
    """Measures answers on given devices; the limits of each device are measured once."""

    def __init__(self, places: list[Device]) -> None:
        self.places = places
        self.device = describe(places)
        self._limits = DeviceLimits()

    def open(self, table: Table, strategy: Strategy, nodes: int | None) -> Server:
        """Returns a server of the table with the given strategy. Raises what Server raises."""
        server = Server(table, devices=[str(place) for place in self.places], strategy=strategy)
        if nodes is not None:
            _placed(server).nodes = nodes
        return server

    def measure(
        self,
        server: Server,
        spec: Spec,
        duration: float,
        memory: PeakMemory,
        *,
        hurry: bool = False,
    ) -> Case:
        """Measures one case: computes the lower bound, checks an answer, times answers.

        With `hurry`, a slow answer is timed only once, while it is checked. Raises
        WrongResultError.
        """
        query, peak, seconds = checked_query(server, spec.batch, memory)
        if not hurry or seconds < _SLOW_SECONDS:
            min_runs = _HURRIED_RUNS if hurry else _MIN_RUNS
            seconds = median_seconds(lambda: server.answer(query), duration, min_runs)
        return self.case(server, spec, seconds, peak)

    def case(self, server: Server, spec: Spec, seconds: float, peak: int) -> Case:
        """Computes the lower bound of lookups that a server has just answered in `seconds`."""
        rows, work = _placed(server).rows, _placed(server).work
        assert rows is not None
        assert work is not None
        floor = self._limits.floor(rows, spec.generator, spec.batch)
        calls = Tree(work.expansions, work.leaves)
        limit = floor._replace(generator=self._limits.generator(rows, spec.generator, calls))
        return {
            **answer_fields(server, spec.batch, seconds, limit.longest, peak),
            **self._fields(spec, seconds, floor, limit),
            **_work_fields(work),
        }

    def _fields(self, spec: Spec, seconds: float, floor: LimitSeconds, limit: LimitSeconds) -> Case:
        return {
            "tier": _core.active_tier(),
            "device": self.device,
            "place": "+".join(map(str, self.places)),
            "strategy": spec.strategy,
            "nodes": spec.nodes,
            "pass_milliseconds": limit.memory * 1e3,
            "compute_milliseconds": max(limit.product, limit.generator) * 1e3,
            "floor_milliseconds": floor.longest * 1e3,
            "memory_milliseconds": limit.memory * 1e3,
            "product_milliseconds": limit.product * 1e3,
            "generator_milliseconds": limit.generator * 1e3,
            "utilisation": limit.generator / seconds,
        }


def _work_fields(work: Work) -> Case:
    return {
        "expansions": work.expansions,
        "leaves": work.leaves,
        "prf_calls": work.expansions + work.leaves,
        "launches": work.launches,
        "peak_device_bytes": work.peak_bytes,
        "peak_device_megabytes": work.peak_bytes / 1e6,
    }


def _placed(server: Server) -> DeviceReplica:
    assert server.replica is not None  # every server here is on devices
    return server.replica
