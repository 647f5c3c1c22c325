"""`nescio bench lookup`: a server's answers, with the lower bounds of this machine."""

import argparse
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

from .. import _core
from .._arrays import as_count, as_threads
from .._report import Case, Report, check_writable
from .._timing import medians_in_turns
from ..dpf import MAX_DOMAIN, Generator, Output
from ..errors import ArgumentError
from ..pir import Server
from ..pir._params import MAX_RECORD_ROWS, MAX_ROW_BYTES
from . import lookup_bins, lookup_gpu
from .answers import check_seconds, checked_query, random_table
from .cpu_case import answer_limits, cpu_fields
from .memory import PeakMemory
from .results import Results
from .timing import check_duration

_MAX_TABLE_BYTES = 1 << 40
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
    if arguments.bins:
        return lookup_bins.run(arguments, benches)
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
        as_count(batch, "batch", 1, lookup_bins.MAX_BATCH)
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
        rows, row_bytes, output, generator, record_rows=arguments.record_rows or None
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
        limits = answer_limits(server, tier, batch, arguments.seconds, verified=verified)
        yield {
            **cpu_fields(server, batch, seconds, limits, one.peak, verified=verified),
            "tier": tier,
            "times_unverified": seconds / times[0],
            "check_microseconds": check_seconds(server) * 1e6 if verified else None,
        }
