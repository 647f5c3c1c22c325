"""Search of bits: results, number of evaluations, and determinism by seed."""

import itertools
import math
import random

import pytest

from nescio import quant
from nescio.errors import ArgumentError
from nescio.quant.search import MeasuredCost, Point, SearchResult, search, search_model
from quant.models import floats, perceptron, stack

CHOICES = [(w, a) for w in (1, 2, 4, 8) for a in (8, 16)]


def cost(name, bits):
    return 100.0 if bits is None else bits[0] * (1 + bits[1] / 16)


def lost(name, bits):
    """Returns the quality that a layer's bits lose, as an integer that differs between layers."""
    weight = sum(map(ord, name)) % 7 + 1
    return 0 if bits is None else weight * (64 >> bits[0]) + (1 if bits[1] == 8 else 0)


def quality(plan):
    return -sum(lost(name, bits) for name, bits in plan.items())


def layers(count):
    return {f"layer{i}": CHOICES for i in range(count)}


def front(points):
    """Computes the Pareto front by its definition."""
    return {
        (p.cost, p.quality)
        for p in points
        if not any(
            q.cost <= p.cost
            and q.quality >= p.quality
            and (q.cost, q.quality) != (p.cost, p.quality)
            for q in points
        )
    }


def test_few_plans_are_all_tried():
    found = search(layers(3), quality, cost)
    assert {tuple(p.plan.values()) for p in search(layers(2), quality, cost).points} == set(
        itertools.product(CHOICES, CHOICES)
    )
    assert len(found.points) == 400  # of 512
    found = search(layers(3), quality, cost, evaluations=512)
    assert len(found.points) == 512
    assert [(p.cost, p.quality) for p in found.pareto] == sorted(front(found.points))
    assert found == search(layers(3), quality, cost, method="exhaustive", evaluations=512)
    for point in found.points:
        assert point.quality == quality(point.plan)
        assert point.cost == sum(cost(name, bits) for name, bits in point.plan.items())


def test_the_cheapest_that_is_good_enough():
    found = search(layers(2), quality, cost)
    best = found.cheapest(least=-100)
    assert best.quality >= -100
    assert best.cost == min(p.cost for p in found.points if p.quality >= -100)
    with pytest.raises(ArgumentError, match="found at most .*expected at least 1"):
        found.cheapest(least=1)


@pytest.mark.parametrize("method", ["greedy", "evolutionary", "auto"])
def test_searches_come_near_to_the_best(method):
    """For each quality, the cost is close to the lowest cost of an exhaustive search."""
    everything = search(layers(4), quality, cost, evaluations=5000)
    found = search(layers(4), quality, cost, method=method, evaluations=500)
    assert len(found.points) <= 500
    worst = max(
        found.cheapest(p.quality).cost / p.cost for p in everything.pareto if p.quality <= -20
    )
    assert worst <= 1.35
    guess = [
        Point({}, quality(plan), sum(cost(*item) for item in plan.items()))
        for plan in random_plans(4, 500)
    ]
    assert area(found.points) > area(guess)


def random_plans(count, number):
    draw = random.Random(1)
    return [{name: draw.choice(CHOICES) for name in layers(count)} for _ in range(number)]


def area(points):
    """Returns the area under the front: quality above -2000 for every cost up to 100."""
    total, best, before = 0.0, -2000, 0.0
    for point in [*sorted(points, key=lambda p: (p.cost, -p.quality)), Point({}, -2000, 100)]:
        total += (min(point.cost, 100) - before) * (best + 2000)
        before, best = min(point.cost, 100), max(best, point.quality)
    return total


@pytest.mark.parametrize("method", ["exhaustive", "greedy", "evolutionary", "auto"])
def test_a_seed_decides_all(method):
    count = 2 if method == "exhaustive" else 5
    one, same = (search(layers(count), quality, cost, method=method, seed=7) for _ in range(2))
    assert one == same
    if method in ("evolutionary", "auto"):
        assert one != search(layers(count), quality, cost, method=method, seed=8)


def test_no_plan_is_asked_twice_and_no_more_than_allowed():
    for method, evaluations in itertools.product(["greedy", "evolutionary", "auto"], [1, 5, 100]):
        asked = []
        found = search(
            layers(6),
            lambda plan, asked=asked: asked.append(tuple(plan.items())) or quality(plan),
            cost,
            method=method,
            evaluations=evaluations,
        )
        assert len(asked) == len(set(asked)) == len(found.points) <= evaluations


