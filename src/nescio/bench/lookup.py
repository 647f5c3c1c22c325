"""`nescio bench lookup`: a server's answers, with the lower bounds of this machine."""

import argparse
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

from .. import _core
from .._arrays import as_count, as_threads
from .._report import Case, Report, check_writable
from .._timing import medians_in_turns
from ..dpf import MAX_DOMAIN, Generator, Output
from ..errors import ArgumentError
from ..pir import Server
from ..pir._params import MAX_RECORD_ROWS, MAX_ROW_BYTES
from . import lookup_gpu
from .answers import answer_fields, check_seconds, checked_query, random_table
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
    ("record_rows", "a record", "d"),
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
_VERIFY_COLUMNS = [
    ("verified", "verified", ""),
    ("times_unverified", "x unverified", ".2f"),
    ("check_microseconds", "check us", ".1f"),
]
_NOTES = """\
GB/s: bytes of the table times the batch, over the time. pass: a plain read of the table with the
same threads. loops: the inner loops of these kernels, with data in the cache. issue: only their
instructions that multiply and generate, at the rate of a loop of nothing else. x loops: ms divided
by the larger of pass and loops. x machine: ms divided by the larger of pass and issue. peak MB:
resident memory while answering, table included, Python not. verified: with the hash tables against
which clients check rows. check: the client's check of one row."""


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
    report = Report([*_COLUMNS, *_VERIFY_COLUMNS] if arguments.verify else _COLUMNS)
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
    as_count(arguments.record_rows, "rows per record", 0, MAX_RECORD_ROWS)
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
    table, load_seconds = random_table(
        rows, row_bytes, output, generator, arguments.record_rows or None
    )
    for tier, threads, batch in product(
        arguments.tier or [_core.active_tier()], arguments.threads, arguments.batch
    ):
        server = Server(table, threads=threads, device="cpu", tier=tier)
        for case in _measure(server, tier, batch, arguments, memory):
            case["load_gb_per_second"] = rows * row_bytes / load_seconds / 1e9
            yield case


def _measure(
    server: Server, tier: str, batch: int, arguments: argparse.Namespace, memory: PeakMemory
) -> Iterator[Case]:
    """Yields the case without hash tables; with `--verify` also the one with them, in turns."""
    kinds = [False, True] if arguments.verify else [False]
    checked = [checked_query(server, batch, memory, verify=verified) for verified in kinds]
    works = [partial(server.answer, one.query) for one in checked]
    times = medians_in_turns(works, arguments.seconds * len(kinds))
    for verified, one, seconds in zip(kinds, checked, times, strict=True):
        limits = _limits(server, tier, batch, arguments.seconds, verified=verified)
        least = max(limits.one_pass, limits.loops)
        yield {
            **answer_fields(server, batch, seconds, least, one.peak, verified=verified),
            "tier": tier,
            "device": "cpu",
            "pass_milliseconds": limits.one_pass * 1e3,
            "compute_milliseconds": limits.loops * 1e3,
            "issue_milliseconds": None if limits.issue is None else limits.issue * 1e3,
            "times_machine": None if limits.issue is None else seconds / limits.machine,
            "times_unverified": seconds / times[0],
            "check_microseconds": check_seconds(server) * 1e6 if verified else None,
        }


class _Limits(NamedTuple):
    """Seconds: a plain read of the tables, the kernels' inner loops, their bare instructions."""

    one_pass: float
    loops: float
    issue: float | None

    @property
    def machine(self) -> float:
        """The limit that the machine sets, whatever the kernels."""
        return max(self.one_pass, self.issue or 0)


def _limits(server: Server, tier: str, batch: int, duration: float, *, verified: bool) -> _Limits:
    """Measures the limits of an answer from the records, and the hash tables if verified."""
    tables = len(server.params.layouts) if verified else 1
    parts = [_table_limits(server, number, tier, batch, duration) for number in range(tables)]
    issues = [part.issue for part in parts if part.issue is not None]
    return _Limits(
        sum(part.one_pass for part in parts),
        sum(part.loops for part in parts),
        sum(issues) if len(issues) == tables else None,
    )


def _table_limits(server: Server, number: int, tier: str, batch: int, duration: float) -> _Limits:
    """Measures the limits of an answer from the records (0) or from a hash table."""
    params, pool = server.params, _core.ThreadPool(server.threads)
    layout = params.layouts[number]
    rows, output = layout.rows, layout.output
    with server.table.reading() as state:
        table = state.table(number)
        one_pass = pass_seconds(table, pool, duration / 2)
    expansion = batch * expansion_seconds(rows, output, params.generator, tier)
    arithmetic = product_seconds(table.bytes, batch, output, tier)
    tree = issue_seconds(rows, output, params.generator, tier)
    products = product_issue_seconds(table.bytes, batch, output, tier)
    issue = None if tree is None or products is None else (batch * tree + products) / server.threads
    return _Limits(one_pass, (expansion + arithmetic) / server.threads, issue)
