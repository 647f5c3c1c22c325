"""Networks of integers in clear, and online by both parties."""

import numpy as np
import pytest

from mpc.layers import relu, weights
from nescio import _core
from nescio.errors import ArgumentError, MismatchError
from nescio.mpc._activation import Activation
from nescio.mpc._dealer import insecure_deal
from nescio.mpc._maps import Convolution, Dense
from nescio.mpc._network import Layer, Network, Term
from nescio.mpc._online import dithers_of, infer, serve
from nescio.net import Channel
from ot.parties import together

POOL = _core.ThreadPool(1)


@pytest.fixture
def random():
    return np.random.default_rng(4)


@pytest.fixture
def network(random):
    """A residual network: strides, a shortcut, two widths of tables, and logits."""
    wide, narrow = Activation(relu, bits=8, low=-100), Activation(relu, bits=6, low=-20)
    first = Convolution(weights(random, 4, 3, 3, 3), (3, 8, 8), padding=(1, 1))
    second = Convolution(weights(random, 4, 4, 3, 3), (4, 8, 8), padding=(1, 1))
    third = Convolution(weights(random, 8, 4, 3, 3), (4, 8, 8), stride=(2, 2), padding=(1, 1))
    shortcut = Convolution(weights(random, 8, 4, 1, 1), (4, 8, 8), stride=(2, 2))
    last = Dense(weights(random, 5, 8 * 4 * 4), (8, 4, 4))
    return Network(
        (3, 8, 8),
        (
            Layer((Term(0, first),), weights(random, 4, limit=900), wide, 7),
            Layer((Term(1, second),), weights(random, 4, limit=900), narrow, 8),
            Layer((Term(2, third), Term(1, shortcut)), weights(random, 8, 4, 4), wide, 7),
            Layer((Term(3, last),), weights(random, 5, limit=5000)),
        ),
    )


def inputs_of(network, random, count):
    return random.integers(-40, 40, (count, *network.inputs)).astype(np.int32).view(np.uint32)


# ---- linear maps ---------------------------------------------------------------------------------


def by_definition(conv, values):
    """Convolves with Python integers."""
    (down, right), (top, side), (below, beside) = conv.stride, conv.padding, conv.dilation
    out = np.zeros((len(values), *conv.outputs), object)
    per_group, wide = len(conv.weights) // conv.groups, conv.weights.shape[1]
    for n, o, i, j in np.ndindex(*out.shape):
        for c, a, b in np.ndindex(*conv.weights.shape[1:]):
            y, x = i * down + a * below - top, j * right + b * beside - side
            if 0 <= y < conv.inputs[1] and 0 <= x < conv.inputs[2]:
                value = int(values[n, o // per_group * wide + c, y, x])
                out[n, o, i, j] += int(conv.weights[o, c, a, b]) * value
    return (out % (1 << 32)).astype(np.uint32)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"padding": (1, 2)},
        {"stride": (2, 3), "padding": (1, 0)},
        {"dilation": (2, 1), "padding": (2, 2)},
        {"groups": 2, "padding": (1, 1)},
    ],
)
@pytest.mark.parametrize("limit", [5, 32767])
def test_convolutions_are_exact_modulo_2_32(random, options, limit):
    """Also with the largest weights, whose products are not exact in float64."""
    groups = options.get("groups", 1)
    conv = Convolution(weights(random, 4, 6 // groups, 3, 2, limit=limit), (6, 7, 6), **options)
    values = random.integers(0, 1 << 32, (2, 6, 7, 6), np.uint32)
    found = conv(values)
    assert found.shape == (2, *conv.outputs)
    assert np.array_equal(found, by_definition(conv, values))


@pytest.mark.parametrize("limit", [5, 32767])
def test_products_are_exact_modulo_2_32(random, limit):
    dense = Dense(weights(random, 7, 4096, limit=limit))
    values = random.integers(0, 1 << 32, (3, 4096), np.uint32)
    expected = (values.astype(object) @ dense.weights.T.astype(object)) % (1 << 32)
    assert np.array_equal(dense(values), expected.astype(np.uint32))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Dense(np.zeros((2, 3))), "found float64 of shape"),
        (lambda: Dense(np.full((2, 3), 40000)), "found 40000, expected at most 32767"),
        (lambda: Dense(np.full((2, 3), -(2**63))), "found 9223372036854775808, expected at most"),
        (lambda: Dense(np.full((2, 3), 2**64 - 1, np.uint64)), "found 18446744073709551615"),
        (lambda: Dense(np.zeros((2, 3), int), (2, 2)), "expected 3 numbers"),
        (lambda: Convolution(np.zeros((2, 3, 1, 1), int), (2, 4, 4)), r"expected \(3, height"),
        (lambda: Convolution(np.zeros((2, 3, 5, 5), int), (3, 4, 4)), "smaller than the kernel"),
        (lambda: Convolution(np.zeros((2, 3, 1, 1), int), (3, 4, 4), stride=(0, 1)), "stride"),
        (
            lambda: Convolution(np.zeros((2, 3, 1, 1), int), (3, 4, 4), padding=1),
            "found 1, expected a",
        ),
        (
            lambda: Convolution(np.zeros((2, 3, 1, 1), int), (3, 4, 4), padding=(1,)),
            "found .1,., e",
        ),
        (lambda: Dense(np.zeros((2, 3), int), 3), "found 3, expected a tuple of integers"),
    ],
)
def test_maps_that_cannot_be(make, said):
    with pytest.raises(ArgumentError, match=said):
        make()