def test_greedy_begins_with_the_most_bits_and_ends_with_the_least():
    found = search(layers(3), quality, cost, method="greedy", evaluations=10**5)
    assert set(found.points[0].plan.values()) == {(8, 16)}
    assert {"layer0": (1, 8), "layer1": (1, 8), "layer2": (1, 8)} in [p.plan for p in found.points]
    floating = search({"a": [None, (8, 32)]}, quality, cost, method="greedy")
    assert [p.plan for p in floating.points] == [{"a": None}, {"a": (8, 32)}]


def test_equal_points_are_one_of_the_front():
    same = [Point({"a": (b, 8)}, 1.0, 2.0) for b in (1, 2)]
    assert SearchResult(same).pareto == same[:1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"choices": {}}, "found an empty set"),
        ({"choices": {"a": []}}, "found an empty set"),
        ({"choices": {"a": [(9, 8)]}}, "a: weight bits: found 9"),
        ({"choices": {"a": [4]}}, "a: found 4"),
        ({"method": "best"}, "found 'best', expected one of auto, exhaustive"),
        ({"method": "exhaustive", "evaluations": 3}, "found 3, expected 64"),
        ({"evaluations": 0}, "evaluations: found 0"),
        ({"quality": lambda plan: math.nan}, "found NaN for {'layer0'"),
        ({"quality": lambda plan: "good"}, "found 'good', expected a number"),
        ({"quality": lambda plan: None}, "found None"),
        ({"cost": lambda name, bits: -1}, "cost of 'layer0': found -1"),
        ({"cost": lambda name, bits: math.inf}, "found inf"),
        ({"cost": lambda name, bits: math.nan}, "found nan"),
    ],
)
def test_searches_that_cannot_be(arguments, said):
    with pytest.raises(ArgumentError) as caught:
        search(**{"choices": layers(2), "quality": quality, "cost": cost, **arguments})
    assert said in str(caught.value)


def test_a_model_is_quantized_as_the_plans_say(rng):
    model = quant.Group({"fc": perceptron(rng), "rnn": stack(rng, quant.GRU)})
    x, sequence = floats(rng, 3, 70), floats(rng, 4, 2, 10)
    plans = []

    def worth(small):
        fc = (small["fc.0"], small["fc.2"], small["rnn"].children()["hh_l0"])
        found = [
            None
            if isinstance(layer.matrix, quant.FloatMatrix)
            else (layer.matrix.weights.bits, layer.matrix.activation_bits)
            for layer in fc
        ]
        plan = dict(zip(("fc.0", "fc.2", "rnn"), found, strict=True))
        again = quant.quantize(model, plan)
        if plan["fc.0"] and plan["fc.2"]:
            assert (again["fc"](x) == small["fc"](x)).all()
        if plan["rnn"]:
            assert (again["rnn"](sequence)[0] == small["rnn"](sequence)[0]).all()
        plans.append(plan)
        return quality(plan)

    found = search_model(
        model, worth, weight_bits=(1, 4), activation_bits=(8, 16), floats=True, cost=cost
    )
    assert [p.plan for p in found.points] == plans
    assert len(plans) == 5**3


def test_layers_by_name(rng):
    model = perceptron(rng, (5, 6, 7, 8))
    found = search_model(
        model, lambda small: 0, layers=["[02]"], weight_bits=[1], activation_bits=[8], cost=cost
    )
    assert found.points[0].plan == {"0": (1, 8), "2": (1, 8)}
    with pytest.raises(ArgumentError, match="layers: found 'fc', expected one or more of '0'"):
        search_model(model, lambda small: 0, layers=["fc"])
    with pytest.raises(ArgumentError, match="found int, expected"):
        search_model(3, lambda small: 0)


def test_measured_costs_are_seconds_and_measured_once():
    measured = MeasuredCost({"a": [(64, 100)], "b": [(64, 100), (64, 100)]}, seconds=0.001)
    for bits in (None, (1, 8), (3, 16), (8, 32)):
        once = measured("a", bits)
        assert 0 < once < 0.1
        assert measured("a", bits) == once
        assert measured("b", bits) == 2 * once
    with pytest.raises(ArgumentError, match="found 'c'"):
        measured("c", (1, 8))
