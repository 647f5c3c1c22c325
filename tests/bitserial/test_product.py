"""Bit-serial products: every tier and kernel returns the same integers."""

import threading

import numpy as np
import pytest

from bitserial import cases
from nescio import _core
from spec import bitserial as spec

KERNELS = [(tier, None) for tier in _core.supported_tiers()] + [
    (tier, kernel) for tier in _core.supported_tiers() for kernel in _core.bitserial_kernels(tier)
]
SIZES = (1, 3, 63, 64, 65, 127, 511, 513, 1000)


@pytest.fixture(params=KERNELS, ids=lambda pair: f"{pair[0]}-{pair[1] or 'chosen'}")
def matrix(request):
    """Return a function that builds a matrix, for each tier and kernel of this machine."""
    tier, kernel = request.param

    def make(q, bits):
        planes = cases.to_planes(q, bits)
        return _core.BitMatrix(planes, q.shape[1], tier=tier, kernel=kernel)

    return make


def check(made, q, activation_bits, x, pool):
    expected = cases.products(q, x)
    found = made.multiply(x, activation_bits, pool)
    assert found.dtype == np.int64
    assert (found == expected).all()


@pytest.mark.parametrize("bits", cases.BITS)
def test_products_are_those_of_the_specification(bits, matrix, pool, rng):
    q = cases.random_weights(rng, bits, 5, 77)
    made = matrix(q, bits)
    assert (made.rows, made.columns, made.bits) == (5, 77, bits)
    for activation_bits in cases.ACTIVATION_BITS:
        x = cases.random_activations(rng, activation_bits, 2, 77)
        expected = [spec.multiply(q.tolist(), vector) for vector in x.tolist()]
        assert made.multiply(x, activation_bits, pool).tolist() == expected


@pytest.mark.parametrize("bits", cases.BITS)
@pytest.mark.parametrize("columns", SIZES)
def test_any_number_of_columns(bits, columns, matrix, pool, rng):
    q = cases.random_weights(rng, bits, 19, columns)
    made = matrix(q, bits)
    for activation_bits in cases.ACTIVATION_BITS:
        check(
            made,
            q,
            activation_bits,
            cases.random_activations(rng, activation_bits, 1, columns),
            pool,
        )


@pytest.mark.parametrize("bits", cases.BITS)
@pytest.mark.parametrize("rows", SIZES)
def test_any_number_of_rows(bits, rows, matrix, pool, rng):
    q = cases.random_weights(rng, bits, rows, 67)
    made = matrix(q, bits)
    for activation_bits in cases.ACTIVATION_BITS:
        check(made, q, activation_bits, cases.random_activations(rng, activation_bits, 1, 67), pool)


@pytest.mark.parametrize("bits", cases.BITS)
@pytest.mark.parametrize("batch", [2, 3, 4, 5, 7, 16, 17, 35])
def test_any_batch(bits, batch, matrix, pool, rng):
    q = cases.random_weights(rng, bits, 147, 130)
    made = matrix(q, bits)
    for activation_bits in cases.ACTIVATION_BITS:
        check(
            made,
            q,
            activation_bits,
            cases.random_activations(rng, activation_bits, batch, 130),
            pool,
        )


@pytest.mark.parametrize("shape", [(4097, 65), (65, 4097), (1000, 513)])
@pytest.mark.parametrize("bits", cases.BITS)
def test_large_matrices(bits, shape, matrix, pool, rng):
    q = cases.random_weights(rng, bits, *shape)
    made = matrix(q, bits)
    for activation_bits in cases.ACTIVATION_BITS:
        check(
            made,
            q,
            activation_bits,
            cases.random_activations(rng, activation_bits, 3, shape[1]),
            pool,
        )


@pytest.mark.parametrize("columns", [4097, 70_001])
@pytest.mark.parametrize("bits", cases.BITS)
def test_the_largest_numbers_overflow_nowhere(bits, columns, matrix, pool):
    rows = [[spec.levels(bits)[0]] * columns, [spec.levels(bits)[-1]] * columns]
    made = matrix(np.array(rows, np.int64), bits)
    for activation_bits in cases.ACTIVATION_BITS:
        half = 1 << activation_bits - 1
        for value in (-half, half - 1):
            x = np.full((1, columns), value, np.int32)
            expected = [[weights[0] * value * columns for weights in rows]]
            assert made.multiply(x, activation_bits, pool).tolist() == expected


@pytest.mark.slow
@pytest.mark.parametrize("bits", [1, 7, 8])
def test_the_maximum_number_of_columns(bits, matrix, pool):
    columns = 1 << 22
    q = np.full((1, columns), spec.levels(bits)[0], np.int64)
    made = matrix(q, bits)
    for activation_bits in cases.ACTIVATION_BITS:
        x = np.full((1, columns), -(1 << activation_bits - 1), np.int32)
        expected = int(q[0, 0]) * int(x[0, 0]) * columns
        assert made.multiply(x, activation_bits, pool).tolist() == [[expected]]


def test_all_numbers_of_threads_agree(matrix, rng):
    q = cases.random_weights(rng, 5, 1500, 1000)
    made = matrix(q, 5)
    x = cases.random_activations(rng, 16, 3, 1000)
    for threads in (1, 2, 5):
        check(made, q, 16, x, _core.ThreadPool(threads))


def test_a_matrix_may_be_used_by_many_threads_at_once(rng):
    q = cases.random_weights(rng, 3, 300, 500)
    made = _core.BitMatrix(cases.to_planes(q, 3), 500)
    wrong = []

    def work(seed):
        own, pool = np.random.default_rng(seed), _core.ThreadPool(1)
        for _ in range(20):
            x = cases.random_activations(own, 8, 2, 500)
            if (made.multiply(x, 8, pool) != cases.products(q, x)).any():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_products_are_written_to_out(matrix, pool, rng):
    q = cases.random_weights(rng, 4, 70, 90)
    x = cases.random_activations(rng, 8, 2, 90)
    out = np.full((2, 70), -1, np.int64)
    assert matrix(q, 4).multiply(x, 8, pool, out=out) is not None
    assert (out == cases.products(q, x)).all()


def test_the_callers_planes_are_copied(matrix, pool, rng):
    q = cases.random_weights(rng, 2, 10, 64)
    planes = cases.to_planes(q, 2)
    made = _core.BitMatrix(planes, 64)
    planes[:] = 0
    check(made, q, 8, cases.random_activations(rng, 8, 1, 64), pool)


@pytest.mark.parametrize("bits", cases.BITS)
def test_a_product_reads_as_many_bits_as_there_are(bits):
    for tier, kernel in KERNELS:
        planes = np.zeros((bits, 1024, 16), np.uint64)
        made = _core.BitMatrix(planes, 1024, tier=tier, kernel=kernel)
        assert made.tier == tier
        # In addition to the planes: the sums of codes of each part, of which there are at most 3.
        assert 0 <= made.packed_bytes - 1024 * 1024 * bits // 8 <= 3 * 4 * 1024


def test_names_of_kernels():
    for tier in _core.supported_tiers():
        names = _core.bitserial_kernels(tier)
        planes = np.zeros((7, 4096, 1), np.uint64)
        for activation_bits in cases.ACTIVATION_BITS:
            chosen = _core.BitMatrix(planes, 64, tier=tier).kernel(activation_bits, 1)
            assert set(chosen.split("+")) <= set(names)
            for name in names:
                forced = _core.BitMatrix(planes, 64, tier=tier, kernel=name)
                assert name in forced.kernel(activation_bits, 1)
