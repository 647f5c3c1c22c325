"""The whole audit of a log: the attack, what it is worth, the control, the verdict."""

import time

from . import drift
from .control import shuffled_control
from .grade import Thresholds, grade
from .problem import Log
from .quality import measure
from .report import Findings
from .solve import solve

__all__ = ["examine"]


def examine(
    log: Log,
    *,
    thresholds: Thresholds | None = None,
    source: str = "log",
    method: str = "auto",
    noise: float | None = None,
    time_limit: float | None = None,
    column_limit: float | None = None,
    seed: int = 0,
    threads: int = 0,
) -> Findings:
    """Attacks a log and grades it; the options are those of `solve`.

    The control, which takes as long as two more attacks, is made where certificates alone do not
    say that the log is broken. Raises ArgumentError for options that cannot be.
    """
    begun = time.monotonic()
    thresholds = thresholds or Thresholds()
    result = solve(
        log,
        method=method,
        noise=noise,
        time_limit=time_limit,
        column_limit=column_limit,
        seed=seed,
        threads=threads,
        updates=False,
    )
    quality = measure(log, result, seed)
    verdict = grade(log, result, quality, thresholds)
    control = None
    if verdict.grade != "broken":
        control = shuffled_control(log, seed=seed, time_limit=time_limit)
        verdict = grade(log, result, quality, thresholds, control)
    changes = drift.measure(log)
    seconds = time.monotonic() - begun
    return Findings(log, result, quality, control, changes, thresholds, verdict, source, seconds)
