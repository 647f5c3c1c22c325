"""Results of a search: scored layouts, the best of them, and the one that meets the budgets."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from ....errors import ArgumentError
from .._build import make_layout
from .._layout import Layout
from .._log import AccessLog
from .cost import Cost, Setup
from .design import FAILURE, Design
from .score import Score

__all__ = ["Budgets", "Trial", "Tuning", "best", "layers"]


@dataclass(frozen=True)
class Budgets:
    """The limits of a layout: `max_bytes` of an inference, both servers, both directions together.

    `max_ms` limits the milliseconds of a server's answer to the clients that it answers together.
    `min_retrieved` is the fraction of rows that held-out inferences must get at least, and
    `min_quality` the least quality. `exact` allows layouts of exact mode only, which drop no row
    of any inference, held-out or not. Raises ArgumentError for limits that are not numbers.
    """

    max_bytes: float = 300_000
    max_ms: float = 300
    min_retrieved: float | None = None
    min_quality: float | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        for name, low in (("max_bytes", 0.0), ("max_ms", 0.0), ("min_retrieved", 0.0)):
            value = getattr(self, name)
            if value is not None and not value >= low:
                raise ArgumentError(f"{name}: found {value}, expected a number of at least 0")
        if self.min_retrieved is not None and self.min_retrieved > 1:
            raise ArgumentError(f"min_retrieved: found {self.min_retrieved}, expected at most 1")
        if self.min_quality is not None and math.isnan(self.min_quality):
            raise ArgumentError("min_quality: found nan, expected a number")

    @property
    def asks_for_quality(self) -> bool:
        """True if a layout must have a least quality or fraction of rows, or all of them."""
        return self.exact or self.min_quality is not None or self.min_retrieved is not None

    def affords(self, cost: Cost) -> bool:
        """Tests if bytes and time are within the limits."""
        return cost.bytes <= self.max_bytes and cost.seconds * 1e3 <= self.max_ms

    def suffices(self, design: Design, score: Score) -> bool:
        """Tests if quality and fraction of rows are enough, and the mode is the one asked for."""
        return (
            (design.lookups > 0 or not self.exact)
            and (self.min_quality is None or score.quality >= self.min_quality)
            and (self.min_retrieved is None or score.retrieved >= self.min_retrieved)
        )


@dataclass(frozen=True)
class Trial:
    """A layout's numbers, its score and its cost.

    `timing` tells if the time is measured, or comes from the model: for a layout that is not among
    the best, or whose table is too large to make for a measurement. `model_seconds` is the time of
    the model alone; measured times of other layouts correct it.
    """

    design: Design
    score: Score
    cost: Cost
    model_seconds: float
    timing: Literal["model", "measured", "too large"] = "model"

    @property
    def is_final(self) -> bool:
        """True if the time was measured, or cannot be."""
        return self.timing != "model"

    @property
    def milliseconds(self) -> float:
        """The time of a server's answer to all clients together."""
        return self.cost.seconds * 1e3


def best(trials: Iterable[Trial]) -> list[Trial]:
    """Returns the trials that no other one beats in both quality and time, the fastest first."""
    front: list[Trial] = []
    for trial in sorted(trials, key=lambda one: (one.cost.seconds, -one.score.quality)):
        if not front or trial.score.quality > front[-1].score.quality:
            front.append(trial)
    return front


def layers(trials: Sequence[Trial], count: int) -> list[list[Trial]]:
    """Returns the best trials, the best of the others, and so on."""
    left = list(trials)
    found: list[list[Trial]] = []
    while left and len(found) < count:
        front = best(left)
        found.append(front)
        taken = {trial.design for trial in front}
        left = [trial for trial in left if trial.design not in taken]
    return found


