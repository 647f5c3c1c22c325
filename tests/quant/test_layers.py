"""NumPy layers: results with float and with low-bit weights."""

import numpy as np
import pytest

from nescio import quant
from nescio.errors import ArgumentError, IndexRangeError
from nescio.quant import _functions as functions
from quant.models import cell, floats, linear, perceptron, stack


def s(x):
    return 1 / (1 + np.exp(-x))


def product(layer, x):
    """Computes in doubles, from the weights that the layer stores."""
    matrix = layer.matrix
    weight = getattr(matrix, "weight", None)
    if weight is None:
        weight = matrix.weights.to_floats()
    return x @ weight.astype(np.float64).T + matrix.bias


def lstm_step(layer, x, h, c):
    i, f, g, o = np.split(product(layer.ih, x) + product(layer.hh, h), 4, axis=-1)
    c = s(f) * c + s(i) * np.tanh(g)
    return s(o) * np.tanh(c), c


def gru_step(layer, x, h):
    r, z, n = np.split(product(layer.ih, x), 3, axis=-1)
    hr, hz, hn = np.split(product(layer.hh, h), 3, axis=-1)
    n = np.tanh(n + s(r + hr) * hn)
    z = s(z + hz)
    return (1 - z) * n + z * h


def assert_same(found, expected, bits):
    """Checks for equal bits; float products are only close, because they depend on the batch."""
    close = {"rtol": 1e-4, "atol": 1e-6} if bits is None else {"rtol": 0, "atol": 0}
    np.testing.assert_allclose(found, expected, **close)


BITS = [None, (8, 32), (3, 32)]


def quantized(layer, bits):
    return layer if bits is None else quant.quantize(layer, {"": bits})


