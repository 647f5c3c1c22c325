"""`nescio bench ot`: oblivious transfer between two processes, with this machine's limits."""

import argparse
import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from multiprocessing.shared_memory import SharedMemory
from typing import Any, NamedTuple

import numpy as np

from ... import _core
from ..._arrays import Array, as_count, as_threads
from ..._device import describe, parse_device_list
from ..._report import Case, Report
from ...ot import parameters
from ...ot._party import DEFAULT_DUAL, DEFAULT_PRIMAL, check_family
from ..parties import parse_link, report, two_parties
from ..results import Results
from ..timing import WrongResultError
from .party import Task, run_party, whole

OUTPUTS = ("cot", "rot")
STEPS = ("base", "trees", "check", "lpn", "hash")
_DEFAULTS = {"primal": DEFAULT_PRIMAL, "dual": DEFAULT_DUAL}
_MAX_OTS = 1 << 28
_PART = 1 << 18
_MANY, _FAR = 10_000, 0.05
_COLUMNS = [
    ("n", "OTs", "11,d"),
    ("output", "out", ""),
    ("family", "family", "6"),
    ("parameters", "set", "6"),
    ("bits", "bits", ".0f"),
    ("malicious", "malicious", ""),
    ("device", "device", "6"),
    ("threads", "threads", "d"),
    ("link", "link", "12"),
    ("sender_ms", "sender ms", "9,.1f"),
    ("receiver_ms", "receiver ms", ",.1f"),
    ("million_per_second", "M OT/s", ",.1f"),
    ("cold_million_per_second", "cold", "5,.1f"),
    *((f"{step}_ms", f"{step} ms", "8,.1f") for step in STEPS),
    ("sender_bytes", "sender B", "10,d"),
    ("receiver_bytes", "receiver B", ",d"),
    ("cold_bytes", "cold B", "10,d"),
    ("rounds", "rounds", "d"),
    ("limit_ms", "limit ms", ",.1f"),
]
_NOTES = """\
Both parties run at once, a process each. ms: a warm call. M OT/s: the slower party. cold: the first
call, base OTs and agreement on parameters included. Steps are the receiver's (JSON has both). Every
OT was checked. limit: AES of the leaves plus random reads of the code, alone, on one thread."""


class Round(NamedTuple):
    """The reports of both parties about one call."""

    sender: dict[str, Any]
    receiver: dict[str, Any]


def run(arguments: argparse.Namespace) -> int:
    """Measures every case, prints each, and writes JSON if requested."""
    tasks = list(_tasks(arguments))
    with Results(arguments.json) as results:
        report = Report(_COLUMNS)
        for task, link in tasks:
            case = _case(task, link)
            report.add(case)
            results.add(case)
    print(_NOTES)
    return 0


def _tasks(arguments: argparse.Namespace) -> Iterator[tuple[Task, str]]:
    as_count(arguments.repeat, "repeat", 1, 1000)
    for n, output, family, chosen, device, threads, link, malicious in product(
        arguments.n,
        arguments.output,
        arguments.family,
        arguments.set or [None],
        arguments.device,
        arguments.threads,
        arguments.link,
        [True, False] if arguments.malicious == "both" else [arguments.malicious == "yes"],
    ):
        as_count(n, "n", 1, _MAX_OTS)
        as_threads(threads)
        if chosen is not None and (chosen in parameters.CODES) != (family == "dual"):
            continue  # a set of the other family
        _, found = check_family(family, chosen)
        if parse_device_list(device):
            describe(parse_device_list(device))
            if found == "qc":
                continue  # the code 'qc' has no GPU kernel
        emulated = parse_link(link)
        repeat = arguments.repeat
        task = Task(n, output, family, chosen, malicious, threads, device, emulated, repeat)
        yield task, link


