"""Bits for each layer: which plans are worth having, by quality and cost.

    found = search({"fc1": [(1, 8), (4, 8)], "fc2": [(1, 8), (4, 8)]}, quality, cost)
    found.pareto                      # no other plan is both as good and as cheap
    found.cheapest(least=0.97).plan

`quality` says what a plan is worth, larger is better; `cost` what one layer's bits cost, and a
plan costs what its layers cost together. All plans are tried where there are no more than
`evaluations`. Beyond, a greedy descent starts from the most bits and gives up, again and again,
those that lose the least quality for the cost that they save; what it tried is then the first
generation of an evolution (NSGA-II: Deb and others, 2002) until `evaluations` are spent. Everything
is determined by the seed. Source: thesis, section 3.5.3 (exhaustive).
"""

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from .._arrays import as_count, shown
from ..errors import ArgumentError
from .plan import Bits, check_bits

Choice = Bits | None
Method = Literal["auto", "exhaustive", "greedy", "evolutionary"]
METHODS: tuple[Method, ...] = get_args(Method)

DEFAULT_EVALUATIONS = 400
MOST_EVALUATIONS = 1 << 20

_POPULATION = 32
_Genes = tuple[int, ...]


@dataclass(frozen=True)
class Point:
    """A plan that was tried; None stands for a layer that stays in floats."""

    plan: dict[str, Choice]
    quality: float
    cost: float


@dataclass(frozen=True)
class Found:
    """What a search tried, in the order it did."""

    points: list[Point] = field(repr=False)

    @property
    def pareto(self) -> list[Point]:
        """The points that no other beats in quality without costing more, cheapest first."""
        best, front = -math.inf, []
        for point in sorted(self.points, key=lambda point: (point.cost, -point.quality)):
            if point.quality > best:
                front.append(point)
                best = point.quality
        return front

    def cheapest(self, least: float) -> Point:
        """The cheapest point of at least this quality. Raises ArgumentError if there is none."""
        for point in self.pareto:
            if point.quality >= least:
                return point
        most = max(point.quality for point in self.points)
        raise ArgumentError(f"quality: found at most {most:g}, expected at least {least:g}")


def search(
    choices: Mapping[str, Sequence[Choice]],
    quality: Callable[[dict[str, Choice]], float],
    cost: Callable[[str, Choice], float],
    *,
    method: Method = "auto",
    evaluations: int = DEFAULT_EVALUATIONS,
    seed: int = 0,
) -> Found:
    """Tries plans over each layer's choices; `quality` is asked at most `evaluations` times.

    Raises ArgumentError without choices, for bits that cannot be, more plans than `evaluations` in
    an exhaustive search, a quality that is NaN, and a cost that is not a number of at least 0.
    """
    if method not in METHODS:
        raise ArgumentError(f"method: found {shown(method)}, expected one of {', '.join(METHODS)}")
    evaluations = as_count(evaluations, "evaluations", 1, MOST_EVALUATIONS)
    trials = _Trials(choices, quality, cost, evaluations)
    if method == "exhaustive" and trials.plans > evaluations:
        raise ArgumentError(
            f"evaluations: found {evaluations}, expected {trials.plans} for an exhaustive search"
        )
    if method == "exhaustive" or (method != "greedy" and trials.plans <= evaluations):
        trials.run(_everything(trials))
    if method in ("auto", "greedy") and not trials.done:
        trials.run(_greedy(trials))
    if method in ("auto", "evolutionary") and not trials.done:
        trials.run(_evolution(trials, random.Random(seed)))  # noqa: S311 - no secrets
    return Found(list(trials.tried.values()))


class _Trials:
    """The plans that were tried, as genes: for each layer the number of its choice, by cost."""

    def __init__(
        self,
        choices: Mapping[str, Sequence[Choice]],
        quality: Callable[[dict[str, Choice]], float],
        cost: Callable[[str, Choice], float],
        evaluations: int,
    ) -> None:
        if not isinstance(choices, Mapping) or not choices or not all(choices.values()):
            raise ArgumentError("choices: found none, expected some for each of one or more layers")
        self._quality, self._evaluations = quality, evaluations
        self.choices: dict[str, list[tuple[float, Choice]]] = {}
        for name, own in choices.items():
            checked = [None if bits is None else check_bits(bits, name) for bits in own]
            costs = [
                (_checked_cost(cost(name, bits), name), bits) for bits in dict.fromkeys(checked)
            ]
            self.choices[name] = sorted(costs, key=lambda pair: (pair[0], _size(pair[1])))
        self.tried: dict[_Genes, Point] = {}
        self.lengths = [len(own) for own in self.choices.values()]
        self.plans = math.prod(self.lengths)

    @property
    def done(self) -> bool:
        """Whether nothing is left: no evaluation, or no plan."""
        return len(self.tried) >= min(self._evaluations, self.plans)

    def run(self, strategy: Iterator[_Genes]) -> None:
        """Tries what a strategy asks for until nothing is left."""
        for genes in strategy:
            if genes not in self.tried:
                self.tried[genes] = self._evaluated(genes)
            if self.done:
                return

    def largest(self) -> _Genes:
        """The choice of most bits for each layer; the cheapest where several have as many."""
        return tuple(
            max(range(len(own)), key=lambda i, own=own: (_size(own[i][1]), -i))  # type: ignore[misc]
            for own in self.choices.values()
        )

    def _evaluated(self, genes: _Genes) -> Point:
        picked = [own[i] for own, i in zip(self.choices.values(), genes, strict=True)]
        plan = {name: bits for name, (_, bits) in zip(self.choices, picked, strict=True)}
        quality = self._quality(dict(plan))
        try:
            worth = float(quality)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"quality: found {shown(quality)}, expected a number") from error
        if math.isnan(worth):
            raise ArgumentError(f"quality: found NaN for {plan}, expected a number")
        return Point(plan, worth, math.fsum(cost for cost, _ in picked))


