"""The specification of PrecisionBatching: planes, and both definitions of a product."""

import math

import numpy as np
import pytest

from bitserial import cases
from spec import bitserial as spec


def test_planes_are_those_of_the_thesis():
    # -4 = 100, 3 = 011, -1 = 111 in two's complement of 3 bits; lowest plane first.
    assert spec.to_planes([[-4, 3, -1]], 3) == [[[0b110]], [[0b110]], [[0b101]]]
    assert spec.plane_weights(3) == [1, 2, -4]
    # One-bit weights are -1 and 1.
    assert spec.to_planes([[-1, 1, 1]], 1) == [[[0b110]]]


@pytest.mark.parametrize("bits", cases.BITS)
def test_planes_hold_their_integers(bits, rng):
    q = cases.random_weights(rng, bits, 3, 131)
    planes = spec.to_planes(q.tolist(), bits)
    assert spec.from_planes(planes, 131) == q.tolist()
    assert cases.to_planes(q, bits).tolist() == planes


@pytest.mark.parametrize("activation_bits", cases.ACTIVATION_BITS)
@pytest.mark.parametrize("bits", cases.BITS)
def test_counting_ones_is_multiplying(bits, activation_bits, rng):
    q = cases.random_weights(rng, bits, 3, 70)
    x = cases.random_activations(rng, activation_bits, 1, 70)
    found = spec.multiply_planes(spec.to_planes(q.tolist(), bits), x[0].tolist(), activation_bits)
    assert found == spec.multiply(q.tolist(), x[0].tolist()) == cases.products(q, x)[0].tolist()


def test_halves_go_to_even():
    x = [127.0, 0.5, 1.5, 2.5, -0.5, -1.5]
    assert spec.quantize_activations(x, 8) == ([127, 0, 2, 2, 0, -2], 1.0)


@pytest.mark.parametrize("activation_bits", cases.ACTIVATION_BITS)
def test_the_largest_activation_becomes_the_largest_integer(activation_bits, rng):
    x = rng.standard_normal(200).astype(np.float32)
    q_max = (1 << activation_bits - 1) - 1
    integers, step = spec.quantize_activations([float(v) for v in x], activation_bits)
    assert max(abs(v) for v in integers) == q_max
    assert step == float(np.abs(x).max()) / q_max
    assert spec.quantize_activations([0.0, -0.0], activation_bits) == ([0, 0], 0.0)


def test_results_are_rounded_to_float32_at_the_end():
    assert spec.float32(1 + 2**-24) == 1.0  # half to even
    assert spec.float32(1e39) == math.inf
    # y = 191, times scale 0.1 and step 1/127, plus a bias; each result is rounded once.
    q, x = [[1, 1]], [1.0, 0.5]
    y = spec.apply(q, x, 8, [float(np.float32(0.1))], [0.25])
    expected = np.float32(float(127 + 64) * float(np.float32(0.1)) * (1.0 / 127)) + np.float32(0.25)
    assert y == [float(expected)]
