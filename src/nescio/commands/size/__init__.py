"""`nescio size`: processors, memory, disk and network of one party, from this machine's rates."""

import argparse
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _core
from ..._arrays import as_count
from ...dpf import GENERATORS, OUTPUTS
from ...errors import ArgumentError
from ...pir import Server, Table, TableParams
from ...pir._rows import RowKind, new_params
from .. import Subparsers, count, generator

_BATCH = 64
_BUSY = 0.6  # of a processor, so that waiting stays short
_HTTP_SECONDS = 250e-6
_PROCESS_BYTES = 700 << 20  # the interpreter, and queries and answers in memory
_RECORD_BYTES = 128  # of a change's record in a journal, besides its rows
_SAMPLE_BYTES = 256 << 20
_ARITY = 16
_DAY = 86400


def add_parser(commands: Subparsers) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "size",
        help="compute the processors, memory, disk and network that one party needs",
        description="Measures this machine's rates for some seconds, and computes from them the "
        "processors, memory, disk and network that each of the two servers needs. Prints the "
        "formulas. Run it on the kind of machine that will serve.",
    )
    add = parser.add_argument
    add("--rows", type=count, required=True, help="rows of the table, such as 1048576 or 2^20")
    add("--row-bytes", type=count, required=True, help="bytes of a row")
    add("--queries-per-second", type=float, required=True, help="rows looked up in a second")
    add(
        "--updates-per-second",
        type=float,
        default=0.0,
        help="rows changed in a second (default: %(default)s)",
    )
    add(
        "--threads",
        type=int,
        default=0,
        help="threads that read the table for the measurement; 0 uses all processors (default: 0)",
    )
    add("--output", choices=OUTPUTS, default="bit", help="group of the shares (default: bit)")
    add(
        "--generator",
        type=generator,
        default="chacha20",
        help=f"generator of the keys: {', '.join(GENERATORS)} (default: chacha20)",
    )
    add("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=_run)


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of this machine: seconds of one thread for a lookup's key and product, and a read.

    `read` is in bytes a second, with all threads together.
    """

    expansion: float
    product: float
    read: float
    threads: int


def _run(arguments: argparse.Namespace) -> int:
    for name in ("queries_per_second", "updates_per_second"):
        value = getattr(arguments, name)
        if not (math.isfinite(value) and 0 <= value <= 1e9):
            raise ArgumentError(f"--{name.replace('_', '-')}: found {value}, expected 0 to 1e9")
    as_count(arguments.rows * arguments.row_bytes, "bytes of the table", 1, 1 << 50)
    params = new_params(
        RowKind(arguments.rows, (arguments.row_bytes,), np.dtype("u1")),
        version="1",
        output=arguments.output,
        generator=arguments.generator,
        record_rows=None,
        bins=(),
        layout=b"",
    )
    rates = measured(params, arguments.threads)
    found = needs(params, rates, arguments.queries_per_second, arguments.updates_per_second)
    if arguments.json:
        print(json.dumps({**found, "rates": _as_dict(rates)}))
    else:
        print(text(params, rates, found, arguments))
    return 0


def _as_dict(rates: Rates) -> dict[str, float]:
    return {name: getattr(rates, name) for name in Rates.__slots__}


def hash_records(params: TableParams) -> list[int]:
    """Lists the rows of each hash table of a table, about: a sixteenth of the one before."""
    rows = [params.records]
    while rows[-1] > _ARITY:
        rows.append(math.ceil(rows[-1] / _ARITY))
    return rows[1:]


def measured(params: TableParams, threads: int) -> Rates:
    """Measures the rates of this machine: the loops of the generator and of the product, a read."""
    from ...bench.limits import expansion_seconds, product_seconds  # noqa: PLC0415

    tier = _core.active_tier()
    tables = [params.records, *hash_records(params)]
    expansion = sum(
        expansion_seconds(rows, params.output, params.generator, tier) for rows in tables
    )
    # A product of eight keys costs as much as one of fewer: a batch has many.
    product = product_seconds(table_bytes(params), _BATCH, params.output, tier) / _BATCH
    sample = np.zeros((min(_SAMPLE_BYTES, table_bytes(params)) // 256 + 1, 256), np.uint8)
    server = Server(Table(sample), threads=threads, device="cpu")
    return Rates(expansion, product, server.measured_read(), server.threads)


def table_bytes(params: TableParams) -> int:
    """Returns the bytes of a table's rows and hashes: 34 bytes for each record, about."""
    return params.rows * params.row_bytes + 34 * params.records


def needs(params: TableParams, rates: Rates, queries: float, updates: float) -> dict[str, Any]:
    """Computes what one party needs, from the rates of a machine."""
    size = table_bytes(params)
    compute = rates.expansion + rates.product
    passes = size / rates.read
    return {
        "query_seconds": compute + _HTTP_SECONDS,
        "pass_seconds": passes,
        "processors": max(1, math.ceil(queries * (compute + _HTTP_SECONDS) / _BUSY)),
        "memory_passes_per_second": queries / _BATCH,
        "memory_share": queries / _BATCH * passes,
        "memory_bytes": math.ceil(1.3 * size) + _PROCESS_BYTES,
        "memory_bytes_with_rebuilds": math.ceil(2.3 * size) + _PROCESS_BYTES,
        "disk_bytes": 3 * size,
        "journal_bytes_per_day": math.ceil(updates * (params.row_bytes + 8 + _RECORD_BYTES) * _DAY),
        "network_in_bytes_per_second": math.ceil(queries * params.verified_key_bytes),
        "network_out_bytes_per_second": math.ceil(queries * params.verified_answer_bytes),
    }


def text(
    params: TableParams, rates: Rates, found: dict[str, Any], arguments: argparse.Namespace
) -> str:
    """Writes the needs of one party, each with its formula."""
    size, queries = table_bytes(params), arguments.queries_per_second
    share = f"{found['memory_share']:.0%}"
    lines = [
        f"one party: {params.rows:,} rows of {params.row_bytes} bytes, {queries:g} rows looked up "
        f"and {arguments.updates_per_second:g} changed a second",
        "",
        f"table       {_bytes(size)}: rows x row bytes + 34 bytes of hashes for each record of "
        f"{params.record_rows} rows",
        f"a lookup    {found['query_seconds'] * 1e3:.2f} ms of one processor: generator "
        f"{rates.expansion * 1e3:.2f} ms + product {rates.product * 1e3:.2f} ms + HTTP "
        f"{_HTTP_SECONDS * 1e3:.2f} ms (for requests of one row)",
        f"processors  {found['processors']}: lookups a second x a lookup / {_BUSY}, the share of "
        "its time that a processor should be busy",
        f"a pass      {found['pass_seconds'] * 1e3:.2f} ms: table / {_bytes(rates.read)} a second, "
        f"read by {rates.threads} threads here; no answer is faster",
        f"memory bus  {share} of it: lookups a second / {_BATCH} in a pass x a pass; below 60 %",
        f"memory      {_bytes(found['memory_bytes'])}: 1.3 x table + "
        f"{_bytes(_PROCESS_BYTES)}; {_bytes(found['memory_bytes_with_rebuilds'])} where rows are "
        "inserted, files reloaded or many rows changed at once: + table",
        f"disk        {_bytes(found['disk_bytes'])} for snapshots and journals: 3 x table; changes "
        f"write {_bytes(found['journal_bytes_per_day'])} a day: changes x (row bytes + "
        f"{_RECORD_BYTES + 8})",
        f"network     {_bytes(found['network_in_bytes_per_second'])} a second in, "
        f"{_bytes(found['network_out_bytes_per_second'])} a second out: lookups x "
        f"{params.verified_key_bytes} bytes of keys and {params.verified_answer_bytes} of answers",
    ]
    if found["memory_share"] > _BUSY:
        lines += ["", "The memory of one machine is too slow: use several replicas of each party."]
    return "\n".join(lines)


def _bytes(number: float) -> str:
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            break
        number /= 1000
    return f"{number:.3g} {unit}"
