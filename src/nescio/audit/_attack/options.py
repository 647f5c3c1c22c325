"""The options of the attack, checked when they are made."""

from dataclasses import dataclass, replace
from typing import Any

from ..._arrays import as_count, as_threads
from ...errors import ArgumentError
from .._log.record import Log
from .estimate import MAX_DRIFT
from .flint import check_library
from .ica import ROUNDS_PER_USER
from .lattice import MAX_USERS

__all__ = ["METHODS", "METHODS_WITHOUT_COUNTS", "Options", "combined"]

METHODS_WITHOUT_COUNTS = ("lattice", "skewness")
METHODS = ("auto", "reflect", "program", *METHODS_WITHOUT_COUNTS)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `disaggregate`, `solve` and `audit_log`.

    `method`: "auto", "reflect" (relaxed-reflect-reflect), "program" (integer programs), or without
    counts "lattice" (needs python-flint; at most 160 users) or "skewness" (independent component
    analysis).
    `noise`: standard deviation of an entry of one user's update between rounds; 0 for no noise,
    None to estimate it.
    `time_limit`: seconds after which searches and proofs end; in `audit_log`, of the whole audit.
    `column_limit`: seconds for each integer program. Without both, the same seed gives the same
    result.
    `seed`: seed of all random choices. `threads`: threads for integer programs, 0 for all
    processors; the BLAS has its own setting.
    `updates`: compute the updates; without them memory does not grow with the dimensions.
    `even`: divide parameters by their standard deviation over the rounds where there is noise; None
    to choose what brings columns nearer to the span.
    `drift`: number of smooth changes common to all participants of a round to allow for (0 to 32);
    each needs one more round. None for 0 without noise, and otherwise what brings columns nearer.
    `certify`: prove columns unique.

    Raises ArgumentError if a value is invalid.
    """

    method: str = "auto"
    noise: float | None = None
    time_limit: float | None = None
    column_limit: float | None = None
    seed: int = 0
    threads: int = 0
    updates: bool = True
    even: bool | None = None
    drift: int | None = None
    certify: bool = True

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ArgumentError(
                f"method: found {self.method!r}, expected one of {', '.join(METHODS)}"
            )
        if self.noise is not None and not 0 <= self.noise < float("inf"):
            raise ArgumentError(
                f"noise: found {self.noise}, expected a standard deviation, 0 or more"
            )
        for name in ("time_limit", "column_limit"):
            limit = getattr(self, name)
            if limit is not None and not limit > 0:
                raise ArgumentError(f"{name}: found {limit}, expected seconds, more than 0")
        if self.drift is not None:
            as_count(self.drift, "drift", 0, MAX_DRIFT)
        if self.drift and self.noise == 0:
            raise ArgumentError(
                f"drift: found {self.drift} with noise=0; drift requires noise, pass noise=None"
            )
        as_threads(self.threads)
        object.__setattr__(self, "seed", as_count(self.seed, "seed", 0, (1 << 63) - 1))

    def check(self, log: Log) -> None:
        """Raises ArgumentError if the options do not apply to this log."""
        if log.counts is None and self.method in ("reflect", "program"):
            raise ArgumentError(
                f"method {self.method} needs counts; without them, use auto, lattice or skewness"
            )
        active = log.users - int(log.idle.sum())
        if self.method == "lattice":
            check_library()
            if active > MAX_USERS:
                raise ArgumentError(
                    f"method lattice: found {active} users, expected at most {MAX_USERS}; with "
                    f"more, use skewness, and log at least {ROUNDS_PER_USER} rounds for every user"
                )
        filled = log.rounds - int(log.empty.sum())
        if self.drift and filled <= active + self.drift:
            raise ArgumentError(
                f"drift: found {self.drift} with {filled} rounds of {active} active users; allow "
                f"for at most {max(filled - active - 1, 0)} common changes, or log more rounds"
            )


def combined(options: Options | None, named: dict[str, Any]) -> Options:
    """Returns the options with those given by keyword in place of their own."""
    return replace(options or Options(), **named)
