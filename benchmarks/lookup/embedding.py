"""`python -m benchmarks.lookup embedding`: a private embedding beside the plain one. Needs PyTorch.

Both servers are in this process, on the given number of threads. The lookup alone is the lower
bound of the module, and is the sum of the client's keys, the answers of both servers and the
client's decoding and check.
"""

import argparse
from collections.abc import Callable

import numpy as np
import torch

from nescio._arrays import as_count
from nescio._report import Case, Column, Report
from nescio.bench.results import Results
from nescio.bench.timing import WrongResultError, check_duration, interleaved
from nescio.pir import Client, LocalTable, Server, Table
from nescio.torch import PrivateEmbedding

_MAX_INDICES = 1 << 16
_MAX_ROWS = 1 << 28
_MAX_COLUMNS = 1 << 16

_COLUMNS: list[Column] = [
    ("rows", "rows", "8"),
    ("columns", "columns", "7"),
    ("indices", "indices", "7"),
    ("plain_microseconds", "plain us", "8,.1f"),
    ("keys_microseconds", "keys us", "9,.0f"),
    ("answer_microseconds", "answer us", "9,.0f"),
    ("decode_microseconds", "decode us", "9,.0f"),
    ("lookup_microseconds", "lookup us", "9,.0f"),
    ("private_microseconds", "private us", "10,.0f"),
    ("times_lookup", "x lookup", "8.3f"),
    ("query_bytes", "bytes up", "9,d"),
    ("answer_bytes", "bytes down", "10,d"),
]


def run(arguments: argparse.Namespace) -> int:
    """Times a plain and a private module for each number of indices."""
    rows = as_count(arguments.rows, "--rows", 1, _MAX_ROWS)
    columns = as_count(arguments.columns, "--columns", 1, _MAX_COLUMNS)
    counts = [as_count(n, "--indices", 1, _MAX_INDICES) for n in arguments.indices]
    check_duration(arguments.seconds)
    torch.set_num_threads(max(1, arguments.threads))
    plain = torch.nn.Embedding(rows, columns).requires_grad_(requires_grad=False)
    table = Table(plain.weight.numpy())
    report = Report(_COLUMNS)
    with Results(arguments.json) as results:
        for count in counts:
            case = _case(plain, table, count, arguments.threads, arguments.seconds)
            report.add(case)
            results.add(case)
    print("answer: of one server, for all indices; bytes: of all indices, to and from one server")
    return 0


def _case(
    plain: torch.nn.Embedding, table: Table, count: int, threads: int, seconds: float
) -> Case:
    indices = torch.randint(len(table), (count,), generator=torch.Generator().manual_seed(1))
    works, sizes = _works(plain, table, indices, threads)
    times = {str(name): 1e6 * t for name, t in interleaved(works, seconds).items()}
    return {
        "rows": len(table),
        "columns": plain.embedding_dim,
        "indices": count,
        "threads": threads,
        **{f"{name}_microseconds": t for name, t in times.items()},
        "times_lookup": times["private"] / times["lookup"],
        **sizes,
    }


def _works(
    plain: torch.nn.Embedding, table: Table, indices: torch.Tensor, threads: int
) -> tuple[dict[object, Callable[[], object]], dict[str, int]]:
    """Returns what is timed, by name, and the sizes of messages. Raises WrongResultError."""
    lookups = LocalTable(table, threads=threads)
    private = PrivateEmbedding(lookups)
    if not torch.equal(private(indices), plain(indices)):
        raise WrongResultError("the private embedding returned other rows than the plain one")
    client = Client(table.params, table.tops)
    servers = [Server(table, party=party, threads=threads) for party in (0, 1)]
    wanted = np.asarray(indices.numpy())
    query = client.query(wanted)
    answers = [server.answer(key) for server, key in zip(servers, query.keys, strict=True)]
    works: dict[object, Callable[[], object]] = {
        "plain": lambda: plain(indices),
        "keys": lambda: client.query(wanted),
        "answer": lambda: servers[0].answer(query.keys[0]),
        "decode": lambda: client.decode(query, *answers),
        "lookup": lambda: lookups.lookup(wanted),
        "private": lambda: private(indices),
    }
    return works, {"query_bytes": len(query.keys[0]), "answer_bytes": len(answers[0])}
