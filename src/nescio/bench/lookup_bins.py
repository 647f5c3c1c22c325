"""`nescio bench lookup --bins`: inferences of several rows, from tables cut into bins."""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple, Protocol

from .. import _core
from .._arrays import as_count
from .._report import Case, Report
from .._timing import medians_in_turns
from ..dpf import Generator, Output
from ..errors import ArgumentError
from ..pir import Server, Table
from ..pir._bins import MAX_BINS
from .answers import Checked, checked_query, random_table
from .cpu_case import answer_limits, cpu_fields
from .gpu_case import GpuBench, Spec
from .lookup_gpu import on_processor, walks
from .memory import PeakMemory
from .results import Results

MAX_BATCH = 1 << 16
"""Keys that are answered together, at most."""

_COLUMNS = [
    ("rows", "rows", "9,d"),
    ("row_bytes", "row B", "d"),
    ("record_rows", "a record", "d"),
    ("output", "output", ""),
    ("generator", "generator", ""),
    ("where", "where", "8"),
    ("threads", "threads", "d"),
    ("clients", "clients", "d"),
    ("bins", "bins", "d"),
    ("mode", "mode", "7"),
    ("lookups", "lookups", "d"),
    ("inferences_per_second", "inferences/s", "9,.0f"),
    ("times_plain", "x plain", "7,.1f"),
    ("milliseconds", "ms", "8,.3f"),
    ("pass_milliseconds", "pass ms", "8,.3f"),
    ("compute_milliseconds", "loops ms", "8,.3f"),
    ("times_limit", "x limit", ".2f"),
    ("key_bytes", "key B", ",d"),
    ("answer_bytes", "answer B", ",d"),
]
_VERIFY_COLUMN = ("verified", "verified", "")
_NOTES = """\
An inference gets one row from each bin (partial), or so many rows from anywhere (plain, 1 bin);
lookups: rows that it gets. clients: inferences answered together. Modes with the same clients take
turns: medians. x plain: inferences/s over those of mode plain. pass: a plain read of the table.
loops: on the CPU the inner loops of the kernels, with data in the cache; on a device the products
or the generator at its peak rate. x limit: ms divided by the larger of pass and loops. key B,
answer B: bytes of an inference, to and from one server."""


def run(arguments: argparse.Namespace, benches: Sequence[GpuBench]) -> int:
    """Measures every case, prints each, and writes JSON if requested."""
    _check_sizes(arguments)
    report = Report([*_COLUMNS, _VERIFY_COLUMN] if arguments.verify else _COLUMNS)
    with Results(arguments.json) as results:
        for case in _cases(arguments, benches):
            report.add(case)
            results.add(case)
    print(_NOTES)
    return 0


def _check_sizes(arguments: argparse.Namespace) -> None:
    as_count(arguments.lookups, "lookups", 1, MAX_BATCH)
    for clients in arguments.clients:
        as_count(clients, "clients", 1, MAX_BATCH)
    for bins, rows in product(arguments.bins, arguments.rows):
        as_count(bins, "bins", 1, min(MAX_BINS, rows))
        if rows % bins:
            raise ArgumentError(f"rows: found {rows}, expected a multiple of the bins, {bins}")
    most = max(arguments.clients) * max(*arguments.bins, arguments.lookups)
    if most > MAX_BATCH:
        raise ArgumentError(
            f"keys of all clients: found {most}, expected at most {MAX_BATCH}: name fewer clients, "
            "bins or lookups"
        )
    if arguments.plot:
        raise ArgumentError("--plot does not show bins: leave it out, or --bins")


class _Place(Protocol):
    """A processor or devices that answer."""

    @property
    def name(self) -> str: ...
    def open(self, table: Table) -> Server: ...
    def case(
        self, server: Server, keys: int, seconds: float, checked: Checked, *, verified: bool
    ) -> Case: ...


class _Processor(NamedTuple):
    """A tier of the CPU, and a number of threads."""

    name: str
    threads: int
    duration: float

    def open(self, table: Table) -> Server:
        return Server(table, threads=self.threads, device="cpu", tier=self.name)

    def case(
        self, server: Server, keys: int, seconds: float, checked: Checked, *, verified: bool
    ) -> Case:
        limits = answer_limits(server, self.name, keys, self.duration, verified=verified)
        fields = cpu_fields(server, keys, seconds, limits, checked.peak, verified=verified)
        return {**fields, "tier": self.name}


class _Devices(NamedTuple):
    """Devices with one strategy."""

    name: str
    bench: GpuBench
    spec: Spec

    def open(self, table: Table) -> Server:
        return self.bench.open(table, self.spec.strategy, self.spec.nodes)

    def case(
        self, server: Server, keys: int, seconds: float, checked: Checked, *, verified: bool
    ) -> Case:
        assert not verified  # _kinds
        return self.bench.case(server, self.spec._replace(batch=keys), seconds, checked.peak)


def _cases(arguments: argparse.Namespace, benches: Sequence[GpuBench]) -> Iterator[Case]:
    for kind in product(arguments.rows, arguments.row_bytes, arguments.output, arguments.generator):
        memory = PeakMemory()
        joined = arguments.record_rows or None
        tables = [random_table(*kind, record_rows=joined, bins=bins)[0] for bins in arguments.bins]
        for place in _places(arguments, benches, kind):
            servers = [place.open(table) for table in tables]
            for clients in arguments.clients:
                yield from _in_turns(arguments, place, servers, clients, memory)


def _places(
    arguments: argparse.Namespace,
    benches: Sequence[GpuBench],
    kind: tuple[int, int, Output, Generator],
) -> Iterator[_Place]:
    if on_processor(arguments):
        for tier, threads in product(arguments.tier or [_core.active_tier()], arguments.threads):
            yield _Processor(tier, threads, arguments.seconds)
    for bench, walk in product(benches, walks(arguments.strategy, arguments.nodes or [128])):
        name = "+".join(map(str, bench.places))
        yield _Devices(name, bench, Spec(*kind, *walk, batch=0))


def _in_turns(
    arguments: argparse.Namespace,
    place: _Place,
    servers: Sequence[Server],
    clients: int,
    memory: PeakMemory,
) -> Iterator[Case]:
    """Yields the cases of all tables for one number of clients."""
    kinds = [False, True] if arguments.verify and isinstance(place, _Processor) else [False]
    asked = [
        (verified, server, clients * (1 if server.params.is_cut else arguments.lookups))
        for verified, server in product(kinds, servers)
    ]
    checked = [checked_query(server, keys, memory, verify=kind) for kind, server, keys in asked]
    works = [
        partial(server.answer, one.query)
        for (_, server, _), one in zip(asked, checked, strict=True)
    ]
    times = medians_in_turns(works, arguments.seconds * len(works))
    plain = {
        verified: seconds
        for (verified, server, _), seconds in zip(asked, times, strict=True)
        if not server.params.is_cut
    }
    for (verified, server, keys), one, seconds in zip(asked, checked, times, strict=True):
        case = place.case(server, keys, seconds, one, verified=verified)
        bins, each = server.params.slots, keys // clients
        yield {
            **case,
            "where": place.name,
            "bins": bins,
            "mode": "partial" if server.params.is_cut else "plain",
            "lookups": each * bins,
            "clients": clients,
            "inferences_per_second": clients / seconds,
            "times_plain": plain[verified] / seconds if plain else None,
            "key_bytes": each * _count(case, "key_bytes"),
            "answer_bytes": each * _count(case, "answer_bytes"),
        }


def _count(case: Case, field: str) -> int:
    value = case[field]
    assert isinstance(value, int)
    return value
