"""Predictions of the model beside measurements of shards on one machine."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from nescio._arrays import shown
from nescio._report import Case, Column, Report
from nescio.bench.results import Results
from nescio.errors import FileError

from . import constants
from .costs import Node, Work, table_params
from .events import closed_loop
from .model import Cluster

__all__ = ["predict", "read", "run"]

_COUNTS = ("shards", "threads", "clients", "rows", "row_bytes", "rows_per_request")
_FIGURES = ("queries_per_second", "p50_ms", "p99_ms")
_COLUMNS: tuple[Column, ...] = (
    *((name, name.replace("_", " "), ">7,d") for name in _COUNTS),
    *(
        (
            f"{name}_{what}",
            f"{name.replace('_per_second', '/s').replace('_', ' ')} {what}",
            ">9,.2f",
        )
        for name in _FIGURES
        for what in ("predicted", "measured", "x")
    ),
)


def read(path: str) -> list[Case]:
    """Reads measured cases. Raises FileError for anything but a list of objects of numbers."""
    try:
        cases = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: the measurements cannot be read: {error}") from error
    if not isinstance(cases, list) or not cases:
        raise FileError(f"{path}: found {shown(cases)}, expected a list of cases")
    for case in cases:
        _check(path, case)
    return cases


def _check(path: str, case: object) -> None:
    if not isinstance(case, Mapping):
        raise FileError(f"{path}: found {shown(case)}, expected an object")
    for name in (*_COUNTS, *_FIGURES):
        value, kind = case.get(name), int if name in _COUNTS else (int, float)
        least = 1 if name in _COUNTS else 1e-9
        if isinstance(value, bool) or not isinstance(value, kind) or value < least:
            raise FileError(f"{path}: {name}: found {shown(value)}, expected a number above 0")


def _cluster(arguments: argparse.Namespace, case: Mapping[str, object]) -> Cluster:
    """Makes the cluster of a case. Its shards share the cores and the memory of one machine."""
    numbers = {name: int(str(case[name])) for name in _COUNTS}
    shards, cores = numbers["shards"], arguments.cores
    costs = constants.load(arguments.constants)
    node = Node("shared", cores, arguments.gb_per_second * 1e9 / shards, 1e18)
    return Cluster(
        Work(table_params(numbers["rows"], numbers["row_bytes"]), shards, arguments.verify),
        node,
        costs,
        threads=numbers["threads"],
        batch_keys=arguments.batch_keys,
        in_flight=arguments.in_flight,
        rows_per_request=numbers["rows_per_request"],
        turns=max(1.0, shards * numbers["threads"] / cores),
    )


def predict(arguments: argparse.Namespace, case: Mapping[str, object]) -> Case:
    """Predicts a case; returns its predictions, measurements and ratios."""
    outcome = closed_loop(
        _cluster(arguments, case), int(str(case["clients"])), arguments.requests, seed=1
    )
    predicted = {
        "queries_per_second": outcome.lookups_per_second,
        "p50_ms": outcome.quantile(0.5) * 1e3,
        "p99_ms": outcome.quantile(0.99) * 1e3,
    }
    line: Case = {name: case[name] for name in _COUNTS}
    for name, value in predicted.items():
        measured = float(str(case[name]))
        line |= {f"{name}_predicted": value, f"{name}_measured": measured}
        line[f"{name}_x"] = value / measured
    return line


def run(arguments: argparse.Namespace) -> int:
    """Prints a line for each measured case; returns 0."""
    cases = read(arguments.measured)
    with Results(arguments.json) as results:
        report = Report(_COLUMNS)
        for case in cases:
            line = predict(arguments, case)
            results.add(line)
            report.add(line)
    return 0
