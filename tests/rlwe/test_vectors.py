"""The vectors of ring-LWE products in every tier, and the specification by its definitions."""

import hashlib
import json
import random
from pathlib import Path

import numpy as np
import pytest

from nescio import _core
from rlwe.polynomials import prepared, results_of
from spec import rlwe as spec
from vectors import make_rlwe

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "rlwe.json").read_text())


def seed(name):
    return np.frombuffer(make_rlwe.seed(name), np.uint8)


def sha256(array):
    return hashlib.sha256(array.tobytes()).hexdigest()


def weights_of(case):
    inputs = range(sum(case["inputs"]))
    rows = [[make_rlwe.weight(o, g) for g in inputs] for o in range(case["outputs"])]
    return np.array(rows, np.int32)


@pytest.mark.parametrize("case", VECTORS, ids=lambda c: f"{c['outputs']}x{sum(c['inputs'])}")
@pytest.mark.parametrize("kept", [True, False], ids=["transformed", "coefficients"])
def test_the_engine_reproduces_the_vectors(case, kept, tier, pool):
    key = _core.RlweClientKey(
        insecure_secret_seed=seed("secret"), insecure_public_seed=seed("public"), tier=tier
    )
    assert sha256(key.public_key()) == case["public_key"]

    sent = [
        key.encrypt(
            np.array(own, np.uint32),
            pool,
            insecure_secret_seed=seed(f"errors {k}"),
            insecure_public_seed=seed(f"c1 {k}"),
            tier=tier,
        )
        for k, own in enumerate(make_rlwe.polynomials(case["inputs"], case["tiles"]))
    ]
    assert [sha256(own) for own in sent] == case["ciphertexts"]

    where = [make_rlwe.positions(o) for o in range(case["outputs"])]
    results = results_of(where, bits=case["bits"])
    weights = prepared(weights_of(case), pool, keep_transformed=kept, tier=tier)
    public_key = _core.RlwePublicKey(key.public_key(), pool, tier=tier)
    counts = [own * case["tiles"] for own in case["inputs"]]
    answer, server = weights.evaluate(
        public_key,
        results,
        [
            _core.RlweCiphertexts(own, count, pool, tier=tier)
            for own, count in zip(sent, counts, strict=True)
        ],
        case["tiles"],
        pool,
        insecure_seed=seed("server"),
        tier=tier,
    )
    assert sha256(answer) == case["answer"]
    assert sha256(server) == case["server_shares"]

    client = key.decrypt(results, answer, case["tiles"], pool, tier=tier)
    assert sha256(client) == case["client_shares"]
    first = [[str(a), str(b)] for a, b in zip(server[:4], client, strict=False)]
    assert first == case["first_shares"]


def test_the_specification_writes_the_first_vector():
    assert make_rlwe.case(*make_rlwe.SHAPES[0]) == VECTORS[0]


def test_the_transform_of_the_specification_is_its_definition():
    draw = random.Random(1)
    a = [draw.randrange(spec.Q) for _ in range(spec.N)]
    for i in range(2):
        values = spec.transform(a, i)
        assert all(values[k] == spec.evaluate_at(a, i, k) for k in (0, 1, 77, 4095))
        assert spec.interpolate(values, i) == [x % spec.PRIMES[i] for x in a]


def test_the_product_of_the_specification_is_its_definition():
    draw = random.Random(2)
    a = [draw.randrange(spec.Q) for _ in range(spec.N)]
    b = [0] * spec.N
    b[0], b[1], b[4095] = 5, spec.Q - 2, 7
    expected = [
        (5 * a[k] - 2 * (a[k - 1] if k else -a[-1]) - 7 * a[k + 1 - spec.N]) % spec.Q
        for k in range(spec.N - 1)
    ]
    assert spec.multiply(a, b, spec.Q)[:-1] == expected


def test_errors_and_ternary_values_have_their_distribution():
    """Chi-squared below its mean plus 6 deviations; a shift of a value by one fails."""
    errors = [x for k in range(3) for x in spec.error(bytes(32), k)]
    assert abs(sum(errors)) < 6 * (10.5 * len(errors)) ** 0.5
    assert abs(sum(x * x for x in errors) / len(errors) - 10.5) < 6 * (2 * 10.5**2 / 12288) ** 0.5
    values = [x for k in range(3) for x in spec.ternary(bytes(32), k)]
    for value in (-1, 0, 1):
        assert abs(values.count(value) - 4096) < 6 * (12288 * 2 / 9) ** 0.5
