"""`python -m benchmarks.audit figures`: figures and tables of chapter 6 of the thesis.

figures.py declares what Figures 6.2 to 6.6 vary, trial.py makes one attack, without_counts.py
attacks without counts, learning.py and leakage.py (Tables 6.1 to 6.3, Figure 6.9) need PyTorch and
pictures, plot.py draws. Every recovered column is compared with the planted matrix.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

from benchmarks._main import make_folder
from nescio._arrays import as_count
from nescio._report import Case, Column, Report
from nescio.audit import Setting
from nescio.bench.results import Results
from nescio.bench.timing import check_duration
from nescio.errors import ArgumentError

from .figures import ALIASES, FIGURES, Figure
from .trial import Options, as_case, in_windows, trials
from .without_counts import BLIND, blind_cases

__all__ = ["LEARNED", "names", "run"]

LEARNED = {
    "table-6.1": "Table 6.1 and Figure 6.6b: users recovered from FedAvg updates, their noise",
    "table-6.2": "Table 6.2: PSNR of pictures from exact gradients (dB)",
    "table-6.3": "Table 6.3: PSNR of pictures from FedAvg updates (dB)",
    "figure-6.9": "Figure 6.9: AUC of property inference",
}
"""The figures that need PyTorch, Pillow and CIFAR-10."""

_COLUMNS: list[Column] = [
    ("users", "users", ">5,d"),
    ("rounds", "rounds", ">6,d"),
    ("participation", "part.", ">5.2f"),
    ("granularity", "gran.", ">5d"),
    ("noise", "noise", ">5.2f"),
    ("dimensions", "dims", ">6,d"),
    ("trials", "trials", ">6d"),
    ("exact", "exact", ">5d"),
    ("right", "right", ">6.3f"),
    ("unique", "unique", ">6.3f"),
    ("wrong", "wrong", ">5.3f"),
    ("seconds", "s", ">8,.2f"),
    ("most_seconds", "most s", ">8,.2f"),
    ("milliseconds_per_column", "ms/user", ">9,.1f"),
    ("mebibytes", "MiB", ">5,.0f"),
]
_NEEDED: list[Column] = [
    ("users", "users", ">5,d"),
    ("participation", "part.", ">5.2f"),
    ("granularity", "gran.", ">5d"),
    ("noise", "noise", ">5.2f"),
    ("needed", "needed", ">7,d"),
    ("failed", "failed at", ">9,d"),
    ("seconds", "s", ">8,.2f"),
]
_NOTES = """\
exact: trials that recover the participation of all users. right: fraction of users recovered.
unique: fraction of columns with a certificate. wrong: fraction with a certificate that are not
planted. s: median time of a trial; most s: its maximum. MiB: peak memory without the log, measured
if certificates are. A scan ends with the first setting that fails.
"""


def run(arguments: argparse.Namespace) -> int:
    """Measures the chosen figures, prints each case, and writes JSON and plots if requested."""
    chosen = names(arguments.only)
    options = _options(arguments)
    with Results(arguments.json) as results:
        folder = _folder(arguments.plot)
        learned = _Learned(arguments, required=arguments.only is not None)
        learned.check([name for name in chosen if name in LEARNED])
        for name in chosen:
            if name in LEARNED:
                own = learned.cases(name)
            elif name == BLIND.name:
                own = blind_cases(options, full=arguments.full)
            else:
                own = _sweep(name, arguments, options)
            for case in own:
                results.add({"figure": name, **case})
            if folder is not None:
                _draw(folder, name, [case for case in results.cases if case["figure"] == name])
    print(_NOTES, end="")
    return 0


def names(only: Sequence[str] | None) -> list[str]:
    """Returns the names of the figures to measure. Raises ArgumentError for unknown names."""
    known = [*(figure.name for figure in FIGURES), BLIND.name, *LEARNED]
    found: dict[str, None] = {}
    for name in only or known:
        if name not in known and name not in ALIASES:
            raise ArgumentError(f"figure: found {name!r}, expected one of {', '.join(known)}")
        found.update(dict.fromkeys(ALIASES.get(name, (name,))))
    return list(found)


def _options(arguments: argparse.Namespace) -> Options:
    limit = arguments.time_limit
    if limit is None:
        limit = 600.0 if arguments.full else 20.0
    check_duration(limit, "--time-limit")
    seed = as_count(arguments.seed, "seed", 0, 1 << 62)
    trials_asked = as_count(arguments.trials, "trials", 0, 10_000)
    return Options(trials_asked, arguments.method, limit, arguments.certify, seed)


def _folder(path: str | None) -> Path | None:
    if path is None:
        return None
    from . import plot  # noqa: F401, PLC0415 - fails now, not at the end, if missing

    return make_folder(path, "--plot")


def _sweep(name: str, arguments: argparse.Namespace, options: Options) -> Iterator[Case]:
    (figure,) = (figure for figure in FIGURES if figure.name == name)
    wanted = options.trials or figure.trials[arguments.full]
    certify = options.certify or figure.certify
    method = "auto" if figure.certify else options.method
    limit = None if figure.certify else options.time_limit
    own = Options(wanted, method, limit, certify, options.seed)
    print(f"\n{figure.title}")
    trials(Setting(16, 64), Options(1, method, limit, certify))  # loads the solvers, wakes threads
    report, cases = Report(_COLUMNS), list[Case]()
    for curve in figure.curves(full=arguments.full):
        for setting in curve.settings:
            made = trials(setting, own, all_of_them=not figure.scan)
            cases.append({"curve": curve.name, "asked": wanted, **as_case(setting, own, made)})
            if figure.series == "granularity":
                cases[-1]["in_windows"] = in_windows(setting, own.seed)
            peak = cast(int | None, cases[-1]["peak_bytes"])
            report.add({**cases[-1], "mebibytes": peak and peak / (1 << 20)})
            yield cases[-1]
            if figure.scan and cases[-1]["exact"] != wanted:
                break
    if figure.scan:
        _print_needed(figure, cases)


def _print_needed(figure: Figure, cases: Sequence[Case]) -> None:
    print(f"The fewest {figure.x} at which every trial was exact")
    report = Report(_NEEDED)
    for curve in dict.fromkeys(case["curve"] for case in cases):
        report.add(needed([case for case in cases if case["curve"] == curve], figure.x))


def needed(curve: Sequence[Case], x: str) -> Case:
    """Returns the hardest setting of a scan that every trial recovered, and the one that failed."""
    good = [case for case in curve if case["exact"] == case["asked"]]
    bad = [case for case in curve if case["exact"] != case["asked"]]
    last = good[-1] if good else curve[-1]
    return {
        **{name: last[name] for name in ("users", "participation", "granularity", "noise")},
        "needed": good[-1][x] if good else None,
        "failed": bad[0][x] if bad else None,
        "seconds": good[-1]["seconds"] if good else None,
    }


def _draw(folder: Path, name: str, cases: Sequence[Case]) -> None:
    from .plot import draw  # noqa: PLC0415 - matplotlib is needed only here

    if not cases:
        return
    figures = {figure.name: figure for figure in (*FIGURES, BLIND)}
    title = LEARNED[name] if name in LEARNED else figures[name].title
    draw(folder / f"{name}.svg", title, cases, figures.get(name))


class _Learned:
    """The figures that need PyTorch, Pillow and pictures; left out with a message without them."""

    def __init__(self, arguments: argparse.Namespace, *, required: bool) -> None:
        self._arguments, self._required = arguments, required
        self._why: str | None = None
        self._by_name: dict[str, Callable[..., Iterator[Case]]] = {}

    def check(self, wanted: Sequence[str]) -> None:
        """Raises ArgumentError before any measurement if a named figure cannot be measured."""
        if not wanted:
            return
        try:
            from nescio.audit._leakage.data import check_cifar10  # noqa: PLC0415 - needs PyTorch

            from .leakage import gradient_cases, property_cases, update_cases  # noqa: PLC0415
            from .learning import fedavg_cases  # noqa: PLC0415

            check_cifar10(self._arguments.data)
            made = (fedavg_cases, gradient_cases, update_cases, property_cases)
            self._by_name = dict(zip(LEARNED, made, strict=True))
        except (ModuleNotFoundError, ArgumentError) as error:
            self._why = str(error)
            if self._required:
                raise ArgumentError(f"{wanted[0]}: {error}") from error

    def cases(self, name: str) -> Iterator[Case]:
        """Yields the cases of one of LEARNED."""
        print(f"\n{LEARNED[name]}")
        if self._why is not None:
            print(f"left out: {self._why}")
            return
        yield from self._by_name[name](self._arguments)
