"""`nescio bench keyed`: lookups of keys, compared with lookups of the same rows by number."""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from .. import _core
from .._arrays import Array, as_count, as_threads
from .._report import Case, Report
from .._timing import medians_in_turns
from ..dpf import Generator
from ..pir import Client, KeyedClient, KeyedTable, LocalTable, Server, Table
from ..pir._keyed import KeyedLayout
from .limits import expansion_seconds, pass_seconds, product_seconds
from .results import Results
from .timing import WrongResultError, check_duration

_MAX_BYTES = 1 << 38
_MAX_BATCH = 1 << 16
_CHANGES = 50
_COLUMNS = [
    ("rows", "keys", "9,d"),
    ("row_bytes", "value B", "d"),
    ("record_rows", "a record", "d"),
    ("generator", "generator", ""),
    ("threads", "threads", "d"),
    ("batch", "batch", "d"),
    ("verified", "verified", ""),
    ("lookups_per_second", "lookups/s", "9,.0f"),
    ("plain_lookups_per_second", "by number/s", ",.0f"),
    ("share_of_plain", "share", ".2f"),
    ("times_limit", "x loops", ".2f"),
    ("key_bytes", "key B", ",d"),
    ("answer_bytes", "answer B", ",d"),
    ("plain_key_bytes", "plain key B", ",d"),
    ("plain_answer_bytes", "plain answer B", ",d"),
    ("build_seconds", "build s", ".2f"),
    ("insert_milliseconds", "insert ms", ".2f"),
    ("delete_milliseconds", "delete ms", ".2f"),
]
_NOTES = """\
Lookups of keys and of the same rows by number take turns: medians. share: the rate of the first
over that of the second. verified: with the hash tables against which clients check rows. x loops:
the time over the larger of a plain read of the tables and the kernels' inner loops, with data in
the cache. Bytes are those of one lookup, to or from one server. build: from words to a table.
insert, delete: medians of one key at a time, at a load of 0.9."""


def run(arguments: argparse.Namespace) -> int:
    """Measures every case, prints each, and writes JSON if requested."""
    rows = as_count(arguments.rows, "keys", _CHANGES, _MAX_BYTES)
    row_bytes = as_count(arguments.row_bytes, "bytes of a value", 1, 1 << 20)
    as_count(rows * row_bytes, "bytes of all values", 1, _MAX_BYTES)
    for batch in arguments.batch:
        as_count(batch, "batch", 1, _MAX_BATCH)
    threads = [as_threads(count) for count in arguments.threads]
    check_duration(arguments.seconds)
    report = Report(_COLUMNS)
    with Results(arguments.json) as results:
        for generator in arguments.generator:
            made = _Tables.make(rows, row_bytes, generator)
            for count, batch in product(threads, arguments.batch):
                for case in _cases(made, count, batch, arguments.seconds):
                    report.add(case)
                    results.add(case)
    print(_NOTES)
    return 0


class _Tables(NamedTuple):
    """Both tables of the same values, and what building and changing the keyed one took."""

    keyed: KeyedTable
    plain: Table
    values: Array
    build_seconds: float
    insert_seconds: float
    delete_seconds: float

    @classmethod
    def make(cls, rows: int, row_bytes: int, generator: Generator) -> "_Tables":
        """Makes the tables, and changes single keys of the keyed one."""
        noise = np.random.default_rng().bytes(rows * row_bytes)
        values = np.frombuffer(noise, np.uint8).reshape(rows, row_bytes)
        words = _words(range(rows))
        begin = time.perf_counter()
        keyed = KeyedTable(words, values, generator=generator)
        build = time.perf_counter() - begin
        deleting = [_seconds(partial(keyed.delete, word)) for word in words[:_CHANGES]]
        inserting = [
            _seconds(partial(keyed.insert, word, value))
            for word, value in zip(words[:_CHANGES], values[:_CHANGES], strict=True)
        ]
        return cls(
            keyed,
            Table(values, generator=generator),
            values,
            build,
            statistics.median(inserting),
            statistics.median(deleting),
        )


def _words(numbers: range | Array) -> list[str]:
    return [f"word {number}" for number in numbers]


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _cases(made: _Tables, threads: int, batch: int, seconds: float) -> Iterator[Case]:
    """Yields the case without hash tables, then the one with them."""
    _check(made, batch)
    for verified in (False, True):
        servers = [
            Server(table, party=0, threads=threads, device="cpu")
            for table in (made.keyed.table, made.plain)
        ]
        random = np.random.default_rng()
        places = random.integers(made.keyed.layout.rows, size=(batch, 3))
        asked = (places, random.integers(len(made.values), size=batch))
        clients = [
            Client(server.params, server.tops, verify=verified, insecure_generator=True)
            for server in servers
        ]
        works = [
            partial(server.answer, client.query(indices).keys[0])
            for server, client, indices in zip(servers, clients, asked, strict=True)
        ]
        keyed, plain = medians_in_turns(works, 2 * seconds)
        limit = _limit(servers[0], batch, seconds, verified=verified)
        yield {
            **_shape(made, threads, batch),
            "verified": verified,
            "lookups_per_second": batch / keyed,
            "plain_lookups_per_second": batch / plain,
            "share_of_plain": plain / keyed,
            "milliseconds": keyed * 1e3,
            "times_limit": keyed / limit,
            "key_bytes": clients[0].query_bytes,
            "answer_bytes": clients[0].answer_bytes,
            "plain_key_bytes": clients[1].query_bytes,
            "plain_answer_bytes": clients[1].answer_bytes,
        }


def _shape(made: _Tables, threads: int, batch: int) -> Case:
    layout: KeyedLayout = made.keyed.layout
    return {
        "rows": len(made.values),
        "row_bytes": layout.value_bytes,
        "record_rows": made.keyed.params.record_rows,
        "subtable_rows": layout.rows,
        "generator": made.keyed.params.generator,
        "threads": threads,
        "batch": batch,
        "table_bytes": made.keyed.bytes,
        "plain_table_bytes": made.plain.bytes,
        "build_seconds": made.build_seconds,
        "insert_milliseconds": made.insert_seconds * 1e3,
        "delete_milliseconds": made.delete_seconds * 1e3,
    }


def _check(made: _Tables, batch: int) -> None:
    """Looks up keys and absent keys. Raises WrongResultError if a value is not that of its key."""
    numbers = np.random.default_rng().integers(2 * len(made.values), size=batch)
    local = LocalTable(made.keyed.table, insecure_generator=True)
    values, found = KeyedClient(local).lookup(_words(numbers))
    present = numbers < len(made.values)
    if not np.array_equal(found, present):
        raise WrongResultError("a key was found wrongly, or not found")
    if not np.array_equal(values[found], made.values[numbers[present]]):
        raise WrongResultError("a key has the value of another")


def _limit(server: Server, batch: int, duration: float, *, verified: bool) -> float:
    """Returns the larger of a plain read of the tables and the loops of the kernels, in seconds."""
    params, tier = server.params, _core.active_tier()
    reading = loops = 0.0
    pool = _core.ThreadPool(server.threads)
    with server.table.reading() as state:
        for number, layout in enumerate(params.layouts if verified else params.layouts[:1]):
            table = state.table(number)
            reading += pass_seconds(table, pool, duration / 4)
            trees = sum(
                group.slots * expansion_seconds(group.rows, layout.output, params.generator, tier)
                for group in layout.bins
            )
            loops += batch * trees + product_seconds(table.bytes, batch, layout.output, tier)
    return max(reading, loops / server.threads)
