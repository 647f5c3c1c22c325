"""Shares of ring-LWE products: exact up to 1, uniform, and independent of tiers and threads."""

import numpy as np
import pytest

from nescio import _core
from rlwe.polynomials import (
    N,
    difference,
    multiply,
    prepared,
    random_messages,
    results_of,
    sparse_weights,
)


@pytest.fixture(scope="module")
def key():
    return _core.RlweClientKey()


def encrypted(key, messages, pool, **options):
    """Returns a message, parsed."""
    sent = key.encrypt(messages, pool, **options)
    return _core.RlweCiphertexts(sent, len(messages), pool, **options)


def run(key, weights, messages, positions, pool, tiles=1, bits=32, **options):
    """Returns the shares of the server and of the client."""
    results = results_of(positions, bits)
    public_key = _core.RlwePublicKey(key.public_key(), pool)
    answer, server = prepared(weights, pool, **options).evaluate(
        public_key, results, [encrypted(key, messages, pool)], tiles, pool, **options
    )
    return server, key.decrypt(results, answer, tiles, pool, **options)


def test_shares_add_up_to_the_product_or_differ_by_one(key, tier, pool, rng):
    weights, messages = sparse_weights(rng, 3, 2), random_messages(rng, 2)
    everything = [np.arange(N)] * 3
    server, client = run(key, weights, messages, everything, pool, tier=tier)
    wrong = difference(server, client, multiply(weights, messages).ravel())
    assert np.abs(wrong).max() <= 1
    assert np.mean(wrong != 0) < 0.07  # 0.047 is expected, with a deviation of 0.002
    assert abs(np.mean(wrong)) < 0.012  # unbiased: a deviation of 0.002


def test_ternary_products_wrap_around(key, pool):
    """The largest message, times X^(N-1): coefficients change their sign."""
    weights = np.zeros((1, 1, N), np.int32)
    weights[0, 0, N - 1] = 1
    messages = np.full((1, N), 2**32 - 1, np.uint32)
    server, client = run(key, weights, messages, [np.arange(N)], pool)
    assert np.abs(difference(server, client, multiply(weights, messages)[0])).max() <= 1


def test_the_largest_weights_that_are_accepted(key, pool, rng):
    """A norm of 2^19 from 64 weights of 2^16."""
    weights = np.zeros((1, 1, N), np.int32)
    weights[0, 0, rng.choice(N, 64, replace=False)] = 2**16
    messages = random_messages(rng, 1)
    server, client = run(key, weights, messages, [np.arange(N)], pool)
    assert np.abs(difference(server, client, multiply(weights, messages)[0])).max() <= 1


def test_the_largest_sum_of_magnitudes(key, pool):
    """Two inputs of 2^13 weights of 2^12."""
    weights = np.full((1, 2, N), 2**12, np.int32)
    messages = np.full((2, N), 0x7FFFFFFF, np.uint32)
    messages[:, ::3] = 12345
    server, client = run(key, weights, messages, [np.arange(N)], pool)
    sums = np.cumsum(messages.sum(0, np.uint32), dtype=np.uint32)
    expected = np.uint32(2**12) * (sums + sums - sums[-1])  # those that wrap around are negative
    assert np.abs(difference(server, client, expected)).max() <= 1


def test_tiles_share_the_weights(key, pool, rng):
    weights, messages = sparse_weights(rng, 2, 3), random_messages(rng, 12)
    positions = [np.array([1, 4000]), np.array([7])]
    server, client = run(key, weights, messages, positions, pool, tiles=4)
    for tile in range(4):
        products = multiply(weights, messages[3 * tile : 3 * tile + 3])
        expected = np.array([products[0, 1], products[0, 4000], products[1, 7]])
        own = slice(3 * tile, 3 * tile + 3)
        assert np.abs(difference(server[own], client[own], expected)).max() <= 1


@pytest.mark.parametrize("bits", [2, 3, 8, 17, 24, 31, 32])
def test_shares_modulo_a_power_of_two(key, pool, rng, bits):
    """No share has more bits. About 5 % of the results are off by 1, whatever the modulus."""
    weights, messages = sparse_weights(rng, 2, 2), random_messages(rng, 2)
    positions = [np.arange(N), np.arange(11)]
    server, client = run(key, weights, messages, positions, pool, bits=bits)
    products = multiply(weights, messages)
    expected = np.concatenate([products[0], products[1, :11]])
    wrong = difference(server, client, expected, bits)
    assert np.abs(wrong).max() <= 1
    assert np.mean(wrong != 0) < 0.07
    assert max(server.max(), client.max()) >> bits == 0


@pytest.mark.parametrize("given", [[0, 1], [1, 0], [1], [0, 0]], ids=str)
def test_inputs_from_several_messages(key, pool, rng, given):
    """Messages of one and two ciphertexts for each of two tiles, in any order."""
    messages = [random_messages(rng, 2), random_messages(rng, 4)]
    parsed = [encrypted(key, own, pool) for own in messages]
    weights = sparse_weights(rng, 2, sum(len(messages[k]) // 2 for k in given))
    results = results_of([np.arange(50), np.arange(7)])
    answer, server = prepared(weights, pool).evaluate(
        _core.RlwePublicKey(key.public_key(), pool), results, [parsed[k] for k in given], 2, pool
    )
    client = key.decrypt(results, answer, 2, pool)
    for tile, own in enumerate(zip(np.split(server, 2), np.split(client, 2), strict=True)):
        inputs = np.concatenate([np.split(messages[k], 2)[tile] for k in given])
        products = multiply(weights, inputs)
        expected = np.concatenate([products[0, :50], products[1, :7]])
        assert np.abs(difference(*own, expected)).max() <= 1


def test_an_output_without_results(key, pool, rng):
    weights, messages = sparse_weights(rng, 2, 1), random_messages(rng, 1)
    server, client = run(key, weights, messages, [np.array([], int), np.arange(5)], pool)
    expected = multiply(weights, messages)[1, :5]
    assert np.abs(difference(server, client, expected)).max() <= 1


def test_the_same_for_any_number_of_threads(rng):
    seed = np.arange(32, dtype=np.uint8)
    weights, messages = sparse_weights(rng, 5, 2), random_messages(rng, 2)
    results = results_of([np.arange(100)] * 5)
    answers = []
    for threads in (1, 3):
        pool = _core.ThreadPool(threads)
        key = _core.RlweClientKey(insecure_secret_seed=seed, insecure_public_seed=seed)
        ciphertexts = key.encrypt(
            messages, pool, insecure_secret_seed=seed, insecure_public_seed=seed
        )
        public_key = _core.RlwePublicKey(key.public_key(), pool)
        parsed = _core.RlweCiphertexts(ciphertexts, 2, pool)
        answer, _ = prepared(weights, pool).evaluate(
            public_key, results, [parsed], 1, pool, insecure_seed=seed
        )
        answers.append(answer)
    assert np.array_equal(*answers)


def test_messages_differ_from_call_to_call(key, pool, rng):
    messages = random_messages(rng, 1)
    first, second = key.encrypt(messages, pool), key.encrypt(messages, pool)
    assert np.mean(first == second) < 0.05
    assert np.mean(_core.RlweClientKey().public_key() == key.public_key()) < 0.05


def test_a_message_of_zeros_times_the_largest_weight(key, pool):
    """A product of errors alone, as large as they are accepted."""
    weights = np.zeros((1, 1, N), np.int32)
    weights[0, 0, 0] = 2**19
    server, client = run(key, weights, np.zeros((1, N), np.uint32), [np.arange(N)], pool)
    assert np.abs((server + client).astype(np.int32)).max() <= 1
