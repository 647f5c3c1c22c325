"""Low-bit integer weights against the specification."""

import numpy as np
import pytest

from nescio import quant
from nescio.errors import ArgumentError
from spec import bitserial
from spec import quantize as spec

BITS = range(1, 9)
SHAPES = [(1, 1), (3, 5), (2, 63), (5, 64), (3, 65), (4, 200)]


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_integers_are_the_specification_s(rng, bits, per_row, shape):
    weights = rng.standard_normal(shape).astype(np.float32)
    found = quant.quantize_weights(weights, bits, per_row=per_row)
    steps = [float(step) for step in found.scale]
    expected = [
        [spec.rounded(float(w), step, bits) for w in row]
        for row, step in zip(weights, steps, strict=True)
    ]
    assert found.to_integers().tolist() == expected
    floats = np.array(expected, np.float32) * found.scale[:, None]
    assert found.to_floats().tolist() == floats.tolist()
    assert found.planes.tolist() == bitserial.to_planes(expected, bits)
    assert len(set(steps)) == 1 or per_row


def draws(rng, kind, count):
    if kind == "normal":
        return rng.standard_normal(count)
    if kind == "long tail":
        return rng.standard_t(2, count)
    if kind == "skew":
        return rng.exponential(size=count) - 0.1
    return np.repeat(rng.standard_normal(7), count // 7 + 1)[:count]


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("kind", ["normal", "long tail", "skew", "repeated"])
def test_no_other_step_has_a_smaller_error(rng, bits, kind):
    weights = draws(rng, kind, 300).astype(np.float32)
    found = quant.quantize_weights(weights.reshape(10, 30), bits)
    error = spec.squared_error(weights.tolist(), float(found.scale[0]), bits)
    assert error <= 1.002 * spec.least_error(weights.tolist(), bits, 500) + 1e-9


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("columns", [1, 3, 16, 64, 128, 500])
def test_no_other_step_of_a_row_has_a_smaller_error(rng, bits, columns):
    """For few weights the error is a rugged function of the step: compares with a fine grid."""
    weights = rng.standard_normal((6, columns)).astype(np.float32)
    found = quant.quantize_weights(weights, bits, per_row=True)
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    for row, own in zip(weights.astype(np.float64), found.to_floats(), strict=True):
        steps = np.geomspace(0.02, 1.5, 4000)[:, None] * np.abs(row).max() / max(1, high / 2)
        errors = np.square(row - np.clip(np.rint(row / steps), low, high) * steps).sum(axis=1)
        assert np.square(row - own).sum() <= 1.02 * errors.min() + 1e-12 * np.square(row).sum()


@pytest.mark.parametrize("bits", BITS)
def test_the_smallest_weights_do_not_vanish(bits):
    tiny = np.float32(1e-45)
    weights = np.array([[1, -1, 1], [3, -3, 3], [0, 0, 0]], np.float32) * tiny
    for clip in (True, False):
        found = quant.quantize_weights(weights, bits, per_row=True, clip=clip)
        assert (found.scale > 0).tolist() == [True, True, False]
        assert (np.abs(found.to_floats()[:2] - weights[:2]) <= tiny).all() or not clip


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_the_step_of_a_large_matrix_is_as_good(rng, bits):
    """So many weights that only blocks of them have a prefix sum."""
    weights = rng.standard_normal((270, 251)).astype(np.float32)
    found = quant.quantize_weights(weights, bits)
    again = [found.mean_error(weights)]
    for factor in np.linspace(0.5, 2, 151):
        scale = np.float32(found.scale[0] * factor)
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1)
        rounded = np.clip(np.rint(weights / scale), low, high) * scale
        again.append(float(np.mean((weights - rounded) ** 2)))
    assert again[0] <= 1.001 * min(again)


def test_rows_with_steps_of_their_own_are_closer(rng):
    weights = (rng.standard_normal((8, 100)) * np.arange(1, 9)[:, None]).astype(np.float32)
    one = quant.quantize_weights(weights, 3).mean_error(weights)
    each = quant.quantize_weights(weights, 3, per_row=True).mean_error(weights)
    assert each < 0.7 * one


def test_one_bit_has_no_zero_and_the_mean_for_its_step():
    found = quant.quantize_weights(np.array([[0.0, -0.0, 1.0, -3.0]]), 1)
    assert found.to_integers().tolist() == [[1, 1, 1, -1]]
    assert found.scale.tolist() == [1.0]


@pytest.mark.parametrize("bits", BITS)
def test_zeros_stay_zeros(bits):
    found = quant.quantize_weights(np.zeros((2, 3), np.float32), bits, per_row=True)
    assert not found.to_floats().any()


@pytest.mark.parametrize("bits", BITS)
def test_smallest_and_largest_numbers(bits):
    for size in (1e-45, 1e-38, 1e38):
        weights = np.array([[size, -size, 0, size]], np.float32)
        found = quant.quantize_weights(weights, bits)
        assert np.isfinite(found.scale).all()