@pytest.mark.parametrize("bits", BITS)
def test_an_lstm_cell_is_its_formula(rng, bits):
    layer = quantized(cell(rng, quant.LSTMCell), bits)
    x, h, c = floats(rng, 4, 10), floats(rng, 4, 9), floats(rng, 4, 9)
    for found, expected in zip(layer(x, (h, c)), lstm_step(layer, x, h, c), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    zeros = np.zeros((4, 9), np.float32)
    for found, expected in zip(layer(x), layer(x, (zeros, zeros)), strict=True):
        assert (found == expected).all()
    assert layer(x[0])[0].shape == (9,)
    assert_same(layer(x[0], (h[0], c[0]))[1], layer(x, (h, c))[1][0], bits)


@pytest.mark.parametrize("bits", BITS)
def test_a_gru_cell_is_its_formula(rng, bits):
    layer = quantized(cell(rng, quant.GRUCell), bits)
    x, h = floats(rng, 4, 10), floats(rng, 4, 9)
    np.testing.assert_allclose(layer(x, h), gru_step(layer, x, h), rtol=1e-4, atol=1e-5)
    assert (layer(x) == layer(x, np.zeros_like(h))).all()
    assert_same(layer(x[1], h[1]), layer(x, h)[1], bits)


@pytest.mark.parametrize("kind", [quant.LSTM, quant.GRU])
@pytest.mark.parametrize("bits", BITS)
def test_a_stack_is_its_cells_one_after_the_other(rng, kind, bits):
    layer = quantized(stack(rng, kind, layers=2, bidirectional=True), bits)
    cell_kind = quant.LSTMCell if kind is quant.LSTM else quant.GRUCell
    parts = layer.children()
    x, ends = floats(rng, 5, 3, 10), []
    outputs = list(x)
    for depth in range(2):
        both = []
        for suffix in ("", "_reverse"):
            one = cell_kind(parts[f"ih_l{depth}{suffix}"], parts[f"hh_l{depth}{suffix}"])
            state, own = None, []
            for step in outputs if not suffix else outputs[::-1]:
                state = one(step, state)
                own.append(state[0] if kind is quant.LSTM else state)
            both.append(own if not suffix else own[::-1])
            ends.append(state)
        outputs = [np.concatenate(pair, axis=-1) for pair in zip(*both, strict=True)]
    found, end = layer(x)
    assert_same(found, np.stack(outputs), bits)
    if kind is quant.LSTM:
        assert_same(end[1], np.stack([c for _, c in ends]), bits)
        end, ends = end[0], [h for h, _ in ends]
    assert_same(end, np.stack(ends), bits)


@pytest.mark.parametrize("kind", [quant.LSTM, quant.GRU])
def test_the_order_of_axes(rng, kind):
    layer = quantized(stack(rng, kind), (4, 8))
    first = kind(layer.children(), batch_first=True)
    x = floats(rng, 5, 3, 10)
    expected, end = layer(x)
    found, same = first(x.swapaxes(0, 1))
    assert (found.swapaxes(0, 1) == expected).all()
    assert np.array_equal(np.asarray(end), np.asarray(same))
    for one in (layer, first):
        alone, end = one(x[:, 1])
        assert (alone == expected[:, 1]).all()
        again, _ = one(x[2:, 1], one(x[:2, 1])[1])
        assert (again == expected[2:, 1]).all()


def test_functions(rng):
    x = floats(rng, 3, 4) * 50
    wide = x.astype(np.float64)
    assert (functions.ReLU()(x) == np.maximum(x, 0)).all()
    odd = np.array([-0.0, 0.0, -1e-45, 1e-45, -np.inf, np.inf, np.nan], np.float32)
    kept = np.where(odd < 0, np.float32(0), odd)  # the sign of -0, and NaN
    assert functions.ReLU()(odd).tobytes() == kept.tobytes()
    assert (functions.LeakyReLU(0.5)(x) == np.where(x > 0, x, x / 2)).all()
    assert (functions.Identity()(x) == x).all()
    assert functions.Flatten()(x.reshape(3, 2, 2)).shape == (3, 4)
    assert functions.Flatten()(x[:0]).shape == (0, 4)
    np.testing.assert_allclose(functions.Tanh()(x), np.tanh(wide), rtol=1e-6)
    np.testing.assert_allclose(functions.Sigmoid()(x), s(wide), rtol=1e-5, atol=1e-7)
    soft = np.exp(wide - wide.max(-1, keepdims=True))
    soft /= soft.sum(-1, keepdims=True)
    np.testing.assert_allclose(functions.Softmax()(x), soft, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(functions.Softmax(log=True)(x), np.log(soft), 1e-4, 1e-6)
    weight, bias = floats(rng, 4), floats(rng, 4)
    centred = wide - wide.mean(-1, keepdims=True)
    expected = centred / np.sqrt(centred.var(-1, keepdims=True) + 1e-5) * weight + bias
    np.testing.assert_allclose(functions.LayerNorm(weight, bias)(x), expected, rtol=1e-4)


def test_an_embedding_is_its_rows(rng):
    table = floats(rng, 7, 3)
    layer = quant.Embedding(table)
    assert (layer([[0, 6], [2, 2]]) == table[[[0, 6], [2, 2]]]).all()
    with pytest.raises(IndexRangeError):
        layer([7])


def test_a_model_is_a_tree(rng):
    inner = perceptron(rng)
    model = quant.Group({"a": inner, "b": linear(rng, 4, 5)}, of="Mine")
    assert model["a.0"] is inner[0]
    assert model["a"]["2"] is inner[2]
    assert len(inner) == 3
    with pytest.raises(
        ArgumentError, match="Mine: found a call, .*expected calls of its layers .'a', 'b'"
    ):
        model(1)
    with pytest.raises(ArgumentError, match="found 'c', expected one of 'a', 'b'"):
        model["c"]
    with pytest.raises(ArgumentError, match="expected text without dots"):
        quant.Group({"a.b": inner})
    with pytest.raises(ArgumentError, match="expected a Layer"):
        quant.Sequential(1)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda r: quant.Linear(3), "expected a BitSerialMatrix"),
        (lambda r: quant.Embedding([1.0]), "expected floats of shape"),
        (lambda r: functions.LayerNorm([1], [1.0]), "weight: found int64, expected floats"),
        (lambda r: functions.LayerNorm([1.0], [1.0, 2.0]), "found shapes (1,) and (2,)"),
        (lambda r: functions.LayerNorm(1.0, 1.0), "found shapes () and (), expected (size,)"),
        (lambda r: functions.LayerNorm([1.0], [1.0], -5), "eps: found -5.0"),
        (lambda r: functions.LeakyReLU(np.nan), "slope: found nan, expected a finite number"),
        (lambda r: functions.LeakyReLU(10**400), "slope: found a number of 1329 bits"),
        (lambda r: functions.LeakyReLU("a"), "slope: found 'a'"),
        (lambda r: functions.LeakyReLU(True), "slope: found True"),
        (lambda r: functions.Softmax()(np.zeros((2, 0))), "found shape (2, 0), expected a last"),
        (lambda r: quant.LSTM({}, layers=0), "layers: found 0, expected 1 to 1024"),
        (lambda r: quant.GRU({}, layers=10**9), "layers: found 1000000000, expected 1 to 1024"),
        (lambda r: perceptron(r, range(1, 12))["x"], "found 'x', expected one of '0', '1', '2'"),
        (lambda r: perceptron(r, range(1, 12))["x"], "'7' and 11 more"),
        (lambda r: quant.LSTMCell(linear(r, 3, 8), linear(r, 3, 12)), "found 8 and 12 rows"),
        (lambda r: quant.LSTM({"ih_l0": linear(r, 3, 8)}), "expected ['hh_l0', 'ih_l0']"),
        (
            lambda r: quant.GRU({"ih_l0": perceptron(r), "hh_l0": linear(r, 3, 9)}),
            "expected only Linear",
        ),
        (
            lambda r: quant.LSTM(
                {
                    **stack(r, quant.LSTM, 10, 9).children(),
                    "ih_l1": linear(r, 10, 36),
                    "hh_l1": linear(r, 9, 36),
                },
                layers=2,
            ),
            "layer 1: found 10 inputs and 9 units, expected 9 and 9",
        ),
    ],
)
def test_parts_that_do_not_fit(rng, make, said):
    with pytest.raises(ArgumentError) as caught:
        make(rng)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("make", "x", "state"),
    [
        (lambda r: cell(r, quant.LSTMCell), (3, 11), None),
        (lambda r: cell(r, quant.LSTMCell), (3, 10), "one"),
        (lambda r: cell(r, quant.GRUCell), (2, 3, 10), None),
        (lambda r: cell(r, quant.GRUCell), (3, 10), (2, 9)),
        (lambda r: stack(r, quant.LSTM), (3, 10, 10, 10), None),
        (lambda r: stack(r, quant.LSTM), (0, 2, 10), None),
        (lambda r: stack(r, quant.GRU), (4, 3, 10), (3, 9)),
        (lambda r: stack(r, quant.GRU), (4, 3, 11), None),
    ],
)
def test_shapes_that_do_not_fit(rng, make, x, state):
    given = np.zeros(state, np.float32) if isinstance(state, tuple) else state
    with pytest.raises(ArgumentError, match="found .*expected"):
        make(rng)(np.zeros(x, np.float32), given)