@dataclass(frozen=True)
class Tuning:
    """The layouts that a search tried, in the order tried, and its budgets.

    `setup` is what they are for, `log` what they are made from, with `min_count`. `skipped` has the
    costs of layouts that were not scored because they are over the budgets.
    """

    trials: list[Trial] = field(repr=False)
    budgets: Budgets
    setup: Setup
    log: AccessLog
    min_count: int
    skipped: list[Cost] = field(default_factory=list, repr=False)

    def layout(self, trial: Trial | None = None) -> Layout:
        """Makes the layout of a trial, by default of the chosen one.

        Raises ArgumentError if no layout meets the budgets.
        """
        design = (trial or self.chosen).design
        make = partial(make_layout, self.setup.rows, self.log, min_count=self.min_count)
        if design.lookups:
            return make(lookups=design.lookups, hashes=design.hashes, failure=FAILURE)
        hot = {"hot": design.hot, "hot_bins": design.hot_bins, "hot_keys": design.hot_keys}
        return make(
            bins=design.bins,
            keys=design.keys,
            hashes=design.hashes,
            together=design.together,
            **(hot if design.hot else {}),
        )

    def inferences_per_second(self, trial: Trial) -> float:
        """Returns the inferences that a server answers in a second."""
        return self.setup.clients / trial.cost.seconds

    def to_dicts(self) -> list[dict[str, object]]:
        """Converts all trials to JSON types, in the order tried."""
        best_designs = {trial.design for trial in self.pareto}
        return [
            self._fields(trial) | {"pareto": trial.design in best_designs} for trial in self.trials
        ]

    def _fields(self, trial: Trial) -> dict[str, object]:
        design, cost, setup = trial.design, trial.cost, self.setup
        groups = design.groups(setup.rows)
        return {
            "kind": design.kind,
            "mode": "exact" if design.lookups else "partial",
            "design": design.to_dict(),
            "rows": setup.rows,
            "row_bytes": setup.row_bytes,
            "bins": sum(group.bins for group in groups),
            "lookups": sum(group.slots for group in groups),
            "retrieved": trial.score.retrieved,
            "complete": trial.score.complete,
            "quality": trial.score.quality,
            "key_bytes": cost.key_bytes,
            "answer_bytes": cost.answer_bytes,
            "bytes": cost.bytes,
            "table_bytes": cost.table_bytes,
            "clients": setup.clients,
            "milliseconds": trial.milliseconds,
            "inferences_per_second": self.inferences_per_second(trial),
            "timing": trial.timing,
        }

    def plot(self, path: str | Path) -> None:
        """Plots quality against inferences per second, and against bytes, as SVG or PNG.

        Needs matplotlib: pip install 'nescio[tune]'. Raises FileError if the file cannot be
        written.
        """
        from .plot import plot_tuning  # noqa: PLC0415 - an extra

        plot_tuning(Path(path), self)

    @property
    def pareto(self) -> list[Trial]:
        """The trials within the budgets that none beats in quality and time, the fastest first."""
        return best(trial for trial in self.trials if self.budgets.affords(trial.cost))

    @property
    def chosen(self) -> Trial:
        """The trial to serve.

        With a least quality, or fraction of rows, the fastest that has it; otherwise the best
        quality within the budgets. Raises ArgumentError if no layout meets the budgets; the error
        says which budget, and by how much the nearest layout misses it.
        """
        fitting = [trial for trial in self.trials if self.budgets.affords(trial.cost)]
        enough = [trial for trial in fitting if self.budgets.suffices(trial.design, trial.score)]
        if enough and self.budgets.asks_for_quality:
            return min(enough, key=lambda one: (one.cost.seconds, one.cost.bytes))
        if enough:
            return max(enough, key=lambda one: (one.score.quality, -one.cost.seconds))
        raise ArgumentError(f"no layout meets the budgets: {self._nearest(fitting)}")

    def _nearest(self, fitting: list[Trial]) -> str:
        """Says which budget is missed, and by how much."""
        if fitting:
            return "; ".join(self._quality_misses(fitting))
        costs = [*self.skipped, *(trial.cost for trial in self.trials)]
        if not costs:
            return "found no layout that this table can have"
        budgets = self.budgets
        fewest, fastest = min(cost.bytes for cost in costs), min(cost.seconds for cost in costs)
        if fewest > budgets.max_bytes:
            return (
                f"max_bytes: found {fewest:,} bytes in the smallest layout, "
                f"{fewest - budgets.max_bytes:,.0f} more than {budgets.max_bytes:,.0f}"
            )
        if fastest * 1e3 > budgets.max_ms:
            return (
                f"max_ms: found {fastest * 1e3:.3g} ms for the fastest layout, "
                f"{fastest * 1e3 - budgets.max_ms:.3g} more than {budgets.max_ms:g}; "
                f"fewer than {self.setup.clients} clients together take less"
            )
        fastest = min(cost.seconds for cost in costs if cost.bytes <= budgets.max_bytes)
        return (
            f"max_bytes and max_ms together: within {budgets.max_bytes:,.0f} bytes the fastest "
            f"layout takes {fastest * 1e3:.3g} ms, {fastest * 1e3 - budgets.max_ms:.3g} more than "
            f"{budgets.max_ms:g}"
        )

    def _quality_misses(self, fitting: list[Trial]) -> list[str]:
        budgets = self.budgets
        found: list[str] = []
        highest = max(trial.score.quality for trial in fitting)
        if budgets.min_quality is not None and highest < budgets.min_quality:
            found.append(
                f"min_quality: found at most {highest:.6g} within the other budgets, "
                f"{budgets.min_quality - highest:.3g} less than {budgets.min_quality:g}"
            )
        most = max(trial.score.retrieved for trial in fitting)
        if budgets.min_retrieved is not None and most < budgets.min_retrieved:
            found.append(
                f"min_retrieved: found at most {most:.4f} of the rows within the other budgets, "
                f"{budgets.min_retrieved - most:.4f} less than {budgets.min_retrieved:g}"
            )
        if budgets.exact and not any(trial.design.lookups for trial in fitting):
            found.append(
                "exact: found no layout of exact mode within the other budgets; allow more bytes, "
                "more time or more layouts"
            )
        return found or ["found layouts that meet each of the budgets, but none that meets all"]
