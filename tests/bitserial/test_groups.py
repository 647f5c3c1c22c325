"""Products with a scale for each group of columns: every tier and device returns the same bits."""

import functools

import numpy as np
import pytest

from bitserial import cases
from bitserial.on_devices import skip_unless_first
from nescio import _core
from nescio.errors import ArgumentError
from spec import bitserial as spec

GROUPS = (32, 64, 128)


def random_scales(rng, rows, columns, group):
    """Draw float16 of many orders of magnitude, subnormal and negative ones among them."""
    shape = rows, -(-columns // group)
    values = rng.standard_normal(shape) * 10.0 ** rng.uniform(-7, 3, shape)
    return values.astype(np.float16)


def made(q, bits, scale, group, tier):
    planes = cases.to_planes(q, bits)
    return _core.GroupMatrix(planes, q.shape[1], scale.view(np.uint16), group, tier=tier)


def as_bits(x):
    return np.asarray(x, np.float32).view(np.uint32).tolist()


def expected(q, x, activation_bits, scale, group, bias=None):
    return [
        spec.apply_groups(
            q.tolist(),
            [float(v) for v in vector],
            activation_bits,
            scale.astype(float).tolist(),
            group,
            None if bias is None else [float(b) for b in bias],
        )
        for vector in x
    ]


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("activation_bits", cases.ACTIVATION_BITS)
@pytest.mark.parametrize("bits", cases.BITS)
def test_layers_return_the_specifications_bits(bits, activation_bits, group, tier, pool, rng):
    rows, columns = 19, 3 * group - 13
    q = cases.random_weights(rng, bits, rows, columns)
    scale = random_scales(rng, rows, columns, group)
    x = (rng.standard_normal((2, columns)) * 100).astype(np.float32)
    bias = rng.standard_normal(rows).astype(np.float32) if bits % 2 else None
    found = made(q, bits, scale, group, tier).apply(x, activation_bits, bias, pool)
    assert as_bits(found) == as_bits(expected(q, x, activation_bits, scale, group, bias))


@pytest.mark.parametrize("columns", [1, 31, 32, 33, 63, 127, 128, 129, 300])
@pytest.mark.parametrize("group", GROUPS)
def test_any_number_of_columns(columns, group, tier, pool, rng):
    q = cases.random_weights(rng, 4, 3, columns)
    scale = random_scales(rng, 3, columns, group)
    x = rng.standard_normal((1, columns)).astype(np.float32)
    for activation_bits in cases.ACTIVATION_BITS:
        found = made(q, 4, scale, group, tier).apply(x, activation_bits, None, pool)
        assert as_bits(found) == as_bits(expected(q, x, activation_bits, scale, group))


@pytest.mark.parametrize("bits", cases.BITS)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("activation_bits", cases.ACTIVATION_BITS)
def test_all_tiers_batches_and_threads_agree(bits, group, activation_bits, tier, rng):
    for rows, columns, batch in ((1, 65, 1), (64, 257, 5), (211, 640, 4), (1000, 129, 19)):
        q = cases.random_weights(rng, bits, rows, columns)
        scale = random_scales(rng, rows, columns, group)
        x = rng.standard_normal((batch, columns)).astype(np.float32)
        bias = rng.standard_normal(rows).astype(np.float32)
        first = made(q, bits, scale, group, "portable")
        wanted = first.apply(x, activation_bits, bias, _core.ThreadPool(1))
        own = made(q, bits, scale, group, tier)
        for threads in (1, 3):
            out = np.full((batch, rows), np.nan, np.float32)
            own.apply(x, activation_bits, bias, _core.ThreadPool(threads), out=out)
            assert as_bits(out) == as_bits(wanted)


@pytest.mark.parametrize("bits", cases.BITS)
def test_the_largest_products(bits, tier, pool):
    """Neither the sums of a group nor those of all groups overflow before they are scaled."""
    for group in GROUPS:
        columns = 4 * group
        low, high = spec.levels(bits)[0], spec.levels(bits)[-1]
        q = np.array([[low] * columns, [high] * columns], np.int64)
        scale = np.full((2, 4), np.float16(65504))
        x = np.array([[1.0] * columns, [-1.0] * columns], np.float32)
        for activation_bits in cases.ACTIVATION_BITS:
            found = made(q, bits, scale, group, tier).apply(x, activation_bits, None, pool)
            assert as_bits(found) == as_bits(expected(q, x, activation_bits, scale, group))


def test_sums_are_rounded_once(tier, pool):
    """A product that is rounded before it is added would give another result."""
    columns, group = 64, 32
    q = np.ones((1, columns), np.int64)
    scale = np.array([[1.0, 1 + 2**-10]], np.float16)
    rng = np.random.default_rng(5)
    x = rng.integers(-(1 << 15), 1 << 15, (200, columns)).astype(np.float32)
    found = made(q, 2, scale, group, tier).apply(x, 32, None, pool)
    assert as_bits(found) == as_bits(expected(q, x, 32, scale, group))
    integers, steps = _core.quantize_activations(x, 32)
    parts = [integers[:, own].sum(1).astype(np.float32) for own in (slice(32), slice(32, 64))]
    twice = (parts[0] + parts[1] * np.float32(1 + 2**-10)).astype(np.float64) * steps
    assert (twice.astype(np.float32) != found[:, 0]).any()


def test_what_is_refused(tier):
    q = np.ones((2, 70), np.int64)
    scale = np.ones((2, 3), np.float16)
    for group in (0, 16, 96, 256):
        with pytest.raises(ArgumentError, match=f"group: found {group}, expected 32, 64 or 128"):
            made(q, 4, scale, group, tier)
    with pytest.raises(ArgumentError, match=r"shape of scale: found \(2, 3\), expected \(2, 2\)"):
        made(q, 4, scale, 64, tier)
    for value in (np.inf, np.nan):
        wrong = scale.copy()
        wrong[1, 2] = value
        with pytest.raises(ArgumentError, match="NaN or infinity for row 1, group 2"):
            made(q, 4, wrong, 32, tier)
    with pytest.raises(ArgumentError, match="activations: found NaN at"):
        made(q, 4, scale, 32, tier).apply(
            np.full((1, 70), np.nan, np.float32), 8, None, _core.ThreadPool(1)
        )


@functools.cache
def case_for_devices(bits, activation_bits, group, batch):
    """Return weights, scales, bias, activations, and the products on the processor."""
    rng = np.random.default_rng(bits * activation_bits + group)
    rows, columns = 21, 3 * group + 5
    q = cases.random_weights(rng, bits, rows, columns)
    scale = random_scales(rng, rows, columns, group)
    bias = rng.standard_normal(rows).astype(np.float32)
    x = (rng.standard_normal((batch, columns)) * 10).astype(np.float32)
    matrix = made(q, bits, scale, group, "portable")
    return q, scale, bias, x, matrix.apply(x, activation_bits, bias, _core.ThreadPool(1))


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("activation_bits", cases.ACTIVATION_BITS)
@pytest.mark.parametrize("bits", cases.BITS)
def test_devices_return_the_same_bits(device, bits, activation_bits, group):
    skip_unless_first(device, bits in (1, 4))
    batch = 1 + bits % 3
    q, scale, bias, x, wanted = case_for_devices(bits, activation_bits, group, batch)
    planes, columns = cases.to_planes(q, bits), q.shape[1]
    flat = scale.astype(np.float32).reshape(-1)
    matrix = device.upload(planes, columns, flat, bias, group)
    product = matrix.product(activation_bits, batch)
    assert product.kernel == "group"
    assert as_bits(product.apply(x)) == as_bits(wanted)
    assert as_bits(product.apply(x[::-1].copy())) == as_bits(wanted[::-1])


def test_more_groups_than_a_warp_has_lanes(device, pool, rng):
    q = cases.random_weights(rng, 3, 9, 2100)
    scale = random_scales(rng, 9, 2100, 32)
    x = rng.standard_normal((1, 2100)).astype(np.float32)
    flat = scale.astype(np.float32).reshape(-1)
    matrix = device.upload(cases.to_planes(q, 3), 2100, flat, None, 32)
    wanted = made(q, 3, scale, 32, None).apply(x, 8, None, pool)
    assert as_bits(matrix.product(8, 1).apply(x)) == as_bits(wanted)


def test_what_a_device_refuses(device):
    planes = cases.to_planes(np.ones((2, 70), np.int64), 4)
    with pytest.raises(ArgumentError, match="group: found 33, expected 32, 64 or 128"):
        device.upload(planes, 70, np.ones(6, np.float32), None, 33)
    with pytest.raises(ArgumentError, match="scale: found 6, expected 4"):
        device.upload(planes, 70, np.ones(6, np.float32), None, 64)
    matrix = device.upload(planes, 70, np.ones(6, np.float32), None, 32)
    with pytest.raises(ArgumentError, match="kernel: found 'count', expected group on"):
        matrix.product(8, 1, "count")
    with pytest.raises(ArgumentError, match="integer vectors: found a matrix with groups"):
        matrix.product(8, 1).multiply(np.ones((1, 70), np.int32))
