"""The cost of changes that last: of a record, of updates, of a snapshot, and of a start.

Prints medians. The start is that of `nescio serve --data`, from the call to the first answer, with
a journal as long as it gets before a snapshot begins.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np

import nescio
from nescio.pir._change import Change, make_change
from nescio.service._data import Folder, KeptTable, Origin, recover
from nescio.service._data._journal import Record
from nescio.service._spawn import spawned

CHANGED = 1000
TIMES = 30


def median_ms(work: Callable[[], object], times: int = TIMES) -> float:
    """Returns the median milliseconds of a call."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return 1000 * statistics.median(seconds)


class Subject:
    """A table of random rows, and random updates of it."""

    def __init__(self, rows: int, row_bytes: int) -> None:
        self.random = np.random.default_rng(1)
        self.array = self.random.integers(256, size=(rows, row_bytes), dtype=np.uint8)
        self.table = nescio.Table(self.array)

    def message(self) -> bytes:
        """Encodes an update of random rows."""
        table, width = self.table, self.array.shape[1]
        where = self.random.integers(len(table), size=CHANGED).astype(np.uint64)
        rows = self.random.integers(256, size=(CHANGED, width), dtype=np.uint8)
        return Change("update", str(table.next_version), where, rows).encode(table.params)

    def update(self) -> None:
        """Makes an update."""
        make_change(self.table, self.message())


def lookups(table: nescio.Table, over: Callable[[], bool]) -> list[float]:
    """Answers lookups of one row until `over`; returns their milliseconds."""
    server = nescio.Server(table, party=0)
    key = nescio.Client(table.params, table.tops).query([5]).keys[0]
    found: list[float] = []
    while not over() or not found:
        began = time.perf_counter()
        server.answer(key)
        found.append(1000 * (time.perf_counter() - began))
    return found


def measure_costs(subject: Subject, folder: Path) -> None:
    """Measures a record, updates with and without a journal, and a snapshot beside lookups."""
    table = subject.table
    bare = median_ms(subject.update)
    began = time.perf_counter()
    kept = KeptTable.begin(table, Folder(folder), Origin.of(table.params, []))
    print(f"first snapshot {time.perf_counter() - began:.2f} s, {table.bytes >> 20} MiB")
    print(f"update of {CHANGED} rows: {bare:.2f} ms without, ", end="")
    print(f"{median_ms(subject.update):.2f} ms with a journal")
    record = Record(subject.message(), b"", bytes(16))
    print(f"record: {median_ms(lambda: kept._writer.append(record)):.2f} ms for", end=" ")
    print(f"{len(record.message)} bytes, synchronized")
    end = time.monotonic() + 2
    alone = lookups(table, lambda: time.monotonic() > end)
    kept._take(lambda: None)  # the records above are no changes: begins a new journal
    beside: list[float] = []
    for _ in range(3):
        kept.snapshots.start()
        beside += lookups(table, lambda: not kept.snapshots.active)
    print(f"snapshot in the background: {kept.snapshots.seconds:.2f} s beside lookups")
    for name, found in (("alone", alone), ("during snapshots", beside)):
        p99 = statistics.quantiles(found, n=100)[98] if len(found) > 1 else found[0]
        print(f"lookup {name}: {statistics.median(found):.2f} ms, p99 {p99:.2f} ({len(found)})")
    kept.close()


def measure_start(subject: Subject, folder: Path) -> None:
    """Measures a start with a journal that is almost long enough for a snapshot."""
    np.save(folder / "words.npy", subject.array)
    names = [str(folder / "words.npy"), "--name", "words", "--party", "0"]
    names += ["--port", "0", "--data", str(folder)]
    with spawned(names) as server:
        server.url()
    found = recover(Folder(folder / "words"))
    assert found is not None
    kept, subject.table = found.kept, found.kept.table
    record = len(subject.message())
    while not kept.backlog.is_long(kept._most_bytes - 2 * record):
        subject.update()
    print(f"journal: {kept.backlog.bytes >> 20} MiB, {kept.backlog.changes} updates")
    kept.close()
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        with spawned(names) as server:
            url = server.url()
            assert httpx.get(f"{url}/healthz").status_code == 200
            query = nescio.Client(subject.table.params, subject.table.tops).query([5])
            answer = httpx.post(f"{url}/v1/tables/words/answer", content=query.keys[0])
            assert answer.status_code == 200
            seconds.append(time.perf_counter() - began)
    print(f"start to the first answer: {statistics.median(seconds):.2f} s, most {max(seconds):.2f}")


def run(arguments: argparse.Namespace) -> int:
    """Measures and prints everything."""
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        subject = Subject(arguments.rows, arguments.row_bytes)
        measure_costs(subject, Path(name, "measured"))
        measure_start(subject, Path(name))
    return 0
