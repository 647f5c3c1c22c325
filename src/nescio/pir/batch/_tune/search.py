"""The search: designs of all kinds first, then designs similar to the best."""

from collections.abc import Callable, Iterator
from itertools import islice, zip_longest

from ....errors import ArgumentError
from .cost import Cost
from .design import Design, Needs, first_designs, similar
from .result import Trial, layers
from .score import Score

__all__ = ["search"]

_FIRST = 0.5
"""The share of the evaluations that goes to designs of all kinds."""
_ROUND = 32
"""Evaluations after which the best designs are found anew."""
_LAYERS = 3


class _Candidates:
    """Designs that are not scored yet, and whose cost is within the budgets."""

    def __init__(self, cost: Callable[[Design], Cost], affords: Callable[[Cost], bool]) -> None:
        self._cost, self._affords = cost, affords
        self._seen: set[Design] = set()
        self.skipped: list[Cost] = []

    def new(self, designs: list[Design]) -> Iterator[tuple[Design, Cost]]:
        """Yields each design once, with its cost; those over the budgets go to `skipped`."""
        for design in designs:
            if design in self._seen:
                continue
            self._seen.add(design)
            try:
                cost = self._cost(design)
            except ArgumentError:
                continue  # the table cannot be: records that are too long
            if self._affords(cost):
                yield design, cost
            else:
                self.skipped.append(cost)


def search(
    needs: Needs,
    cost: Callable[[Design], Cost],
    affords: Callable[[Cost], bool],
    score: Callable[[Design], Score],
    evaluations: int,
) -> tuple[list[Trial], list[Cost]]:
    """Scores at most `evaluations` designs; returns them, and the costs of those over the budgets.

    Half of them are of all kinds. The others differ by one step from the best found so far, and
    from the best without these: fewer keys, more bins, another number of hot rows, and so on.
    """
    candidates = _Candidates(cost, affords)
    trials: list[Trial] = []

    def take(designs: list[Design], count: int) -> bool:
        """Scores up to `count` new designs; returns false if there were none."""
        new = candidates.new(designs)
        found = list(islice(new, max(0, min(count, evaluations - len(trials)))))
        trials.extend(Trial(design, score(design), own, own.seconds) for design, own in found)
        return bool(found)

    first = first_designs(needs)
    take(first, max(1, round(_FIRST * evaluations)))
    while len(trials) < evaluations:
        fronts = layers(trials, _LAYERS)
        if not any(take(_around(front, needs), _ROUND) for front in fronts):
            break
    take(first, evaluations)
    return trials, candidates.skipped


def _around(front: list[Trial], needs: Needs) -> list[Design]:
    """Lists designs similar to those of a front, one of each in turns."""
    lists = [similar(trial.design, needs) for trial in front]
    turns = zip_longest(*lists)
    return [design for turn in turns for design in turn if design is not None]
