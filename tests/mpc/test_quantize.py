"""Networks of floats as networks of integers."""

from dataclasses import replace

import numpy as np
import pytest

from nescio.errors import ArgumentError
from nescio.mpc._maps import Convolution, Dense
from nescio.mpc._quantize import FloatLayer, FloatTerm, Function, quantize, run


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
