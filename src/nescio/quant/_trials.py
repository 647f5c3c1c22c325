"""Results of a search: evaluated plans and their Pareto front."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .._arrays import shown
from ..errors import ArgumentError
from ._plan import Choice, check_bits

Genes = tuple[int, ...]
"""A plan as the index of each layer's choice; choices are sorted by cost."""


@dataclass(frozen=True)
class Point:
    """An evaluated plan; bits of None mean a float layer."""

    plan: dict[str, Choice]
    quality: float
    cost: float


@dataclass(frozen=True)
class SearchResult:
    """Evaluated plans in order of evaluation."""

    points: list[Point] = field(repr=False)

    @property
    def pareto(self) -> list[Point]:
        """Pareto front: points that no other point dominates, cheapest first."""
        best, front = -math.inf, []
        for point in sorted(self.points, key=lambda point: (point.cost, -point.quality)):
            if point.quality > best:
                front.append(point)
                best = point.quality
        return front

    def cheapest(self, least: float) -> Point:
        """Returns the cheapest point with at least this quality.

        Raises ArgumentError if no point has it.
        """
        for point in self.pareto:
            if point.quality >= least:
                return point
        highest = max(point.quality for point in self.points)
        raise ArgumentError(f"quality: found at most {highest:g}, expected at least {least:g}")


class Trials:
    """Evaluates plans, given as genes, and keeps their points."""

    def __init__(
        self,
        choices: Mapping[str, Sequence[Choice]],
        quality: Callable[[dict[str, Choice]], float],
        cost: Callable[[str, Choice], float],
        evaluations: int,
    ) -> None:
        if not isinstance(choices, Mapping) or not choices or not all(choices.values()):
            raise ArgumentError(
                "choices: found an empty set, expected choices for one or more layers"
            )
        self._quality, self._evaluations = quality, evaluations
        self.choices: dict[str, list[tuple[float, Choice]]] = {}
        for name, own in choices.items():
            checked = [None if bits is None else check_bits(bits, name) for bits in own]
            costs = [
                (_checked_cost(cost(name, bits), name), bits) for bits in dict.fromkeys(checked)
            ]
            self.choices[name] = sorted(costs, key=lambda pair: (pair[0], _size(pair[1])))
        self.tried: dict[Genes, Point] = {}
        self.lengths = [len(own) for own in self.choices.values()]
        self.plans = math.prod(self.lengths)

    @property
    def done(self) -> bool:
        """True if all plans or all allowed evaluations are used up."""
        return len(self.tried) >= min(self._evaluations, self.plans)

    def run(self, strategy: Iterator[Genes]) -> None:
        """Evaluates the plans of a strategy until it ends or nothing is left."""
        for genes in strategy:
            if genes not in self.tried:
                self.tried[genes] = self._evaluated(genes)
            if self.done:
                return

    def largest(self) -> Genes:
        """Returns the plan with the most bits for each layer; the cheapest of equal choices."""
        return tuple(
            max(range(len(own)), key=lambda i, own=own: (_size(own[i][1]), -i))  # type: ignore[misc]
            for own in self.choices.values()
        )

    def _evaluated(self, genes: Genes) -> Point:
        picked = [own[i] for own, i in zip(self.choices.values(), genes, strict=True)]
        plan = {name: bits for name, (_, bits) in zip(self.choices, picked, strict=True)}
        quality = self._quality(dict(plan))
        try:
            value = float(quality)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"quality: found {shown(quality)}, expected a number") from error
        if math.isnan(value):
            raise ArgumentError(f"quality: found NaN for {plan}, expected a number")
        return Point(plan, value, math.fsum(cost for cost, _ in picked))


def _size(bits: Choice) -> tuple[int, int]:
    return (32, 32) if bits is None else bits


def _checked_cost(cost: float, name: str) -> float:
    if not isinstance(cost, int | float) or not 0 <= cost < math.inf:
        raise ArgumentError(
            f"cost of {name!r}: found {shown(cost)}, expected a number of at least 0"
        )
    return float(cost)
