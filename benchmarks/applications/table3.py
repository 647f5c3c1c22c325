"""Table 3 of the paper: inferences a second of one server, at the paper's sizes and budgets."""

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from nescio._device import parse_device_list
from nescio._report import Case, Report
from nescio.bench.answers import Checked, checked_query
from nescio.bench.gpu_case import GpuBench
from nescio.bench.memory import PeakMemory
from nescio.bench.results import Results
from nescio.bench.timing import check_duration, interleaved
from nescio.dpf import Generator
from nescio.pir import Server
from nescio.pir.batch._tune.cost import Cost, Setup

from .limits import MAX_CLIENTS, check_counts, check_positive
from .modes import Mode, modes
from .places import Answer, Devices, Place, Processor
from .published import PUBLISHED, SIZES, Size

_SLOW = 1.5  # times the budget: slower cases are not timed further

_COLUMNS = [
    ("application", "application", ">11"),
    ("rows", "rows", "9,d"),
    ("row_bytes", "row B", "d"),
    ("lookups", "lookups", "d"),
    ("generator", "generator", ">9"),
    ("checked", "checked", ">7"),
    ("mode", "mode", ">7"),
    ("hashes", "hashes", "d"),
    ("bins", "bins", "3d"),
    ("clients", "clients", "d"),
    ("inferences_per_second", "inferences/s", "12,.0f"),
    ("milliseconds", "ms", "7,.2f"),
    ("kilobytes", "KB", "6,.1f"),
    ("retrieved", "arrive", "6.1%"),
    ("times_plain", "x plain", "6.1f"),
    ("times_published", "x V100", "6.2f"),
    ("pass_milliseconds", "pass ms", "7,.2f"),
    ("loops_milliseconds", "loops ms", "7,.2f"),
    ("times_limit", "x limit", ".2f"),
    ("times_machine", "x machine", ".2f"),
]
_NOTES = """\
One server. For each mode, the number of clients with the most inferences/s within the budgets.
Modes take turns: medians of the runs that were not interrupted. plain: whole lookups; partial: as
many bins as rows, one key each; exact: all rows, but for one inference in 2^40. KB: of an
inference, to and from both servers. arrive: share of the rows that arrive, if they are random.
x V100: times the paper's Acc-eco, for modes with all rows. pass: a plain read of the table. loops:
the inner loops of the kernels, with data in the cache (on a device: its peak rates). x limit: ms
divided by the larger of the two. x machine: the same with the bare instructions of the loops.
Taobao needs 2.68 rows on average. A lookup has a fixed number of keys, here 3; the JSON's
mean_inferences_per_second divides keys a second by 2.68, as the paper does."""


@dataclass(frozen=True)
class _Ready:
    """A mode with a number of clients, and a query whose answer was found correct."""

    mode: Mode
    server: Server
    verified: bool
    clients: int
    checked: Checked
    cost: Cost

    @property
    def lookups(self) -> int:
        """Lookups that the server answers together."""
        return self.clients * self.mode.keys


@dataclass(frozen=True)
class _Measured:
    """A case, the time of its answer, and if both are within the budgets."""

    ready: _Ready
    seconds: float
    within: bool

    @property
    def rate(self) -> float:
        """Inferences a second."""
        return self.ready.clients / self.seconds


def run(arguments: argparse.Namespace) -> int:
    """Measures all sizes, prints a line for each mode, and writes JSON."""
    _check(arguments)
    place = _place(arguments)
    load = os.getloadavg()[0]
    with Results(arguments.json) as results:
        report = Report(_COLUMNS)
        for size, generator in product(_sizes(arguments), arguments.generator):
            found = False
            for case in _cases(size, generator, place, arguments):
                results.add(case)
                if case["chosen"]:
                    report.add(case)
                    found = True
            if not found:
                print(
                    f"{size.application}, {size.rows:,} rows, {generator}: nothing is within "
                    f"{arguments.max_bytes:,.0f} bytes and {arguments.max_ms:g} ms"
                )
    print(_NOTES)
    print(f"load before the run: {load:.2f}, with {os.cpu_count()} processors; {place.describe()}")
    _print_published()
    return 0


def _check(arguments: argparse.Namespace) -> None:
    check_duration(arguments.seconds)
    check_positive(arguments, "scale", "max_bytes", "max_ms")
    check_counts(arguments, "clients")


def _place(arguments: argparse.Namespace) -> Place:
    devices = parse_device_list(arguments.device)
    if not devices:
        return Processor(arguments.threads, arguments.seconds / 2)
    bench = GpuBench(devices)
    print(f"{arguments.device}: {bench.device}")
    return Devices(bench)


