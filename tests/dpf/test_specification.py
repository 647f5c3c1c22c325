"""The engine against the executable specification, bit for bit, in every tier."""

import functools

import numpy as np
import pytest

import nescio.dpf
from dpf.helpers import (
    ALL_GENERATORS,
    GENERATORS,
    OUTPUTS,
    random_payload,
    random_roots,
    roots_array,
    to_integers,
)
from nescio import _core
from spec import dpf as spec

# Around the boundaries of leaves (4 to 512 elements), of trees and of the chunks of an evaluation.
DOMAINS = [1, 2, 3, 127, 128, 129, 511, 512, 513, 2049, 4097]
CASES = [(g, o, n) for g in GENERATORS for o in OUTPUTS for n in DOMAINS]
CASES += [(g, o, 2049) for g in ALL_GENERATORS if g not in GENERATORS for o in ("bit", "u32")]


def specified_keys(shape, rng):
    alpha = int(rng.integers(shape.domain))
    payload, roots = random_payload(rng, shape.output), random_roots(rng)
    return alpha, payload, roots, spec.generate(shape, alpha, payload, roots)


@functools.cache
def specified(generator, output, domain):
    """Return specified keys and the shares of both: slow, and the same for every tier."""
    shape = spec.Shape(domain, output, generator)
    *secrets, keys = specified_keys(shape, np.random.default_rng(20261121))
    return *secrets, keys, [spec.evaluate_all(key) for key in keys]


@pytest.mark.parametrize(("generator", "output", "domain"), CASES)
def test_the_specification_itself_is_correct(generator, output, domain):
    alpha, payload, _, keys, shares = specified(generator, output, domain)
    values = [spec.combine(output, a, b) for a, b in zip(*shares, strict=True)]
    assert values == [payload if i == alpha else 0 for i in range(domain)]
    assert spec.evaluate(keys[0], domain - 1) == shares[0][domain - 1]


@pytest.mark.parametrize(("generator", "output", "domain"), CASES)
def test_every_tier_agrees_with_the_specification(generator, output, domain, tier, pool, rng):
    alpha, payload, roots, keys, shares_of_both = specified(generator, output, domain)
    pairs = np.frombuffer(b"".join(roots), np.uint64).reshape(2, 2)
    beta = np.array([[payload & (1 << 64) - 1, payload >> 64]], np.uint64)
    point = np.array([alpha], np.uint64)
    made = _core.generate(point, beta, domain, output, generator, pairs, tier)
    for key, rows, expected in zip(keys, made, shares_of_both, strict=True):
        assert rows.tobytes() == spec.serialize(key)
        engine_key = _core.Keys(rows)
        shares = _core.evaluate_range(engine_key, 0, domain, pool, tier)
        assert int.from_bytes(shares.tobytes(), "little") == sum(
            share << i * spec.OUTPUT_BITS[output] for i, share in enumerate(expected)
        )
        points = rng.integers(domain, size=(1, 5), dtype=np.uint64)
        singles = _core.evaluate_points(engine_key, points, pool, tier).reshape(5, -1)
        found = [int.from_bytes(share.tobytes(), "little") for share in singles]
        assert found == [expected[int(p)] for p in points[0]]


@pytest.mark.parametrize("domain", [1, 100, 600, 5000])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("generator", GENERATORS)
def test_a_batch_of_keys_equals_single_keys(generator, output, domain, tier, pool, rng):
    points = rng.integers(domain, size=70, dtype=np.uint64)
    ones = np.tile(np.array([[1, 0]], np.uint64), (70, 1))
    rows, _ = _core.generate(points, ones, domain, output, generator, None, tier)
    together = _core.evaluate_range(_core.Keys(rows), 0, domain, pool, tier)
    for i in (0, 1, 68, 69):
        alone = _core.evaluate_range(_core.Keys(rows[i : i + 1]), 0, domain, pool, tier)
        assert np.array_equal(together[i], alone[0])


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("output", OUTPUTS)
def test_the_package_agrees_with_the_specification(generator, output, rng):
    shape = spec.Shape(1000, output, generator)
    alpha, payload, roots, keys = specified_keys(shape, rng)
    made = nescio.dpf.insecure_generate(
        alpha,
        domain=1000,
        output=output,
        generator=generator,
        payload=payload,
        roots=roots_array(roots),
    )
    for key, data in zip(keys, made, strict=True):
        assert data == spec.serialize(key)
        assert to_integers(nescio.dpf.evaluate_all(data), output) == spec.evaluate_all(key)


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_whole_tree_of_two_to_the_seventeen_and_one(generator, rng):
    shape = spec.Shape((1 << 17) + 1, "bit", generator)
    _, _, _, (key, _) = specified_keys(shape, rng)
    found = nescio.dpf.evaluate_all(spec.serialize(key), threads=2)
    assert to_integers(found, "bit") == spec.evaluate_all(key)
