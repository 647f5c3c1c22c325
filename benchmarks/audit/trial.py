"""One attack on a simulated run, compared with the planted participation."""

import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np

from nescio._report import Case
from nescio.audit import Log, Run, Setting, simulate, solve
from nescio.audit import Options as AttackOptions
from nescio.audit._attack.estimate import column_space
from nescio.audit._attack.state import State
from nescio.audit._attack.with_counts import find_columns
from nescio.bench.memory import PeakMemory
from nescio.bench.timing import WrongResultError

__all__ = ["Options", "Trial", "as_case", "attack", "in_windows", "trials"]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the trials.

    With `certify` the whole attack is measured, certificates and updates included; without it only
    the search for columns, as in the chapter's figures. A trial starts no search after `time_limit`
    seconds, if given.
    """

    trials: int
    method: str = "auto"
    time_limit: float | None = None
    certify: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of one attack.

    `right` is the fraction of columns that are the planted ones. `unique` and `wrong` are the
    fractions with a certificate, and with a certificate for a column that is not planted; None
    without certificates. `peak_bytes` is peak memory without the log. `steps` has the seconds of
    each step.
    """

    right: float
    seconds: float
    unique: float | None = None
    wrong: float | None = None
    peak_bytes: int | None = None
    steps: Mapping[str, float] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """True if the whole matrix is the planted one."""
        return self.right == 1


def trials(setting: Setting, options: Options, *, all_of_them: bool = True) -> list[Trial]:
    """Runs the trials of a setting, each with its own seed; if asked, up to the first failure."""
    made = []
    for number in range(options.trials):
        run = simulate(setting, options.seed + number)
        made.append(attack(run, options, options.seed + number))
        if not (all_of_them or made[-1].exact):
            break
    return made


def attack(run: Run, options: Options, seed: int) -> Trial:
    """Attacks one run. Raises WrongResultError if a noiseless certificate is for a wrong column."""
    memory = PeakMemory()
    memory.forget()
    begun = time.monotonic()
    if not options.certify:
        columns = _columns(run.log, options, seed)
        seconds = time.monotonic() - begun
        return Trial(float((columns == run.participation).all(axis=0).mean()), seconds)
    result = solve(run.log, method=options.method, time_limit=options.time_limit, seed=seed)
    seconds = time.monotonic() - begun
    right = (result.participation == run.participation).all(axis=0)
    wrong = result.unique & ~right
    if wrong.any() and not result.noise:
        raise WrongResultError(
            f"user {int(np.argmax(wrong))}: wrong participation is called unique"
        )
    return Trial(
        float(right.mean()),
        seconds,
        float(result.unique.mean()),
        float(wrong.mean()),
        memory.bytes(),
        result.seconds,
    )


def _columns(log: Log, options: Options, seed: int) -> np.ndarray:
    """Returns the columns that the search of the attack finds, as (rounds, users)."""
    limit, active = options.time_limit, np.flatnonzero(~log.idle)
    deadline = float("inf") if limit is None else time.monotonic() + limit
    space = column_space(log, len(active), None, seed)
    state = State.of(log, space, active, AttackOptions(seed=seed), deadline)
    find_columns(state, options.method, lambda _: nullcontext())
    return state.columns.T


def in_windows(setting: Setting, seed: int) -> list[float]:
    """Returns how often a user takes part in a window, as fractions (Figure 6.5b)."""
    run = simulate(setting, seed)
    assert run.log.counts is not None
    times = np.bincount(run.log.counts.ravel())
    return [float(share) for share in times / times.sum()]


def as_case(setting: Setting, options: Options, made: Sequence[Trial]) -> Case:
    """Returns the fields of a case: the setting, and the outcome of its trials."""
    seconds = [trial.seconds for trial in made]
    return {
        "users": setting.users,
        "rounds": setting.rounds,
        "participation": setting.participation,
        "granularity": setting.granularity,
        "noise": setting.noise,
        "dimensions": setting.dimensions or 4 * setting.users,
        "method": options.method,
        "trials": len(made),
        "exact": sum(trial.exact for trial in made),
        "right": statistics.fmean(trial.right for trial in made),
        "unique": _mean([trial.unique for trial in made]),
        "wrong": _mean([trial.wrong for trial in made]),
        "seconds": statistics.median(seconds),
        "least_seconds": min(seconds),
        "most_seconds": max(seconds),
        "milliseconds_per_column": 1e3 * statistics.median(seconds) / setting.users,
        "peak_bytes": max(trial.peak_bytes or 0 for trial in made) or None,
        "steps": dict(made[-1].steps),
        "verified": True,
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
