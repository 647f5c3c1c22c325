"""A table on a disk: built, served from its files, and looked up, beside what the disk can read.

Rows are made from a seed as the build asks for them, so that the disk has the table once, and each
row can be made again to check an answer. Both parties serve the same files, one after the other:
each has the machine for itself, and its answers are added to the other one's afterwards.
"""

import argparse
import http.client
import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from benchmarks._main import make_folder
from nescio._arrays import as_count
from nescio._report import Case, Column, Report
from nescio.bench.results import Results
from nescio.bench.timing import WrongResultError
from nescio.errors import ArgumentError, FileError, ServiceError
from nescio.pir import Client, Query
from nescio.pir._tops import parse_tops
from nescio.service._build import BuildOptions, Built, Here, build, open_output
from nescio.service._spawn import spawned

from .processes import Watch
from .rows import GeneratedRows

__all__ = ["run"]

_COLUMNS: tuple[Column, ...] = (
    ("step", "step", "10"),
    ("party", "party", "d"),
    ("keys", "keys", ">5,d"),
    ("seconds", "seconds", ">9,.1f"),
    ("gigabytes", "GB", ">7,.2f"),
    ("gigabytes_per_second", "GB/s", ">6.3f"),
    ("disk_gigabytes", "GB of disk", ">10,.2f"),
    ("private_gigabytes", "memory GB", ">9.2f"),
)
_TABLE = "disk"
_FREE_BYTES = 10 << 30  # of the disk, that stay free
_READ_BYTES = 1 << 30  # of each shard, to measure the disk
_PIECE_BYTES = 4 << 20
_LONG_SECONDS = 7200  # in which a server starts, or answers


def run(arguments: argparse.Namespace) -> int:
    """Prints a line for each step, then a sentence about the rows; returns 0."""
    if arguments.row_bytes % 8:
        raise ArgumentError(f"--row-bytes: found {arguments.row_bytes}, expected a multiple of 8")
    count = as_count(int(arguments.gigabytes * 1e9) // arguments.row_bytes, "rows", 1, 1 << 40)
    rows = GeneratedRows(count, arguments.row_bytes, arguments.seed)
    folder = make_folder(arguments.out) / "table"
    free = shutil.disk_usage(folder.parent).free
    if free - count * rows.row_bytes * 1.1 < _FREE_BYTES:
        raise FileError(
            f"{folder.parent} has {free:,} bytes of free space, expected the table and "
            f"{_FREE_BYTES:,}: choose another disk, or a smaller table"
        )
    with Results(arguments.json) as results:
        report = Report(_COLUMNS)
        try:
            for case in _Run(arguments, rows, folder).steps():
                report.add(case)
                results.add(case)
        finally:
            if not arguments.keep:
                shutil.rmtree(folder, ignore_errors=True)
    print(
        f"all rows were right: {count:,} of {rows.row_bytes} bytes in {arguments.shards} shards. "
        "GB of disk: what the disk has given meanwhile. memory: the largest sum of all processes, "
        "pages of files aside."
    )
    return 0


def _case(step: str, seconds: float, size: int, **fields: object) -> Case:
    rates = {"gigabytes": size / 1e9, "gigabytes_per_second": size / 1e9 / seconds}
    return {"step": step, "seconds": seconds, **rates, **fields}


class _Run:
    """The steps of a run, and the queries of both parties."""

    def __init__(self, arguments: argparse.Namespace, rows: GeneratedRows, folder: Path) -> None:
        self._arguments, self._rows, self._folder = arguments, rows, folder
        self._queries: list[Query] = []
        self._answers: list[list[bytes]] = []

    def steps(self) -> Iterator[Case]:
        """Yields a line for each step. Raises WrongResultError for a wrong row."""
        begin = time.monotonic()
        options = BuildOptions(self._arguments.shards, threads=self._arguments.build_threads)
        with Watch(os.getpid()) as watch:
            place = open_output(str(self._folder))
            built = build(self._rows, place, options, Here(lambda *_: None))
        seconds = time.monotonic() - begin
        yield _case("build", seconds, built.bytes, private_gigabytes=watch.peak / 1e9)
        files = [self._folder / name for name in built.files]
        yield _read(files)
        for party in (0, 1):
            _forget(files)
            yield from self._served(built, party)

    def _served(self, built: Built, party: int) -> Iterator[Case]:
        """Serves one party from the files, and sends it its parts of the queries."""
        options = ["--name", _TABLE, "--party", str(party), "--port", "0", "--mapped"]
        options += ["--cluster", "local", "--threads", str(self._arguments.threads)]
        options += ["--timeout", str(_LONG_SECONDS)]
        begin = time.monotonic()
        with spawned([str(self._folder), *options]) as process, Watch(process.pid) as watch:
            url = process.url(_LONG_SECONDS)
            seconds, read = time.monotonic() - begin, watch.read()
            yield _case("start", seconds, built.bytes, party=party, disk_gigabytes=read / 1e9)
            if party == 0:
                tops = parse_tops(built.params, _ask(url, "GET", "tops"))
                self._client = Client(built.params, tops)
                self._queries = [self._query(count) for count in self._arguments.keys]
            self._answers.append([])
            for query in self._queries:
                read, begin = watch.read(), time.monotonic()
                self._answers[party].append(_ask(url, "POST", "answer", query.keys[party]))
                seconds, read = time.monotonic() - begin, watch.read() - read
                if party == 1:
                    self._check(query, len(self._answers[1]) - 1)
                yield _case(
                    "lookup",
                    seconds,
                    built.bytes,
                    party=party,
                    keys=query.count,
                    disk_gigabytes=read / 1e9,
                    private_gigabytes=watch.peak / 1e9,
                )

    def _query(self, count: int) -> Query:
        """Makes a query of rows of all shards: the first one, the last one, and others."""
        others = np.random.default_rng(self._rows.seed).integers(self._rows.rows, size=count)
        others[: min(2, count)] = (self._rows.rows - 1, 0)[: min(2, count)]
        return self._client.query(others)

    def _check(self, query: Query, number: int) -> None:
        """Decodes the rows of a query, which the client checks too; compares them with the seed."""
        found = self._client.decode(query, *(own[number] for own in self._answers))
        expected = [self._rows.read(int(index), 1)[0] for index in query.indices.reshape(-1)]
        if not np.array_equal(found, expected):
            raise WrongResultError("a row is not the one that the seed makes")


def _forget(files: list[Path]) -> None:
    """Lets the system forget what it has in memory of files."""
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _read(files: list[Path]) -> Case:
    """Measures the disk: the first bytes of all files, at the same time."""
    _forget(files)
    begin = time.monotonic()
    with ThreadPoolExecutor(len(files)) as pool:
        size = sum(pool.map(_read_file, files))
    return _case("disk alone", time.monotonic() - begin, size)


def _read_file(path: Path) -> int:
    buffer, size = bytearray(_PIECE_BYTES), 0
    with path.open("rb", buffering=0) as file:
        while size < _READ_BYTES and (count := file.readinto(buffer)):
            size += count
    return size


def _ask(url: str, method: str, what: str, body: bytes = b"") -> bytes:
    """Sends a request about the table; returns the body of the reply. Raises ServiceError."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_LONG_SECONDS)
    try:
        connection.request(method, f"/v1/tables/{_TABLE}/{what}", body or None)
        reply = connection.getresponse()
        content = reply.read()
    finally:
        connection.close()
    if reply.status != 200:
        raise ServiceError(f"found status {reply.status}: {content[:200]!r}", url=url)
    return content
