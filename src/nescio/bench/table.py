"""`nescio bench table`: the time to create, save, map and change a table."""

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from .._arrays import Array, as_count, as_threads
from .._report import Case, Report
from ..dpf import Output
from ..errors import ArgumentError
from ..pir import Table
from .memory import PeakMemory
from .results import Results
from .timing import WrongResultError

_T = TypeVar("_T")
_MAX_BYTES = 1 << 38
_MAX_ROUNDS = 1000
_COLUMNS = [
    ("what", "what", "7"),
    ("rows", "rows", "9,d"),
    ("row_bytes", "row B", "d"),
    ("output", "output", ""),
    ("threads", "threads", "d"),
    ("changed_rows", "changed", "7,d"),
    ("milliseconds", "ms", "8,.1f"),
    ("processor_milliseconds", "CPU ms", "8,.1f"),
    ("ratio", "x take in", "9.2f"),
    ("processor_ratio", "x CPU", "6.2f"),
    ("table_gb_per_second", "GB/s", "7,.2f"),
    ("peak_megabytes", "peak MB", "5,.0f"),
]
_NOTES = """\
Taking in and updating take turns: medians of the rounds, after a check of the result. x take in and
x CPU: the median ratio of an update's time, and of its CPU time, to those of taking in. GB/s: bytes
of the whole table over the time. peak MB: resident memory above that at the step's start, the first
time. Taking in and inserting create a table; mapping includes the check of the whole file."""


class _Time(NamedTuple):
    """The seconds of one step, the CPU seconds of all its threads, and the peak of its memory."""

    seconds: float
    processor_seconds: float
    peak_bytes: int | None = None


class _Shape(NamedTuple):
    row_bytes: int
    output: Output
    threads: int


def run(arguments: argparse.Namespace) -> int:
    """Measures every step, checks the table after it, prints each, and writes JSON."""
    rows = as_count(arguments.rows, "rows", 2, _MAX_BYTES)
    for row_bytes in arguments.row_bytes:
        as_count(row_bytes, "row bytes", 1, _MAX_BYTES)
        as_count(rows * row_bytes, "bytes of the table", 1, _MAX_BYTES)
    as_count(arguments.rounds, "rounds", 1, _MAX_ROUNDS)
    if not 0 < arguments.share <= 1:
        raise ArgumentError(f"share: found {arguments.share}, expected more than 0, up to 1")
    threads = [as_threads(count) for count in arguments.threads]
    report = Report(_COLUMNS)
    with Results(arguments.json) as results:
        for shape in itertools.product(arguments.row_bytes, arguments.output, threads):
            steps = _Steps(arguments, _Shape(*shape), report, results)
            steps.run(only_updates=arguments.only_updates)
    print(_NOTES)
    return 0


class _Steps:
    """The steps on one table, in order."""

    def __init__(
        self, arguments: argparse.Namespace, shape: _Shape, report: Report, results: Results
    ) -> None:
        self._arguments, self._shape = arguments, shape
        self._report, self._results = report, results
        rows, row_bytes = arguments.rows, shape.row_bytes
        random = np.random.default_rng()
        self._values = _random_rows(random, rows, row_bytes)
        self._count = max(1, round(rows * arguments.share))
        self._where = random.choice(rows, size=self._count, replace=False)
        self._new = _random_rows(random, self._count, row_bytes)

    def run(self, *, only_updates: bool) -> None:
        """Creates the table, saves, maps, updates, deletes and inserts."""
        where, new = self._where, self._new
        table, creating = _measured(self._take_in)
        _, updating = _measured(lambda: table.update(where, new))
        self._check_update(table)
        rounds = [(creating, updating)]
        rounds += [
            (_timed(self._take_in)[1], _timed(lambda: table.update(where, new))[1])
            for _ in range(self._arguments.rounds)
        ]
        self._add("take in", 0, [one for one, _ in rounds])
        if not only_updates:
            self._store()
        self._add("update", self._count, [one for _, one in rounds], self._ratios(rounds[1:]))
        if not only_updates and self._count < self._arguments.rows:
            _, deleting = _measured(lambda: table.delete(where))
            self._add("delete", self._count, [deleting])
            _, inserting = _measured(lambda: table.insert([0] * self._count, new))
            self._add("insert", self._count, [inserting])
            _check(table, np.arange(self._count), new)

    def _take_in(self) -> Table:
        return Table(self._values, output=self._shape.output, threads=self._shape.threads)

    def _check_update(self, table: Table) -> None:
        """Compares the table with one made from the new rows, and some of its rows with them."""
        _check(table, self._where, self._new)
        values = self._values.copy()
        values[self._where] = self._new
        if Table(values, output=self._shape.output).params.digest != table.params.digest:
            raise WrongResultError("an updated table has another digest than a new one")

    def _store(self) -> None:
        table = self._take_in()
        with tempfile.TemporaryDirectory(prefix="nescio-bench-") as folder:
            path = Path(folder, "table.nescio")
            _, saving = _measured(lambda: table.save(path))
            self._add("save", 0, [saving])
            mapped, mapping = _measured(lambda: Table.load(path, threads=self._shape.threads))
            self._add("map", 0, [mapping])
            _check(mapped, self._where, self._values[self._where])

    @staticmethod
    def _ratios(rounds: list[tuple[_Time, _Time]]) -> Case:
        return {
            "ratio": statistics.median(b.seconds / a.seconds for a, b in rounds),
            "processor_ratio": statistics.median(
                b.processor_seconds / a.processor_seconds for a, b in rounds
            ),
        }

    def _add(self, what: str, changed: int, times: list[_Time], more: Case | None = None) -> None:
        """Adds the median of some times; the first one counts only if it is alone."""
        counted = times[1:] or times
        seconds = statistics.median(one.seconds for one in counted)
        processor = statistics.median(one.processor_seconds for one in counted)
        peak = times[0].peak_bytes or 0
        case: Case = {
            "what": what,
            "rows": self._arguments.rows,
            **self._shape._asdict(),
            "changed_rows": changed,
            "rounds": len(counted),
            "milliseconds": seconds * 1e3,
            "processor_milliseconds": processor * 1e3,
            "table_gb_per_second": self._values.nbytes / seconds / 1e9,
            "peak_bytes": peak,
            "peak_megabytes": peak / 1e6,
            **(more or {}),
        }
        self._report.add(case)
        self._results.add(case)


def _random_rows(random: np.random.Generator, rows: int, row_bytes: int) -> Array:
    return np.frombuffer(random.bytes(rows * row_bytes), np.uint8).reshape(rows, row_bytes)


def _timed(work: Callable[[], _T]) -> tuple[_T, _Time]:
    processor, begin = time.process_time(), time.perf_counter()
    result = work()
    seconds = time.perf_counter() - begin
    return result, _Time(seconds, time.process_time() - processor)


def _measured(work: Callable[[], _T]) -> tuple[_T, _Time]:
    """Measures the peak of memory too, which makes the work slower."""
    memory = PeakMemory()
    memory.forget()
    result, taken = _timed(work)
    return result, taken._replace(peak_bytes=memory.bytes())


def _check(table: Table, where: Array, rows: Array) -> None:
    if not np.array_equal(table[where], rows):
        raise WrongResultError("the table does not hold the rows it was given")
