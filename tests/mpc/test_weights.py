"""Prepared weights: shared by preparations, within a limit of memory, and the same products."""

import threading

import numpy as np
import pytest

from mpc.layers import weights
from mpc.sessions import POOL, small_network
from mpc.sessions import input_of as small_input
from mpc.test_offline import network, random  # noqa: F401 - fixtures
from nescio.errors import ArgumentError, PeerRefusedError
from nescio.mpc import Client, PreparedWeights, PublicNetwork, Server, prepare
from nescio.mpc._linear import POLYNOMIAL_BYTES, ClientKeys, PublicKey, ciphertexts
from nescio.mpc._maps import Convolution, Dense
from nescio.mpc._network import Layer, Network, Term
from nescio.mpc._products import ProductPlan
from ot.parties import together


def products_of(network):  # noqa: F811 - the fixture
    return [own for layer in ProductPlan.of(network.public).layers for own in layer]


def whole(network):  # noqa: F811
    return POLYNOMIAL_BYTES * sum(own.polynomials for own in products_of(network))


def one_layer(own):
    return Network(own.inputs, (Layer((Term(0, own),), np.zeros(len(own.weights), int)),))


def sums(network, prepared, random):  # noqa: F811
    """Returns the sum of both shares of every product, and the exact one, modulo 2^bits."""
    plan, keys = ProductPlan.of(network.public), ClientKeys(POOL)
    key = PublicKey(keys.public_key, POOL)
    shapes = [network.inputs, *(layer.outputs for layer in network.layers)]
    masks = [random.integers(0, 2**32, (1, *shape), np.uint32) for shape in shapes]
    parsed = [
        ciphertexts(own.layout, keys.encrypt(own.layout, own.image(masks)), POOL)
        for own in plan.messages
    ]
    for layer, own, ready in zip(network.layers, plan.layers, prepared.layers, strict=True):
        total = np.zeros((1, *layer.outputs), np.uint32)
        for product, one in zip(own, ready, strict=True):
            answer, share = one.evaluate(key, [parsed[k] for k in product.messages])
            total += (share + keys.decrypt(product.encoding, answer)).reshape(total.shape)
        yield total, layer.total(masks), own[0].encoding.bits, len(own)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_products_are_the_same_within_any_limit(network, random, share):  # noqa: F811
    """Groups, gaps in a kernel, a stride, a shortcut and a matrix product."""
    prepared = PreparedWeights(network, max_bytes=int(share * whole(network)), threads=1)
    for found, expected, bits, count in sums(network, prepared, random):
        wrong = ((found - expected) << np.uint32(32 - bits)).view(np.int32) >> (32 - bits)
        assert np.abs(wrong).max() <= count


def test_kept_weights_fill_the_limit_and_no_more(network):  # noqa: F811
    """The rest is 4 bytes a weight, with the zeros that fill a polynomial's channels up."""
    sizes = [own.polynomials * POLYNOMIAL_BYTES for own in products_of(network)]
    integers = PreparedWeights(network, max_bytes=0, threads=1).kept_bytes
    assert integers < 16 * sum(
        term.map.weights.size for layer in network.layers for term in layer.terms
    )
    assert PreparedWeights(network, threads=1).kept_bytes == sum(sizes) == whole(network)
    for limit in (min(sizes) - 1, min(sizes), sum(sizes) - 1):
        prepared = PreparedWeights(network, max_bytes=limit, threads=1)
        assert prepared.kept_bytes <= limit + integers
        assert (prepared.kept_bytes > integers) == (limit >= min(sizes))


def test_polynomials_between_groups_take_nothing(random):  # noqa: F811
    """In a convolution of each channel alone, an output polynomial needs one or two inputs."""
    counts = []
    for groups in (1, 64):
        kernel = weights(random, 64, 64 // groups, 3, 3)
        own = Convolution(kernel, (64, 16, 16), padding=(1, 1), groups=groups)
        (product,) = products_of(one_layer(own))
        counts.append(product.polynomials / product.encoding.outputs)
    assert counts[0] == product.encoding.layouts[0].inputs == 16
    assert 1 <= counts[1] <= 2


def test_weights_of_large_products_are_arranged_in_blocks(random, monkeypatch):  # noqa: F811
    """Also where a block ends within a group, and the last output polynomial is not full."""
    monkeypatch.setattr("nescio.mpc._linear._BLOCK", 1)
    own = Convolution(weights(random, 39, 5, 3, 3), (15, 16, 16), groups=3)
    ((product,),) = ProductPlan.of(one_layer(own).public).layers
    assert product.encoding.outputs > 3
    assert product.encoding.out_channels % product.encoding.packed
    ((found, expected, *_),) = sums(one_layer(own), PreparedWeights(one_layer(own)), random)
    assert np.abs((found - expected).view(np.int32)).max() <= 1


def test_preparations_at_once_share_weights(tmp_path):
    """Two preparations in two threads, with one object whose products are transformed each time."""
    random_ = np.random.default_rng(4)
    own = small_network(random_)
    public = PublicNetwork.from_bytes(own.public.to_bytes())
    shared = PreparedWeights(own, max_bytes=2 * POLYNOMIAL_BYTES, threads=1)
    size, wrong = shared.kept_bytes, []

    def prepared(number):
        paths = tmp_path / f"client{number}", tmp_path / f"server{number}"
        try:
            together(
                lambda channel: prepare(channel, public, paths[0], 5, threads=1),
                lambda channel: prepare(channel, own, paths[1], 5, threads=1, weights=shared),
            )
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=prepared, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert shared.kept_bytes == size
    for number in range(2):
        x = small_input(own, random_)
        draws = np.stack([_clear(own, x) for _ in range(64)])  # roundings by chance
        found = _outputs(own, public, tmp_path, number, x)
        assert (np.abs(found - draws.mean(0)) <= 8 * draws.std(0) + 8).all()


def _outputs(own, public, folder, number, x):
    def client(channel):
        with Client(channel, public, folder / f"client{number}", threads=1) as party:
            return party.infer(x)

    def server(channel):
        with Server(channel, own, folder / f"server{number}", threads=1) as party:
            party.serve()

    return together(client, server)[0].view(np.int32)


def _clear(own, x):
    return own.simulate(x[None]).outputs[0].view(np.int32)


def test_weights_of_another_network(tmp_path):
    """The client would get results of other weights, and nobody would notice."""
    own, other = (small_network(np.random.default_rng(seed)) for seed in (1, 2))
    weights_ = PreparedWeights(other, threads=1)
    with pytest.raises((ArgumentError, PeerRefusedError), match="those of network|refused"):
        together(
            lambda channel: prepare(channel, own.public, tmp_path / "a", 1, threads=1),
            lambda channel: prepare(channel, own, tmp_path / "b", 1, threads=1, weights=weights_),
        )
    with pytest.raises(ArgumentError, match="weights: found those of network"):
        weights_.check(own)
    weights_.check(small_network(np.random.default_rng(2)))


@pytest.mark.parametrize("limit", [-1, 1.5, True, None])
def test_limits_that_are_no_numbers_of_bytes(limit):
    with pytest.raises(ArgumentError, match="max_bytes"):
        PreparedWeights(small_network(np.random.default_rng(1)), max_bytes=limit)


def test_weights_that_are_too_large_name_their_layer():
    own = Dense(np.full((1, 4096), 32767))
    with pytest.raises(ArgumentError, match="layer 1: weights of an output polynomial"):
        PreparedWeights(one_layer(own), max_bytes=0)
