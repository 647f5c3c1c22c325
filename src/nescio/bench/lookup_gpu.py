"""`nescio bench lookup` on devices: each strategy, with the limits of the devices."""

import argparse
from collections.abc import Iterator
from itertools import product

from .._device import parse_device_list
from .._report import Case, Report
from ..errors import ArgumentError
from ..pir import Table
from ..pir._device_table import Strategy
from .answers import random_table
from .gpu_case import (
    COLUMNS,
    NOTES,
    WALKS_WITH_NODES,
    GpuBench,
    Spec,
    check_nodes,
)
from .memory import PeakMemory
from .results import Results


def check(arguments: argparse.Namespace) -> list[GpuBench]:
    """Returns a GpuBench for each entry of `--device` that is not the CPU.

    Raises ArgumentError for an invalid strategy or number of nodes, ResourceError for a device that
    does not exist.
    """
    for nodes in arguments.nodes or []:
        check_nodes(nodes)
    walks = [strategy for strategy in arguments.strategy if strategy != "auto"]
    if on_processor(arguments) and (walks or arguments.nodes):
        what = f"strategy {walks[0]!r}" if walks else "--nodes"
        raise ArgumentError(f"{what} applies to GPUs only: name one with --device, without 'cpu'")
    if arguments.nodes and not set(walks) & set(WALKS_WITH_NODES):
        raise ArgumentError(f"--nodes applies to the strategy {WALKS_WITH_NODES[0]!r} only")
    places = map(parse_device_list, arguments.device)
    return [GpuBench(own) for own in places if own]


def on_processor(arguments: argparse.Namespace) -> bool:
    """Returns True if the CPU is one of the devices to measure."""
    return not all(parse_device_list(name) for name in arguments.device)


def measure(arguments: argparse.Namespace, benches: list[GpuBench], results: Results) -> None:
    """Measures every case on every device; prints each and adds it to the results."""
    for bench in benches:
        print(f"{'+'.join(map(str, bench.places))}: {bench.device}")
    report = Report(COLUMNS)
    for case in _cases(arguments, benches):
        report.add(case)
        results.add(case)
    print(NOTES)


def walks(
    strategies: list[Strategy], nodes: list[int] | tuple[int, ...]
) -> Iterator[tuple[Strategy, int | None]]:
    """Yields each strategy, with each number of nodes if the strategy has one."""
    for strategy in strategies:
        yield from product([strategy], nodes if strategy in WALKS_WITH_NODES else [None])


def _cases(arguments: argparse.Namespace, benches: list[GpuBench]) -> Iterator[Case]:
    for kind in product(arguments.rows, arguments.row_bytes, arguments.output, arguments.generator):
        memory = PeakMemory()
        table, load_seconds = random_table(*kind)
        loaded = {"load_gb_per_second": kind[0] * kind[1] / load_seconds / 1e9}
        for bench, walk, batch in product(
            benches, walks(arguments.strategy, arguments.nodes or [128]), arguments.batch
        ):
            spec = Spec(*kind, *walk, batch)
            yield {**_case(arguments, bench, table, spec, memory), **loaded}


def _case(
    arguments: argparse.Namespace, bench: GpuBench, table: Table, spec: Spec, memory: PeakMemory
) -> Case:
    # A new server for each case: buffers that earlier answers left would count as peak memory.
    server = bench.open(table, spec.strategy, spec.nodes)
    return bench.measure(server, spec, arguments.seconds, memory)