def _case(task: Task, link: str) -> Case:
    rounds = list(_measure(task))
    cold, warm = rounds[0], rounds[1:]
    sender, receiver = (
        statistics.median(reports[k]["seconds"] for reports in warm) for k in (0, 1)
    )
    slower = statistics.median(max(r[k]["seconds"] for k in (0, 1)) for r in warm)
    last = warm[-1]
    chosen = _parameters(task)
    return {
        "n": task.n,
        "output": task.output,
        "family": task.family,
        "parameters": task.parameters or _DEFAULTS[task.family],
        "bits": chosen.bits,
        "malicious": task.malicious,
        "threads": task.threads,
        "device": task.device,
        "link": link,
        "sender_ms": sender * 1e3,
        "receiver_ms": receiver * 1e3,
        "ots_per_second": task.n / slower,
        "million_per_second": task.n / slower / 1e6,
        "cold_million_per_second": task.n / max(r["seconds"] for r in cold) / 1e6,
        **{f"{step}_ms": _step(warm, 1, step) for step in STEPS},
        "sender_steps_ms": {step: _step(warm, 0, step) for step in STEPS},
        "receiver_steps_ms": {step: _step(warm, 1, step) for step in STEPS},
        "cold_base_ms": _step([cold], 1, "base"),
        "sender_bytes": last.sender["sent_bytes"],
        "receiver_bytes": last.receiver["sent_bytes"],
        "cold_bytes": sum(r["sent_bytes"] for r in cold),
        "cold_sender_bytes_by_kind": cold.sender["sent_by_kind"],
        "cold_receiver_bytes_by_kind": cold.receiver["sent_by_kind"],
        "rounds": last.receiver["rounds"],
        "cold_rounds": cold.receiver["rounds"],
        "verified": True,
        "limit_ms": limit_seconds(task.n, chosen) * 1e3,
    }


def _step(rounds: Sequence[Round], party: int, step: str) -> float:
    """Returns the median of a step's milliseconds; party 0 is the sender, 1 the receiver."""
    seconds: list[float] = [r[party]["steps"].get(step, 0.0) for r in rounds]
    return statistics.median(seconds) * 1e3


def _parameters(task: Task) -> parameters.Primal | parameters.Dual:
    if task.family == "primal":
        return parameters.primal(task.parameters or DEFAULT_PRIMAL)
    return parameters.dual(task.parameters or DEFAULT_DUAL, task.n)


def limit_seconds(n: int, chosen: parameters.Primal | parameters.Dual) -> float:
    """Returns one thread's time for the AES of all leaves and the random reads of the code."""
    aes = _core.seconds_per_node("aes128", False) / 2
    if isinstance(chosen, parameters.Primal):
        per_ot = aes + chosen.row_weight * _core.seconds_per_read(chosen.k)
        return n * per_ot * chosen.n / chosen.outputs
    reads = 7 * _core.seconds_per_read(chosen.size) if chosen.code == "ec" else 0.0
    return n * (2 * aes + reads)


def _measure(task: Task) -> Iterator[Round]:
    """Runs both parties; yields the reports of each call after its OTs were checked."""
    size = 64 + 64 * task.n
    with ExitStack() as opened:
        mine, yours = opened.enter_context(_shared(size))
        roles = {"sender": (task, mine.name), "receiver": (task, yours.name)}
        pipes = opened.enter_context(two_parties(run_party, roles))
        for _ in range(1 + task.warm):
            reports = [report(pipe) for pipe in pipes]
            _verify(task, whole(mine), whole(yours))
            for memory in (mine, yours):
                whole(memory)[:] = 0  # so that old results cannot pass the next check
            yield Round(*reports)
            for pipe in pipes:
                pipe.send(None)


@contextmanager
def _shared(size: int) -> Iterator[tuple[SharedMemory, SharedMemory]]:
    both = [SharedMemory(create=True, size=size) for _ in range(2)]
    try:
        yield both[0], both[1]
    finally:
        for memory in both:
            memory.close()
            memory.unlink()


def _verify(task: Task, mine: Array, yours: Array) -> None:
    """Raises WrongResultError unless every OT is correct."""
    n = task.n
    delta, first = mine[:16].view(np.uint64), mine[16 : 16 + 16 * n].view(np.uint64)
    choices, blocks = yours[:n], yours[n : 17 * n]
    second = mine[16 + 16 * n : 16 + 32 * n].view(np.uint64) if task.output == "rot" else None
    for begin in range(0, n, _PART):
        part = slice(begin, min(n, begin + _PART))
        zeros = first.reshape(-1, 2)[part]
        ones = zeros ^ delta if second is None else second.reshape(-1, 2)[part]
        got = np.frombuffer(blocks[16 * part.start : 16 * part.stop].tobytes(), np.uint64)
        if not np.array_equal(np.where(choices[part, None], ones, zeros), got.reshape(-1, 2)):
            raise WrongResultError(f"{task.family} OTs from {part.start} on are wrong")
    if not delta[0] & 1 or (n > _MANY and abs(float(choices.mean()) - 0.5) > _FAR):
        raise WrongResultError(f"{task.family} OTs: delta or the choices are not random")
