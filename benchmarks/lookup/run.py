"""`python -m benchmarks.lookup figures`: measures figures and writes each when complete."""

import argparse
import datetime
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TextIO

from benchmarks._main import chosen, make_folder
from nescio import __version__
from nescio._device import parse_device_list
from nescio._report import Case, Column, Report
from nescio.bench.answers import random_table
from nescio.bench.gpu_case import COLUMNS, NOTES, GpuBench, Spec
from nescio.bench.memory import PeakMemory
from nescio.bench.results import Results
from nescio.bench.timing import check_duration
from nescio.errors import ArgumentError, NescioError
from nescio.pir import Server, Table

from .figures import FIGURES, MEASURED, NO_MEMORY, NO_TIME, Figure

Draw = Callable[[Path, Figure, Sequence[Case], str], None]

_COLUMNS: list[Column] = [*COLUMNS, ("status", "status", "")]


def run(arguments: argparse.Namespace) -> int:
    """Measures the chosen figures and writes them into a folder.

    A case that does not fit into memory, that would start too late or that fails is reported with
    its status. Returns 1 if a case or a plot failed.
    """
    figures = chosen(FIGURES, arguments.only, "figure")
    check_duration(arguments.seconds)
    if arguments.within is not None:
        check_duration(arguments.within, "--within")
    places = parse_device_list(arguments.device)
    if not places:
        raise ArgumentError("--device: found 'cpu', expected a GPU, such as cuda")
    bench = GpuBench(places)
    folder = make_folder(arguments.out)
    drawn = True
    with Results(arguments.json or folder / "figures.json") as results:
        draw = _drawer()
        measurer = _Measurer(bench, arguments.seconds, arguments.within)
        for figure in figures:
            begin = len(results.cases)
            about = _write(figure, measurer, folder, results, quick=arguments.quick)
            own = results.cases[begin:]
            drawn = _draw(draw, folder / f"{figure.name}.png", figure, own, about) and drawn
    print(NOTES)
    expected = (MEASURED, NO_MEMORY, NO_TIME)
    return 0 if drawn and all(case["status"] in expected for case in results.cases) else 1


def _drawer() -> Draw | None:
    """Returns the function that plots figures; without matplotlib, says so and returns None."""
    try:
        from .plot import draw  # noqa: PLC0415 - matplotlib is needed only here
    except ImportError as error:  # not installed, or broken
        print(f"no plots, only their data: matplotlib cannot be imported ({error})")
        return None
    return draw


def _draw(draw: Draw | None, path: Path, figure: Figure, cases: list[Case], about: str) -> bool:
    """Plots a figure if matplotlib is installed. Returns False, and says why, if that fails."""
    try:
        if draw is not None:
            draw(path, figure, cases, about)
    except Exception as error:  # the measurements are kept in any case
        print(f"{path} was not drawn ({type(error).__name__}: {error}); its data are complete")
        return False
    return True


def _write(
    figure: Figure, measurer: "_Measurer", folder: Path, results: Results, *, quick: bool
) -> str:
    """Measures a figure, adds its cases to the results and writes its text.

    Returns the line that says where and when it was measured.
    """
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    about = f"{measurer.bench.device}, {today}, nescio {__version__}"
    if quick:
        about += ", tiny sizes of a test: do not quote"
    with (folder / f"{figure.name}.txt").open("w", encoding="utf-8") as text:
        for line in (figure.title, about):
            print(line)
            print(line, file=text)
        for case in measurer.measure(list(figure.specs(quick=quick)), text):
            results.add({"figure": figure.name, "date": today, **case})
        print(NOTES, file=text)
    return about


class _Measurer:
    """Measures each case once; figures share cases and tables."""

    def __init__(self, bench: GpuBench, duration: float, within: float | None) -> None:
        self.bench = bench
        self._duration = duration
        self._end = None if within is None else time.monotonic() + within
        self._known: dict[Spec, Case] = {}
        self._kind: tuple[object, ...] = ()
        self._table: Table | None = None
        self._memory = PeakMemory()

    def measure(self, specs: Sequence[Spec], text: TextIO) -> Iterator[Case]:
        """Yields each case after it was measured and printed."""
        report = Report(_COLUMNS, text)
        for _, own in groupby(specs, lambda spec: spec._replace(batch=0)):
            server: Server | None = None
            for spec in own:
                if spec not in self._known:
                    server = self._case(spec, server)
                report.add(self._known[spec])
                yield self._known[spec]

    def _case(self, spec: Spec, server: Server | None) -> Server | None:
        """Measures one case on the given server, or a new one; returns the server for reuse."""
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
                server = None  # frees its memory
        place = "+".join(map(str, self.bench.places))
        own = {"device": self.bench.device, "place": place, "status": status}
        self._known[spec] = {**spec._asdict(), **own, **found}
        return server

    def _table_for(self, spec: Spec) -> Table:
        kind = (spec.rows, spec.row_bytes, spec.output, spec.generator)
        if self._table is None or kind != self._kind:
            self._table = None  # frees its memory before the next table is made
            self._memory = PeakMemory()
            self._table, _ = random_table(*kind)
            self._kind = kind
        return self._table
