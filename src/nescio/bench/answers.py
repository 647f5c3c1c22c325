"""Random tables, checked queries and the reported fields of every benchmark of answers."""

import time
from typing import NamedTuple

import numpy as np

from .. import _core
from .._arrays import Array
from .._report import Case
from .._timing import medians_in_turns
from ..dpf import Generator, Output
from ..pir import Client, Server, Table, TableParams
from .memory import PeakMemory
from .timing import WrongResultError


def random_table(
    rows: int,
    row_bytes: int,
    output: Output,
    generator: Generator,
    *,
    record_rows: int | None = 1,
    bins: int = 1,
) -> tuple[Table, float]:
    """Makes a table of random bytes; returns it and the seconds for creating it.

    `bins` must divide the rows.
    """
    values = np.frombuffer(np.random.default_rng().bytes(rows * row_bytes), np.uint8)
    begin = time.perf_counter()
    table = Table(
        values.reshape(rows, row_bytes),
        output=output,
        generator=generator,
        record_rows=record_rows,
        bins=None if bins == 1 else [(bins, rows // bins)],
    )
    return table, time.perf_counter() - begin


class Checked(NamedTuple):
    """A query whose answer was found correct."""

    query: bytes  # to party 0
    peak: int  # bytes of peak memory while it was answered
    seconds: float  # of the second party's answer, whose buffers are allocated by then


def checked_query(
    server: Server, batch: int, memory: PeakMemory, *, verify: bool = False
) -> Checked:
    """Makes a query of `batch` lookups for random rows and has both parties answer it.

    A lookup of a table in bins gets a row of each. `verify` adds the keys with which a client
    checks the rows. Raises WrongResultError unless the two answers add up to the rows.
    """
    params = server.params
    indices, wanted = _random_indices(params, batch)
    client = Client(params, server.tops, verify=verify, insecure_generator=True)
    query = client.query(indices)
    memory.forget()
    answer = server.answer(query.keys[0])
    peak = memory.bytes()
    begin = time.perf_counter()
    other = server.answer(query.keys[1])
    seconds = time.perf_counter() - begin
    rows = client.decode(query, answer, other)
    if not np.array_equal(rows, server.table[wanted]):
        raise WrongResultError("the answers are not the rows")
    return Checked(query.keys[0], peak, seconds)


def _random_indices(params: TableParams, lookups: int) -> tuple[Array, Array]:
    """Returns what a query takes, and the numbers of the rows that it gets."""
    random = np.random.default_rng()
    if not params.is_cut:
        indices = random.integers(params.rows, size=lookups)
        return indices, indices
    places = random.integers(params.slot_rows, size=(lookups, params.slots), dtype=np.uint64)
    keys = [group.keys for group in params.bins for _ in range(group.bins)]
    bins = np.repeat(np.arange(len(keys), dtype=np.uint64), keys)
    return places, params.grouping.join(np.broadcast_to(bins, places.shape), places)


def check_seconds(server: Server) -> float:
    """Returns the median time of a client's check of one row against the digest."""
    client = Client(server.params, server.tops, insecure_generator=True)
    plain = Client(server.params, verify=False, insecure_generator=True)
    query, other = client.query([0]), plain.query([0])
    checked = [server.answer(key) for key in query.keys]
    unchecked = [server.answer(key) for key in other.keys]
    whole, rest = medians_in_turns(
        [lambda: client.decode(query, *checked), lambda: plain.decode(other, *unchecked)], 0.1
    )
    return whole - rest


def answer_fields(
    server: Server, batch: int, seconds: float, limit: float, peak: int, *, verified: bool = False
) -> Case:
    """Returns the fields of a batch answered in `seconds`, whose lower bound is `limit` seconds."""
    params = server.params
    return {
        "rows": params.rows,
        "row_bytes": params.row_bytes,
        "record_rows": params.record_rows,
        "batch": batch,
        "threads": server.threads,
        "generator": params.generator,
        "output": params.output,
        "queries_per_second": batch / seconds,
        "milliseconds": seconds * 1e3,
        "table_gb_per_second": batch * params.rows * params.row_bytes / seconds / 1e9,
        "limit_queries_per_second": batch / limit,
        "times_limit": seconds / limit,
        "verified": verified,
        "key_bytes": params.verified_key_bytes if verified else params.key_bytes,
        "answer_bytes": params.verified_answer_bytes if verified else params.answer_bytes,
        "table_bytes": _core.table_bytes(*params.layouts[0]),
        "peak_bytes": peak,
        "peak_megabytes": peak / 1e6,
    }
