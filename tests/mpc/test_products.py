"""Products of networks: each mask is encrypted once, and the shares are those of the maps."""

import numpy as np
import pytest

from mpc.layers import relu, weights
from mpc.test_offline import errors_of, offline
from nescio.errors import ArgumentError
from nescio.mpc._activation import Activation
from nescio.mpc._layout import CIPHERTEXT_BYTES, SEED_BYTES
from nescio.mpc._maps import Convolution, Dense
from nescio.mpc._network import Layer, Network, Term
from nescio.mpc._products import ProductPlan
from nescio.net import Channel
from ot.parties import TIMEOUT

FRAME_BYTES = 16


@pytest.fixture
def random():
    return np.random.default_rng(7)


class Builder:
    """A network of convolutions, whose last layer is a matrix product."""

    def __init__(self, random, *shape):
        self._random, self._layers, self.shapes = random, [], [shape]

    def conv(self, source, channels, kernel, stride=1, groups=1, dilation=1, padding=None):
        """Returns a convolution that keeps the size of the image but for its stride."""
        own = self.shapes[source]
        padding = dilation * (kernel - 1) // 2 if padding is None else padding
        values = weights(self._random, channels, own[0] // groups, kernel, kernel)
        pairs = ((n, n) for n in (stride, padding, dilation))
        return Term(source, Convolution(values, own, *pairs, groups))

    def dense(self, source, outputs):
        inputs = self.shapes[source]
        return Term(source, Dense(weights(self._random, outputs, int(np.prod(inputs))), inputs))

    def add(self, *terms, bits=8, shift=6):
        bias = weights(self._random, len(terms[0].map.weights))
        self._layers.append(Layer(terms, bias, Activation(relu, bits=bits, low=-100), shift))
        self.shapes.append(self._layers[-1].outputs)

    def done(self):
        last = Layer((self.dense(len(self._layers), 3),), weights(self._random, 3))
        return Network(self.shapes[0], (*self._layers, last))


def identity(b):
    """A residual block whose shortcut is a map of the block's input, without a stride."""
    b.add(b.conv(0, 4, 3))
    b.add(b.conv(1, 4, 3), b.conv(0, 4, 1))
    return [1, 1, 1]


def strided(b):
    """A block that halves the image: its shortcut has a stride, as its first convolution."""
    b.add(b.conv(0, 8, 3, stride=2), shift=9)
    b.add(b.conv(1, 8, 3), b.conv(0, 8, 1, stride=2), shift=4)
    return [1, 1, 1]


def three(b):
    """A mask that three layers use, modulo three powers of two."""
    b.add(b.conv(0, 4, 3), shift=3)
    b.add(b.conv(1, 5, 3), b.conv(0, 5, 1), shift=8)
    b.add(b.conv(2, 4, 3), b.conv(0, 4, 3), b.conv(1, 4, 1), bits=7, shift=5)
    return [1, 1, 1, 1]


def of_a_layer(b):
    """Two maps of one result in one layer."""
    b.add(b.conv(0, 4, 3), b.conv(0, 4, 1))
    return [1, 1]


def grouped(b):
    """Groups and gaps in kernels, beside a shortcut."""
    b.add(b.conv(0, 8, 3, groups=2, dilation=2))
    b.add(b.conv(1, 6, 3, dilation=2), b.conv(0, 6, 1, groups=2), b.conv(0, 6, 3, dilation=2))
    return [1, 1, 1]


def apart(b):
    """Maps that do not agree: of other strides, and of more taps than those before them."""
    b.add(b.conv(0, 4, 1, stride=2))
    b.add(b.conv(0, 4, 3, stride=1))
    b.add(b.conv(2, 4, 3, stride=2), b.conv(1, 4, 3))
    return [2, 1, 1, 1]


def dense(b):
    """A matrix product of a convolution's result, and a convolution of the same result."""
    b.add(b.conv(0, 4, 3))
    b.add(b.dense(1, 6))
    b.add(b.conv(1, 4, 3))
    return [1, 2, 0, 1]


KINDS = [identity, strided, three, of_a_layer, grouped, apart, dense]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def case(request, random):
    """A network, and how often each mask is encrypted."""
    builder = Builder(random, 4, 10, 10)
    expected = request.param(builder)
    return builder.done(), expected


def test_each_mask_is_encrypted_once_if_its_layouts_agree(case):
    network, expected = case
    sources = [message.source for message in ProductPlan.of(network.public).messages]
    assert [sources.count(source) for source in range(len(expected))] == expected


def test_shares_are_those_of_the_maps_or_one_off(case):
    """Modulo 2^bits. One off and no more, because the maps of a layer are one product."""
    network, _ = case
    for client, server in offline(network, 2):
        for error in errors_of(network, client, server):
            assert np.abs(error.view(np.int32)).max() <= 1


@pytest.mark.parametrize(("stride", "channels"), [(1, 4), (2, 8)], ids=["identity", "strided"])
def test_a_shortcut_takes_no_ciphertexts(random, stride, channels):
    """The client sends as much for a residual block as for its convolutions alone."""
    sent = []
    for shortcut in (True, False):
        builder = Builder(random, 4, 10, 10)
        builder.add(builder.conv(0, channels, 3, stride))
        terms = [builder.conv(1, channels, 3), builder.conv(0, channels, 1, stride)]
        builder.add(*terms[: 1 + shortcut])
        channel_pair = Channel.pair(timeout=TIMEOUT)
        list(offline(builder.done(), 1, channel_pair))
        sent.append(channel_pair[0].counts.sent_by_kind["CIPH"])
    assert sent[0] == sent[1]


def test_ciphertexts_of_a_block_are_those_of_two_masks(random):
    """By hand: 16 channels of 17 x 17 take two ciphertexts of 4096, and 8 numbers one."""
    builder = Builder(random, 16, 16, 16)
    builder.add(builder.conv(0, 2, 3))
    builder.add(builder.conv(1, 2, 3), builder.conv(0, 2, 1))
    channels = Channel.pair(timeout=TIMEOUT)
    list(offline(builder.done(), 1, channels))
    masks = 3
    expected = masks * SEED_BYTES + (2 + 1 + 1) * CIPHERTEXT_BYTES
    assert channels[0].counts.sent_by_kind["CIPH"] == FRAME_BYTES + expected


@pytest.mark.parametrize(("shift", "bits", "expected"), [(0, 8, 8), (12, 8, 20), (24, 8, 32)])
def test_results_have_the_bits_that_lookups_use(random, shift, bits, expected):
    builder = Builder(random, 2, 4, 4)
    builder.add(builder.conv(0, 2, 1), bits=bits, shift=shift)
    first, last = ProductPlan.of(builder.done().public).layers
    assert (first[0].encoding.bits, last[0].encoding.bits) == (expected, 32)


def test_a_kernel_of_more_taps_than_coefficients(random):
    own = Convolution(weights(random, 1, 1, 65, 64), (1, 65, 65))
    layer = Layer((Term(0, own),), np.zeros(1, int))
    with pytest.raises(ArgumentError, match="the taps of a kernel exceed 4096 coefficients"):
        ProductPlan.of(Network((1, 65, 65), (layer,)).public)
