"""Gains of bins, hot rows, several hashes, rows together and exact mode, on real logs."""

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from nescio._report import Case, Report
from nescio.bench.answers import checked_query
from nescio.bench.memory import PeakMemory
from nescio.bench.results import Results
from nescio.bench.timing import interleaved
from nescio.errors import ArgumentError
from nescio.pir import Server
from nescio.pir.batch import AccessLog
from nescio.pir.batch._tune.cache import missed
from nescio.pir.batch._tune.cost import Cost, Machine, Setup, bin_table
from nescio.pir.batch._tune.design import Design
from nescio.pir.batch._tune.result import Trial
from nescio.pir.batch._tune.score import Logs, Scorer
from nescio.pir.batch._tune.search import search

from .logs import LOGS, RealLog

Allowed = Callable[[Design], bool]

FAMILIES: dict[str, Allowed] = {
    "plain": lambda design: design.kind == "plain",
    "bins": lambda design: design.kind in ("plain", "bins"),
    "hot": lambda design: design.hashes == 1 and not design.together,
    "together": lambda design: design.hashes == 1,
    "choices": lambda design: not design.lookups,
    "exact": lambda design: design.kind == "exact",
}
_TARGETS = (0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
_COLUMNS = [
    ("log", "log", ""),
    ("target", "at least", ">8.0%"),
    ("family", "family", ">8"),
    ("retrieved", "retrieved", ">9.4f"),
    ("inferences_per_second", "inferences/s", ">12,.0f"),
    ("times_plain", "x plain", ">7.1f"),
    ("times_bins", "x bins", ">6.2f"),
    ("bytes", "bytes", ">9,d"),
    ("layout", "layout", ""),
]
_NOTES = """\
The fastest layout of each family that retrieves at least a share of the rows of held-out inferences
within the bytes. Families: whole lookups; and bins; and a hot part; and rows that arrive together;
all of these and several hashes; exact mode alone. x plain, x bins: inferences/s divided by those of
the families plain and bins. bytes: of an inference, to and from both servers."""


def run(arguments: argparse.Namespace) -> int:
    """Searches each family on each log, prints the fastest layouts, and writes JSON."""
    with Results(arguments.json) as results:
        report = Report(_COLUMNS)
        for name in arguments.logs:
            for case in _cases(name, LOGS[name](Path(arguments.data)), arguments):
                report.add(case)
                results.add(case)
    print(_NOTES)
    return 0


def _cases(name: str, real: RealLog, arguments: argparse.Namespace) -> Iterator[Case]:
    """Yields the fastest layout of each family for each share of the rows."""
    setup = Setup(
        real.rows,
        real.row_bytes,
        verify=arguments.verify,
        clients=arguments.clients,
        threads=arguments.threads,
    )
    logs = _logs(real, arguments.cache_rows)
    scorer = Scorer(logs, real.rows, arguments.min_count, setup.threads)
    machine = Machine.measured(setup, arguments.seconds)
    trials = [
        trial
        for allowed in FAMILIES.values()
        for trial in _searched(scorer, setup, machine, allowed, arguments)
    ]
    picked = {
        (target, family): trial
        for target in _TARGETS
        for family, allowed in FAMILIES.items()
        if (trial := _fastest(trials, allowed, target)) is not None
    }
    designs = {trial.design for trial in picked.values()}
    times = measured_in_turns(setup, designs, arguments.seconds)
    for target in _TARGETS:
        rates = {
            family: setup.clients / times[picked[target, family].design]
            for family in FAMILIES
            if (target, family) in picked
        }
        for family in rates:
            yield _case(name, target, family, picked[target, family], rates)


def _fastest(trials: list[Trial], allowed: Allowed, target: float) -> Trial | None:
    """Returns the fastest layout of a family with a share of the rows, by the model."""
    enough = [one for one in trials if allowed(one.design) and one.score.retrieved >= target]
    return min(enough, key=lambda one: one.cost.seconds, default=None)


def measured_in_turns(
    setup: Setup, designs: Iterable[Design], seconds: float
) -> dict[Design, float]:
    """Measures a server's time for designs that take turns, about `seconds` each.

    Raises WrongResultError unless the answers of both servers are the rows.
    """
    works: dict[object, Callable[[], object]] = {}
    factors: dict[Design, float] = {}
    memory = PeakMemory()
    for design in designs:
        params = setup.params(design.groups(setup.rows), 1 + design.together)
        table, factors[design] = bin_table(setup, params)
        server = Server(table, threads=setup.threads, device="cpu")
        query = checked_query(server, setup.clients, memory, verify=setup.verify).query
        works[design] = partial(server.answer, query)
    times = interleaved(works, seconds)
    return {design: factor * times[design] for design, factor in factors.items()}


def _logs(real: RealLog, cache_rows: int) -> Logs:
    """Divides a log, and removes what a cache of so many rows has."""
    train, held = real.log.split() if real.held_out is None else (real.log, real.held_out)

    def fetched(log: AccessLog) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        return missed(log, cache_rows) if cache_rows else np.ones(len(log.rows), np.bool_)

    own = fetched(held)
    return Logs(train.kept(fetched(train)), held.kept(own), held, own)


def _searched(
    scorer: Scorer,
    setup: Setup,
    machine: Machine,
    allowed: Allowed,
    arguments: argparse.Namespace,
) -> list[Trial]:
    """Searches one family."""

    def cost(design: Design) -> Cost:
        if not allowed(design):
            raise ArgumentError("not of this family")
        return Cost.of(design, setup, machine)

    def affords(own: Cost) -> bool:
        return own.bytes <= float(arguments.max_bytes)

    return search(scorer.needs, cost, affords, scorer.score, arguments.layouts)[0]


def _case(name: str, target: float, family: str, trial: Trial, rates: dict[str, float]) -> Case:
    rate = rates[family]
    return {
        "log": name,
        "target": target,
        "family": family,
        "retrieved": trial.score.retrieved,
        "complete": trial.score.complete,
        "inferences_per_second": rate,
        "times_plain": rate / rates["plain"] if "plain" in rates else None,
        "times_bins": rate / rates["bins"] if "bins" in rates else None,
        "bytes": trial.cost.bytes,
        "key_bytes": trial.cost.key_bytes,
        "answer_bytes": trial.cost.answer_bytes,
        "design": trial.design.to_dict(),
        "layout": trial.design.describe(),
    }
