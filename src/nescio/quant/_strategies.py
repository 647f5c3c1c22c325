"""Strategies of a search: generators of the plans to try next."""

import itertools
import math
import random
from collections.abc import Iterator

from ._trials import Genes, Point, Trials

_POPULATION = 32


def everything(trials: Trials) -> Iterator[Genes]:
    yield from itertools.product(*map(range, trials.lengths))


def greedy(trials: Trials) -> Iterator[Genes]:
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


def evolution(trials: Trials, draw: random.Random) -> Iterator[Genes]:
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


def _child(trials: Trials, parents: list[Genes], draw: random.Random) -> Genes:
    """A mixture of two parents, each the better of two (they stand in order), and a mutation."""
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
    """The best plans: by front (those that no other of the rest beats), then by room."""
    left = sorted(tried, key=lambda genes: (tried[genes].cost, -tried[genes].quality, genes))
    chosen: list[Genes] = []
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
