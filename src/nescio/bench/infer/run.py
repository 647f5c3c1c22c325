"""`nescio bench infer`: a private layer in two processes, offline and online, with its floors."""

import argparse
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, cast

import numpy as np

from ..._report import Case, Report
from ...mpc._maps import Ring
from ..parties import report, two_parties
from ..results import Results
from ..timing import WrongResultError
from . import party
from .baselines import baselines
from .cases import SHIFT, Inputs, Product, Task, tasks
from .floors import Floors
from .peers import Peers

_EACH = ("online_bytes", "offline_bytes")
_TIMES = ("online_seconds", "offline_seconds", "cpu_seconds")
_COLUMNS = [
    ("program", "program", "20"),
    ("layer", "layer", "6"),
    ("size", "size", "9"),
    ("table_bits", "bits", "d"),
    ("threads", "threads", "d"),
    ("link", "link", "12"),
    ("online_bytes_each", "online B", "9,.2f"),
    ("online_bytes_each_floor", "floor", "7,.2f"),
    ("offline_bytes_each", "offline B", "9,.2f"),
    ("offline_bytes_each_floor", "floor", "7,.2f"),
    ("online_ms", "online ms", ",.2f"),
    ("online_ms_floor", "floor", "6,.2f"),
    ("offline_ms", "offline ms", ",.2f"),
    ("offline_ms_floor", "floor", "6,.2f"),
    ("cpu_ms", "CPU ms", "8,.2f"),
    ("cpu_ms_floor", "floor", "6,.2f"),
    ("rounds", "rounds", "d"),
    ("exact", "exact", ""),
    ("off_by_one", "off by 1", ".4f"),
]
_NOTES = """\
B: bytes of both directions for a number of the result. ms: all numbers, medians after a cold run;
online and offline: the slower party, CPU: both parties and phases. rounds: online. Floors: packed
bytes without headers (offline: without those of the OTs); lookups or products and the OTs or
transforms alone, on one thread in the cache. exact: the result is the simulator's (lookups), or the
product's; a product of encrypted numbers may be 1 off. Half gates: 32 bytes an AND gate."""


class Round(NamedTuple):
    """The reports of both parties about one inference."""

    server: party.Report
    client: party.Report


def run(arguments: argparse.Namespace) -> int:
    """Measures every case, prints each with other programs, and writes JSON if requested."""
    every = list(tasks(arguments))
    peers = Peers.of(arguments)
    with Results(arguments.json) as results:
        table = Report(_COLUMNS)
        for task in every:
            for case in _cases(task, peers):
                table.add(_shown(case))
                results.add(case)
    print("\n".join([_NOTES, *peers.notes]))
    return 0


def _cases(task: Task, peers: Peers) -> Iterator[Case]:
    """Yields the row of a case, and then those of other programs."""
    yield _measured(task)
    yield from baselines(task)
    yield from peers.cases(task)


def _measured(task: Task) -> Case:
    """Runs a case. Raises WrongResultError for a wrong result, before its time is reported."""
    check = _Lookups(task) if task.shape is None else _Products(task)
    with _numpy_threads(task.threads):
        rounds, found = _rounds(task, check)
    warm = rounds[1:]
    offline = [[own.offline for own in one] for one in warm]
    online = [[own.online for own in one] for one in warm]
    both = [[*prepared, *used] for prepared, used in zip(offline, online, strict=True)]
    return {
        "layer": task.layer,
        "elements": task.elements,
        "table_bits": task.table_bits,
        "online_bytes": _bytes(online),
        "offline_bytes": _bytes(offline),
        "online_seconds": _seconds(online),
        "offline_seconds": _seconds(offline),
        "cpu_seconds": statistics.median(sum(phase.cpu_seconds for phase in one) for one in both),
        "rounds": max(phase.rounds for phase in online[-1]),
        "exact": check.differing == 0,
        "program": "nescio",
        "measured": True,
        "size": task.size,
        "threads": task.threads,
        "link": task.link,
        "off_by_one": check.differing / (len(rounds) * task.elements),
        "offline_rounds": max(phase.rounds for phase in offline[-1]),
        "cold_offline_bytes": sum(own.offline.sent_bytes for own in rounds[0]),
        **_by_party(warm),
        **{f"{name}_floor": value for name, value in found._asdict().items()},
    }


def _bytes(rounds: Sequence[Sequence[party.Phase]]) -> int:
    """Returns the mean: an extension of OTs serves more than one round."""
    return round(statistics.mean(sum(phase.sent_bytes for phase in one) for one in rounds))


def _seconds(rounds: Sequence[Sequence[party.Phase]]) -> float:
    return statistics.median(max(phase.seconds for phase in one) for one in rounds)


def _by_party(rounds: Sequence[Round]) -> Case:
    """Returns the CPU time of each party and phase."""
    return {
        f"{role}_{phase}_cpu_seconds": statistics.median(
            getattr(getattr(one, role), phase).cpu_seconds for one in rounds
        )
        for role in ("server", "client")
        for phase in ("offline", "online")
    }


def _shown(case: Case) -> Case:
    """Adds the columns: bytes for each number, and milliseconds."""
    shown = dict(case)
    elements = cast(int, case["elements"])
    for ending in ("", "_floor"):
        for name in _EACH:
            value = cast("float | None", case.get(name + ending))
            shown[f"{name}_each{ending}"] = None if value is None else value / elements
        for name in _TIMES:
            value = cast("float | None", case.get(name + ending))
            column = f"{name.removesuffix('_seconds')}_ms{ending}"
            shown[column] = None if value is None else 1e3 * value
    return shown


def _rounds(task: Task, check: Callable[[Round], None]) -> tuple[list[Round], Floors]:
    """Runs both parties; each result is checked before the next inference."""
    rounds: list[Round] = []
    roles = {"server": (task,), "client": (task,)}
    with two_parties(party.run_party, roles) as pipes:
        for _ in range(1 + task.repeat):
            rounds.append(Round(*(report(pipe) for pipe in pipes)))
            check(rounds[-1])
            for pipe in pipes:
                pipe.send(None)
        found: Floors = report(pipes[0])
    return rounds, found


@contextmanager
def _numpy_threads(threads: int) -> Iterator[None]:
    """Gives the parties' NumPy as many threads as the engine; 0 leaves it alone."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS") if threads else ()
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class _Lookups:
    """Compares the results of lookups with the simulator's."""

    def __init__(self, task: Task) -> None:
        values, client = Inputs.of(task)
        self._expected, _ = task.activation.simulate(values, client, SHIFT)
        self.differing = 0

    def __call__(self, found: Round) -> None:
        """Raises WrongResultError unless all are equal."""
        if not np.array_equal(found.server.numbers - found.client.numbers, self._expected):
            raise WrongResultError("relu: results differ from the simulator's")


class _Products:
    """Compares products with those of the weights; `differing` counts those that are 1 off."""

    def __init__(self, task: Task) -> None:
        self._layer, self._expected = task.layer, Product(task).expected()
        self.differing = 0

    def __call__(self, found: Round) -> None:
        """Raises WrongResultError unless all are equal or 1 off."""
        off: Ring = found.client.numbers - self._expected
        distance = np.minimum(off, -off)
        if distance.max() > 1:
            raise WrongResultError(f"{self._layer}: products differ by more than 1")
        self.differing += int(np.count_nonzero(distance))