def _sizes(arguments: argparse.Namespace) -> list[Size]:
    """Returns the sizes of the applications, `--scale` times as many rows."""
    own = [size for size in SIZES if size.application in arguments.applications]
    if arguments.scale == 1:
        return own
    return [
        size._replace(rows=max(size.lookups, round(size.rows * arguments.scale)), source="scaled")
        for size in own
    ]


def _cases(
    size: Size, generator: Generator, place: Place, arguments: argparse.Namespace
) -> Iterator[Case]:
    """Yields the cases of one table, measured in turns; the best of each mode are `chosen`."""
    ready = list(_ready(size, generator, place, arguments))
    works: dict[object, Callable[[], object]] = {
        number: partial(one.server.answer, one.checked.query) for number, one in enumerate(ready)
    }
    times = interleaved(works, arguments.seconds)
    measured = [
        _Measured(
            one,
            times[number],
            one.cost.bytes <= arguments.max_bytes and times[number] * 1e3 <= arguments.max_ms,
        )
        for number, one in enumerate(ready)
    ]
    chosen = _chosen(measured)
    plain = {one.ready.verified: one.rate for one in chosen if one.ready.mode.name == "plain"}
    for one in measured:
        case = _case(size, one, plain.get(one.ready.verified))
        case |= {"place": place.name, "generator": generator, "chosen": one in chosen}
        if one in chosen:
            own = one.ready
            answer = Answer(own.server, own.lookups, own.verified, own.checked, one.seconds)
            case |= place.limits(answer)
        yield case


def _ready(
    size: Size, generator: Generator, place: Place, arguments: argparse.Namespace
) -> Iterator[_Ready]:
    """Makes the tables, and checks an answer of each case; leaves out those that are too slow."""
    memory = PeakMemory()
    limit = _SLOW * arguments.max_ms / 1e3
    for mode in modes(size):
        server = mode.open(size, generator, place)
        for verified in (False, True):
            setup = Setup(size.rows, size.row_bytes, generator=generator, verify=verified)
            cost = mode.cost(setup)
            for clients in sorted(arguments.clients):
                if clients * mode.keys > MAX_CLIENTS:
                    break
                checked = checked_query(server, clients * mode.keys, memory, verify=verified)
                if checked.seconds > limit:
                    break
                yield _Ready(mode, server, verified, clients, checked, cost)


def _chosen(measured: Sequence[_Measured]) -> list[_Measured]:
    """Returns the fastest case within the budgets of each mode, with and without checks."""
    kinds = dict.fromkeys((one.ready.verified, one.ready.mode.name) for one in measured)
    own = [
        [one for one in measured if one.within and (one.ready.verified, one.ready.mode.name) == k]
        for k in kinds
    ]
    return [max(fitting, key=lambda one: one.rate) for fitting in own if fitting]


def _case(size: Size, one: _Measured, plain: float | None) -> Case:
    mode, cost = one.ready.mode, one.ready.cost
    groups = mode.design.groups(size.rows)
    comparable = mode.retrieved == 1 and size in SIZES
    published = PUBLISHED[size.application].eco if comparable else None
    by_mean = mode.name == "plain" and size.mean != size.lookups
    return {
        **size._asdict(),
        "mode": mode.name,
        "hashes": mode.design.hashes,
        "bins": sum(group.bins for group in groups),
        "keys": sum(group.slots for group in groups),
        "checked": "yes" if one.ready.verified else "no",
        "clients": one.ready.clients,
        "inferences_per_second": one.rate,
        "mean_inferences_per_second": one.rate * size.lookups / size.mean if by_mean else None,
        "milliseconds": one.seconds * 1e3,
        "within_budgets": one.within,
        "bytes": cost.bytes,
        "kilobytes": cost.bytes / 1e3,
        "key_bytes": cost.key_bytes,
        "answer_bytes": cost.answer_bytes,
        "table_bytes": cost.table_bytes,
        "retrieved": mode.retrieved,
        "times_plain": None if plain is None else one.rate / plain,
        "times_published": None if published is None else one.rate / published,
    }


def _print_published() -> None:
    print("the paper's Table 3, inferences/s: CPU; V100 Acc-eco; V100 Acc-relaxed")
    for application, published in PUBLISHED.items():
        print(f"  {application:>9}  {'; '.join(f'{rate:,.0f}' for rate in published)}")
