"""Costs of layouts: exact bytes, and the server's time by a model that is measured first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from time import perf_counter
from typing import NamedTuple

import numpy as np

from .... import _core
from ...._arrays import as_count, as_threads
from ....dpf import Generator, Output
from ....errors import ArgumentError
from ..._bins import Bins
from ..._client import Client
from ..._hash_shape import rows_per_record
from ..._params import MAX_ROW_BYTES, MAX_ROWS, TableParams
from ..._server import Server
from ..._table import Table
from .._columns import Floats
from .design import Design

__all__ = ["Cost", "Machine", "Setup", "answering", "bin_table", "measure"]

MAX_MEASURED_BYTES = 256 << 20
_MAX_CLIENTS = 1 << 16
_KEYS_PER_PASS = 256  # of core/pir/plan.h
_CALIBRATION = (  # bins, their records, times the bytes of a record, clients
    (8, 64, 1, 64),
    (4, 1 << 13, 1, 64),
    (4, 1 << 13, 4, 64),
    (4, 1 << 13, 1, 1),
    (1, 1 << 15, 1, 256),
)
_MIN_RUNS = 3


@dataclass(frozen=True)
class Setup:
    """The table and the service that layouts are for.

    `clients` inferences are answered together, by a server with `threads` threads (0: all
    processors). With `verify`, clients check the rows, with keys for the hash tables. Raises
    ArgumentError for sizes that cannot be.
    """

    rows: int
    row_bytes: int
    output: Output = "bit"
    generator: Generator = "chacha20"
    verify: bool = True
    clients: int = 64
    threads: int = 0

    def __post_init__(self) -> None:
        as_count(self.rows, "rows", 1, MAX_ROWS)
        as_count(self.row_bytes, "row_bytes", 1, MAX_ROW_BYTES)
        as_count(self.clients, "clients", 1, _MAX_CLIENTS)
        as_threads(self.threads)
        self.params((Bins(1, self.rows),))  # checks output, generator, and their sizes together

    def params(self, groups: tuple[Bins, ...], slot_rows: int = 1) -> TableParams:
        """Returns the parameters of a table in bins; `slot_rows` rows are in each place.

        Raises ArgumentError for a table that cannot be.
        """
        return TableParams(
            rows=sum(group.total_rows for group in groups),
            row_shape=(slot_rows, self.row_bytes),
            dtype=np.dtype(np.uint8),
            output=self.output,
            generator=self.generator,
            version="1",
            digest="0" * 64,
            record_rows=rows_per_record(slot_rows * self.row_bytes),
            bins=groups,
        )


class Machine(NamedTuple):
    """The seconds that a server takes for each key, and for more.

    `per_record` is for each record of a key's bin, `per_byte` for each byte of these records, and
    `per_pass` for each byte of a bin that is read, for up to 256 keys together.
    """

    per_key: float
    per_record: float
    per_byte: float
    per_pass: float

    @classmethod
    def measured(cls, setup: Setup, seconds: float) -> "Machine":
        """Measures some tables with the real engine, about `seconds` each.

        They are smaller where rows are long, and never have more rows than the table of `setup`.
        """
        record_bytes = rows_per_record(setup.row_bytes) * setup.row_bytes
        work, times = [], []
        most = -(-setup.rows * setup.row_bytes // record_bytes)
        for bins, wanted, wide, together in _CALIBRATION:
            row_bytes = min(wide * record_bytes, MAX_ROW_BYTES)
            fitting = max(1, MAX_MEASURED_BYTES // (bins * row_bytes))
            records, clients = min(wanted, most, fitting), min(together, fitting)
            own = replace(setup, row_bytes=row_bytes, verify=False, clients=clients)
            work.append(bins * _bin_work(clients, records, own.row_bytes))
            times.append(measure(own, own.params((Bins(bins, records),)), seconds, min))
        return cls(*_fitted(np.array(work), np.array(times)))

    def seconds(self, params: TableParams, clients: int, *, verify: bool) -> float:
        """Returns the modelled time of a server for lookups of so many clients."""
        work = np.zeros(len(self))
        for bins, row_bytes, _ in params.layouts if verify else params.layouts[:1]:
            for group in bins:
                work += group.bins * _bin_work(clients * group.keys, group.rows, row_bytes)
        return float(work @ self)


def _bin_work(keys: int, records: int, record_bytes: int) -> Floats:
    """Returns what a bin needs of each of the numbers of `Machine`."""
    size = records * record_bytes
    return np.array([keys, keys * records, keys * size, -(-keys // _KEYS_PER_PASS) * size], float)


def _fitted(work: Floats, times: Floats) -> list[float]:
    """Fits times of at least 0 for the work, with the least sum of squares of relative errors."""
    best, found = np.inf, np.zeros(work.shape[1])
    for used in product((False, True), repeat=work.shape[1]):
        columns = np.flatnonzero(used)
        lines = work[:, columns] / times[:, None]
        solved = np.linalg.lstsq(lines, np.ones(len(times)), rcond=None)[0]
        error = float(((lines @ solved - 1) ** 2).sum())
        if (solved >= 0).all() and error < best - 1e-12:
            best, found = error, np.zeros(work.shape[1])
            found[columns] = solved
    return [float(value) for value in found]


class Cost(NamedTuple):
    """The cost of an inference: bytes to and from one server, and a server's memory and time.

    `seconds` is the time in which a server answers all clients that it answers together.
    """

    key_bytes: int
    answer_bytes: int
    table_bytes: int
    seconds: float

    @property
    def bytes(self) -> int:
        """All bytes of an inference, to and from both servers."""
        return 2 * (self.key_bytes + self.answer_bytes)

    @classmethod
    def of(cls, design: Design, setup: Setup, machine: Machine) -> "Cost":
        """Computes the cost of a design. Raises ArgumentError for a table that cannot be."""
        params = setup.params(design.groups(setup.rows), 1 + design.together)
        verify = setup.verify
        return cls(
            params.verified_key_bytes if verify else params.key_bytes,
            params.verified_answer_bytes if verify else params.answer_bytes,
            sum(_core.table_bytes(*layout) for layout in params.layouts),
            machine.seconds(params, setup.clients, verify=verify),
        )


def lower_quartile(times: Sequence[float]) -> float:
    """Returns the time that a quarter of the runs stayed below."""
    return sorted(times)[len(times) // 4]


def bin_table(setup: Setup, params: TableParams) -> tuple[Table, float]:
    """Makes a table of random rows in the bins of `params`, or in some of the bins of a large one.

    Returns the table and the share of the bins that it lacks, as a factor of its time.
    """
    size = params.rows * params.row_bytes
    share = min(1.0, MAX_MEASURED_BYTES / size)
    groups = [group._replace(bins=max(1, round(group.bins * share))) for group in params.bins]
    rows = sum(group.total_rows for group in groups)
    if rows * params.row_bytes > 4 * MAX_MEASURED_BYTES:
        raise ArgumentError(f"found bins of {rows} rows, which are too large to measure")
    values = np.frombuffer(np.random.default_rng().bytes(rows * params.row_bytes), np.uint8)
    table = Table(
        values.reshape(rows, *params.row_shape),
        output=setup.output,
        generator=setup.generator,
        record_rows=params.record_rows,
        bins=groups,
        threads=setup.threads,
    )
    return table, params.slots / table.params.slots


def answering(setup: Setup, params: TableParams) -> tuple[Callable[[], object], float]:
    """Prepares a server's answer to lookups of random places by `setup.clients` clients.

    Returns the function that answers, and a factor of its time for bins that the table lacks.
    Raises ArgumentError for bins that are too large.
    """
    table, factor = bin_table(setup, params)
    server = Server(table, threads=setup.threads, device="cpu")
    client = Client(
        table.params,
        table.tops if setup.verify else None,
        verify=setup.verify,
        insecure_generator=True,
    )
    places = np.random.default_rng().integers(
        0, table.params.slot_rows, (setup.clients, table.params.slots), np.uint64
    )
    if not table.params.is_cut:
        places = places.reshape(-1)
    query = client.query(places).keys[0]
    return lambda: server.answer(query), factor


def measure(
    setup: Setup,
    params: TableParams,
    seconds: float,
    typical: Callable[[Sequence[float]], float] = lower_quartile,
) -> float:
    """Measures the time of `answering`, in about `seconds`.

    Returns the lower quartile of several times, because the load of others only adds to them;
    `typical` may be another function of the times. Groups of a large table are measured one by one,
    because those of few bins cannot lack as large a share as others. Raises ArgumentError for bins
    that are too large.
    """
    pieces = [params]
    if params.rows * params.row_bytes > MAX_MEASURED_BYTES:  # groups lack different shares
        pieces = [setup.params((group,), params.row_shape[0]) for group in params.bins]
    total = 0.0
    for piece in pieces:
        work, factor = answering(setup, piece)
        total += factor * typical(_times(work, seconds / len(pieces)))
    return total


def _times(work: Callable[[], object], seconds: float) -> list[float]:
    work()  # fills caches and wakes threads
    times: list[float] = []
    end = perf_counter() + seconds
    while len(times) < _MIN_RUNS or perf_counter() < end:
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return times
