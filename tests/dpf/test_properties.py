"""Properties of any keys, points and payloads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nescio.dpf
from dpf.helpers import ALL_GENERATORS, GENERATORS, OUTPUTS, to_integers
from nescio import _core
from spec.dpf import OUTPUT_BITS

DOMAINS = st.one_of(st.integers(1, 3000), st.integers(1, 1 << 40))


@st.composite
def functions(draw):
    """Draw a point function: its point, payload, domain, output and generator."""
    domain = draw(DOMAINS)
    output = draw(st.sampled_from(OUTPUTS))
    payload = draw(st.integers(0, (1 << OUTPUT_BITS[output]) - 1))
    alpha = draw(st.integers(0, domain - 1))
    return alpha, payload, domain, output, draw(st.sampled_from(GENERATORS))


def sums_at(keys, points, output):
    shares = [nescio.dpf.evaluate(key, points) for key in keys]
    return to_integers(nescio.dpf.combine(*shares, output), output)


@given(function=functions(), data=st.data())
def test_shares_add_up_to_the_function_at_any_point(function, data):
    alpha, payload, domain, output, generator = function
    keys = nescio.dpf.generate(
        alpha, domain=domain, output=output, generator=generator, payload=payload
    )
    points = data.draw(st.lists(st.integers(0, domain - 1), max_size=10))
    points += [alpha, alpha - 1, alpha + 1]
    points = [p for p in points if 0 <= p < domain]
    expected = [payload if p == alpha else 0 for p in points]
    assert sums_at(keys, points, output) == expected


@pytest.mark.parametrize("output", ["bit", "u32"])
@pytest.mark.parametrize("generator", ALL_GENERATORS)
def test_shares_from_every_generator_add_up(generator, output, rng):
    domain = 70_001
    points = rng.integers(domain, size=3)
    keys = nescio.dpf.generate(points, domain=domain, output=output, generator=generator)
    total = nescio.dpf.combine(*map(nescio.dpf.evaluate_all, keys), output)
    assert np.array_equal(np.argwhere(total), list(enumerate(points)))
    assert (total[range(3), points] == 1).all()
    assert sums_at([key[0] for key in keys], points, output) == [
        1,
        *map(int, points[1:] == points[0]),
    ]


@given(function=functions(), data=st.data())
def test_a_range_is_the_points_in_it(function, data):
    alpha, payload, domain, output, generator = function
    key, _ = nescio.dpf.generate(
        alpha, domain=domain, output=output, generator=generator, payload=payload
    )
    start = data.draw(st.integers(0, domain))
    stop = data.draw(st.integers(start, min(domain, start + 1500)))
    ranged = nescio.dpf.evaluate_range(key, start, stop, threads=2)
    points = np.arange(start, stop, dtype=np.uint64)
    assert np.array_equal(ranged, nescio.dpf.evaluate(key, points))


@given(function=functions())
def test_the_public_fields_and_the_length_of_a_key(function):
    alpha, payload, domain, output, generator = function
    keys = nescio.dpf.generate(
        alpha, domain=domain, output=output, generator=generator, payload=payload
    )
    for party, key in enumerate(keys):
        assert nescio.dpf.inspect(key) == nescio.dpf.KeyInfo(domain, output, generator, party)
        size = nescio.dpf.key_bytes(domain, output=output, generator=generator)
        assert len(key) == size


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_batch_of_keys_is_its_keys_one_by_one(generator, output, rng):
    points = rng.integers(5000, size=65)
    keys = nescio.dpf.generate(points, domain=5000, output=output, generator=generator)
    for party in keys:
        together = nescio.dpf.evaluate_all(party, threads=2)
        assert np.array_equal(together, [nescio.dpf.evaluate_all(key) for key in party])
        own_points = rng.integers(5000, size=(65, 3))
        own = nescio.dpf.evaluate(party, own_points)
        singles = [nescio.dpf.evaluate(k, p) for k, p in zip(party, own_points, strict=True)]
        assert np.array_equal(own, singles)
    total = nescio.dpf.combine(*map(nescio.dpf.evaluate_all, keys), output)
    hits = total[..., 0] if output == "u128" else total
    assert np.array_equal(np.argwhere(hits)[:, 1], points)


def test_an_empty_batch():
    assert nescio.dpf.generate([], domain=10) == ([], [])
    assert len(nescio.dpf.evaluate_all([])) == 0


@pytest.mark.parametrize("domain", [1, 9, 511, 512, 513, 100_003])
def test_packed_bits_are_the_bits_eight_to_a_byte(domain):
    key, _ = nescio.dpf.generate(domain - 1, domain=domain)
    packed = nescio.dpf.evaluate_all(key, packed=True)
    bits = nescio.dpf.evaluate_all(key)
    assert bits.dtype == bool
    assert np.array_equal(np.packbits(bits, bitorder="little"), packed)


@pytest.mark.parametrize("output", OUTPUTS)
def test_threads_do_not_change_the_result(output):
    key, _ = nescio.dpf.generate(77, domain=300_001, output=output)
    one = nescio.dpf.evaluate_all(key, threads=1)
    assert np.array_equal(one, nescio.dpf.evaluate_all(key, threads=5))
    assert np.array_equal(one, nescio.dpf.evaluate_all(key, threads=0))


def test_two_key_pairs_of_one_point_have_nothing_in_common():
    first = nescio.dpf.generate(5, domain=1000)
    second = nescio.dpf.generate(5, domain=1000)
    assert first[0][16:32] != first[1][16:32]
    assert first[0][16:] != second[0][16:]


def test_payloads_of_two_to_the_128_as_integers_and_as_halves():
    values = [(1 << 128) - 1, 1 << 64, -1]
    halves = np.array([[2**64 - 1, 2**64 - 1], [0, 1], [2**64 - 1, 2**64 - 1]], np.uint64)
    for payload in (values, halves):
        keys = nescio.dpf.generate([0, 1, 2], domain=3, output="u128", payload=payload)
        total = nescio.dpf.combine(*map(nescio.dpf.evaluate_all, keys), "u128")
        assert to_integers(total[[0, 1, 2], [0, 1, 2]], "u128") == [v % (1 << 128) for v in values]


@pytest.mark.parametrize(("generator", "limit"), [("aes128", 280), ("chacha20", 450)])
def test_keys_over_a_million_rows_are_short(generator, limit):
    assert nescio.dpf.key_bytes(1 << 20, generator=generator) <= limit


def test_arrays_of_other_libraries_are_accepted(dlpack):
    points = np.array([1, 2, 3])
    keys = nescio.dpf.generate(dlpack(points), domain=10, payload=None)
    assert len(keys[0]) == 3
    shares = [nescio.dpf.evaluate(k[1], dlpack(points)) for k in keys]
    assert np.array_equal(nescio.dpf.combine(*map(dlpack, shares), "bit"), points == 2)
    as_array = np.frombuffer(keys[0][0], np.uint8)
    expected = nescio.dpf.evaluate_all(keys[0][0])
    assert np.array_equal(nescio.dpf.evaluate_all(dlpack(as_array)), expected)


def test_the_memory_used_beyond_the_output_does_not_grow_with_the_domain():
    # The last 64 points of 2^40: memory proportional to the domain would exceed any machine.
    alpha = (1 << 40) - 1
    keys = nescio.dpf.generate(alpha, domain=1 << 40, output="u64", payload=9)
    shares = [nescio.dpf.evaluate_range(key, alpha - 63, alpha + 1) for key in keys]
    assert nescio.dpf.combine(*shares, "u64").tolist() == [0] * 63 + [9]
    assert _core.key_bytes(1 << 40, "u64", "chacha20") == len(keys[0])
