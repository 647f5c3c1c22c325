"""How benchmarks time and report."""

import json
import re
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TextIO

from ..errors import ArgumentError, NescioError

Case = dict[str, object]
Column = tuple[str, str, str]
_LONGEST_SECONDS = 3600


class WrongResultError(NescioError):
    """What was to be timed gives wrong results, so that its time means nothing."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: this is a fault of Nescio's, please report it")


def median_seconds(work: Callable[[], object], seconds: float, least: int = 5) -> float:
    """The median time of `work`, run for about `seconds` and at least `least` times.

    One run before the clock starts fills caches and wakes threads. The median, because machines
    are shared: a mean would carry the neighbours' load.
    """
    work()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def check_duration(seconds: float, what: str = "seconds") -> None:
    """Raises ArgumentError unless a benchmark can take so long."""
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise ArgumentError(f"{what}: found {seconds}, expected more than 0, up to an hour")


def check_writable(path: str | None) -> None:
    """Raises ArgumentError, before anything is measured, if a file cannot be written."""
    if path is None:
        return
    there = Path(path).exists()
    try:
        with Path(path).open("ab"):  # which changes nothing
            pass
        if not there:
            Path(path).unlink()
    except OSError as error:
        reason = error.strerror or "it is no file's name"
        raise ArgumentError(f"{path!r} cannot be written: {reason}") from error


def write_json(path: Path, cases: Sequence[Case]) -> None:
    """Writes the cases as a JSON list."""
    path.write_text(json.dumps(list(cases), indent=1) + "\n", encoding="utf-8")


class Report:
    """A table that is printed while it is measured: a line for each case, as soon as it is known.

    A column is the name of a field, its heading, and how to format it, its width included. What a
    case does not have is a dash. `copy`, if given, gets the same lines.
    """

    def __init__(self, columns: Sequence[Column], copy: TextIO | None = None) -> None:
        self._columns = columns
        self._copy = copy
        self._widths = [
            max(len(heading), *map(int, re.findall(r"^>?([0-9]+)", spec)), 0)
            for _, heading, spec in columns
        ]
        self._print(heading for _, heading, _ in columns)

    def add(self, case: Case) -> None:
        """Prints one case."""
        self._print(_cell(case.get(field), spec) for field, _, spec in self._columns)

    def _print(self, cells: Iterable[str]) -> None:
        padded = (cell.rjust(width) for cell, width in zip(cells, self._widths, strict=True))
        line = "  ".join(padded).rstrip()
        print(line, flush=True)
        if self._copy is not None:
            print(line, file=self._copy, flush=True)


def _cell(value: object, spec: str) -> str:
    return "-" if value is None else format(value, spec)
