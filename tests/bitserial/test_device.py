"""Products on devices against the executable specification, bit for bit.

The kernels always run on the emulated devices, and also on a GPU if there is one.
"""

import functools

import numpy as np
import pytest

import devices
from bitserial.cases import (
    ACTIVATION_BITS,
    BITS,
    apply,
    random_weights,
)
from bitserial.on_devices import (
    KERNELS,
    bits_of,
    integers,
    is_emulated,
    skip_unless_first,
    skip_unless_it_has,
    upload,
)
from nescio import _core, _emulated
from spec import bitserial as spec

# (rows, columns): one of each; shapes that end within a tile, a word, a chunk; more tiles than
# warps.
SHAPES = [(1, 1), (5, 63), (17, 300), (16, 256), (33, 257), (3, 2500)]


# The specification is slow, and every device and kernel has the same cases.
def rng_of_cases():
    return np.random.default_rng(20261121)


@functools.cache
def integer_cases(bits, activation_bits, shape, *batches):
    """Return weights, with the lowest value, and a list of activations and their products."""
    rng = rng_of_cases()
    q = random_weights(rng, bits, *shape)
    q[0] = 1 if bits == 1 else -(1 << bits - 1)
    xs = [integers(rng, activation_bits, batch, shape[1]) for batch in batches]
    return q, [(x, [spec.multiply(q.tolist(), v) for v in x.tolist()]) for x in xs]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("activation_bits", ACTIVATION_BITS)
@pytest.mark.parametrize("bits", BITS)
def test_integers(device, bits, activation_bits, kernel):
    """Test each precision with a varying shape and batch, and with the extreme values of both."""
    skip_unless_it_has(device, kernel)
    skip_unless_first(device, bits in (1, 3, 8))
    shape = SHAPES[(bits + activation_bits) % len(SHAPES)]
    q, cases = integer_cases(bits, activation_bits, shape, 1, (2, 3)[bits % 2])
    matrix = upload(device, q, bits)
    for x, expected in cases:
        found = matrix.product(activation_bits, len(x), kernel).multiply(x)
        assert found.tolist() == expected


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(device, shape, kernel):
    skip_unless_it_has(device, kernel)
    for bits, activation_bits in ((1, 8), (3, 16), (8, 32)):
        q, [(x, expected)] = integer_cases(bits, activation_bits, shape, 2)
        found = upload(device, q, bits).product(activation_bits, 2, kernel).multiply(x)
        assert found.tolist() == expected


@functools.cache
def float_case(bits, activation_bits, batch):
    """Return weights, scale, bias, activations and what the specification computes."""
    rng = rng_of_cases()
    q = random_weights(rng, bits, 19, 130)
    scale = rng.random(19, dtype=np.float32)
    bias = rng.standard_normal(19).astype(np.float32) if batch % 2 else None
    x = rng.standard_normal((batch, 130)).astype(np.float32)
    return q, scale, bias, x, apply(q, x, activation_bits, scale, bias)


