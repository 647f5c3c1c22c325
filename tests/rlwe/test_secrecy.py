"""Statistics of every message against the secrets; each test also finds a leak that it plants."""

import numpy as np
import pytest

from nescio import _core
from rlwe.polynomials import N, prepared, random_messages, results_of
from spec import rlwe as spec

BINS = 64


def deviations(values, below):
    """Returns by how many standard deviations chi-squared differs from that of uniform values."""
    counts = np.bincount((values.astype(object) * BINS // below).astype(int), minlength=BINS)
    expected = len(values) / BINS
    chi_squared = np.sum((counts - expected) ** 2) / expected
    return abs(chi_squared - (BINS - 1)) / (2 * (BINS - 1)) ** 0.5


def is_uniform(values, below):
    return deviations(np.asarray(values), below) < 8


def rows_of(message):
    """Returns c0 of the first ciphertext, modulo both primes."""
    size = N * 30 // 8
    body = message.tobytes()[32:]
    return [spec.split(body[i * size :][:size], 30, N) for i in range(2)]


@pytest.fixture(scope="module")
def key():
    return _core.RlweClientKey()


@pytest.mark.parametrize("word", [0, 1, 2**31, 2**32 - 1])
def test_ciphertexts_are_uniform_for_any_message(word, key, pool):
    sent = rows_of(key.encrypt(np.full((1, N), word, np.uint32), pool))
    for row, p in zip(sent, spec.PRIMES, strict=True):
        assert is_uniform(row, p)
    plain = [spec.scale(word, 2**32, spec.Q)] + [0] * (N - 1)  # without c1 s and an error
    assert not is_uniform(spec.transform(plain, 0), spec.PRIMES[0])


def test_public_keys_are_uniform(pool):
    for row, p in zip(rows_of(_core.RlweClientKey().public_key()), spec.PRIMES, strict=True):
        assert is_uniform(row, p)


def evaluate(key, weight, pool, messages, bits=32):
    """Returns the ciphertexts, c1 and results of the answer, and both parties' shares."""
    weights = np.zeros((1, 1, N), np.int32)
    weights[0, 0, 0] = weight
    results = results_of([np.arange(N)], bits)
    ciphertexts = key.encrypt(messages, pool)
    answer, server = prepared(weights, pool).evaluate(
        _core.RlwePublicKey(key.public_key(), pool),
        results,
        [_core.RlweCiphertexts(ciphertexts, len(messages), pool)],
        1,
        pool,
    )
    size = N * (bits + 8) // 8
    upper = np.array(spec.split(answer[:size].tobytes(), bits + 8, N))
    lower = np.array(spec.split(answer[size:].tobytes(), bits, N), np.uint32)
    return ciphertexts, upper, lower, server, key.decrypt(results, answer, 1, pool)


@pytest.mark.parametrize("weight", [0, 1, -77])
def test_c1_of_an_answer_hides_the_weights(weight, key, pool, rng):
    """Without an encryption of zero, c1 would be the weight times a c1 that the client knows."""
    ciphertexts, upper, *_ = evaluate(key, weight, pool, random_messages(rng, 1))
    c1 = spec.read_ciphertexts(ciphertexts.tobytes(), 1)[0].c1
    known = np.array([spec.scale(weight * x % spec.Q, spec.Q, 1 << 40) for x in c1])
    assert is_uniform((upper - known) % 2**40, 2**40)
    assert not is_uniform((known + rng.integers(-5, 5, N) - known) % 2**40, 2**40)


@pytest.mark.parametrize("bits", [17, 32])
@pytest.mark.parametrize("weight", [0, 1, -77])
def test_results_and_shares_are_uniform(weight, key, pool, bits):
    """The shares of a product of zeros; without its mask, a client's share would be zero."""
    zeros = np.zeros((1, N), np.uint32)
    _, upper, lower, server, client = evaluate(key, weight, pool, zeros, bits)
    for values in (lower, server, client):
        assert is_uniform(values, 2**bits)
    assert is_uniform(upper, 2 ** (bits + 8))
    assert not is_uniform((client + server) % np.uint64(2**bits), 2**bits)


def test_the_difference_of_two_answers_is_uniform(key, pool):
    """Masks are fresh for every answer to the same message."""
    first, second = (evaluate(key, 1, pool, np.zeros((1, N), np.uint32)) for _ in range(2))
    assert is_uniform(first[2] - second[2], 2**32)
    assert is_uniform((first[1] - second[1]) % 2**40, 2**40)
    assert not is_uniform(first[2] - first[2], 2**32)
