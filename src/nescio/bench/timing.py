"""How benchmarks time and report."""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

Case = dict[str, object]


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


def write_json(path: Path, cases: Sequence[Case]) -> None:
    """Writes the cases as a JSON list."""
    path.write_text(json.dumps(list(cases), indent=1) + "\n", encoding="utf-8")


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text, the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = []
    for row in [header, *rows]:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
