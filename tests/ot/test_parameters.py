"""The table of parameter sets, and invalid requests."""

import pickle

import pytest

from nescio.errors import ArgumentError
from nescio.ot.estimate import Instance, estimate
from nescio.ot.parameters import CODES, MAX_OUTPUTS, MIN_BITS, MIN_SIZE, PRIMAL, dual, primal


@pytest.mark.parametrize("one", PRIMAL, ids=lambda one: one.name)
def test_the_table_says_what_the_estimator_says(one):
    assert one.bits == pytest.approx(estimate(one).bits, abs=0.01)


@pytest.mark.parametrize("one", PRIMAL, ids=lambda one: one.name)
def test_sets_below_128_bits_say_so_in_their_names(one):
    assert (one.bits < MIN_BITS) == one.name.startswith("insecure_")
    assert primal(one.name) is one
    assert one.source


def test_sizes_of_the_sets():
    shapes = {one.name: (one.n, one.k, one.t, one.depth, one.row_weight) for one in PRIMAL}
    assert shapes == {
        "b10": (870_400, 1 << 16, 850, 10, 10),
        "b11": (2_396_160, 1 << 17, 1170, 11, 10),
        "b12": (6_225_920, 1 << 18, 1520, 12, 10),
        "b13": (15_564_800, 1 << 19, 1900, 13, 10),
        "insecure_cuot": (10_485_760, 452_000, 1280, 13, 10),
    }


def test_outputs_are_what_the_next_iteration_leaves():
    b11 = primal("b11")
    assert b11.inputs == (1 << 17) + 1170 * 11 + 128
    assert b11.outputs == 2_396_160 - b11.inputs == 2_252_090
    assert all(one.outputs > one.inputs for one in PRIMAL)


def test_an_insecure_set_is_refused_by_its_plain_name():
    with pytest.raises(ArgumentError, match=r"found 125\.3 bits.*'insecure_cuot'"):
        primal("cuot")


@pytest.mark.parametrize("name", ["", "b14", "insecure_b13", "B13"])
def test_other_names_are_refused(name):
    with pytest.raises(ArgumentError, match="expected one of b10, b11"):
        primal(name)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(
    "n",
    [1, 127, 4096, 4097, 5000, 8191, 8192, 12_345, (1 << 20) - 1, 1 << 20, (1 << 20) + 7, 1 << 24],
)
def test_dual_trees_cover_the_noise_with_128_whole_ones(code, n):
    size = max(n, MIN_SIZE) + 2
    one = dual(code, n, prime=size if code == "qc" else None)
    assert one.outputs == n
    assert one.n == 2 * one.size >= 2 * n
    assert one.t - 1 << one.depth < one.n <= one.t << one.depth
    assert MIN_BITS <= one.weight <= one.t <= one.weight + 1 <= 256
    assert one.depth >= 1
    assert one.bits == MIN_BITS


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(
    "n", [1, 4096, 5000, 6000, 8191, 8192, 1 << 17, (1 << 20) + 7, 1 << 24, 1 << 32]
)
def test_dual_sets_have_128_bits_whatever_their_size(code, n):
    one = dual(code, n, prime=max(n, MIN_SIZE) if code == "qc" else None)
    assert estimate(one).bits >= one.bits == MIN_BITS


def test_shorter_codes_would_not_have_128_bits():
    assert estimate(Instance(2048, 1024, 128)).bits < MIN_BITS


def test_the_next_suitable_prime_is_the_default():
    pytest.importorskip("nescio.ot._primes")
    assert dual("qc", 1 << 20).size == 1_048_589


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("tungsten", 5000), {}, "found 'tungsten', expected one of ec, qc"),
        (("ec", 0), {}, "outputs: found 0"),
        (("ec", -1), {}, "outputs: found -1"),
        (("ec", MAX_OUTPUTS + 1), {}, "outputs: found 4294967297"),
        (("ec", 5000), {"prime": 5003}, "for the code 'ec'"),
        (("qc", 5000), {"prime": 4999}, "prime: found 4999.*at least 5000"),
        (("qc", 100), {"prime": 101}, "prime: found 101.*at least 4096"),
        (("qc", 5000), {"prime": 1 << 40}, "prime: found"),
    ],
)
def test_impossible_dual_sets_are_refused(arguments, options, message):
    with pytest.raises(ArgumentError, match=message):
        dual(*arguments, **options)


def test_sets_travel_between_processes():
    for one in (*PRIMAL, dual("ec", 5000)):
        assert pickle.loads(pickle.dumps(one)) == one
