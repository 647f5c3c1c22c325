"""Floating-point products: every tier returns the same bits."""

import numpy as np
import pytest

from bitserial import cases
from nescio import _core
from spec import bitserial as spec


def floats(rng, shape):
    """Draw float32 numbers over many orders of magnitude."""
    return (rng.standard_normal(shape) * 10.0 ** rng.uniform(-6, 6, shape)).astype(np.float32)


def as_bits(x):
    return np.asarray(x, np.float32).view(np.uint32).tolist()


@pytest.mark.parametrize("activation_bits", cases.ACTIVATION_BITS)
@pytest.mark.parametrize("columns", [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 100])
def test_activations_become_the_specifications_integers(activation_bits, columns, tier, rng):
    for x in (floats(rng, (3, columns)), rng.standard_normal((3, columns)).astype(np.float32)):
        integers, steps = _core.quantize_activations(x, activation_bits, tier)
        assert (integers.dtype, steps.dtype) == (np.int32, np.float64)
        for vector, found, step in zip(x, integers, steps, strict=True):
            expected = spec.quantize_activations([float(v) for v in vector], activation_bits)
            assert (found.tolist(), float(step)) == expected


@pytest.mark.parametrize("activation_bits", cases.ACTIVATION_BITS)
def test_halves_and_extremes(activation_bits, tier):
    q_max = (1 << activation_bits - 1) - 1
    smallest, largest = np.float32(1e-45), np.finfo(np.float32).max
    rows = [
        [q_max, *(i + 0.5 for i in range(-5, 5))] if activation_bits < 32 else [1.0] * 11,
        [0.0] * 11,
        [-0.0] * 11,
        [smallest, -smallest, 0.0, *[3 * smallest] * 8],
        [largest, -largest, smallest, 1.0, *[largest / 3] * 7],
    ]
    x = np.array(rows, np.float32)
    integers, steps = _core.quantize_activations(x, activation_bits, tier)
    for vector, found, step in zip(x, integers, steps, strict=True):
        expected = spec.quantize_activations([float(v) for v in vector], activation_bits)
        assert (found.tolist(), float(step)) == expected


@pytest.mark.parametrize("factor", [1, 3, 7, 49, 255])
@pytest.mark.parametrize("activation_bits", [8, 16])
def test_exact_halves_show_the_order_of_operations(activation_bits, factor, tier):
    # With a = 2 q_max c, the values c (2 h + 1) become exactly h + 1/2 if the multiplication comes
    # before the division.
    q_max = (1 << activation_bits - 1) - 1
    halves = np.arange(-63, 63) * 2 + 1
    x = np.array([[2 * q_max * factor, *(factor * halves)]], np.float32)
    integers, _ = _core.quantize_activations(x, activation_bits, tier)
    assert integers[0, 1:].tolist() == [round(int(h) / 2) for h in halves]


def test_scales_show_the_order_of_operations(tier, pool, rng):
    # 381 scale / 127 is 3 scale, the midpoint of two float32, so the order of roundings matters.
    scale = (rng.integers(1 << 22, 5 << 20, 500) * 2 + 1).astype(np.float32)
    made = _core.BitMatrix(cases.to_planes(np.full((500, 1), 3), 3), 1, tier=tier)
    x = np.ones((1, 1), np.float32)
    found = made.apply(x, 8, scale, None, pool)
    step = 1.0 / 127
    other = (381 * (scale.astype(np.float64) * step)).astype(np.float32)
    assert (other != found[0]).any()
    assert as_bits(found) == as_bits(cases.apply([[3]] * 500, x, 8, scale))


@pytest.mark.parametrize("activation_bits", cases.ACTIVATION_BITS)
def test_long_vectors_are_the_same_in_every_tier(activation_bits, tier, rng):
    x = rng.standard_normal((2, 4099)).astype(np.float32)
    found = _core.quantize_activations(x, activation_bits, tier)
    expected = _core.quantize_activations(x, activation_bits, "portable")
    assert all((a == b).all() for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("activation_bits", cases.ACTIVATION_BITS)
@pytest.mark.parametrize("bits", cases.BITS)
def test_layers_return_the_specifications_bits(bits, activation_bits, with_bias, tier, pool, rng):
    rows, columns = 21, 75
    q = cases.random_weights(rng, bits, rows, columns)
    scale, bias = floats(rng, rows), floats(rng, rows) if with_bias else None
    x = floats(rng, (3, columns))
    made = _core.BitMatrix(cases.to_planes(q, bits), columns, tier=tier)
    found = made.apply(x, activation_bits, scale, bias, pool)
    assert found.dtype == np.float32
    assert as_bits(found) == as_bits(cases.apply(q, x, activation_bits, scale, bias))


@pytest.mark.parametrize("shape", [(1, 1), (3, 513), (511, 64), (1000, 127), (4097, 65)])
@pytest.mark.parametrize("batch", [1, 2, 16, 17])
def test_all_tiers_and_numbers_of_threads_agree(shape, batch, tier, rng):
    q = cases.random_weights(rng, 6, *shape)
    planes = cases.to_planes(q, 6)
    x = rng.standard_normal((batch, shape[1])).astype(np.float32)
    scale, bias = rng.random((2, shape[0])).astype(np.float32)
    first = _core.BitMatrix(planes, shape[1], tier="portable")
    expected = first.apply(x, 16, scale, bias, _core.ThreadPool(1))
    made = _core.BitMatrix(planes, shape[1], tier=tier)
    for threads in (1, 3):
        out = np.full((batch, shape[0]), np.nan, np.float32)
        made.apply(x, 16, scale, bias, _core.ThreadPool(threads), out=out)
        assert as_bits(out) == as_bits(expected)


def test_a_vectors_step_is_its_own(tier, pool, rng):
    q = cases.random_weights(rng, 4, 30, 40)
    made = _core.BitMatrix(cases.to_planes(q, 4), 40, tier=tier)
    x = floats(rng, (5, 40)) * np.float32([[1], [1e-3], [0], [1e3], [1]])
    scale = rng.random(30).astype(np.float32)
    together = made.apply(x, 8, scale, None, pool)
    alone = [made.apply(x[i : i + 1], 8, scale, None, pool)[0] for i in range(5)]
    assert as_bits(together) == as_bits(alone)
    assert (together[2] == 0).all()


def test_large_products_become_infinite_as_in_the_specification(tier, pool):
    q = np.ones((2, 3), np.int64)
    made = _core.BitMatrix(cases.to_planes(q, 2), 3, tier=tier)
    x = np.full((1, 3), 3e38, np.float32)
    scale = np.float32([3, -3])
    found = made.apply(x, 8, scale, None, pool)
    assert as_bits(found) == as_bits(cases.apply(q, x, 8, scale)) == as_bits([[np.inf, -np.inf]])
