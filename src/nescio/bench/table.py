"""`nescio bench table`: the time to create, save, map and change a table."""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from .._arrays import Array, as_count, as_threads
from .._report import Case, Report
from ..errors import ArgumentError
from ..pir import Table
from .memory import PeakMemory
from .results import Results
from .timing import WrongResultError

_T = TypeVar("_T")
_MAX_BYTES = 1 << 38
_COLUMNS = [
    ("what", "what", "7"),
    ("rows", "rows", "9,d"),
    ("row_bytes", "row B", "d"),
    ("output", "output", ""),
    ("threads", "threads", "d"),
    ("changed_rows", "changed", ",d"),
    ("milliseconds", "ms", "8,.1f"),
    ("table_gb_per_second", "GB/s", "7,.2f"),
    ("peak_megabytes", "peak MB", ",.0f"),
]
_NOTES = """\
GB/s: bytes of the whole table over the time. peak MB: resident memory above that at the step's
start. Taking in and inserting create a table; mapping includes the check of the whole file."""


def run(arguments: argparse.Namespace) -> int:
    """Measures every step once, checks the table after it, prints each, and writes JSON."""
    rows = as_count(arguments.rows, "rows", 2, _MAX_BYTES)
    row_bytes = as_count(arguments.row_bytes, "row bytes", 1, _MAX_BYTES)
    as_count(rows * row_bytes, "bytes of the table", 1, _MAX_BYTES)
    if not 0 < arguments.share <= 1:
        raise ArgumentError(f"share: found {arguments.share}, expected more than 0, up to 1")
    with Results(arguments.json) as results:
        _Steps(arguments, as_threads(arguments.threads), results).run()
    print(_NOTES)
    return 0


class _Steps:
    """The steps on one table, in order."""

    def __init__(self, arguments: argparse.Namespace, threads: int, results: Results) -> None:
        self._results = results
        self._arguments = arguments
        self._threads = threads
        self._report = Report(_COLUMNS)
        random = np.random.default_rng()
        shape = (arguments.rows, arguments.row_bytes)
        self._values = np.frombuffer(random.bytes(shape[0] * shape[1]), np.uint8).reshape(shape)
        self._count = max(1, round(arguments.rows * arguments.share))
        self._where = random.choice(arguments.rows, size=self._count, replace=False)
        self._new = np.frombuffer(random.bytes(self._count * shape[1]), np.uint8)
        self._new = self._new.reshape(-1, shape[1])

    def run(self) -> None:
        """Creates the table, saves, maps, updates, deletes and inserts."""
        where, new, threads = self._where, self._new, self._threads
        table = self._timed(
            "take in",
            lambda: Table(self._values, output=self._arguments.output, threads=threads),
            0,
        )
        with tempfile.TemporaryDirectory(prefix="nescio-bench-") as folder:
            path = Path(folder, "table.nescio")
            self._timed("save", lambda: table.save(path), 0)
            mapped = self._timed("map", lambda: Table.load(path, threads=threads), 0)
            self._check(mapped, where, self._values[where])
            del mapped
        self._timed("update", lambda: table.update(where, new), self._count)
        self._check(table, where, new)
        if self._count < self._arguments.rows:
            self._timed("delete", lambda: table.delete(where), self._count)
            self._timed("insert", lambda: table.insert([0] * self._count, new), self._count)
            self._check(table, np.arange(self._count), new)

    def _timed(self, what: str, work: Callable[[], _T], changed: int) -> _T:
        memory = PeakMemory()
        memory.forget()
        begin = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - begin
        peak = memory.bytes()
        arguments = self._arguments
        case: Case = {
            "what": what,
            "rows": arguments.rows,
            "row_bytes": arguments.row_bytes,
            "output": arguments.output,
            "threads": arguments.threads,
            "changed_rows": changed,
            "milliseconds": seconds * 1e3,
            "table_gb_per_second": arguments.rows * arguments.row_bytes / seconds / 1e9,
            "peak_bytes": peak,
            "peak_megabytes": peak / 1e6,
        }
        self._report.add(case)
        self._results.add(case)
        return result

    @staticmethod
    def _check(table: Table, where: Array, rows: Array) -> None:
        if not np.array_equal(table[where], rows):
            raise WrongResultError("the table does not hold the rows it was given")
