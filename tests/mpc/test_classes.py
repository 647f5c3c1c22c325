"""Layers that find the class: exact for all ranks, roundings and errors of products."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from nescio.errors import ArgumentError, MalformedMessageError
from nescio.mpc import Network, PrivateModel, PublicPlan, Server, insecure_dealer
from nescio.mpc import _classes as own
from nescio.mpc._maps import Dense
from nescio.mpc._plans.compiler import plan_of
from nescio.mpc._plans.floats import FloatLayer, FloatTerm
from nescio.net import Channel
from ot.parties import together
from spec.classes import largest, ranks_of

EDGES = [0, 1, 2, 511, 512, 1021, 1022, 1023]


def network_of(count):
    """Returns a network whose input are the ranks."""
    return Network((count,), tuple(own.class_layers((count,), 0)))


def disturbances(network, count, rng):
    """Yields dithers and errors: random ones, and the extremes of both."""
    low = [(1 << layer.shift) - 1 for layer in network.layers[:-1]]
    terms = [len(layer.terms) for layer in network.layers]
    shapes = [(count, *layer.outputs) for layer in network.layers]
    errors = [
        rng.integers(-most, most + 1, shape) for most, shape in zip(terms, shapes, strict=True)
    ]
    yield network.draw_dithers(count), [one.astype(np.uint32) for one in errors]
    for sign, high in itertools.product((-1, 1), (0, 1)):
        dithers = [
            np.full(shape, high * most, np.uint32) for most, shape in zip(low, shapes, strict=False)
        ]
        yield (
            dithers,
            [
                np.full(shape, sign * most).astype(np.uint32)
                for most, shape in zip(terms, shapes, strict=True)
            ],
        )


def mistakes(network, ranks, rng):
    """Counts wraps, and classes that are not those of the specification, over disturbances."""
    expected = [largest(line) for line in ranks.tolist()]
    wrong = 0
    for dithers, errors in disturbances(network, len(ranks), rng):
        found = network.simulate(ranks.astype(np.uint32), dithers, errors)
        classes = own.classes_of(found.outputs, ranks.shape[1])
        wrong += int((classes != expected).sum())
        wrong += sum(found.wraps)
    return wrong


@pytest.fixture(params=["pairs", "tournament"])
def way(request, monkeypatch):
    """Both ways, whatever the number of classes."""
    monkeypatch.setattr(own, "MOST_PAIRED", 1 << 20 if request.param == "pairs" else 1)


def test_two_ranks_with_every_difference(way, rng):
    differences = np.arange(-1023, 1024)
    ranks = np.stack([np.maximum(differences, 0), np.maximum(-differences, 0)], 1)
    assert mistakes(network_of(2), ranks, rng) == 0


@pytest.mark.parametrize("count", [3, 4])
def test_all_ranks_of_few_classes(way, rng, count):
    """Also all ties: the first of equal ranks wins, and there always is one winner."""
    edges = EDGES if count == 3 else EDGES[1::2]
    ranks = np.array(list(itertools.product(edges, repeat=count)))
    assert mistakes(network_of(count), ranks, rng) == 0


@pytest.mark.parametrize("count", [5, 10, 31, 100])
def test_ranks_of_many_classes(way, rng, count):
    few = rng.integers(0, 3, (40, count))
    many = rng.integers(0, 1024, (40, count))
    equal = np.repeat(rng.integers(0, 1024, (4, 1)), count, 1)
    ranks = np.concatenate([few, many, equal, few + 1021])
    assert mistakes(network_of(count), ranks, rng) == 0


def test_as_many_classes_as_there_may_be(rng):
    ranks = np.zeros((3, own.MAX_CLASSES), np.int64)
    ranks[1, -1], ranks[2] = 1, 1023
    assert mistakes(network_of(own.MAX_CLASSES), ranks, rng) == 0
    for count in (1, own.MAX_CLASSES + 1):
        with pytest.raises(ArgumentError, match="2 to 2,047 classes"):
            own.class_layers((count,), 0)


@pytest.mark.parametrize("number", [0, 1])
def test_the_room_for_errors_is_needed(way, rng, number):
    """The same checks find mistakes if a layer lacks its room, or one of its places."""
    network = network_of(4)
    ranks = rng.integers(0, 3, (200, 4))
    for change in (
        lambda layer: replace(layer, bias=layer.bias - 2 * len(layer.terms)),
        lambda layer: replace(layer, shift=layer.shift + 1),
    ):
        layers = list(network.layers)
        layers[number] = change(layers[number])
        assert mistakes(replace(network, layers=tuple(layers)), ranks, rng) > 0


# ---- outputs as ranks ----------------------------------------------------------------------------


def classifier(rng, count, features=6, offset=0.0):
    weights = rng.normal(0, 1, (count, features))
    geometry = Dense(np.zeros(weights.shape, np.int64))
    bias = rng.normal(offset, 1, count)
    return [FloatLayer((FloatTerm(0, geometry, weights),), bias)], weights, bias


def test_ranks_are_those_of_the_specification(rng):
    """Also of outputs outside of the window: they have the first or the last rank."""
    activation, unit, center = own.ranking(-3.0, 9.0, 0.25)
    outputs = np.concatenate([np.linspace(-11.9, 17.9, 999), [-3.0, 9.0]])
    exact = np.floor((outputs - center) / unit).astype(np.int64)
    for more in (0, 1):
        ranks = activation.entries[(exact + more) % 4096]
        for output, rank in zip(outputs.tolist(), ranks.tolist(), strict=True):
            assert rank in ranks_of(output, -3.0, 9.0, 0.25)


@pytest.mark.parametrize(("count", "offset"), [(2, 0), (10, 1000), (150, -50)])
def test_classes_are_those_of_the_outputs(rng, count, offset):
    """A number that is added to all outputs costs no ranks."""
    layers, weights, bias = classifier(rng, count, offset=offset)
    inputs = rng.normal(0, 1, (400, 6))
    plan = plan_of(layers, inputs[:200], held=inputs[200:], as_class=True)
    logits = inputs @ weights.T + bias
    first, second = np.sort(logits)[:, :-3:-1].T
    clear = first - second > 0.02 * (logits.max() - logits.min())
    found = plan.simulate(inputs).outputs
    assert (found.dtype, found.shape) == (np.int64, (400,))
    assert (found == logits.argmax(1))[clear].all()
    assert clear.mean() > 0.3
    report = plan.report
    assert report.agreement >= 0.9
    assert report.error is None
    assert report.rounds == len(plan.network.layers) == {2: 4, 10: 4, 150: 12}[count]
    assert "standard deviation" not in str(report)
    names = [layer.function for layer in report.layers]
    if count < 150:
        assert names == ["ranks", "compare", "wins", "-"]
    else:
        assert names == ["ranks", *["maximum"] * 8, "equal", "first", "-"]


def test_a_budget_counts_the_layers_of_the_class(rng):
    layers, *_ = classifier(rng, 5, features=16)
    weights = rng.normal(0, 1, (16, 8))
    hidden = FloatLayer((FloatTerm(0, Dense(weights.astype(int)), weights),), np.zeros(16))
    layers[0] = replace(layers[0], terms=(layers[0].terms[0]._replace(source=1),))
    inputs = rng.normal(0, 1, (90, 8))
    data = {"fit": inputs[:60], "held": inputs[60:], "as_class": True}
    least = plan_of([hidden, *layers], table_bits=4, **data).report.offline_bytes
    found = plan_of([hidden, *layers], offline_bytes=least + 1500, **data).report
    assert least < found.offline_bytes <= least + 1500
    with pytest.raises(ArgumentError, match="expected at least"):
        plan_of([hidden, *layers], offline_bytes=least - 1, **data)


def test_numbers_that_are_no_class():
    numbers = np.array([[4], [3], [5], [41]], np.uint32)
    assert own.classes_of(numbers, 10).tolist() == [0, 0, 0, 9]
    found = own.classes_of(np.array([[0], [1], [2**32 - 4], [44], [2**31]], np.uint32), 10)
    assert found.tolist() == [0, 0, 0, 9, 0]


def test_a_server_that_adds_to_the_class_is_told_nothing(rng, tmp_path, monkeypatch):
    """An error at the client would tell it the number, and so the class."""
    layers, *_ = classifier(rng, 10)
    inputs = rng.normal(0, 1, (60, 6))
    plan = plan_of(layers, inputs[:40], held=inputs[40:], as_class=True)
    insecure_dealer(plan.network, tmp_path / "client", tmp_path / "server", 1, seed=1)
    send = Channel.send

    def lying(channel, kind, data):
        send(channel, kind, np.asarray(data) + np.uint32(1000) if kind == "OUTS" else data)

    monkeypatch.setattr(Channel, "send", lying)

    def client(channel):
        with PrivateModel(channel, plan.public, tmp_path / "client", threads=1) as model:
            found = model(inputs[:1])
            channel.send("DONE", b"")
            return found

    def server(channel):
        with Server(channel, plan.network, tmp_path / "server", threads=1) as party:
            party.serve()
        return channel.receive("DONE", 0)

    found, done = together(client, server)
    assert (found.tolist(), bytes(done)) == ([9], b"")


def test_public_plans_say_what_they_give(rng):
    layers, *_ = classifier(rng, 3)
    inputs = rng.normal(0, 1, (20, 6))
    plans = [plan_of(layers, inputs, held=inputs, as_class=own) for own in (False, True)]
    logits, classes = (plan.public for plan in plans)
    assert (logits.classes, classes.classes) == (None, 3)
    assert PublicPlan.from_bytes(classes.to_bytes()).classes == 3
    for plan, bad in ((logits, 3), (classes, 4), (classes, 1), (classes, True), (classes, "3")):
        changed = PublicPlan(plan.network, plan.input_scale, plan.output_scale, bad)
        with pytest.raises(MalformedMessageError, match="classes"):
            PublicPlan.from_bytes(changed.to_bytes())