def test_without_clipping_the_levels_span_the_largest_weight():
    weights = np.array([[-8.0, 1.0, 0.4]])
    found = quant.quantize_weights(weights, 4, clip=False)
    assert found.scale.tolist() == [1.0]
    assert found.to_integers().tolist() == [[-8, 1, 0]]
    assert quant.quantize_weights(weights, 1, clip=False).scale.tolist() == [4.0]


@pytest.mark.parametrize("bits", BITS)
def test_integers_come_back(rng, bits):
    integers = rng.choice(bitserial.levels(bits), (5, 70))
    for dtype in (np.int8, np.int64):
        found = quant.from_integers(integers.astype(dtype), bits, 0.5)
        assert (found.to_integers() == integers).all()
        assert (found.to_floats() == integers * 0.5).all()
        assert found.mean_error(integers * 0.5) == 0
        assert (found.rows, found.columns, found.bits) == (5, 70, bits)
    rows = np.arange(1, 6)
    assert (quant.from_integers(integers, bits, rows).scale == rows).all()


def test_floats_of_any_width_and_library(rng, dlpack):
    weights = rng.standard_normal((3, 9))
    expected = quant.quantize_weights(weights.astype(np.float32), 4)
    for other in (weights, dlpack(weights), weights.tolist(), np.asfortranarray(weights)):
        found = quant.quantize_weights(other, 4)
        assert (found.planes == expected.planes).all()
        assert (found.scale == expected.scale).all()


@pytest.mark.parametrize(
    ("weights", "bits", "said"),
    [
        ([[1.0, np.nan]], 4, "found nan at row 0, column 1"),
        ([[1.0], [-np.inf]], 4, "found -inf at row 1, column 0"),
        ([[1e300]], 4, "found 1e+300 at row 0, column 0"),
        ([[1.0]], 0, "weight bits: found 0, expected 1 to 8"),
        ([[1.0]], 9, "found 9"),
        ([[1.0]], 4.0, "found 4.0, expected an integer"),
        ([[1.0]], True, "found True"),
        ([1.0], 4, "found shape (1,)"),
        ([[]], 4, "found shape (1, 0)"),
        ([[1]], 4, "found int64, expected floats"),
        ([[1j]], 4, "found complex128"),
        ([["a"]], 4, "found <U1"),
        (np.broadcast_to(1.0, (1, (1 << 22) + 1)), 4, "columns at most 4194304"),
    ],
)
def test_what_cannot_be_quantized(weights, bits, said):
    with pytest.raises(ArgumentError, match=r"expected") as caught:
        quant.quantize_weights(weights, bits)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("integers", "bits", "scale", "said"),
    [
        ([[1, 8]], 4, 1.0, "found 8 at row 0, column 1; expected -8 to 7 for 4 bits"),
        ([[1], [0]], 1, 1.0, "found 0 at row 1, column 0; expected -1 or 1"),
        ([[1.0]], 4, 1.0, "found float64, expected integers"),
        ([[1]], 4, [1.0, 2.0], "found shape (2,)"),
        ([[1]], 4, np.nan, "found nan for row 0"),
        ([[1]], 4, "a", "expected a number"),
        ([[1]], 12, 1.0, "found 12"),
    ],
)
def test_integers_that_are_no_weights(integers, bits, scale, said):
    with pytest.raises(ArgumentError) as caught:
        quant.from_integers(integers, bits, scale)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("planes", "columns", "scale"),
    [
        (np.zeros((1, 1, 1), np.int64), 64, np.ones(1, np.float32)),
        (np.zeros((1, 1, 2), np.uint64), 64, np.ones(1, np.float32)),
        (np.zeros((9, 1, 1), np.uint64), 64, np.ones(1, np.float32)),
        (np.zeros((1, 0, 1), np.uint64), 64, np.ones(0, np.float32)),
        (np.full((1, 1, 1), 8, np.uint64), 3, np.ones(1, np.float32)),
        (np.zeros((1, 1, 1), np.uint64), 64, np.ones(2, np.float32)),
        (np.zeros((1, 1, 1), np.uint64), 64, np.ones(1)),
        (np.zeros((1, 1, 1), np.uint64), 64, np.full(1, np.inf, np.float32)),
        (np.zeros((1, 1, 0), np.uint64), 0, np.ones(1, np.float32)),
        ([[[1]]], 64, np.ones(1, np.float32)),
        (np.zeros((1, 1, 1), np.uint64), 64, [1.0]),
    ],
)
def test_planes_that_are_no_matrix(planes, columns, scale):
    with pytest.raises(ArgumentError, match="expected"):
        quant.QuantizedWeights(planes, columns, scale)


def test_errors_need_the_same_shape(rng):
    found = quant.quantize_weights(rng.standard_normal((3, 4)), 4)
    with pytest.raises(ArgumentError, match=r"found shape \(4, 3\), expected \(3, 4\)"):
        found.mean_error(rng.standard_normal((4, 3)))
