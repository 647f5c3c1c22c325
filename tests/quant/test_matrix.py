"""Low-bit matrices: the engine's product with a NumPy interface."""

import copy
import pickle
import threading

import numpy as np
import pytest

import devices
from nescio import quant
from nescio.errors import ArgumentError
from spec import bitserial as spec


def integers(rng, bits, shape):
    return rng.choice(np.array(spec.levels(bits)), shape)


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("activation_bits", [8, 16, 32])
def test_products_are_the_specification_s(rng, bits, activation_bits):
    q = integers(rng, bits, (7, 75))
    scale, bias = (rng.random(7).astype(np.float32) for _ in range(2))
    x = rng.standard_normal((3, 75)).astype(np.float32)
    weights = quant.from_integers(q, bits, scale)
    for own in (None, bias):
        matrix = quant.BitSerialMatrix(weights, activation_bits, bias=own)
        expected = [
            spec.apply(
                q.tolist(),
                vector.tolist(),
                activation_bits,
                scale.tolist(),
                None if own is None else own.tolist(),
            )
            for vector in x
        ]
        assert matrix(x).tolist() == expected


def test_any_leading_axes(rng):
    matrix = quant.BitSerialMatrix(quant.quantize_weights(rng.standard_normal((5, 20)), 4))
    x = rng.standard_normal((2, 3, 20)).astype(np.float32)
    y = matrix(x)
    assert y.shape == (2, 3, 5)
    assert y.dtype == np.float32
    assert (matrix(x[1, 2]) == y[1, 2]).all()
    assert (matrix(x[:, ::2]) == y[:, ::2]).all()
    assert matrix(x[:0]).shape == (0, 3, 5)
    assert (matrix(x.astype(np.float64)) == y).all()
    assert (matrix.rows, matrix.columns) == (5, 20)


def test_exact_products_of_integers(rng):
    q = integers(rng, 3, (5, 40))
    matrix = quant.BitSerialMatrix(quant.from_integers(q, 3), 16)
    x = rng.integers(-(1 << 15), 1 << 15, (2, 4, 40))
    assert (matrix.multiply(x) == x @ q.T).all()
    assert matrix.multiply(x[0, 0]).shape == (5,)
    assert matrix.multiply(x[:0]).shape == (0, 4, 5)


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ([[1 << 40]], "more than 8 bits"),
        ([[200]], "200"),
        ([[1.0]], "expected integers"),
        ([[1, 2]], "shape (1, 2)"),
    ],
)
def test_integers_that_are_no_activations(x, said):
    matrix = quant.BitSerialMatrix(quant.from_integers([[1]], 4))
    with pytest.raises(ArgumentError) as caught:
        matrix.multiply(x)
    assert said in str(caught.value)


def test_threads_and_other_activation_bits_change_nothing_else(rng):
    weights = quant.quantize_weights(rng.standard_normal((300, 200)), 4)
    x = rng.standard_normal((4, 200)).astype(np.float32)
    one = quant.BitSerialMatrix(weights, 8, threads=1)
    for threads in (0, 2, 3):
        one.threads, y = threads, one(x)
        assert (y == quant.BitSerialMatrix(weights, 8, threads=1)(x)).all()
    other = one.with_activation_bits(32)
    assert (other(x) == quant.BitSerialMatrix(weights, 32)(x)).all()
    assert (one.activation_bits, other.activation_bits) == (8, 32)
    assert one.packed_bytes >= 300 * 200 // 2


def test_several_threads_may_use_one_matrix(rng):
    matrix = quant.BitSerialMatrix(quant.quantize_weights(rng.standard_normal((200, 100)), 2))
    vectors = rng.standard_normal((8, 50, 100)).astype(np.float32)
    expected = [matrix(x) for x in vectors]
    found = [None] * len(vectors)

    def run(i):
        found[i] = np.stack([matrix(x) for x in vectors[i]])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(vectors))]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all((a == b).all() for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ([1.0, np.nan], "1"),
        ([np.inf, 1.0], "0"),
        ([1.0], "found float64 of shape (1,), expected floats of shape (..., 2)"),
        ([1, 2], "found int64"),
        (1.0, "shape ()"),
        ("ab", "found <U2"),
        ([1e300, 1], "0"),
    ],
)
def test_what_cannot_be_multiplied(x, said):
    matrix = quant.BitSerialMatrix(quant.from_integers([[1, -1]], 1))
    with pytest.raises(ArgumentError) as caught:
        matrix(x)
    assert said in str(caught.value)


@pytest.mark.parametrize("bits", [0, 1, 4, 9, 64, 8.0, "8", None, True, 10**40])
def test_activation_bits_are_8_16_or_32(bits):
    with pytest.raises(ArgumentError, match="activation bits: found .*, expected 8, 16 or 32"):
        quant.BitSerialMatrix(quant.from_integers([[1]], 1), bits)


@pytest.mark.parametrize("bits", [np.array([8, 16]), [8], 8 + 0j])
def test_activation_bits_are_one_integer(bits):
    with pytest.raises(ArgumentError, match="activation bits: found .*, expected 8, 16 or 32"):
        quant.BitSerialMatrix(quant.from_integers([[1]], 1), bits)


@pytest.mark.parametrize("weights", [np.ones((2, 2)), [[1]], None])
def test_weights_are_quantized_first(weights):
    with pytest.raises(ArgumentError, match="weights: found .*, expected QuantizedWeights"):
        quant.BitSerialMatrix(weights)


@pytest.mark.parametrize("device", ["cpu", *devices.FIRST])
def test_copies_and_pickles(rng, device):
    weights = quant.quantize_weights(rng.standard_normal((5, 70)), 3, per_row=True)
    bias, x = rng.standard_normal(5), rng.standard_normal((2, 70))
    matrix = quant.BitSerialMatrix(weights, 16, bias=bias, threads=2, device=device)
    for other in (copy.copy(matrix), copy.deepcopy(matrix), pickle.loads(pickle.dumps(matrix))):
        assert other(x).tobytes() == matrix(x).tobytes()
        assert (other.activation_bits, other.threads, other.device) == (16, 2, device)
    assert copy.copy(matrix).weights is weights
    assert copy.deepcopy(matrix).weights.planes is not weights.planes
    model = quant.Sequential(quant.Linear(matrix))
    assert copy.deepcopy(model)(x).tobytes() == matrix(x).tobytes()


@pytest.mark.parametrize("bias", [[1.0], [1.0, np.nan], [[1.0, 2.0]], ["a", "b"], 1.0])
def test_a_bias_is_a_finite_float_a_row(bias):
    with pytest.raises(ArgumentError, match="bias: found"):
        quant.BitSerialMatrix(quant.from_integers([[1], [1]], 1), bias=bias)


def test_threads_are_a_number():
    with pytest.raises(ArgumentError, match="threads"):
        quant.BitSerialMatrix(quant.from_integers([[1]], 1), threads=-1)
