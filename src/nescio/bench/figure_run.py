"""Measures what figures declare, and writes each as soon as it is whole."""

import argparse
import datetime
import importlib.util
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from .. import __version__
from ..errors import ArgumentError, NescioError
from ..pir import Server, Table
from .answers import random_table
from .gpu_case import COLUMNS, NOTES, GpuBench, Spec, parse_places
from .memory import PeakMemory
from .timing import Case, Column, Report, check_duration, check_writable, write_json

if TYPE_CHECKING:
    from .figures import Figure

MEASURED = "measured"
NO_MEMORY = "out of memory"
NO_TIME = "out of time"

_COLUMNS: list[Column] = [*COLUMNS, ("status", "status", "")]


def run(arguments: argparse.Namespace) -> int:
    """Measures the figures that are asked for and writes them into a folder.

    A case that does not fit memory, or comes too late, is reported as that, and so is one that
    fails; then the exit code is 1.
    """
    figures = _chosen(arguments.only)
    check_duration(arguments.seconds)
    if arguments.within is not None:
        check_duration(arguments.within)
    check_writable(arguments.json)
    bench = GpuBench(parse_places(arguments.device))
    folder = _made(arguments.out)
    into = Path(arguments.json) if arguments.json else folder / "figures.json"
    plots = importlib.util.find_spec("matplotlib") is not None
    if not plots:
        print("no plots, only their data: matplotlib is not installed")
    measurer = _Measurer(bench, arguments.seconds, arguments.within)
    cases: list[Case] = []
    for figure in figures:
        cases += _write(figure, measurer, folder, quick=arguments.quick, plot=plots)
        write_json(into, cases)
    print(NOTES)
    expected = (MEASURED, NO_MEMORY, NO_TIME)
    return 0 if all(case["status"] in expected for case in cases) else 1


def _chosen(names: Sequence[str] | None) -> Sequence["Figure"]:
    from .figures import FIGURES  # noqa: PLC0415 - which imports this

    known = {figure.name: figure for figure in FIGURES}
    for name in names or []:
        if name not in known:
            raise ArgumentError(f"there is no figure {name!r}; there are: {', '.join(known)}")
    return [figure for figure in FIGURES if not names or figure.name in names]


def _made(folder: str) -> Path:
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"the figures' folder cannot be made: {error}") from error
    return path


def _write(
    figure: "Figure", measurer: "_Measurer", folder: Path, *, quick: bool, plot: bool
) -> list[Case]:
    """Measures a figure, writes its text and its plot."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    about = f"{measurer.bench.device}, {today}, nescio {__version__}"
    if quick:
        about += ", sizes of a test: no figures to quote"
    with (folder / f"{figure.name}.txt").open("w", encoding="utf-8") as text:
        for line in (figure.title, about):
            print(line)
            print(line, file=text)
        cases = measurer.measure(list(figure.specs(quick=quick)), text)
        print(NOTES, file=text)
    cases = [{"figure": figure.name, "date": today, **case} for case in cases]
    if plot:
        from .figure_plot import draw  # noqa: PLC0415 - matplotlib is needed only here

        draw(folder / f"{figure.name}.png", figure, cases, about)
    return cases


class _Measurer:
    """Measures cases, each once; figures share them, and their tables."""

    def __init__(self, bench: GpuBench, duration: float, within: float | None) -> None:
        self.bench = bench
        self._duration = duration
        self._end = None if within is None else time.monotonic() + within
        self._known: dict[Spec, Case] = {}
        self._kind: tuple[object, ...] = ()
        self._table: Table | None = None
        self._memory = PeakMemory()

    def measure(self, specs: Sequence[Spec], text: TextIO) -> list[Case]:
        """The cases, each printed as it is known."""
        report = Report(_COLUMNS, text)
        for _, own in groupby(specs, lambda spec: spec._replace(batch=0)):
            server: Server | None = None
            for spec in own:
                if spec not in self._known:
                    server = self._case(spec, server)
                report.add(self._known[spec])
        return [self._known[spec] for spec in specs]

    def _case(self, spec: Spec, server: Server | None) -> Server | None:
        """Measures one case, on the server of the one before if there is one, and gives it back."""
        status, found = MEASURED, Case()
        if self._end is not None and time.monotonic() >= self._end:
            status = NO_TIME
        else:
            try:
                server = server or self.bench.open(self._table_for(spec), spec.strategy, spec.nodes)
                found = self.bench.measure(server, spec, self._duration, self._memory, hurry=True)
            except (NescioError, MemoryError) as error:
                short = isinstance(error, MemoryError) or NO_MEMORY in str(error)
                status = NO_MEMORY if short else str(error)
                server = None  # and what it holds goes back
        place = "+".join(map(str, self.bench.places))
        own = {"device": self.bench.device, "place": place, "status": status}
        self._known[spec] = {**spec._asdict(), **own, **found}
        return server

    def _table_for(self, spec: Spec) -> Table:
        kind = (spec.rows, spec.row_bytes, spec.output, spec.generator)
        if self._table is None or kind != self._kind:
            self._table = None  # gives the memory back before as much is asked for
            self._memory = PeakMemory()
            self._table, _ = random_table(*kind)
            self._kind = kind
        return self._table
