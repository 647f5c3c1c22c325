"""`python -m benchmarks.faults suite`: each fault in turn, as a table."""

import argparse
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks._main import chosen
from nescio._report import Report
from nescio.bench.results import Results
from nescio.errors import NescioError

from . import clock, disk, floods, fuzz, kills, namespaces, network, restore, stops
from .scene import Outcome
from .settings import Settings, SkippedError

_COLUMNS = [
    ("fault", "fault", "34"),
    ("times", "times", ">9,d"),
    ("lookups", "lookups", ">8,d"),
    ("updates", "updates", ">7,d"),
    ("refused", "refused", ">7,d"),
    ("lost", "lost", ">4,d"),
    ("wrong", "wrong", ">5,d"),
    ("outage", "outage s", ">8.2f"),
    ("shown", "what the client saw", ""),
]
_NOTES = """\
times: faults, connections or requests. lookups, refused: by all clients, each tried once. lost:
acknowledged updates of which a row is missing afterwards. wrong: lookups with rows of no version.
outage: the longest time in which a client had no row."""


class Fault(NamedTuple):
    """A fault by name. `run` makes it happen in a folder; it raises SkippedError if it cannot."""

    name: str
    run: Callable[[Settings, Path], Outcome]


FAULTS = (
    Fault("kill", kills.kill),
    Fault("kill-snapshots", kills.kill_snapshots),
    Fault("kill-large", kills.kill_large),
    Fault("restore", restore.restore),
    Fault("stop", stops.stop),
    Fault("cut-requests", network.cut_requests),
    Fault("cut-replies", network.cut_replies),
    Fault("slow", network.slow),
    Fault("unreachable", network.unreachable),
    Fault("silent", network.silent),
    Fault("one-way", network.one_way),
    Fault("namespace", namespaces.link_down),
    Fault("clock", clock.jumps),
    Fault("full-disk", disk.full),
    Fault("file-limit", disk.file_limit),
    Fault("read-only", disk.read_only),
    Fault("heads", floods.heads),
    Fault("half-open", floods.half_open),
    Fault("connections", floods.connections),
    Fault("slow-writers", floods.slow_writers),
    Fault("slow-readers", floods.slow_readers),
    Fault("fuzz", fuzz.fuzz),
)


def run(arguments: argparse.Namespace) -> int:
    """Makes each chosen fault happen, and prints a line for it; 1 if one did harm."""
    settings = Settings(
        kills=arguments.kills,
        fuzzed=arguments.fuzzed,
        connections=arguments.connections,
        seconds=arguments.seconds,
        seed=arguments.seed,
    )
    return print_table(chosen(FAULTS, arguments.only, "fault"), settings, arguments.json)


def print_table(faults: Sequence[Fault], settings: Settings, path: str | None) -> int:
    """Makes faults happen, prints a line for each, and writes JSON to a path; 1 if one did harm."""
    good = True
    notes = []
    with Results(path) as results:
        report = Report(_COLUMNS)
        for fault in faults:
            outcome = happen(fault, settings)
            report.add({**outcome.to_dict(), "shown": _shown(outcome)})
            results.add(outcome.to_dict())
            notes += _about(outcome)
            good = good and outcome.good
    print(_NOTES)
    print("\n".join(notes))
    return 0 if good else 1


def happen(fault: Fault, settings: Settings) -> Outcome:
    """Makes a fault happen in a temporary folder; an error of the suite itself fails it."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="nescio-faults-", ignore_cleanup_errors=True) as folder:
        try:
            return fault.run(settings, Path(folder))
        except SkippedError as error:
            return Outcome(fault.name, skipped=str(error))
        except (NescioError, OSError, RuntimeError, AssertionError, ValueError) as error:
            text = "".join(traceback.format_exception(error))[-2000:]
            seconds = time.monotonic() - begun
            return Outcome(fault.name, failed=[text], seconds=seconds)


def _shown(outcome: Outcome) -> str:
    """Says what the clients saw, in a few words."""
    if outcome.skipped:
        return f"skipped: {outcome.skipped}"
    if outcome.failed or outcome.tracebacks:
        return "FAILED, see below"
    seen = ", ".join(f"{name} {count}" for name, count in outcome.saw.items())
    return seen or "rows"


def _about(outcome: Outcome) -> list[str]:
    """Lists notes, failures and tracebacks of a fault."""
    lines = [f"{outcome.fault}: {note}" for note in outcome.notes]
    lines += [f"{outcome.fault} FAILED: {text}" for text in outcome.failed]
    return lines + [f"{outcome.fault} TRACEBACK: {text}" for text in outcome.tracebacks]
