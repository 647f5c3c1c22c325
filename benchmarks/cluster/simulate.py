"""The latency, machines and network of clusters of given numbers of shards."""

import argparse
from dataclasses import replace
from pathlib import Path

from nescio._report import Case, Column, Report, check_writable
from nescio.bench.results import Results
from nescio.errors import ArgumentError

from . import constants
from .costs import NODES, Work, table_params
from .model import Cluster, Stragglers
from .sizing import Size, fits, size

__all__ = ["COLUMNS", "cluster_of", "describe", "print_facts", "run"]

COLUMNS: tuple[Column, ...] = (
    ("rows", "rows", ">13,d"),
    ("lookups_per_second", "lookups/s", ">9,.0f"),
    ("node", "node", ">5"),
    ("shards", "shards", "6d"),
    ("tree", "tree", "4d"),
    ("slow_calls", "slow calls", ">10"),
    ("replicas", "replicas", "8d"),
    ("fronts", "fronts", "6d"),
    ("machines", "machines", ">8,d"),
    ("load", "load", ">4.2f"),
    ("busy", "busy", ">4.2f"),
    ("keys_per_batch", "keys/batch", ">10.1f"),
    ("p50_ms", "median ms", ">9.1f"),
    ("p99_ms", "p99 ms", ">8.1f"),
    ("front_mb", "front MB/s", ">10,.1f"),
    ("shard_mb", "shard MB/s", ">10,.1f"),
    ("lookup_kb", "kB/lookup", ">9,.1f"),
)


def cluster_of(arguments: argparse.Namespace, rows: int, shards: int, node: str) -> Cluster:
    """Makes the cluster that the options describe, without replicas and fronts."""
    params = table_params(rows, arguments.row_bytes, generator=arguments.generator)
    return Cluster(
        Work(params, shards, arguments.verify),
        NODES[node],
        constants.load(arguments.constants),
        batch_keys=arguments.batch_keys,
        in_flight=arguments.in_flight,
        rows_per_request=arguments.rows_per_request,
    )


def describe(sized: Size, *, seed: int = 1, max_batches: int = 1500) -> Case:
    """Runs one group of a cluster; returns the fields of a line.

    The latencies are missing if a group has too many fronts.
    """
    cluster, slow = sized.cluster, sized.cluster.stragglers
    case: Case = {
        "rows": cluster.work.params.rows,
        "lookups_per_second": sized.lookups_per_second,
        "node": cluster.node.name,
        "shards": cluster.work.shards,
        "tree": cluster.tree,
        "slow_calls": f"{slow.probability:g} x{slow.factor:g}" if slow.probability else "none",
        "replicas": sized.replicas,
        "fronts": sized.fronts,
        "machines": sized.machines,
        "shard_machines": sized.shard_machines,
        "load": cluster.loads(sized.group_rate).highest,
        "lookup_kb": sum(cluster.front_bytes()) / 1e3,
        "front_mb": sum(cluster.front_bytes()) * sized.lookups_per_second / sized.fronts / 1e6,
    }
    if sized.is_simulated:
        outcome = sized.run(seed=seed, max_batches=max_batches)
        case |= {
            "busy": outcome.busy,
            "keys_per_batch": outcome.keys_per_batch,
            "p50_ms": outcome.quantile(0.5) * 1e3,
            "p99_ms": outcome.quantile(0.99) * 1e3,
            "shard_mb": sum(outcome.shard_bytes_per_second) / 1e6,
        }
    return case


def print_facts(costs: constants.Constants) -> None:
    """Prints the constants with their units and sources."""
    for fact in costs.facts():
        print(f"{fact.name:22} {fact.value:>9.3g}  {fact.unit}; {fact.source}")


def _clusters(arguments: argparse.Namespace, rows: int, shards: int) -> list[Cluster]:
    """Returns the cluster with each tree and each share of slow calls, if a shard fits a node."""
    cluster = cluster_of(arguments, rows, shards, arguments.node)
    if not fits(cluster):
        return []
    return [
        replace(cluster, tree=tree, stragglers=Stragglers(probability, arguments.slow_factor))
        for tree in arguments.tree
        if not tree or shards > tree
        for probability in arguments.slow_calls
    ]


def run(arguments: argparse.Namespace) -> int:
    """Prints a line for each cluster and rate; returns 0."""
    check_writable(arguments.plot)
    if min(arguments.lookups_per_second) <= 0:
        raise ArgumentError("--lookups-per-second: expected numbers above 0")
    print_facts(constants.load(arguments.constants))
    with Results(arguments.json) as results:
        report = Report(COLUMNS)
        for rows in arguments.rows:
            for shards in arguments.shards:
                for cluster in _clusters(arguments, rows, shards):
                    for rate in arguments.lookups_per_second:
                        case = describe(size(cluster, rate), seed=arguments.seed)
                        results.add(case)
                        report.add(case)
        if arguments.plot:
            from .plot import plot_latency  # noqa: PLC0415 - needs matplotlib

            plot_latency(Path(arguments.plot), results.cases)
    return 0
