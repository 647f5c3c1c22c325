"""Maps with secret weights: the shares of both parties add up to the map of the mask."""

import numpy as np
import pytest

from nescio.mpc._encoding import Encoding
from nescio.mpc._linear import ClientKeys, PublicKey, ServerWeights
from nescio.mpc._maps import Convolution, Dense
from nescio.mpc._secret_maps import shape_of, weights_of


def integers(rng, *shape):
    return rng.integers(-128, 128, shape)


def maps(rng):
    return {
        "dense": Dense(integers(rng, 9, 40)),
        "dense of an image": Dense(integers(rng, 5, 48), (3, 4, 4)),
        "convolution": Convolution(integers(rng, 4, 3, 3, 3), (3, 8, 9), padding=(1, 1)),
        "stride": Convolution(integers(rng, 4, 3, 3, 2), (3, 8, 9), (2, 3), (1, 0)),
        "dilation": Convolution(
            integers(rng, 2, 3, 3, 2), (3, 9, 9), padding=(2, 1), dilation=(2, 3)
        ),
        "groups": Convolution(integers(rng, 6, 2, 3, 3), (4, 7, 7), groups=2),
        "channel by channel": Convolution(
            integers(rng, 5, 1, 3, 3), (5, 6, 6), (2, 2), (1, 1), (2, 1), groups=5
        ),
    }


@pytest.fixture(scope="module")
def keys(pool):
    return ClientKeys(pool)


@pytest.mark.parametrize("name", maps(np.random.default_rng(0)))
def test_shares_add_up_to_the_map_of_the_mask(name, keys, pool, rng):
    secret = maps(rng)[name]
    encoding = Encoding.of(shape_of(secret))
    mask = rng.integers(0, 2**32, (1, *secret.inputs), np.uint32)
    sent = keys.encrypt(encoding, mask.reshape(encoding.shape.in_channels, *encoding.shape.image))
    server = ServerWeights(encoding, weights_of(secret), pool)
    answer, share = server.evaluate(PublicKey(keys.public_key, pool), sent)
    total = (share + keys.decrypt(encoding, answer)).reshape(1, *secret.outputs)
    assert np.abs((total - secret(mask)).astype(np.int32)).max() <= 1