def _everything(trials: _Trials) -> Iterator[_Genes]:
    yield from itertools.product(*map(range, trials.lengths))


def _greedy(trials: _Trials) -> Iterator[_Genes]:
    """From the most bits down: each round takes the move that loses least for what it saves."""
    at = trials.largest()
    yield at
    while any(at):
        moves = []
        for i, gene in enumerate(at):
            for lower in range(gene):
                genes = (*at[:i], lower, *at[i + 1 :])
                yield genes
                saved = trials.tried[at].cost - trials.tried[genes].cost
                lost = trials.tried[at].quality - trials.tried[genes].quality
                moves.append((_rate(lost, saved), genes))
        at = min(moves)[1]


def _rate(lost: float, saved: float) -> tuple[float, float]:
    """Quality lost for a unit saved, smaller is better; of moves that lose nothing, what saves."""
    return (0.0, -saved) if lost <= 0 else (lost / saved if saved > 0 else math.inf, -saved)


def _evolution(trials: _Trials, draw: random.Random) -> Iterator[_Genes]:
    """NSGA-II: the best of parents and children are the next parents."""
    yield trials.largest()
    yield tuple(0 for _ in trials.lengths)
    while True:
        parents = _selected(trials.tried, _POPULATION)
        for _ in range(_POPULATION):
            child = _child(trials, parents, draw)
            while child in trials.tried:  # ends: not every plan has been tried yet
                child = _mutated(child, trials.lengths, draw)
            yield child


def _child(trials: _Trials, parents: list[_Genes], draw: random.Random) -> _Genes:
    """A mixture of two parents, each the better of two (they stand in order), and a mutation."""
    mother, father = (
        parents[min(draw.randrange(len(parents)), draw.randrange(len(parents)))] for _ in range(2)
    )
    mixed = tuple(draw.choice(pair) for pair in zip(mother, father, strict=True))
    return _mutated(mixed, trials.lengths, draw)


def _mutated(genes: _Genes, lengths: list[int], draw: random.Random) -> _Genes:
    return tuple(
        draw.randrange(length) if draw.random() * len(lengths) < 1 else gene
        for gene, length in zip(genes, lengths, strict=True)
    )


def _selected(tried: dict[_Genes, Point], count: int) -> list[_Genes]:
    """The best plans: by front (those that no other of the rest beats), then by room."""
    left = sorted(tried, key=lambda genes: (tried[genes].cost, -tried[genes].quality, genes))
    chosen: list[_Genes] = []
    while left and len(chosen) < count:
        front, best = [], -math.inf
        for genes in left:
            if tried[genes].quality > best:
                front.append(genes)
                best = tried[genes].quality
        room = _room([tried[genes] for genes in front])
        order = sorted(range(len(front)), key=lambda i: -room[i])
        chosen += [front[i] for i in order]
        taken = set(front)
        left = [genes for genes in left if genes not in taken]
    return chosen[:count]


def _room(front: list[Point]) -> list[float]:
    """How far apart each point's neighbours are; the ends have all room."""
    if len(front) < 3:
        return [math.inf] * len(front)
    cost = front[-1].cost - front[0].cost or 1.0
    quality = front[-1].quality - front[0].quality or 1.0
    inner = [
        (after.cost - before.cost) / cost + (after.quality - before.quality) / quality
        for before, after in zip(front, front[2:], strict=False)
    ]
    return [math.inf, *inner, math.inf]


def _size(bits: Choice) -> tuple[int, int]:
    return (32, 32) if bits is None else bits


def _checked_cost(cost: float, name: str) -> float:
    if not isinstance(cost, int | float) or not 0 <= cost < math.inf:
        raise ArgumentError(f"cost of {name!r}: found {shown(cost)}, expected a number from 0 on")
    return float(cost)
