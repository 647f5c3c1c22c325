"""The figure `blind`: users recovered without participation counts, by each method."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from nescio._report import Case, Column, Report
from nescio.audit import Defense, Outcome, Setting, attack_simulated
from nescio.audit._attack.flint import has_library
from nescio.audit._attack.options import METHODS_WITHOUT_COUNTS as METHODS

from .figures import Figure, rounds_of
from .trial import Options

__all__ = ["BLIND", "blind_cases"]

_TIMES = (1.25, 1.5, 2.0, 4.0, 6.0, 8.0)
_NO_COUNTS = Defense.parse("no-counts")

_COLUMNS: list[Column] = [
    ("method", "method", ">8"),
    ("users", "users", ">5,d"),
    ("rounds", "rounds", ">6,d"),
    ("participation", "part.", ">5.2f"),
    ("noise", "noise", ">5.2f"),
    ("trials", "trials", ">6d"),
    ("exact", "exact", ">5d"),
    ("right", "right", ">6.3f"),
    ("seconds", "s", ">8,.2f"),
    ("most_seconds", "most s", ">8,.2f"),
]


def _settings(full: bool) -> tuple[Setting, ...]:
    few, many = ((32, 64, 128), (64,)) if not full else ((16, 32, 64, 96, 128, 160), (32, 64, 128))
    return (
        *(Setting(users) for users in few),
        *(Setting(users, participation=0.5) for users in many),
        *(Setting(users, noise=noise) for users in many for noise in (0.3, 0.5)),
    )


BLIND = Figure(
    "blind",
    "Without counts: share of users recovered, and times, against rounds",
    small=tuple(rounds_of(setting, _TIMES) for setting in _settings(full=False)),
    full=tuple(rounds_of(setting, _TIMES) for setting in _settings(full=True)),
    x="rounds",
    series="users",
    scan=False,
    trials=(3, 30),
)


def blind_cases(options: Options, *, full: bool) -> Iterator[Case]:
    """Measures the whole attack, updates included; prints and yields each case."""
    print(f"\n{BLIND.title}")
    methods = METHODS if has_library() else METHODS[1:]
    if len(methods) < len(METHODS):
        print("lattice is left out: it needs python-flint, pip install 'nescio[audit-lattice]'")
    report, number = Report(_COLUMNS), options.trials or BLIND.trials[full]
    for curve in BLIND.curves(full=full):
        for setting in curve.settings:
            for method in methods:
                blind = Setting(**{**asdict(setting), "defense": _NO_COUNTS})
                made = _attempts(blind, method, options, number)
                case = _as_case(setting, method, made)
                report.add(case)
                yield case


def _attempts(setting: Setting, method: str, options: Options, number: int) -> list[Outcome]:
    return [
        attack_simulated(setting, options.seed + k, method=method, time_limit=options.time_limit)
        for k in range(number)
    ]


def _as_case(setting: Setting, method: str, made: Sequence[Outcome]) -> Case:
    seconds = [outcome.seconds for outcome in made]
    name = f"{method}, {setting.users} users, {setting.participation}, noise {setting.noise}"
    return {
        "curve": name,
        "method": method,
        "users": setting.users,
        "rounds": setting.rounds,
        "participation": setting.participation,
        "noise": setting.noise,
        "trials": len(made),
        "exact": sum(outcome.recovered == 1 for outcome in made),
        "right": statistics.fmean(outcome.recovered for outcome in made),
        "seconds": statistics.median(seconds),
        "least_seconds": min(seconds),
        "most_seconds": max(seconds),
    }