# ---- networks ------------------------------------------------------------------------------------


def test_in_clear_a_network_is_near_its_exact_values(network, random):
    x = inputs_of(network, random, 6)
    shapes = [(6, *layer.outputs) for layer in network.layers[:-1]]
    dithers = [random.integers(0, 1 << 32, shape, np.uint32) for shape in shapes]
    found = network.simulate(x, dithers)
    results = [x.view(np.int32).astype(np.float64)]
    for layer in network.layers:
        total = sum(
            term.map(results[term.source].astype(np.int64).astype(np.uint32)).view(np.int32)
            for term in layer.terms
        )
        values = layer.biased(total.view(np.uint32)).view(np.int32)
        if layer.activation is None:
            break
        results.append(np.maximum(np.round(values / (1 << layer.shift)), 0))
    outputs = found.outputs.view(np.int32)
    assert np.corrcoef(outputs.ravel(), values.ravel())[0, 1] > 0.98
    assert len(found.wraps) == 3


@pytest.mark.parametrize("count", [1, 3])
def test_both_parties_compute_what_the_simulator_does(network, random, count):
    client, server = insecure_deal(network, count, random)
    x = inputs_of(network, random, count)
    outputs, _ = together(
        lambda channel: infer(channel, network.public, client, x, POOL),
        lambda channel: serve(channel, network, server, POOL),
    )
    assert np.array_equal(outputs, network.simulate(x, dithers_of(client)).outputs)


def test_a_layer_takes_one_round_trip_and_7_bytes_a_value_of_8_bits(random):
    eight = Activation(relu, bits=8)
    layers = [
        Layer((Term(k, Dense(weights(random, 500, 500))),), np.zeros(500, int), eight, 9)
        for k in range(4)
    ]
    network = Network(
        (500,), (*layers, Layer((Term(4, Dense(weights(random, 2, 500))),), np.zeros(2, int)))
    )
    client, server = insecure_deal(network, 1, random)
    channels = Channel.pair()
    together(
        lambda channel: infer(channel, network.public, client, np.zeros((1, 500), np.uint32), POOL),
        lambda channel: serve(channel, network, server, POOL),
        channels,
    )
    sent = sum(channel.counts.sent_bytes for channel in channels)
    frames = 2 * (1 + 4) + 4
    assert sent - 4 * 500 - 8 <= 7 * 4 * 500 + 64 * frames
    assert channels[0].counts.rounds <= 5


def test_inputs_of_another_shape(network, random):
    client, _ = insecure_deal(network, 2, random)
    channel, _ = Channel.pair()
    with pytest.raises(ArgumentError, match=r"expected uint32 of shape \(2, 3, 8, 8\)"):
        infer(channel, network.public, client, np.zeros((1, 3, 8, 8), np.uint32), POOL)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"inputs": [[1, 2]]}, "inputs: found list, expected uint32"),
        ({"inputs": np.zeros((2, 3, 8, 8), int)}, r"expected uint32 of shape \(n, 3, 8, 8\)"),
        ({"dithers": []}, "dithers: found 0 arrays, expected a list of 3"),
        ({"errors": []}, "errors: found 0 arrays, expected a list of 4"),
        ({"dithers": [np.zeros(1, np.uint32)] * 3}, "dithers of layer 1: found uint32 of shape"),
        ({"dithers": 1}, "dithers: found 1, expected a list"),
    ],
)
def test_arrays_that_cannot_be_simulated(network, random, arrays, said):
    with pytest.raises(ArgumentError, match=said):
        network.simulate(**{"inputs": inputs_of(network, random, 2), **arrays})


def test_no_inputs_give_no_outputs(network, random):
    found = network.simulate(inputs_of(network, random, 0))
    assert found.outputs.shape == (0, 5)
    assert found.wraps == [0, 0, 0]


def test_a_party_with_another_network_ends_both(network, random):
    """A message of another length is refused before it is read."""
    client, _ = insecure_deal(network, 1, random)
    _, server = insecure_deal(network, 2, random)
    x = inputs_of(network, random, 1)
    with pytest.raises(MismatchError, match="INPT, of 768 bytes"):
        together(
            lambda channel: infer(channel, network.public, client, x, POOL),
            lambda channel: serve(channel, network, server, POOL),
        )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda layers: layers[:-1], "layer 3 of 3: found an activation"),
        (
            lambda layers: [layers[0], Layer(layers[1].terms, layers[1].bias), *layers[2:]],
            "2 of 4: found no a",
        ),
        (lambda layers: layers[1:], "expected 0|expected \\(3, 8, 8\\)"),
        (lambda layers: [Layer((), np.zeros(2, int)), layers[-1]], "found no map"),
        (
            lambda layers: [
                Layer(layers[0].terms, np.zeros(3, int), layers[0].activation, 7),
                *layers[1:],
            ],
            "found a bias, int64 of shape",
        ),
        (
            lambda layers: [*layers[:-1], Layer(layers[-1].terms, layers[-1].bias + (1 << 40))],
            "found a bias from 10995.*, expected -2147483648 to 2147483647",
        ),
        (
            lambda layers: [Layer(Term(0, layers[0].terms[0].map), layers[0].bias)],
            "a tuple of terms",
        ),
        (lambda layers: [layers[0].terms[0].map], "expected a tuple of Layer"),
    ],
)
def test_layers_that_do_not_fit(network, change, said):
    with pytest.raises(ArgumentError, match=said):
        Network(network.inputs, tuple(change(list(network.layers))))
