"""`nescio bench lookup`: a server's answers, with the lower bounds of this machine."""

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from .. import _core
from .._arrays import as_count, as_threads
from .._report import Case, Report, check_writable
from .._timing import median_seconds
from ..dpf import MAX_DOMAIN, Generator, Output
from ..errors import ArgumentError
from ..pir import Server
from ..pir._params import MAX_ROW_BYTES
from . import lookup_gpu
from .answers import answer_fields, checked_query, random_table
from .limits import (
    expansion_seconds,
    issue_seconds,
    pass_seconds,
    product_issue_seconds,
    product_seconds,
)
from .memory import PeakMemory
from .results import Results
from .timing import check_duration

_MAX_TABLE_BYTES = 1 << 40
_MAX_BATCH = 1 << 16
_COLUMNS = [
    ("rows", "rows", "9,d"),
    ("row_bytes", "row B", "d"),
    ("output", "output", ""),
    ("generator", "generator", ""),
    ("tier", "tier", "8"),
    ("threads", "threads", "d"),
    ("batch", "batch", "d"),
    ("queries_per_second", "queries/s", "9,.0f"),
    ("milliseconds", "ms", "8,.3f"),
    ("table_gb_per_second", "GB/s", "7,.1f"),
    ("pass_milliseconds", "pass ms", "8,.3f"),
    ("compute_milliseconds", "loops ms", "8,.3f"),
    ("issue_milliseconds", "issue ms", "8,.3f"),
    ("times_limit", "x loops", ".2f"),
    ("times_machine", "x machine", ".2f"),
    ("key_bytes", "key B", "d"),
    ("answer_bytes", "answer B", "d"),
    ("peak_megabytes", "peak MB", ",.0f"),
]
_NOTES = """\
GB/s: bytes of the table times the batch, over the time. pass: a plain read of the table with the
same threads. loops: the inner loops of these kernels, with data in the cache. issue: only their
instructions that multiply and generate, at the rate of a loop of nothing else. x loops: ms divided
by the larger of pass and loops. x machine: ms divided by the larger of pass and issue. peak MB:
resident memory while answering, table included, Python not."""


def run(arguments: argparse.Namespace) -> int:
    """Measures every case, prints each, and writes JSON and a plot if requested."""
    _check_sizes(arguments)
    benches = lookup_gpu.check(arguments)
    with Results(arguments.json) as results:
        if lookup_gpu.on_processor(arguments):
            _on_processor(arguments, results)
        if benches:
            lookup_gpu.measure(arguments, benches, results)
    if arguments.plot:
        from .plot import plot_lookup  # noqa: PLC0415 - matplotlib is needed only here

        plot_lookup(Path(arguments.plot), results.cases)
    return 0


def _on_processor(arguments: argparse.Namespace, results: Results) -> None:
    report = Report(_COLUMNS)
    for rows, row_bytes, output, generator in product(
        arguments.rows, arguments.row_bytes, arguments.output, arguments.generator
    ):
        for case in _cases(arguments, rows, row_bytes, output, generator):
            report.add(case)
            results.add(case)
    print(_NOTES)


def _check_sizes(arguments: argparse.Namespace) -> None:
    """Raises ArgumentError for invalid sizes, before anything is measured."""
    for rows in arguments.rows:
        as_count(rows, "rows", 1, MAX_DOMAIN)
    for row_bytes in arguments.row_bytes:
        as_count(row_bytes, "row bytes", 1, MAX_ROW_BYTES)
    for batch in arguments.batch:
        as_count(batch, "batch", 1, _MAX_BATCH)
    for threads in arguments.threads:
        as_threads(threads)
    check_duration(arguments.seconds)
    check_writable(arguments.plot)
    largest = max(arguments.rows) * max(arguments.row_bytes)
    if largest > _MAX_TABLE_BYTES:
        raise ArgumentError(f"table: found {largest} bytes, expected at most {_MAX_TABLE_BYTES}")
    if arguments.plot:
        from . import plot  # noqa: F401, PLC0415 - fails now, not at the end, if missing


def _cases(
    arguments: argparse.Namespace, rows: int, row_bytes: int, output: Output, generator: Generator
) -> Iterator[Case]:
    """Yields the cases of one table."""
    memory = PeakMemory()
    table, load_seconds = random_table(rows, row_bytes, output, generator)
    for tier, threads, batch in product(
        arguments.tier or [_core.active_tier()], arguments.threads, arguments.batch
    ):
        server = Server(table, threads=threads, device="cpu", tier=tier)
        case = _case(server, tier, batch, arguments.seconds, memory)
        case["load_gb_per_second"] = rows * row_bytes / load_seconds / 1e9
        yield case


def _case(server: Server, tier: str, batch: int, duration: float, memory: PeakMemory) -> Case:
    query, peak, _ = checked_query(server, batch, memory)
    seconds = median_seconds(lambda: server.answer(query), duration)
    limits = _limits(server, tier, batch, duration)
    return {
        **answer_fields(server, batch, seconds, max(limits.one_pass, limits.loops), peak),
        "tier": tier,
        "device": "cpu",
        "pass_milliseconds": limits.one_pass * 1e3,
        "compute_milliseconds": limits.loops * 1e3,
        "issue_milliseconds": None if limits.issue is None else limits.issue * 1e3,
        "times_machine": None if limits.issue is None else seconds / limits.machine,
    }


class _Limits(NamedTuple):
    """Seconds: a plain read of the table, the kernels' inner loops, their bare instructions."""

    one_pass: float
    loops: float
    issue: float | None

    @property
    def machine(self) -> float:
        """The limit that the machine sets, whatever the kernels."""
        return max(self.one_pass, self.issue or 0)


def _limits(server: Server, tier: str, batch: int, duration: float) -> _Limits:
    params, table = server.params, server.table
    pool = _core.ThreadPool(server.threads)
    with table.reading() as state:
        one_pass = pass_seconds(state.rows, pool, duration / 2)
    expansion = batch * expansion_seconds(params.rows, params.output, params.generator, tier)
    arithmetic = product_seconds(table.bytes, batch, params.output, tier)
    tree = issue_seconds(params.rows, params.output, params.generator, tier)
    products = product_issue_seconds(table.bytes, batch, params.output, tier)
    issue = None if tree is None or products is None else (batch * tree + products) / server.threads
    return _Limits(one_pass, (expansion + arithmetic) / server.threads, issue)
