"""Inferences per second against bytes: whole lookups, partial and exact mode, without a log."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from nescio._arrays import as_count
from nescio._report import Case, Report, check_writable
from nescio.bench.results import Results
from nescio.pir.batch import bins_for
from nescio.pir.batch._tune.cost import Cost, Machine, Setup
from nescio.pir.batch._tune.design import Design

from .gains import measured_in_turns

_HASHES = 4
_MAX_LOOKUPS = 512
_COLUMNS = [
    ("mode", "mode", ">7"),
    ("rows_wanted", "rows", "d"),
    ("bins", "bins", "d"),
    ("lookups", "keys", "d"),
    ("inferences_per_second", "inferences/s", ">12,.0f"),
    ("milliseconds", "ms", ">9.3f"),
    ("bytes", "bytes", ">9,d"),
    ("key_bytes", "up", ">8,d"),
    ("answer_bytes", "down", ">8,d"),
    ("retrieved", "retrieved", ">9.1%"),
    ("times_plain", "x plain", ">7.1f"),
]
_NOTES = """\
rows: an inference asks for so many. plain: whole lookups; partial: as many bins as rows, one key
each; exact: four hashes, with bins for one failure in 2^40. retrieved: share of the rows, drawn at
random, that are fetched. x plain: inferences/s divided by those of whole lookups."""


def run(arguments: argparse.Namespace) -> int:
    """Measures the three modes for each number of rows, prints them, and writes JSON and a plot."""
    check_writable(arguments.plot)
    if arguments.plot:
        from . import plot  # noqa: F401, PLC0415 - fails now, not at the end, if missing
    setup = Setup(
        arguments.rows,
        arguments.row_bytes,
        verify=arguments.verify,
        clients=arguments.clients,
        threads=arguments.threads,
    )
    with Results(arguments.json) as results:
        report = Report(_COLUMNS)
        for lookups in arguments.lookups:
            as_count(lookups, "lookups", 1, min(_MAX_LOOKUPS, setup.rows))
            for case in _cases(setup, lookups, arguments.seconds):
                report.add(case)
                results.add(case)
    print(_NOTES)
    if arguments.plot:
        from .plot import plot_pareto  # noqa: PLC0415 - matplotlib is needed only here

        plot_pareto(Path(arguments.plot), results.cases)
    return 0


def _cases(setup: Setup, lookups: int, seconds: float) -> Iterator[Case]:
    """Yields the cases of whole lookups, of partial and of exact mode."""
    designs = {"plain": Design(1, lookups), "partial": Design(lookups)}
    if lookups > _HASHES:
        bins = bins_for(lookups, _HASHES) // _HASHES
        designs["exact"] = Design(bins, 1, _HASHES, lookups=lookups)
    times = measured_in_turns(setup, designs.values(), seconds)
    for mode, design in designs.items():
        groups, taken = design.groups(setup.rows), times[design]
        cost = Cost.of(design, setup, Machine(0, 0, 0, 0))
        yield {
            "mode": mode,
            "rows_wanted": lookups,
            "rows": setup.rows,
            "row_bytes": setup.row_bytes,
            "clients": setup.clients,
            "bins": sum(group.bins for group in groups),
            "lookups": sum(group.slots for group in groups),
            "inferences_per_second": setup.clients / taken,
            "milliseconds": taken * 1e3,
            "bytes": cost.bytes,
            "key_bytes": cost.key_bytes,
            "answer_bytes": cost.answer_bytes,
            "retrieved": 1 - (1 - 1 / lookups) ** lookups if mode == "partial" else 1.0,
            "times_plain": times[designs["plain"]] / taken,
        }
