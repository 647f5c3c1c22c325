"""Invalid arguments of the bit-serial engine, and the error messages."""

import numpy as np
import pytest

from bitserial import cases
from nescio import _core
from nescio.errors import ArgumentError


@pytest.fixture
def matrix(tier):
    """Return a matrix of two rows of 70 columns, 3 bits."""
    return _core.BitMatrix(np.zeros((3, 2, 2), np.uint64), 70, tier=tier)


def refused(message):
    return pytest.raises(ArgumentError, match=message)


@pytest.mark.parametrize("bits", [0, 9, 300])
def test_bits_outside_1_to_8(bits, tier):
    with refused(f"^planes: found {bits}, expected 1 to 8, one for each bit of the weights$"):
        _core.BitMatrix(np.zeros((bits, 2, 1), np.uint64), 64, tier=tier)


def test_shapes_of_planes(tier):
    with refused("^rows of planes: found 0, expected at least 1$"):
        _core.BitMatrix(np.zeros((2, 0, 1), np.uint64), 64, tier=tier)
    for columns in (0, (1 << 22) + 1, (1 << 64) - 1):
        with refused(f"^columns: found {columns}, expected 1 to 4194304$"):
            _core.BitMatrix(np.zeros((2, 1, 1), np.uint64), columns, tier=tier)
    for words in (0, 1, 3):
        with refused(f"^words of a row: found {words}, expected 2 for 70 columns$"):
            _core.BitMatrix(np.zeros((2, 1, words), np.uint64), 70, tier=tier)


@pytest.mark.parametrize(("plane", "row", "column"), [(0, 0, 70), (2, 4, 127), (1, 3, 99)])
def test_bits_beyond_the_columns(plane, row, column, tier):
    planes = np.zeros((3, 5, 2), np.uint64)
    planes[plane, row, 1] = 1 << column - 64
    with refused(
        f"^planes: found a one in plane {plane}, row {row}, column {column}, "
        "expected zeros beyond the 70 columns$"
    ):
        _core.BitMatrix(planes, 70, tier=tier)


def test_names_of_tiers_and_kernels(tier):
    planes = np.zeros((1, 1, 1), np.uint64)
    with refused("CPU tier 'mmx' does not exist"):
        _core.BitMatrix(planes, 1, tier="mmx")
    names = ", ".join(_core.bitserial_kernels(tier))
    with refused(f"^kernel: found 'masks', expected one of {names} for the CPU tier {tier}$"):
        _core.BitMatrix(planes, 1, tier=tier, kernel="masks")


@pytest.mark.parametrize("activation_bits", [0, 1, 7, 9, 24, 33, 64])
def test_activation_bits(activation_bits, matrix, pool):
    message = f"^activation_bits: found {activation_bits}, expected 8, 16 or 32$"
    x = np.zeros((1, 70), np.float32)
    with refused(message):
        matrix.multiply(x.astype(np.int32), activation_bits, pool)
    with refused(message):
        matrix.apply(x, activation_bits, np.ones(2, np.float32), None, pool)
    with refused(message):
        matrix.kernel(activation_bits, 1)
    with refused(message):
        _core.quantize_activations(x, activation_bits)


@pytest.mark.parametrize(
    ("activation_bits", "value"), [(8, 128), (8, -129), (16, 32768), (16, -32769), (8, -(1 << 31))]
)
def test_integers_that_do_not_fit(activation_bits, value, matrix, pool):
    x = np.zeros((20, 70), np.int32)
    x[18, 69] = x[17, 5] = value
    half = 1 << activation_bits - 1
    with refused(
        rf"^activations: found {value} at \[17, 5\], expected {-half} to {half - 1}, "
        f"the range of {activation_bits} bits$"
    ):
        matrix.multiply(x, activation_bits, pool)


@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("vector", "column"), [(0, 0), (2, 37), (17, 69)])
def test_activations_that_are_not_finite(value, vector, column, matrix, tier, pool):
    x = np.ones((18, 70), np.float32)
    x[vector, column:] = value
    name = "NaN" if np.isnan(value) else f"{value}"
    message = rf"^activations: found {name} at \[{vector}, {column}\], expected finite numbers$"
    with refused(message):
        matrix.apply(x, 8, np.ones(2, np.float32), None, pool)
    with refused(message):
        _core.quantize_activations(x, 16, tier)


def test_shapes_that_do_not_fit(matrix, pool):
    x, ones = np.zeros((3, 70), np.float32), np.ones(2, np.float32)
    integers = x.astype(np.int32)
    with refused("^columns of x: found 69, expected 70$"):
        matrix.multiply(np.zeros((1, 69), np.int32), 8, pool)
    with refused("^columns of x: found 71, expected 70$"):
        matrix.apply(np.zeros((1, 71), np.float32), 8, ones, None, pool)
    with refused("^vectors of x: found 0, expected at least 1$"):
        matrix.apply(x[:0], 8, ones, None, pool)
    with refused("^batch: found 0, expected at least 1$"):
        matrix.kernel(8, 0)
    with refused("^scale: found 3, expected 2$"):
        matrix.apply(x, 8, np.ones(3, np.float32), None, pool)
    with refused("^bias: found 1, expected 2$"):
        matrix.apply(x, 8, ones, ones[:1], pool)
    with refused(r"^shape of out: found \(2, 3\), expected \(3, 2\)$"):
        matrix.apply(x, 8, ones, None, pool, out=np.empty((2, 3), np.float32))
    with refused(r"^shape of out: found \(3, 3\), expected \(3, 2\)$"):
        matrix.multiply(integers, 8, pool, out=np.empty((3, 3), np.int64))


def test_types_that_would_lose_bits_are_refused(matrix, pool):
    ones = np.ones(2, np.float32)
    for x in (np.zeros((1, 70), np.int64), np.zeros((1, 70), np.float32), np.zeros(70, np.int32)):
        with pytest.raises(TypeError):
            matrix.multiply(x, 8, pool)
    for x in (np.zeros((1, 70)), np.zeros((1, 140), np.float32)[:, ::2]):
        with pytest.raises(TypeError):
            matrix.apply(x, 8, ones, None, pool)
    with pytest.raises(TypeError):
        _core.BitMatrix(np.zeros((1, 1, 1), np.int64), 1)
    with pytest.raises(TypeError):
        _core.BitMatrix(np.zeros((1, 1, 1), np.uint64), -1)
    with pytest.raises(TypeError):
        matrix.multiply(np.zeros((1, 70), np.int32), 8, pool, out=np.empty((1, 2), np.int32))


def test_a_refused_product_does_not_change_the_matrix(matrix, pool, rng):
    x = cases.random_activations(rng, 8, 1, 70)
    expected = matrix.multiply(x, 8, pool)
    with pytest.raises(ArgumentError):
        matrix.multiply(x + 1000, 8, pool)
    assert (matrix.multiply(x, 8, pool) == expected).all()