@pytest.mark.parametrize("batch", [1, 2, 3, 8, 16, 17])
@pytest.mark.parametrize("activation_bits", ACTIVATION_BITS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_floats(device, kernel, activation_bits, batch):
    """Test batches that fill slices, and batches that end within them."""
    skip_unless_it_has(device, kernel)
    skip_unless_first(device, batch in (3, 17))
    bits = 1 + (activation_bits + batch) % 8
    q, scale, bias, x, expected = float_case(bits, activation_bits, batch)
    found = upload(device, q, bits, scale, bias).product(activation_bits, batch, kernel).apply(x)
    assert np.array_equal(bits_of(found), bits_of(expected))


def hard_vectors(rng, columns, activation_bits):
    """Return the vectors for which quantization is most likely to be wrong."""
    q_max = (1 << activation_bits - 1) - 1
    tiny = np.float32(2.0**-149)
    ties = (rng.integers(-q_max, q_max, columns) + 0.5).astype(np.float32)
    ties[0] = q_max  # a step of one, or nearly: halves stay halves, and are rounded to even
    # Quotients that are exact halves, with divisors whose reciprocals are inexact.
    odd = 2 * rng.integers(-q_max, q_max, columns) + 1
    odd[0] = 2 * q_max
    others = [odd * np.float32(factor) for factor in (3, 7, 11, 57, 101, 177, 223, 255)]
    spread = (rng.standard_normal(columns) * 2.0 ** rng.integers(-60, 60, columns)).astype("f4")
    largest = np.finfo(np.float32).max * rng.choice([-1, 1, 0.5, 1e-30], columns)
    return [
        np.zeros(columns),
        -np.zeros(columns),
        np.full(columns, tiny),
        rng.integers(-40, 40, columns) * tiny,
        ties,
        ties * np.float32(3e-39),
        spread,
        largest,
        np.nextafter(ties, np.float32(0), dtype=np.float32),
        np.eye(1, columns, columns - 1)[0] * -7,
        *others,
    ]


@functools.cache
def hard_case(activation_bits):
    """Return the identity matrix, hard vectors, and each activation times its step."""
    columns = 70  # two words, the second incomplete
    q = np.eye(columns, dtype=np.int64)
    x = np.array(hard_vectors(rng_of_cases(), columns, activation_bits), np.float32)
    return q, x, apply(q, x, activation_bits, np.ones(columns, np.float32))


@pytest.mark.parametrize("kernel", ["count", "matrix-fused"])
@pytest.mark.parametrize("activation_bits", ACTIVATION_BITS)
def test_vectors_that_are_hard_to_quantize(device, activation_bits, kernel):
    skip_unless_it_has(device, kernel)
    q, x, expected = hard_case(activation_bits)
    found = upload(device, q, 2).product(activation_bits, len(x), kernel).apply(x)
    assert np.array_equal(bits_of(found), bits_of(expected))


@pytest.mark.parametrize("activation_bits", ACTIVATION_BITS)
def test_quotients_are_those_of_divisions(device, activation_bits, rng):
    """Compare many more values with the CPU's division than the specification has time for."""
    batch, columns = 16, 2000 if is_emulated(device) else 4096
    x = (rng.standard_normal((batch, columns)) * 2.0 ** rng.integers(-8, 9, (batch, 1))).astype(
        "f4"
    )
    x_integers, _ = _core.quantize_activations(x, activation_bits)
    chosen = rng.choice(columns, 64, replace=False)
    q = np.zeros((64, columns), np.int64)
    q[np.arange(64), chosen] = 1
    matrix = upload(device, q, 2)
    product = matrix.product(activation_bits, batch)
    steps = _core.quantize_activations(x, activation_bits)[1]
    expected = (x_integers[:, chosen] * steps[:, np.newaxis]).astype(np.float32)
    assert np.array_equal(bits_of(product.apply(x)), bits_of(expected))


@pytest.mark.parametrize("scale", [3.4e38, 1e-45, 0.0, -2.5])
def test_scales_that_overflow_and_vanish(device, scale, rng):
    q = random_weights(rng, 4, 9, 70)
    scales = np.full(9, scale, np.float32)
    bias = np.array([0, -0.0, 1e-45, 3.4e38, -3.4e38, 1, -1, 0.5, 7], np.float32)
    x = np.array([rng.standard_normal(70) * size for size in (1, 1e30, 1e-38)], np.float32)
    found = upload(device, q, 4, scales, bias).product(16, 3).apply(x)
    assert np.array_equal(bits_of(found), bits_of(apply(q, x, 16, scales, bias)))


@pytest.mark.parametrize("device", devices.FIRST, indirect=True)
@pytest.mark.parametrize("kernel", [None, *KERNELS])
def test_sizes_that_the_specification_is_slow_for(device, kernel, rng, pool):
    """Compare products with many tiles per warp, and the planned kernel, with the CPU engine."""
    rows, columns = (50, 4100) if is_emulated(device) else (4099, 4100)
    if kernel is not None:
        skip_unless_it_has(device, kernel)
    for bits, activation_bits, batch in ((1, 8, 1), (4, 16, 1), (8, 32, 2), (2, 8, 5)):
        if kernel is not None and kernel.endswith("fused") and batch > 1:
            continue
        words = -(-columns // 64)
        planes = rng.integers(0, 1 << 64, (bits, rows, words), dtype=np.uint64)
        planes[:, :, -1] &= np.uint64((1 << columns % 64) - 1)
        scale = rng.random(rows, dtype=np.float32)
        product = device.upload(planes, columns, scale).product(activation_bits, batch, kernel)
        on_processor = _core.BitMatrix(planes, columns)
        x = integers(rng, activation_bits, batch, columns)
        expected = on_processor.multiply(x, activation_bits, pool)
        assert np.array_equal(product.multiply(x), expected)
        floats = rng.standard_normal((batch, columns)).astype(np.float32)
        expected = on_processor.apply(floats, activation_bits, scale, None, pool)
        assert np.array_equal(bits_of(product.apply(floats)), bits_of(expected))


@pytest.mark.parametrize(
    ("kernel", "activation_bits", "columns"),
    [("count", 8, 1 << 22), ("count", 32, 40_000), ("matrix", 8, 1 << 20), ("matrix", 32, 40_000)],
)
def test_the_largest_sums(kernel, activation_bits, columns):
    """Test the maximum number of columns with all summands of one sign."""
    planes = np.zeros((8, 2, -(-columns // 64)), np.uint64)
    planes[:7, 0] = planes[7, 1] = (1 << 64) - 1  # 127, and -128
    smallest = -(1 << activation_bits - 1)
    x = np.full((1, columns), smallest, np.int32)
    matrix = _emulated.BitSerialDevice(0).upload(planes, columns, np.ones(2, np.float32))
    found = matrix.product(activation_bits, 1, kernel).multiply(x)
    assert found.tolist() == [[127 * smallest * columns, -128 * smallest * columns]]
