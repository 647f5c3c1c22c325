"""Messages of another length, with residues that are too large, and wrong arguments."""

import numpy as np
import pytest

from nescio import _core
from nescio.errors import ArgumentError, MalformedMessageError
from rlwe.polynomials import N, prepared, random_messages, results_of, sparse_weights

SEED_BYTES, ROW_BYTES, UPPER_BYTES = 32, N * 30 // 8, N * 5


@pytest.fixture(scope="module")
def key():
    return _core.RlweClientKey()


@pytest.fixture
def layer(key, pool, rng):
    """A layer with two outputs, one input and three results, and its messages."""
    weights = prepared(sparse_weights(rng, 2, 1), pool)
    results = results_of([np.array([0, 9]), np.array([4095])])
    return weights, results, key.encrypt(random_messages(rng, 1), pool)


def evaluate(key, layer, pool, ciphertexts=None, tiles=1):
    weights, results, sent = layer
    public_key = _core.RlwePublicKey(key.public_key(), pool)
    sent = sent if ciphertexts is None else ciphertexts
    parsed = _core.RlweCiphertexts(sent, 1, pool)
    return weights.evaluate(public_key, results, [parsed], tiles, pool)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 30751, 30753, 61504])
def test_a_public_key_of_another_length(size, pool):
    with pytest.raises(MalformedMessageError, match=f"found {size} bytes, expected 30752 bytes"):
        _core.RlwePublicKey(np.zeros(size, np.uint8), pool)


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("at", [0, ROW_BYTES - 4])
def test_a_residue_that_is_not_below_its_prime(key, layer, pool, row, at):
    bad = layer[2].copy()
    bad[SEED_BYTES + row * ROW_BYTES + at :][:4] = 255
    with pytest.raises(MalformedMessageError, match="found a residue that is not below"):
        evaluate(key, layer, pool, bad)
    with pytest.raises(MalformedMessageError, match="found a residue that is not below"):
        _core.RlwePublicKey(bad, pool)


@pytest.mark.parametrize("prime", [0, 1])
def test_the_largest_residue_and_the_prime(key, layer, pool, prime):
    p = (1073692673, 1073668097)[prime]
    for value, accepted in ((p - 1, True), (p, False)):
        message = np.zeros(SEED_BYTES + 2 * ROW_BYTES, np.uint8)
        message[SEED_BYTES + prime * ROW_BYTES :][:4] = list(value.to_bytes(4, "little"))
        if accepted:
            _core.RlwePublicKey(message, pool)
        else:
            with pytest.raises(MalformedMessageError):
                _core.RlwePublicKey(message, pool)


def test_another_number_of_ciphertexts(layer, pool):
    with pytest.raises(MalformedMessageError, match="ciphertexts: found 30752 bytes, expected"):
        _core.RlweCiphertexts(layer[2], 2, pool)


@pytest.mark.parametrize("tiles", [0, 2])
def test_ciphertexts_for_another_number_of_tiles(key, layer, pool, tiles):
    with pytest.raises(ArgumentError, match=f"expected as many for each of {tiles} tiles"):
        evaluate(key, layer, pool, tiles=tiles)


@pytest.mark.parametrize("count", [0, 2])
def test_messages_for_another_number_of_inputs(key, layer, pool, count):
    weights, results, sent = layer
    public_key = _core.RlwePublicKey(key.public_key(), pool)
    messages = [_core.RlweCiphertexts(sent, 1, pool)] * count
    with pytest.raises(ArgumentError, match=f"ciphertexts of a tile: found {count}, expected 1"):
        weights.evaluate(public_key, results, messages, 1, pool)


@pytest.mark.parametrize("bits", [0, 33])
def test_bits_that_a_result_cannot_have(bits):
    with pytest.raises(ArgumentError, match=f"bits of a result: found {bits}, expected 1 to 32"):
        results_of([np.array([0])], bits)


@pytest.mark.parametrize("change", [-1, 1, 4, UPPER_BYTES])
def test_an_answer_of_another_length(key, layer, pool, change):
    answer = np.resize(evaluate(key, layer, pool)[0], 2 * UPPER_BYTES + 12 + change)
    with pytest.raises(MalformedMessageError, match="answer: found .* expected 40972 bytes"):
        key.decrypt(layer[1], answer, 1, pool)


def test_any_bytes_of_the_right_length_are_an_answer(key, layer, pool, rng):
    answer = rng.integers(0, 256, 2 * UPPER_BYTES + 12, np.uint8)
    assert key.decrypt(layer[1], answer, 1, pool).shape == (3,)


def test_positions_and_counts_that_do_not_fit():
    with pytest.raises(ArgumentError, match="found 4096, expected less than 4096"):
        results_of([np.array([4096])])
    with pytest.raises(ArgumentError, match="positions of results: found 1, expected 2"):
        _core.RlweResults(np.array([2], np.uint32), np.array([1], np.uint32))


def test_results_for_another_number_of_outputs(key, layer, pool):
    weights, _, sent = layer
    with pytest.raises(ArgumentError, match="outputs with results: found 1, expected 2"):
        evaluate(key, (weights, results_of([np.array([0])]), sent), pool)


@pytest.mark.parametrize(
    "weights",
    [[2**19 + 1], [-(2**31)], [2**31 - 1], [2**18] * 5, [4097] * 2 * N, [-4097] * 2 * N],
)
def test_weights_that_are_too_large(weights, pool):
    coefficients = np.zeros((1, 2, N), np.int32)
    coefficients.ravel()[: len(weights)] = weights
    with pytest.raises(ArgumentError, match="found too large ones, expected a sum"):
        prepared(coefficients, pool)


@pytest.mark.parametrize("shape", [(0, 1, N), (1, 0, N), (1, 1, N - 1)])
def test_weights_of_another_shape(shape, pool):
    with pytest.raises(ArgumentError):
        prepared(np.zeros(shape, np.int32), pool)


def test_seeds_of_another_length():
    with pytest.raises(ArgumentError, match="seed: found 31 bytes, expected 32"):
        _core.RlweClientKey(insecure_secret_seed=np.zeros(31, np.uint8))
