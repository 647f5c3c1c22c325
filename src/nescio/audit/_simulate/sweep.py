"""Sweeps of simulated runs, and the rounds and the noise at which their settings break.

A setting is broken if every trial recovers at least a given share of the users' columns. A share of
1 is the measure of thesis Figures 6.2, 6.4 and 6.5.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean
from typing import Any

from ...errors import ArgumentError
from .._attack.options import Options, combined
from .defenses import Defense
from .runs import Outcome, Setting, attack_simulated, describe

__all__ = ["Case", "Curve", "Sweep", "noise_to_break", "plot", "rounds_to_break", "sweep"]

_AXES = ("users", "participation", "granularity", "noise")


@dataclass(frozen=True, slots=True)
class Sweep:
    """The settings to try: every combination, each with more rounds until it breaks.

    `trials`: runs of each setting. `share`: fraction of the users that breaks a setting. Raises
    ArgumentError if a value is out of range.
    """

    users: Sequence[int] = (16, 32, 64)
    rounds: Sequence[int] = (24, 32, 48, 64, 96, 128, 192, 256)
    participation: Sequence[float] = (0.1,)
    granularity: Sequence[int] = (10,)
    noise: Sequence[float] = (0.0,)
    defenses: Sequence[Defense] = (Defense(),)
    step: float = 0.0
    dimensions: int = 0
    directions: int = 0
    trials: int = 3
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise ArgumentError(f"trials: found {self.trials}, expected 1 or more")
        if not 0 < self.share <= 1:
            raise ArgumentError(f"share: found {self.share}, expected more than 0, up to 1")
        for combination in self.combinations():  # checks every setting before any work
            for rounds in self.rounds:
                replace(combination, rounds=rounds)

    def combinations(self) -> list[Setting]:
        """Returns the settings without their rounds."""
        return [
            Setting(
                users,
                max(self.rounds),
                part,
                grain,
                noise,
                directions=self.directions,
                dimensions=self.dimensions,
                step=self.step,
                defense=defense,
            )
            for defense, users, part, grain, noise in product(
                self.defenses, self.users, self.participation, self.granularity, self.noise
            )
        ]


@dataclass(frozen=True, slots=True)
class Case:
    """Outcomes of the trials of one setting. `skipped`: the reason if there are none, or None."""

    setting: Setting
    outcomes: tuple[Outcome, ...]
    skipped: str | None = None

    def broken(self, share: float) -> bool:
        """Returns True if every trial recovered that share of users."""
        return bool(self.outcomes) and min(o.recovered for o in self.outcomes) >= share

    def as_json(self) -> dict[str, object]:
        """Returns the setting, and the means over its trials."""
        means = {
            name: fmean(getattr(o, name) for o in self.outcomes) if self.outcomes else None
            for name in ("recovered", "unique", "wrong", "seconds")
        }
        errors = [o.error for o in self.outcomes if o.error is not None]
        error = fmean(errors) if errors else None
        return {
            **describe(self.setting),
            "trials": len(self.outcomes),
            **means,
            "worst": min((o.recovered for o in self.outcomes), default=None),
            "error": error,
            "skipped": self.skipped,
        }


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve: `x` on the axis `over`, and `y` that breaks the setting there, or None."""

    name: str
    over: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]


def sweep(
    plan: Sweep,
    options: Options | None = None,
    **named: Any,  # noqa: ANN401 - the fields of Options
) -> Iterator[Case]:
    """Attacks the settings of a plan and yields the cases, with `options` or its fields.

    More rounds than those that break a setting are not tried.
    """
    options = combined(options, named)
    for base in plan.combinations():
        for rounds in sorted(plan.rounds):
            case = _case(plan, replace(base, rounds=rounds), options)
            yield case
            if case.broken(plan.share):
                break


def _case(plan: Sweep, setting: Setting, options: Options) -> Case:
    outcomes = []
    for trial in range(plan.trials):
        try:
            one = attack_simulated(setting, options.seed + trial, options=options)
        except ArgumentError as error:  # too few rounds, as at the start of a scan
            return Case(setting, (), str(error))
        outcomes.append(one)
        if one.recovered < plan.share and len(outcomes) >= plan.trials // 2 + 1:
            break  # no outcome of the other trials can break it
    return Case(setting, tuple(outcomes))


def rounds_to_break(cases: Sequence[Case], share: float) -> list[Curve]:
    """Returns the fewest rounds that break each setting, over the first parameter that varies."""
    fewest: dict[Setting, float | None] = {}
    for case in cases:
        key = replace(case.setting, rounds=2)
        known = fewest.setdefault(key, None)
        if case.broken(share) and (known is None or case.setting.rounds < known):
            fewest[key] = float(case.setting.rounds)
    over = next((a for a in _AXES if len({getattr(s, a) for s in fewest}) > 1), "users")
    return _curves(over, fewest, [a for a in _AXES if a != over])


def noise_to_break(cases: Sequence[Case], share: float) -> list[Curve]:
    """Returns the largest noise at which each number of rounds still breaks a setting.

    No curves if the noise does not vary.
    """
    if len({case.setting.noise for case in cases}) < 2:
        return []
    rounds = sorted({case.setting.rounds for case in cases})
    most: dict[Setting, float | None] = {}
    for case in cases:
        for longer in rounds:
            key = replace(case.setting, rounds=longer, noise=0.0)
            known = most.setdefault(key, None)
            enough = case.setting.rounds <= longer and case.broken(share)
            if enough and (known is None or case.setting.noise > known):
                most[key] = case.setting.noise
    return _curves("rounds", most, [a for a in _AXES if a != "noise"])


def _curves(over: str, points: dict[Setting, float | None], others: list[str]) -> list[Curve]:
    """Returns curves over `over`, one for each value of the other parameters, named by those."""
    varied = [a for a in others if len({getattr(s, a) for s in points}) > 1]
    groups: dict[str, list[tuple[float, float | None]]] = {}
    for setting, value in points.items():
        parts = [str(setting.defense), *(f"{a} {getattr(setting, a):g}" for a in varied)]
        groups.setdefault(", ".join(parts), []).append((float(getattr(setting, over)), value))
    curves = []
    for name, found in groups.items():
        found.sort(key=lambda point: point[0])
        curves.append(Curve(name, over, tuple(x for x, _ in found), tuple(y for _, y in found)))
    return curves


def plot(curves: Sequence[Curve], y_label: str) -> str:
    """Returns the curves as an <svg>, without points that nothing broke. Needs matplotlib."""
    from .._report.charts import Series, lines  # noqa: PLC0415 - an extra

    drawn = [Series(curve.name, curve.x, curve.y) for curve in curves]
    over = curves[0].over if curves else "users"
    doubling = over in ("users", "rounds")
    return lines(
        f"{y_label} over {over}; a setting that is not broken is not proven safe",
        drawn,
        over,
        y_label,
        log_x=doubling,
        log_y=y_label.startswith("rounds"),
    )
