"""Peak memory of both parties that prepare inferences of a plan, for limits on kept weights."""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from nescio._report import Case, Report, check_writable
from nescio.bench.parties import connect, report, reporting, two_parties
from nescio.mpc import (
    Network,
    Plan,
    PreparedWeights,
    PublicNetwork,
    PublicPlan,
    Step,
    prepare,
)

__all__ = ["run"]

_COLUMNS = (
    ("limit", "limit", "14,"),
    ("weight_bytes", "weights B", "14,"),
    ("server_before", "server, model B", "15,"),
    ("server_peak", "server peak B", "15,"),
    ("client_before", "client, model B", "15,"),
    ("client_peak", "client peak B", "14,"),
    ("keys_cpu", "once CPU s", "10.2f"),
    ("products_cpu", "products CPU s", "14.2f"),
    ("seconds", "seconds", "8.1f"),
)


def run(arguments: argparse.Namespace) -> int:
    """Prints a line for each limit. Raises FileError for a file that is no plan."""
    check_writable(arguments.json)
    os.environ["OPENBLAS_NUM_THREADS"] = str(arguments.threads)  # its threads wait busily
    public = Plan.load(arguments.plan).public.to_bytes()
    print(
        f"{arguments.plan}: {arguments.count} inferences, {arguments.threads} thread a party; CPU "
        "time of the server, of an inference"
    )
    table, cases = Report(_COLUMNS), []
    for limit in arguments.limit:
        cases.append(_measure(arguments, public, limit))
        table.add(cases[-1])
    if arguments.json is not None:
        Path(arguments.json).write_text(json.dumps(cases, indent=1) + "\n")
    return 0


class _Work(NamedTuple):
    """The preparation of some inferences: stores in a folder, and the limit on kept weights."""

    folder: Path
    inferences: int
    threads: int
    limit: int


def _measure(arguments: argparse.Namespace, public: bytes, limit: int) -> Case:
    count = arguments.count
    with tempfile.TemporaryDirectory() as folder:
        work = _Work(Path(folder), count, arguments.threads, limit)
        roles = {"server": (arguments.plan, work), "client": (public, work)}
        with two_parties(_party, roles) as (serving, asking):
            client, server = report(asking), report(serving)
    steps: Sequence[Step] = server["steps"]
    cpu = {step.phase: step.cpu_seconds for step in steps}
    return {
        "limit": limit,
        "weight_bytes": server["weight_bytes"],
        "server_before": server["before"],
        "server_peak": server["peak"],
        "client_before": client["before"],
        "client_peak": client["peak"],
        "keys_cpu": server["prepare_cpu"],
        "products_cpu": cpu["products"] / count,
        "seconds": sum(step.seconds for step in steps) / count,
    }


def _party(role: str, pipe: Connection, port: int | None, model: Path | bytes, work: _Work) -> None:
    """Prepares, and sends the bytes of this process: with the model loaded, and at the most."""
    network: Network | PublicNetwork
    weights, cpu, threads = None, 0.0, work.threads
    with reporting(pipe), connect(pipe, port, None) as channel:
        if isinstance(model, bytes):
            network = PublicPlan.from_bytes(model).network
            before = _peak()
        else:
            network = whole = Plan.load(model).network
            before, begin = _peak(), time.process_time()
            weights = PreparedWeights(whole, max_bytes=work.limit, threads=threads)
            cpu = time.process_time() - begin
        path = work.folder / role
        steps = prepare(channel, network, path, work.inferences, threads=threads, weights=weights)
        size = 0 if weights is None else weights.kept_bytes
        own = {"before": before, "peak": _peak(), "weight_bytes": size, "prepare_cpu": cpu}
        pipe.send({**own, "steps": steps})


def _peak() -> int:
    """Returns the peak of this program; that of getrusage begins with the parent's memory."""
    status = Path("/proc/self/status").read_text()
    (line,) = (own for own in status.splitlines() if own.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])
