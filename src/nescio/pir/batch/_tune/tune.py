"""`tune`: the search for a layout, from logs to the layout that meets the budgets."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from ...._arrays import as_count
from ....dpf import Generator, Output
from ....errors import ArgumentError
from ..._params import MAX_ROWS
from .._build import MIN_COUNT
from .._columns import Bools
from .._log import AccessLog
from .cache import missed
from .cost import Cost, Machine, Setup, measure
from .design import Design
from .result import Budgets, Trial, Tuning
from .score import Logs, Quality, Score, Scorer
from .search import search
from .state import FORMAT, State, key_of

__all__ = ["tune"]

LAYOUTS = 500
_MAX_LAYOUTS = 1 << 20
_MAX_CACHE = 1 << 32
_FRACTION = 0.8
_MEASURED = 12
"""Layouts of the Pareto front whose time is measured at most, in each of two rounds."""
_ROUNDS = 2
_PARTS = ("the part of the log to make layouts from", "the held-out part of the log")

Progress = Callable[[str], None]


def tune(
    log: AccessLog,
    rows: int,
    row_bytes: int,
    *,
    held_out: AccessLog | None = None,
    budgets: Budgets | None = None,
    quality: Quality | None = None,
    quality_name: str = "",
    layouts: int = LAYOUTS,
    cache_rows: int = 0,
    min_count: int = MIN_COUNT,
    output: Output = "bit",
    generator: Generator = "chacha20",
    verify: bool = True,
    clients: int = 64,
    threads: int = 0,
    seconds: float = 0.25,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> Tuning:
    """Searches layouts for a table of `rows` rows of `row_bytes` bytes, on the log of its lookups.

    Layouts are made from `log` and scored on `held_out`, by default a fifth of the log (see
    `AccessLog.split`). A score is the fraction of rows that a client gets, or
    `quality(sets, retrieved)`: the rows of each held-out inference, in the log's order, and a
    boolean array for each that marks the rows it gets; larger is better. At most `layouts` layouts
    are scored. The time is that of one server for `clients` inferences together, with `threads`
    threads (0: all processors): by a model whose numbers are measured first, and measured for the
    best layouts, about `seconds` each. With `verify`, the keys that check rows are counted.

    With `cache_rows`, each user keeps the rows looked up last, and layouts are for what is left.
    Rows and pairs of fewer than `min_count` users shape no layout. `state` names a file that keeps
    scores, from which an interrupted search goes on; with `quality` it needs
    `quality_name`, a text that changes with the function. `progress` gets a text now and then.

    Raises ArgumentError for sizes that cannot be, a log that cannot be divided or whose parts have
    nothing to fetch, a cache without users or times, a quality that is not a finite number;
    IndexRangeError for rows outside the table; FileError for a state of another search.
    """
    budgets = budgets or Budgets()
    if state is not None and quality is not None and not quality_name:
        raise ArgumentError(
            "quality_name: found none for a quality function with a state, expected a text that "
            "changes with the function: the state keeps its scores"
        )
    if not 0 <= seconds < np.inf:
        raise ArgumentError(f"seconds: found {seconds}, expected a finite number of at least 0")
    setup = Setup(rows, row_bytes, output, generator, verify, clients, threads)
    layouts = as_count(layouts, "layouts", 1, _MAX_LAYOUTS)
    min_count = as_count(min_count, "min_count", 1, MAX_ROWS)
    cache_rows = as_count(cache_rows, "cache_rows", 0, _MAX_CACHE)
    for one in (log, held_out):
        if one is not None:
            one.check(setup.rows)
    report = _Reports(progress, layouts)
    report("reading the log")
    logs = _divided(log, held_out, cache_rows)
    key = key_of(
        {"train": logs.train, "held": logs.held, "wanted": logs.wanted},
        {
            "format": FORMAT,
            "rows": setup.rows,
            "min_count": min_count,
            "rated": quality is not None,
            "quality": quality_name,
        },
    )
    kept = State(None if state is None else Path(state), key)
    report("measuring this machine")
    machine = Machine.measured(setup, seconds)
    report("counting pairs of rows")
    scorer = Scorer(logs, setup.rows, min_count, setup.threads, quality)

    def score(design: Design) -> Score:
        if design not in kept.scores:
            kept.add(design, scorer.score(design))
        report.scored(kept.scores[design])
        return kept.scores[design]

    def cost(design: Design) -> Cost:
        return Cost.of(design, setup, machine)

    trials, skipped = search(scorer.needs, cost, budgets.affords, score, layouts)
    found = Tuning(trials, budgets, setup, logs.train, min_count, skipped)
    return _with_times(found, seconds, report)


def _divided(log: AccessLog, held_out: AccessLog | None, cache_rows: int) -> Logs:
    """Divides the log, and removes what a client-side cache has.

    Users of a divided log begin the held-out part with the cache that they have then; those of a
    separate one begin with an empty cache.
    """
    if held_out is not None:
        parts = [(one, np.arange(len(one))) for one in (log, held_out)]
    else:
        parts = [(log, own) for own in log.divided(_FRACTION)]
    needed: dict[int, Bools] = {
        id(one): missed(one, cache_rows) if cache_rows else np.ones(len(one.rows), np.bool_)
        for one, _ in parts
    }
    for name, (one, chosen) in zip(_PARTS, parts, strict=True):
        _check_part(name, one.lengths[chosen].sum(), needed[id(one)][one.accesses_of(chosen)])
    (train, fetched), (wanted, own) = (
        (one.select(chosen), needed[id(one)][one.accesses_of(chosen)]) for one, chosen in parts
    )
    return Logs(train.kept(fetched), wanted.kept(own), wanted, own)


def _check_part(name: str, accesses: int, fetched: Bools) -> None:
    """Raises ArgumentError for a part of the log with nothing to fetch."""
    if not accesses:
        raise ArgumentError(
            f"{name}: found inferences without rows only, expected at least one row; use a longer "
            "log, or another held-out log"
        )
    if not fetched.any():
        raise ArgumentError(
            f"cache_rows: found all {accesses} rows of {name} in the clients' caches, expected at "
            "least one to fetch; lower cache_rows, or use a longer log"
        )


def _with_times(found: Tuning, seconds: float, report: "_Reports") -> Tuning:
    """Measures the best layouts, and corrects the modelled times of the others by them."""
    for _ in range(_ROUNDS):
        found = _timed(found, _spread([t for t in found.pareto if not t.is_final]), seconds, report)
    for _ in range(_MEASURED):
        try:
            chosen = found.chosen
        except ArgumentError:
            break  # nothing meets the budgets
        if chosen.is_final:
            break
        found = _timed(found, [chosen], seconds, report)
    return found


def _spread(trials: list[Trial]) -> list[Trial]:
    """Returns at most _MEASURED of some trials, evenly spread, the first and last among them."""
    if len(trials) <= _MEASURED:
        return trials
    return [trials[round(i)] for i in np.linspace(0, len(trials) - 1, _MEASURED)]


def _timed(found: Tuning, trials: list[Trial], seconds: float, report: "_Reports") -> Tuning:
    """Replaces the modelled times of some trials by measured ones."""
    new: dict[Design, Trial] = {}
    for number, trial in enumerate(trials):
        report(f"measuring layout {number + 1} of {len(trials)}: {trial.design.describe()}")
        new[trial.design] = _with_time(found.setup, trial, seconds)
    every = [new.get(trial.design, trial) for trial in found.trials]
    measured = [trial for trial in every if trial.timing == "measured"]
    if not measured:
        return replace(found, trials=every)
    factor = median(trial.cost.seconds / trial.model_seconds for trial in measured)
    return replace(found, trials=[_corrected(trial, factor) for trial in every])


def _corrected(trial: Trial, factor: float) -> Trial:
    """Multiplies the modelled time of a trial by a factor."""
    if trial.timing == "measured":
        return trial
    return replace(trial, cost=trial.cost._replace(seconds=factor * trial.model_seconds))


def _with_time(setup: Setup, trial: Trial, seconds: float) -> Trial:
    design = trial.design
    try:
        time = measure(setup, setup.params(design.groups(setup.rows), 1 + design.together), seconds)
    except ArgumentError:
        return replace(trial, timing="too large")
    return replace(trial, cost=trial.cost._replace(seconds=time), timing="measured")


class _Reports:
    """Texts about the progress: at each step, and every second while layouts are scored."""

    def __init__(self, progress: Progress | None, layouts: int) -> None:
        self._progress, self._layouts = progress, layouts
        self._scored, self._last = 0, time.monotonic()
        self._best = -np.inf

    def __call__(self, text: str) -> None:
        if self._progress is not None:
            self._progress(text)

    def scored(self, score: Score) -> None:
        """Counts a score."""
        self._scored += 1
        self._best = max(self._best, score.quality)
        if time.monotonic() - self._last >= 1:
            self._last = time.monotonic()
            self(f"{self._scored} of at most {self._layouts} layouts, quality {self._best:.4f}")
