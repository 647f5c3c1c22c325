"""The fewest machines for rates of lookups, and a table of decisions: bins, GPUs, machines."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

from nescio._report import Case, Column, Report, check_writable
from nescio.bench.results import Results
from nescio.errors import ArgumentError

from . import constants
from .costs import NODES, Work, table_params
from .model import Cluster
from .simulate import COLUMNS, describe
from .sizing import Size, fits, size

__all__ = ["Design", "advise", "cheapest", "run"]

_SHARDS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
_TREE = 32  # the width of a tree of adders, over more shards than that
_EXTRA = (1.0, 1.5, 2.0)  # replicas, over those that the loads need
_TRIES = 12  # of the smallest clusters, before every second one
_BATCHES = 500

_PLAN: tuple[Column, ...] = (("design", "design", ">16"), *COLUMNS)
_DECISIONS: tuple[Column, ...] = (
    ("rows", "rows", ">13,d"),
    ("lookups_per_second", "lookups/s", ">9,.0f"),
    ("cpu", "cpu64, single", ">13,d"),
    ("gpu", "h200, single", ">12,d"),
    ("gpu_gain", "x", ">5.1f"),
    ("sets", "cpu64, sets", ">11,d"),
    ("bins", "cpu64, bins", ">11,d"),
    ("bins_gain", "x", ">5.1f"),
    ("single_advice", "lookups of one row", ">20"),
    ("sets_advice", "lookups of sets", ">16"),
)


class Design(NamedTuple):
    """A way to ask: whole lookups in requests of some rows, or bins that give as many rows."""

    name: str
    mode: str
    rows: int


def designs(wanted: int, rows_per_request: int) -> list[Design]:
    """Returns lookups of one row, of sets of rows, and of the same sets from bins."""
    return [
        Design("single", "whole", rows_per_request),
        Design("sets", "whole", wanted),
        Design("bins", "exact", wanted),
    ]


def _base(arguments: argparse.Namespace, rows: int, node: str, design: Design) -> Cluster:
    bins = design.mode != "whole"
    params = table_params(rows, arguments.row_bytes, design.rows, design.mode, arguments.generator)
    return Cluster(
        Work(params, 1, arguments.verify),
        NODES[node],
        constants.load(arguments.constants),
        batch_keys=max(arguments.batch_keys, 1 if bins else design.rows),
        in_flight=arguments.in_flight,
        rows_per_request=1 if bins else design.rows,
    )


def _sizes(base: Cluster, rate: float) -> Iterator[Size]:
    """Yields the sizes for all numbers of shards that fit the machines."""
    for shards in _SHARDS:
        cluster = replace(base, work=replace(base.work, shards=shards))
        if shards > _TREE and not base.work.params.is_cut:
            cluster = replace(cluster, tree=_TREE)
        if fits(cluster):
            yield from (size(cluster, rate, extra) for extra in _EXTRA)


def cheapest(base: Cluster, rate: float, limit: float, seed: int) -> Case | None:
    """Finds the fewest machines whose 99th percentile is below `limit` seconds.

    Tries the smallest ones, and then every second one. Returns None if no such cluster is found.
    """
    every = sorted(_sizes(base, rate), key=lambda found: found.machines)
    quick = [found for found in every if found.is_simulated and _least(found.cluster) < limit]
    for found in [*quick[:_TRIES], *quick[_TRIES::2]]:
        case = describe(found, seed=seed, max_batches=_BATCHES)
        if float(str(case["p99_ms"])) < limit * 1e3:
            return case
    return None


def _least(cluster: Cluster) -> float:
    """Returns the time of a request that waits for no other."""
    keys = float(cluster.rows_per_request)
    calls = cluster.levels[-1] * (cluster.send_seconds(keys) + cluster.add_seconds(keys))
    return cluster.seconds(keys) + 2 * cluster.hop * len(cluster.levels) + calls


def advise(machines: dict[str, int | None], gpu_price: float) -> tuple[str, str]:
    """Returns the choice for lookups of one row, and for lookups of sets of rows.

    `machines` are those of "cpu", "gpu", "sets" and "bins", None where no cluster was found, and
    "gpu_shards", those of "gpu" with a card, which have the price.
    """
    cpu, gpu, cards = machines["cpu"], machines["gpu"], machines["gpu_shards"] or 0
    single = "neither"
    if cpu is not None and (gpu is None or cpu <= gpu + cards * (gpu_price - 1)):
        single = "one machine" if cpu <= 2 else "more machines"
    elif gpu is not None:
        single = "GPUs"
    sets, bins = machines["sets"], machines["bins"]
    if bins is not None and (sets is None or bins < sets):
        return single, "bins"
    return single, "whole lookups" if sets is not None else single


def _ratio(first: int | None, second: int | None) -> float | None:
    return first / second if first and second else None


def _decision(rows: int, rate: float, found: dict[str, int | None], price: float) -> Case:
    machines = {
        "cpu": found.get("single cpu64"),
        "gpu": found.get("single h200"),
        "gpu_shards": found.get("single h200 shards"),
        "sets": found.get("sets cpu64"),
        "bins": found.get("bins cpu64"),
    }
    single, sets = advise(machines, price)
    return {
        "rows": rows,
        "lookups_per_second": rate,
        **machines,
        "gpu_gain": _ratio(machines["cpu"], machines["gpu"]),
        "bins_gain": _ratio(machines["sets"], machines["bins"]),
        "single_advice": single,
        "sets_advice": sets,
    }


def _plans(arguments: argparse.Namespace, rows: int, rate: float) -> Iterator[Case]:
    """Yields the cheapest cluster of every design and machine. A set of rows counts its rows."""
    for design in designs(arguments.wanted, arguments.rows_per_request):
        for node in arguments.nodes:
            base = _base(arguments, rows, node, design)
            bins = design.mode != "whole"
            own = rate / design.rows if bins else rate
            case = cheapest(base, own, arguments.limit_ms / 1e3, arguments.seed)
            found = case or {"node": node}
            yield {
                **found,
                "design": design.name,
                "rows": rows,
                "lookups_per_second": rate,
            }


def run(arguments: argparse.Namespace) -> int:
    """Prints the cheapest clusters, then the decisions; returns 0."""
    check_writable(arguments.plot)
    if min(arguments.lookups_per_second) <= 0 or arguments.limit_ms <= 0:
        raise ArgumentError("rates and limits: expected numbers above 0")
    with Results(arguments.json) as results:
        report = Report(_PLAN)
        decisions = [
            _compare(arguments, rows, rate, results, report)
            for rows in arguments.rows
            for rate in arguments.lookups_per_second
        ]
        print()
        last = Report(_DECISIONS)
        for decision in decisions:
            last.add(decision)
        if arguments.plot:
            from .plot import plot_machines  # noqa: PLC0415 - needs matplotlib

            plot_machines(Path(arguments.plot), results.cases)
    return 0


def _compare(
    arguments: argparse.Namespace, rows: int, rate: float, results: Results, report: Report
) -> Case:
    """Prints the cheapest clusters for a rate; returns the decision."""
    found: dict[str, int | None] = {}
    for case in _plans(arguments, rows, rate):
        results.add(case)
        report.add(case)
        name = f"{case['design']} {case['node']}"
        found[name] = cast("int | None", case.get("machines"))
        found[f"{name} shards"] = cast("int | None", case.get("shard_machines"))
    return _decision(rows, rate, found, arguments.gpu_price)
