"""Networks of floats as networks of integers."""

import math
from dataclasses import replace

import numpy as np
import pytest

from nescio.errors import ArgumentError
from nescio.mpc._maps import Convolution, Dense
from nescio.mpc._network import Network, Term
from nescio.mpc._plans.floats import RELU, FloatLayer, FloatTerm, Function, run
from nescio.mpc._plans.quantize import quantize
from nescio.mpc._products import overloaded


def convolution(random, source, shape, outputs, **options):
    groups = options.get("groups", 1)
    weights = random.normal(0, 0.3, (outputs, shape[0] // groups, 3, 3))
    return FloatTerm(source, Convolution(np.zeros(weights.shape, int), shape, **options), weights)


@pytest.fixture
def random():
    return np.random.default_rng(8)


@pytest.fixture
def layers(random):
    """A residual network with groups, whose channels have very different scales."""
    first = convolution(random, 0, (3, 10, 10), 6, padding=(1, 1))
    first = first._replace(weights=first.weights * np.logspace(-2, 1, 6)[:, None, None, None])
    second = convolution(random, 1, (6, 10, 10), 6, padding=(1, 1), groups=2)
    third = convolution(random, 2, (6, 10, 10), 4, padding=(1, 1), stride=(2, 2))
    shortcut = convolution(random, 1, (6, 10, 10), 4, padding=(1, 1), stride=(2, 2))
    matrix = random.normal(0, 0.1, (7, 4 * 5 * 5))
    last = FloatTerm(3, Dense(np.zeros(matrix.shape, int), (4, 5, 5)), matrix)
    return [
        FloatLayer((first,), random.normal(0, 0.5, 6)),
        FloatLayer((second,), random.normal(0, 0.5, 6)),
        FloatLayer((third, shortcut), random.normal(0, 0.5, 4)),
        FloatLayer((last,), random.normal(0, 0.5, 7)),
    ]


def outputs_of(quantized, inputs, seed=1):
    random = np.random.default_rng(seed)
    shapes = [(len(inputs), *layer.outputs) for layer in quantized.network.layers[:-1]]
    dithers = [random.integers(0, 1 << 32, shape, np.uint32) for shape in shapes]
    found = quantized.network.simulate(quantized.encode(inputs), dithers)
    return quantized.decode(found.outputs), found.wraps


FUNCTIONS = {
    "gelu": Function("gelu", lambda x: x * 0.5 * (1 + np.tanh(0.8 * (x + 0.0447 * x**3)))),
    "sigmoid": Function("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    "identity": Function("identity", lambda x: x, scales=True),
    "leaky": Function("leaky", lambda x: np.where(x < 0, 0.1 * x, x), scales=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_functions_are_tables_too(layers, random, name):
    """With several widths of tables, and scales for each channel where the function allows it."""
    layers = [*(replace(layer, function=FUNCTIONS[name]) for layer in layers[:-1]), layers[-1]]
    calibration, inputs = random.normal(0, 1, (2, 50, 3, 10, 10))
    quantized = quantize(layers, calibration, bits=[10, 9, 10])
    assert [layer.activation.bits for layer in quantized.network.layers[:-1]] == [10, 9, 10]
    found, wraps = outputs_of(quantized, inputs)
    expected = list(run(layers, inputs))[-1]
    assert np.abs(found - expected).mean() < 0.08 * expected.std()
    assert sum(wraps) < 5


@pytest.mark.parametrize(("bits", "error"), [(6, 0.2), (8, 0.05), (10, 0.02)])
def test_outputs_are_near_those_of_floats(layers, random, bits, error):
    calibration, inputs = random.normal(0, 1, (2, 50, 3, 10, 10))
    quantized = quantize(layers, calibration, bits=bits)
    found, wraps = outputs_of(quantized, inputs)
    expected = list(run(layers, inputs))[-1]
    assert np.abs(found - expected).mean() < error * expected.std()
    assert sum(wraps) < 5


def test_the_calibration_itself_never_wraps(layers, random):
    calibration = random.normal(0, 1, (100, 3, 10, 10))  # two chunks
    _, wraps = outputs_of(quantize(layers, calibration, bits=8), calibration)
    assert wraps == [0, 0, 0]


def test_larger_inputs_wrap_and_are_counted(layers, random):
    calibration = random.normal(0, 1, (40, 3, 10, 10))
    quantized = quantize(layers, calibration, margin=0)
    _, wraps = outputs_of(quantized, 30 * np.sign(calibration))
    assert wraps[0] > 0


def test_a_layer_of_zeros(random):
    """No scale is zero, and no shift is too large."""
    zero = FloatTerm(0, Dense(np.zeros((4, 5), int)), np.zeros((4, 5)))
    last = FloatTerm(1, Dense(np.zeros((2, 4), int)), np.zeros((2, 4)))
    layers = [FloatLayer((zero,), np.zeros(4)), FloatLayer((last,), np.array([0.5, -0.25]))]
    found, wraps = outputs_of(quantize(layers, random.normal(0, 1, (9, 5))), np.ones((3, 5)))
    assert found == pytest.approx(np.tile([0.5, -0.25], (3, 1)), abs=1e-3)
    assert wraps == [0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weight_bits": 16}, "weight_bits"),
        ({"margin": -0.1}, "margin: found -0.1"),
        ({"bits": 13}, "bits"),
        ({"calibration": np.zeros((0, 3, 10, 10))}, "found no inputs"),
        ({"calibration": np.full((1, 3, 10, 10), np.nan)}, "not finite"),
    ],
)
def test_options_that_cannot_be(layers, options, said):
    with pytest.raises(ArgumentError, match=said):
        quantize(layers, **{"calibration": np.ones((1, 3, 10, 10))} | options)


# ---- scales and limits ---------------------------------------------------------------------------


def two_layers(first, last, function):
    """Returns layers of two matrices without biases."""
    layers = []
    for source, weights in enumerate((first, last)):
        geometry = Dense(np.zeros(weights.shape, int), (weights.shape[1],))
        own = {"function": function} if source == 0 else {}
        layers.append(
            FloatLayer((FloatTerm(source, geometry, weights),), np.zeros(len(weights)), **own)
        )
    return layers


@pytest.mark.parametrize("size", [1e-12, 1e-7, 1.0, 1e9])
@pytest.mark.parametrize("outputs", [1e-9, 1.0])
def test_the_size_of_values_does_not_matter(size, outputs):
    random = np.random.default_rng(3)
    first, last = random.normal(size=(16, 8)) * size, random.normal(size=(3, 16)) * outputs / size
    layers = two_layers(first, last, RELU)
    inputs = random.normal(size=(200, 8))
    quantized = quantize(layers, inputs, bits=8, margin=0.25)
    *_, expected = run(layers, inputs[:50])
    found = quantized.decode(quantized.network.simulate(quantized.encode(inputs[:50])).outputs)
    assert np.abs(found - expected).mean() < 0.05 * expected.std()


def test_a_channel_without_values_has_the_scale_of_its_layer():
    """Its weights are not refused as too large."""
    random = np.random.default_rng(3)
    inputs = random.normal(size=(200, 8)) * (np.arange(8) < 4)
    first = np.eye(8)
    layers = two_layers(first, random.normal(size=(3, 8)), RELU)
    quantized = quantize(layers, inputs)
    *_, expected = run(layers, inputs)
    found = quantized.decode(quantized.network.simulate(quantized.encode(inputs)).outputs)
    assert np.abs(found - expected).mean() < 0.05 * expected.std()


def test_sums_of_many_weights_get_fewer_bits():
    """The engine's bounds for an output polynomial hold, so that the plan can be prepared."""
    random = np.random.default_rng(3)
    last = np.ones((2, 50_000)) / 50_000
    geometry = Dense(np.zeros(last.shape, int), (50_000,))
    layers = [FloatLayer((FloatTerm(0, geometry, last),), np.zeros(2))]
    inputs = random.normal(size=(8, 50_000))
    network = quantize(layers, inputs, weight_bits=11).network
    weights = network.layers[0].terms[0].map.weights.astype(np.int64)
    assert np.abs(weights).sum(1).max() <= 1 << 25  # 9 bits fit, 10 would not
    assert 400 < weights.max() < 512
    assert overloaded(network) == []
    too_large = replace(network.layers[0], terms=(Term(0, Dense(np.full(last.shape, 2047))),))
    assert overloaded(Network((50_000,), (too_large,))) == [0]


@pytest.mark.parametrize("function", [np.log, lambda values: np.exp(350 * values)])
def test_functions_that_are_not_finite_in_the_window(function):
    random = np.random.default_rng(3)
    layers = two_layers(np.eye(4), np.ones((2, 4)), Function("mine", function))
    with pytest.raises(
        ArgumentError, match=r"layer 1: found a function \(mine\) that is not finite"
    ):
        quantize(layers, random.uniform(0.5, 2, (20, 4)))


def test_values_that_are_not_finite_in_the_calibration():
    layers = two_layers(np.eye(4), np.ones((2, 4)), Function("mine", lambda values: values / 0.0))
    with (
        np.errstate(all="ignore"),
        pytest.raises(ArgumentError, match="layer 2: found values that are not finite"),
    ):
        quantize(layers, np.ones((4, 4)))


def test_public_scales_have_8_bits():
    """They do not tell the largest weight and the largest number of the calibration."""
    layers = two_layers(np.eye(4), np.ones((2, 4)) / 3, RELU)
    quantized = quantize(layers, np.random.default_rng(3).normal(size=(20, 4)))
    for scale in (quantized.input_scale, quantized.output_scale, quantized.largest):
        fraction, _ = math.frexp(scale)
        assert fraction * 256 == int(fraction * 256)
