"""The cost of calls between a front and its shards: time, and processor time by process.

The table is so small that its rows' product takes next to nothing. Processor time differs little
on a machine with other work, time does: `ms` is the lower quartile of the calls.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nescio._report import Case, Column, Report
from nescio.bench.results import Results
from nescio.pir import Client
from nescio.pir._sharded._sum import add_answers
from nescio.service._cluster import ClusterOptions, ClusterServer, connected, open_table
from nescio.service._cluster._open import array_sources

from .processes import tree

__all__ = ["run"]

_FIELDS = {"version": "1", "output": "bit", "generator": "chacha20"}
_COLUMNS: tuple[Column, ...] = (
    ("shards", "shards", "d"),
    ("keys", "keys", ">5,d"),
    ("keys_kilobytes", "keys kB", ">8.1f"),
    ("answer_kilobytes", "answer kB", ">9.1f"),
    ("milliseconds", "ms", ">7.2f"),
    ("shard_milliseconds", "shard ms", ">8.2f"),
    ("add_milliseconds", "add ms", ">7.3f"),
    ("front_cpu_milliseconds", "front CPU ms", ">12.2f"),
    ("shard_cpu_milliseconds", "shard CPU ms", ">12.2f"),
    ("ray_cpu_milliseconds", "Ray CPU ms", ">10.2f"),
)


def run(arguments: argparse.Namespace) -> int:
    """Prints a line for each number of shards and of keys; returns 0."""
    with Results(arguments.json) as results, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.npy")
        shape = arguments.rows, arguments.row_bytes
        np.save(path, np.random.default_rng(1).integers(256, size=shape, dtype=np.uint8))
        report = Report(_COLUMNS)
        for shards in arguments.shards:
            for case in _cases(arguments, path, shards):
                report.add(case)
                results.add(case)
    print(
        "ms: a batch at a front, lower quartile. shard ms: of that, its slowest shard. CPU: of a "
        "batch, all shards together; Ray: its other processes, and the head."
    )
    return 0


def _cases(arguments: argparse.Namespace, path: Path, shards: int) -> Iterator[Case]:
    options = ClusterOptions(party=0, shards=shards, threads=1)
    with connected("local", 0):
        sources = array_sources(path, options, spare=lambda _: 0, **_FIELDS)
        server = open_table("calls", sources, options)
        client = Client(server.params, server.tops)
        try:
            for keys in arguments.keys:
                query = client.query(np.arange(keys) % arguments.rows).keys[0]
                yield {"shards": shards, "keys": keys, **_case(arguments, server, query)}
        finally:
            server.stop()


def _case(arguments: argparse.Namespace, server: ClusterServer, query: bytes) -> Case:
    """Calls all shards again and again; subtracts what the processes need without calls."""
    for _ in range(5):
        server.shards.answer([query])
    begin, before = time.monotonic(), _seconds()
    time.sleep(arguments.seconds / 4)
    idle, pause = _seconds() - before, time.monotonic() - begin
    times, adds, own = [], [], []
    begin, before = time.monotonic(), _seconds()
    while time.monotonic() < begin + arguments.seconds:
        start = time.perf_counter()
        partials = server.shards.answer([query])
        times.append(time.perf_counter() - start)
        own.append(max(one.seconds for one in partials))
    spent = (_seconds() - before - idle * (time.monotonic() - begin) / pause) / len(times)
    for _ in range(20):
        start = time.perf_counter()
        add_answers(server.params, 1, [one.payload for one in partials])
        adds.append(time.perf_counter() - start)
    return {
        "keys_kilobytes": len(query) / 1e3,
        "answer_kilobytes": len(partials[0].payload) / 1e3,
        "calls": len(times),
        "milliseconds": 1e3 * float(np.quantile(times, 0.25)),
        "shard_milliseconds": 1e3 * float(np.quantile(own, 0.25)),
        "add_milliseconds": 1e3 * float(np.quantile(adds, 0.25)),
        **{
            f"{name}_cpu_milliseconds": 1e3 * float(value)
            for name, value in zip(("front", "shard", "ray"), spent, strict=True)
        },
    }


def _seconds() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Returns the seconds of processors of this process, of shards, and of others below it."""
    totals = np.zeros(3)
    for one in tree(os.getpid()):
        kind = 0 if one.pid == os.getpid() else 1 if one.title.startswith("ray::Shard") else 2
        totals[kind] += one.seconds
    return totals
