"""Search strategies: generators of the plans to evaluate next."""

import itertools
import math
import random
from collections.abc import Iterator

from ._trials import Genes, Point, Trials

_POPULATION = 32


def exhaustive(trials: Trials) -> Iterator[Genes]:
    yield from itertools.product(*map(range, trials.lengths))


def greedy(trials: Trials) -> Iterator[Genes]:
    """Starts from the most bits; each round makes the move with the least loss per saved cost."""
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
    """Returns a sort key: quality lost per unit of cost saved, then the most cost saved."""
    return (0.0, -saved) if lost <= 0 else (lost / saved if saved > 0 else math.inf, -saved)


def evolution(trials: Trials, draw: random.Random) -> Iterator[Genes]:
    """Runs NSGA-II: the best of parents and children become the next parents."""
    yield trials.largest()
    yield tuple(0 for _ in trials.lengths)
    while True:
        parents = _selected(trials.tried, _POPULATION)
        for _ in range(_POPULATION):
            child = _child(trials, parents, draw)
            while child in trials.tried:  # terminates: some plan is left
                child = _mutated(child, trials.lengths, draw)
            yield child


def _child(trials: Trials, parents: list[Genes], draw: random.Random) -> Genes:
    """Crosses two parents, each from a binary tournament (sorted list), and mutates the child."""
    mother, father = (
        parents[min(draw.randrange(len(parents)), draw.randrange(len(parents)))] for _ in range(2)
    )
    mixed = tuple(draw.choice(pair) for pair in zip(mother, father, strict=True))
    return _mutated(mixed, trials.lengths, draw)


def _mutated(genes: Genes, lengths: list[int], draw: random.Random) -> Genes:
    return tuple(
        draw.randrange(length) if draw.random() * len(lengths) < 1 else gene
        for gene, length in zip(genes, lengths, strict=True)
    )


def _selected(tried: dict[Genes, Point], count: int) -> list[Genes]:
    """Selects the best plans by non-dominated front, then by crowding distance."""
    left = sorted(tried, key=lambda genes: (tried[genes].cost, -tried[genes].quality, genes))
    chosen: list[Genes] = []
    while left and len(chosen) < count:
        front, best = [], -math.inf
        for genes in left:
            if tried[genes].quality > best:
                front.append(genes)
                best = tried[genes].quality
        distances = _crowding_distances([tried[genes] for genes in front])
        order = sorted(range(len(front)), key=lambda i: -distances[i])
        chosen += [front[i] for i in order]
        taken = set(front)
        left = [genes for genes in left if genes not in taken]
    return chosen[:count]


def _crowding_distances(front: list[Point]) -> list[float]:
    """Returns each point's crowding distance; it is infinite at both ends of the front."""
    if len(front) < 3:
        return [math.inf] * len(front)
    cost = front[-1].cost - front[0].cost or 1.0
    quality = front[-1].quality - front[0].quality or 1.0
    inner = [
        (after.cost - before.cost) / cost + (after.quality - before.quality) / quality
        for before, after in zip(front, front[2:], strict=False)
    ]
    return [math.inf, *inner, math.inf]
