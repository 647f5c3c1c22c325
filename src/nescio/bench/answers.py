"""What all benchmarks of answers share: a table, a query whose answer is right, and its figures."""

import time
from typing import NamedTuple

import numpy as np

from .._report import Case
from ..dpf import Generator, Output
from ..pir import Client, Server, Table
from .memory import PeakMemory
from .timing import WrongResultError


def random_table(
    rows: int, row_bytes: int, output: Output, generator: Generator
) -> tuple[Table, float]:
    """A table of random bytes, and the seconds that it took to take them in."""
    values = np.frombuffer(np.random.default_rng().bytes(rows * row_bytes), np.uint8)
    begin = time.perf_counter()
    table = Table(values.reshape(rows, row_bytes), output=output, generator=generator)
    return table, time.perf_counter() - begin


class Checked(NamedTuple):
    """A query whose answer is right."""

    query: bytes  # to party 0
    peak: int  # bytes of memory at the peak of its answer
    seconds: float  # of the other party's answer, which is the second: its room is there by then


def checked_query(server: Server, batch: int, memory: PeakMemory) -> Checked:
    """A query of random rows, answered by both parties.

    Raises WrongResultError unless the answers of both parties add up to the rows.
    """
    params = server.params
    indices = np.random.default_rng().integers(params.rows, size=batch)
    client = Client(params, insecure_generator=True)
    query = client.query(indices)
    memory.forget()
    answer = server.answer(query.keys[0])
    peak = memory.bytes()
    begin = time.perf_counter()
    other = server.answer(query.keys[1])
    seconds = time.perf_counter() - begin
    rows = client.decode(query, answer, other)
    if not np.array_equal(rows, server.table[indices]):
        raise WrongResultError("the answers are not the rows")
    return Checked(query.keys[0], peak, seconds)


def answer_fields(server: Server, batch: int, seconds: float, limit: float, peak: int) -> Case:
    """What is reported of a batch that was answered in `seconds`, at best in `limit`."""
    params = server.params
    return {
        "rows": params.rows,
        "row_bytes": params.row_bytes,
        "batch": batch,
        "threads": server.threads,
        "generator": params.generator,
        "output": params.output,
        "queries_per_second": batch / seconds,
        "milliseconds": seconds * 1e3,
        "table_gb_per_second": batch * params.rows * params.row_bytes / seconds / 1e9,
        "limit_queries_per_second": batch / limit,
        "times_limit": seconds / limit,
        "key_bytes": params.key_bytes,
        "answer_bytes": params.answer_bytes,
        "table_bytes": server.table.bytes,
        "peak_bytes": peak,
        "peak_megabytes": peak / 1e6,
    }
