"""Shares of linear layers from messages of bytes: exact up to 1, and hidden from each party."""

import numpy as np
import pytest

from mpc.layers import convolve, random_convolution, random_input, random_weights
from nescio.errors import ArgumentError, MalformedMessageError
from nescio.mpc._encoding import Encoding
from nescio.mpc._layout import ConvolutionShape, linear
from nescio.mpc._linear import ClientKeys, PublicKey, ServerWeights, ciphertexts


@pytest.fixture(scope="module")
def keys(pool):
    return ClientKeys(pool)


@pytest.fixture(scope="module")
def public_key(keys, pool):
    return PublicKey(keys.public_key, pool)


def difference(keys, public_key, pool, shape, x, weights, bits=32):
    """Returns the sum of both shares less the product, modulo 2^bits, signed."""
    encoding = Encoding.of(shape, bits)
    (layout,) = encoding.layouts
    message = keys.encrypt(layout, x)
    answer, server = ServerWeights(encoding, [weights], pool).evaluate(
        public_key, [ciphertexts(layout, message, pool)]
    )
    client = keys.decrypt(encoding, answer)
    assert (len(message), len(answer)) == (encoding.bytes_in, encoding.bytes_out)
    left = 32 - bits
    return ((server + client - convolve(shape, x, weights)) << left).astype(np.int32) >> left


def test_1000_random_layers(keys, public_key, pool, rng):
    """Random shapes, weights of 1 to 12 bits, results of 2 to 32. About 10 s: 1000 products."""
    wrong = []
    for _ in range(1000):
        shape = random_convolution(rng)
        x = random_input(rng, shape)
        weights = random_weights(rng, shape, int(rng.integers(1, 13)))
        bits = int(rng.integers(2, 33))
        wrong.append(difference(keys, public_key, pool, shape, x, weights, bits).ravel())
    wrong = np.concatenate(wrong)
    assert np.abs(wrong).max() <= 1
    assert np.mean(wrong != 0) < 0.06
    assert abs(np.mean(wrong)) < 0.005


@pytest.mark.parametrize(
    "shape",
    [
        ConvolutionShape(16, 16, (32, 32), (3, 3), (1, 1), (1, 1)),
        ConvolutionShape(16, 32, (32, 32), (3, 3), (2, 2), (1, 1)),
        ConvolutionShape(3, 8, (70, 130), (7, 7), (2, 2), (3, 3)),
        linear(5000, 3),
        linear(64, 100, 9),
    ],
    ids=str,
)
def test_layers_of_networks(shape, keys, public_key, pool, rng):
    x, weights = random_input(rng, shape), random_weights(rng, shape)
    assert np.abs(difference(keys, public_key, pool, shape, x, weights)).max() <= 1


def test_the_largest_products(keys, public_key, pool):
    """Inputs of 2^32 - 1 and weights of -128, so that every sum wraps around."""
    shape = ConvolutionShape(64, 20, (8, 8), (3, 3), (1, 1), (1, 1))
    x = np.full((64, 8, 8), 2**32 - 1, np.uint32)
    weights = np.full((20, 64, 3, 3), -128, np.int8)
    assert np.abs(difference(keys, public_key, pool, shape, x, weights)).max() <= 1


def test_weights_that_are_too_large(pool):
    encoding = Encoding.of(linear(100, 1))
    with pytest.raises(ArgumentError, match="use fewer bits a weight"):
        ServerWeights(encoding, [np.full((1, 100, 1, 1), 2**16, np.int32)], pool)


def test_messages_of_another_layer(keys, pool, rng):
    one, other = (Encoding.of(ConvolutionShape(c, 2, (40, 40), (3, 3))) for c in (2, 5))
    layouts = [own.layouts[0] for own in (one, other)]
    message = keys.encrypt(layouts[1], random_input(rng, layouts[1].shape))
    with pytest.raises(MalformedMessageError, match="both parties must have the same layer"):
        ciphertexts(layouts[0], message, pool)
    with pytest.raises(MalformedMessageError, match="answer: found 5 bytes"):
        keys.decrypt(one, b"wrong")


def test_another_key_decrypts_nothing(public_key, keys, pool, rng):
    shape = linear(64, 500)
    encoding, x, weights = Encoding.of(shape), random_input(rng, shape), random_weights(rng, shape)
    (layout,) = encoding.layouts
    answer, server = ServerWeights(encoding, [weights], pool).evaluate(
        public_key, [ciphertexts(layout, keys.encrypt(layout, x), pool)]
    )
    wrong = server + ClientKeys(pool).decrypt(encoding, answer) - convolve(shape, x, weights)
    assert np.mean(np.abs(wrong.astype(np.int32)) < 2**24) < 0.1
