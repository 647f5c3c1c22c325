"""Layouts of one application: families, scores on its logs, and the search over them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from examples.common.application import Application, Part
from nescio.errors import ArgumentError
from nescio.pir.batch import AccessLog, Budgets, Layout, Trial, Tuning
from nescio.pir.batch._tune.cache import missed
from nescio.pir.batch._tune.cost import Cost, Machine, Setup
from nescio.pir.batch._tune.design import Design
from nescio.pir.batch._tune.score import Logs, Score, Scorer
from nescio.pir.batch._tune.search import search

__all__ = [
    "FAMILIES",
    "Point",
    "Pool",
    "fastest",
    "front",
    "layout_of",
    "logs_of",
    "of_family",
    "scanned_rows",
    "uncharged",
]

MIN_COUNT = 5
_SECONDS_OF_A_BYTE = 1e-9  # where a search is for few bytes; any number

FAMILIES: dict[str, Callable[[Design], bool]] = {
    "plain": lambda design: design.kind == "plain",
    "partial": lambda design: design.kind in ("plain", "bins"),
    "exact": lambda design: design.kind == "exact",
    "paper": lambda design: design.hashes == 1,
    "co-design": lambda _: True,
}
"""Whole lookups; bins; exact mode; bins, hot rows and rows together; all of these and hashes."""


@dataclass(frozen=True)
class Point:
    """A design with its score on the training, and its cost."""

    design: Design
    score: Score
    cost: Cost


class Pool:
    """The designs that were scored on the training of an application."""

    def __init__(self, application: Application, logs: Logs) -> None:
        self._rows = application.rows
        self._scorer = Scorer(logs, application.rows, MIN_COUNT, 1, application.rated.quality)
        self.scores: dict[Design, Score] = {}

    def search(
        self,
        family: str,
        setup: Setup,
        machine: Machine,
        budgets: Budgets,
        layouts: int,
        *,
        for_bytes: bool = False,
    ) -> None:
        """Scores up to `layouts` designs of a family within the budgets.

        The search goes on from the best in quality and time, or in quality and bytes.
        """
        allowed = FAMILIES[family]

        def cost(design: Design) -> Cost:
            if not allowed(design):
                raise ArgumentError("not of this family")
            found = Cost.of(design, setup, machine)
            return found._replace(seconds=found.bytes * _SECONDS_OF_A_BYTE) if for_bytes else found

        search(self._scorer.needs, cost, budgets.affords, self._score, layouts)

    def add(self, designs: Iterable[Design]) -> None:
        """Scores designs."""
        for design in designs:
            self._score(design)

    def points(self, setup: Setup, machine: Machine) -> list[Point]:
        """Returns all designs with their costs by the model."""
        return [
            Point(design, score, Cost.of(design, setup, machine))
            for design, score in self.scores.items()
        ]

    def _score(self, design: Design) -> Score:
        if design not in self.scores:
            self.scores[design] = self._scorer.score(design)
        return self.scores[design]


def logs_of(application: Application, part: Part, cache_rows: int = 0) -> Logs:
    """Returns the logs with which the layouts of an application are scored on a part.

    With `cache_rows`, each user keeps so many rows, and the layouts are for the others. Raises
    ArgumentError for logs without users or times then.
    """
    train, wanted = application.log, part.log
    if not cache_rows:
        return Logs(train, wanted, wanted, np.ones(len(wanted.rows), np.bool_))
    own = missed(wanted, cache_rows)
    return Logs(train.kept(missed(train, cache_rows)), wanted.kept(own), wanted, own)


def layout_of(design: Design, log: AccessLog, setup: Setup) -> Layout:
    """Makes the layout of a design from the log of the training."""
    trial = Trial(design, Score(0, 0, 0), Cost(0, 0, 0, 0), 0)
    return Tuning([], Budgets(), setup, log, MIN_COUNT).layout(trial)


def front(points: Iterable[Point], budgets: Budgets, count: int) -> list[Point]:
    """Returns up to `count` points that no other one beats in quality and time, evenly."""
    found: list[Point] = []
    fitting = (one for one in points if budgets.affords(one.cost))
    for one in sorted(fitting, key=lambda one: (one.cost.seconds, -one.score.quality)):
        if not found or one.score.quality > found[-1].score.quality:
            found.append(one)
    chosen = np.unique(np.linspace(0, len(found) - 1, min(count, len(found))).round())
    return [found[int(number)] for number in chosen]


def fastest(points: Iterable[Point], budgets: Budgets, count: int) -> list[Point]:
    """Returns the `count` fastest points within the budgets, the least quality among them."""
    fitting = [one for one in points if budgets.affords(one.cost)]
    enough = [one for one in fitting if budgets.suffices(one.design, one.score)]
    return sorted(enough, key=lambda one: (one.cost.seconds, one.cost.bytes))[:count]


def of_family(points: Sequence[Point], family: str) -> list[Point]:
    """Returns the points that a family has."""
    return [one for one in points if FAMILIES[family](one.design)]


def scanned_rows(design: Design, rows: int) -> int:
    """Returns the rows that all keys of an inference scan, one for each place.

    A key of the paper needs two calls of the generator for each of them.
    """
    return sum(group.slots * group.rows for group in design.groups(rows))


def uncharged(design: Design, setup: Setup) -> int:
    """Returns the bytes of an inference if rows that arrive with others cost nothing."""
    return Cost.of(replace(design, together=0), setup, Machine(0, 0, 0, 0)).bytes
