"""Both phases whole and joined, by two parties without a dealer."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mpc.layers import relu, weights
from nescio import _core
from nescio.errors import FileError, MismatchError, PeerRefusedError, ResourceError
from nescio.mpc import _material as material
from nescio.mpc._activation import Activation
from nescio.mpc._agreement import PROTOCOL
from nescio.mpc._dealer import insecure_deal, insecure_dealer
from nescio.mpc._maps import Convolution, Dense
from nescio.mpc._network import Layer, Network, Term
from nescio.mpc._offline import OfflineClient, OfflineServer
from nescio.mpc._online import dithers_of, infer, serve
from nescio.mpc._products import bits_of
from nescio.mpc._session import Client, Server, prepare
from nescio.mpc._store import Store
from nescio.mpc._tables import TableMaker
from nescio.net import Channel
from ot.parties import together

POOL = _core.ThreadPool(1)


@pytest.fixture
def random():
    return np.random.default_rng(9)


@pytest.fixture
def network(random):
    """All kinds of maps: groups, gaps in a kernel, a stride, a shortcut, a matrix product."""
    wide, narrow = Activation(relu, bits=8, low=-100), Activation(relu, bits=5, low=-10)
    first = Convolution(weights(random, 4, 2, 3, 3), (4, 6, 6), padding=(1, 1), groups=2)
    second = Convolution(weights(random, 4, 4, 2, 3), (4, 6, 6), padding=(1, 2), dilation=(2, 2))
    shortcut = Convolution(weights(random, 4, 4, 1, 1), (4, 6, 6))
    third = Convolution(weights(random, 6, 4, 3, 2), (4, 6, 6), stride=(2, 3))
    last = Dense(weights(random, 3, 6 * 2 * 2), (6, 2, 2))
    return Network(
        (4, 6, 6),
        (
            Layer((Term(0, first),), weights(random, 4), wide, 6),
            Layer((Term(1, second), Term(0, shortcut)), weights(random, 4), narrow, 8),
            Layer((Term(2, third),), weights(random, 6), wide, 5),
            Layer((Term(3, last),), weights(random, 3)),
        ),
    )


def errors_of(network, client, server):
    """Returns how far the parties' shares are from those of the exact products, modulo 2^bits."""
    masks = [client.mask, *(layer.mask for layer in client.layers[:-1])]
    found = []
    for layer, mine, theirs in zip(network.layers, client.layers, server.layers, strict=True):
        left = 32 - bits_of(layer)
        error = layer.total(masks) - theirs.subtracted + mine.share
        found.append(((error << left).view(np.int32) >> left).view(np.uint32))
    return found


def offline(network, count=1, channels=None):
    def client(channel):
        with TableMaker(channel, "client", threads=1) as maker:
            party = OfflineClient(channel, network.public, maker, POOL)
            return [party.make() for _ in range(count)]

    def server(channel):
        with TableMaker(channel, "server", threads=1) as maker:
            party = OfflineServer(channel, network, maker, POOL)
            return [party.make() for _ in range(count)]

    return zip(*together(client, server, channels), strict=True)


def input_of(network, random):
    return random.integers(-40, 40, network.inputs).astype(np.int32).view(np.uint32)


def test_prepared_inferences_give_the_outputs_of_the_simulator(network, random):
    """The shares of products are exact or 1 off a map; the outputs are equal, with these errors."""
    for client, server in offline(network, 3):
        errors = errors_of(network, client, server)
        for layer, error in zip(network.layers, errors, strict=True):
            assert np.abs(error.view(np.int32)).max() <= len(layer.terms)
        x = input_of(network, random)[None]
        outputs, _ = together(
            lambda channel, own=client, x=x: infer(channel, network.public, own, x, POOL),
            lambda channel, own=server: serve(channel, network, own, POOL),
        )
        assert np.array_equal(outputs, network.simulate(x, dithers_of(client), errors).outputs)


def test_a_store_is_of_no_use_with_other_weights(network, tmp_path):
    """A server that was trained again: the client would see W' R - W R. Biases may change."""
    insecure_dealer(network, tmp_path / "client", tmp_path / "server", 1, seed=1)
    first, *others = network.layers
    (term,) = first.terms
    weights_ = term.map.weights.copy()
    weights_[0, 0, 0, 0] += 1
    changed = replace(first, terms=(Term(0, replace(term.map, weights=weights_)),))
    other = Network(network.inputs, (changed, *others))
    assert other.public.digest == network.public.digest
    channel, client = Channel.pair()
    with pytest.raises(FileError, match="found a store for other weights of this network"):
        Server(channel, other, tmp_path / "server")
    with Client(client, network.public, tmp_path / "client") as asking:
        with pytest.raises(PeerRefusedError):
            asking.infer(np.zeros((4, 6, 6), np.uint32))
        assert asking.left == 1
    other = Network(network.inputs, (replace(first, bias=first.bias + 1), *others))
    with Server(Channel.pair()[0], other, tmp_path / "server") as server:
        assert server.left == 1


def test_shares_are_uniform(network):
    """The client's shares, which decide the rounding, have no bias in any bit that counts."""
    (pair,) = offline(network)
    drawn = np.concatenate([layer.share.ravel() for layer in pair[0].layers[:-1]])
    used = min(bits_of(layer) for layer in network.layers)
    bits = np.array([drawn >> np.uint32(bit) & np.uint32(1) for bit in range(used)])
    assert np.abs(bits.mean(1) - 0.5).max() * 2 * len(drawn) ** 0.5 < 5


def test_material_survives_as_bytes(network, random):
    client, server = insecure_deal(network, 1, random)
    public = network.public
    mine, theirs = (material.encode(public, party) for party in (client, server))
    assert len(mine) == material.size(public, "client")
    assert len(theirs) == material.size(public, "server")
    x = input_of(network, random)[None]
    own = material.decode_client(public, bytearray(mine))
    outputs, _ = together(
        lambda channel: infer(channel, public, own, x, POOL),
        lambda channel: serve(
            channel, network, material.decode_server(public, bytearray(theirs)), POOL
        ),
    )
    assert np.array_equal(outputs, network.simulate(x, dithers_of(client)).outputs)


# ---- with stores ---------------------------------------------------------------------------------


@pytest.fixture
def stores(network, tmp_path):
    paths = tmp_path / "client.store", tmp_path / "server.store"
    together(
        lambda channel: prepare(channel, network.public, paths[0], 4, threads=1),
        lambda channel: prepare(channel, network, paths[1], 4, threads=1),
    )
    return paths


def run(network, stores, inputs, channels=None):
    """Runs inferences of a client and a server that open their stores."""

    def client(channel):
        with Client(channel, network.public, stores[0], threads=1) as party:
            return [party.infer(x) for x in inputs]

    def server(channel):
        with Server(channel, network, stores[1], threads=1) as party:
            for _ in inputs:
                party.serve()

    return together(client, server, channels)[0]


def near(network, outputs, x):
    """Tests outputs: near the values without any rounding."""
    results = [x.view(np.int32).astype(np.int64)[None]]
    for layer in network.layers:
        total = sum(
            term.map(results[term.source].astype(np.uint32)).view(np.int32).astype(np.int64)
            for term in layer.terms
        )
        values = layer.biased(total.astype(np.uint32)).view(np.int32)
        if layer.activation is None:
            break
        top = layer.activation.low + (1 << layer.activation.bits) - 1
        results.append(np.clip(np.rint(values / (1 << layer.shift)), 0, top).astype(np.int64))
    return np.abs(outputs.view(np.int32) - values[0]).max() < 2500


def test_prepared_once_and_run_in_several_sessions(network, stores, random):
    inputs = [input_of(network, random) for _ in range(3)]
    outputs = run(network, stores, inputs[:1]) + run(network, stores, inputs[1:])
    assert all(near(network, found, x) for found, x in zip(outputs, inputs, strict=True))
    with Store(stores[0]) as one, Store(stores[1]) as other:
        assert one.left == other.left == 1


def test_parties_go_on_with_what_both_have_left(network, stores, random):
    """A party that has used more, as after a crash, decides which inference is next."""
    with Store(stores[1]) as store:
        store.use(1)
    run(network, stores, [input_of(network, random)])
    with Store(stores[0]) as one, Store(stores[1]) as other:
        assert one.left == other.left == 1


def test_nothing_is_left(network, stores, random):
    with Store(stores[0]) as store:
        store.use(3)
    with pytest.raises(ResourceError, match="all 4 prepared inferences were used"):
        run(network, stores, [input_of(network, random)])


def test_stores_of_different_preparations(network, stores, tmp_path, random):
    again = tmp_path / "again"
    together(
        lambda channel: prepare(channel, network.public, again, 4, threads=1),
        lambda channel: prepare(channel, network, tmp_path / "other", 4, threads=1),
    )
    with pytest.raises(MismatchError, match="stores of different preparations"):
        run(network, (again, stores[1]), [input_of(network, random)])
    with Store(again) as one, Store(stores[1]) as other:
        assert one.left == other.left == 4


def test_a_store_of_another_network(network, stores):
    other = Network(network.inputs, (*network.layers[:-1], network.layers[-1]))
    changed = Layer(network.layers[0].terms, network.layers[0].bias, Activation(relu), 7)
    other = Network(network.inputs, (changed, *network.layers[1:]))
    with pytest.raises(FileError, match="expected one of a client for"):
        Client(Channel.pair()[0], other.public, stores[0])
    with pytest.raises(FileError, match="found a store of a client"):
        Server(Channel.pair()[0], network, stores[0])


def test_parties_that_prepare_for_different_networks(network, tmp_path):
    changed = Layer(network.layers[0].terms, network.layers[0].bias, Activation(relu), 7)
    other = Network(network.inputs, (changed, *network.layers[1:]))
    with pytest.raises(MismatchError, match="different networks"):
        together(
            lambda channel: prepare(channel, other.public, tmp_path / "a", 1),
            lambda channel: prepare(channel, network, tmp_path / "b", 1),
        )
    assert list(tmp_path.iterdir()) == []


def test_public_networks_have_no_weights(network, random):
    """Networks that differ in weights and biases alone have one digest."""
    layers = [
        Layer(
            tuple(
                Term(term.source, type(term.map)(**_with_other_weights(term.map, random)))
                for term in layer.terms
            ),
            layer.bias + 1,
            layer.activation,
            layer.shift,
        )
        for layer in network.layers
    ]
    other = Network(network.inputs, tuple(layers))
    assert other.public.digest == network.public.digest


def _with_other_weights(own, random):
    names = (
        ["inputs"]
        if isinstance(own, Dense)
        else ["inputs", "stride", "padding", "dilation", "groups"]
    )
    return {"weights": weights(random, *own.weights.shape)} | {
        name: getattr(own, name) for name in names
    }


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"[]", "expected 'a JSON object'"),
        (b"\xff", "expected 'a JSON object'"),
        (b"{}", "the other party's protocol"),
        (json.dumps({"protocol": PROTOCOL, "role": "client"}).encode(), "the other party's role"),
        (json.dumps({"protocol": PROTOCOL, "role": "server"}).encode(), "different networks"),
    ],
)
def test_messages_that_are_no_agreement(network, stores, message, said):
    """A client refuses them before it uses anything."""
    channel, other = Channel.pair()
    other.send("NEXT", message)
    public = network.public
    with Client(channel, public, stores[0], threads=1) as client:
        with pytest.raises(MismatchError, match=said):
            client.infer(np.zeros(network.inputs, np.uint32))
        assert client.left == 4


@pytest.mark.parametrize("number", [-1, 5, "0", True, 1.5, None])
def test_a_next_inference_that_is_no_number(network, stores, number):
    with Store(stores[1]) as store:
        known = store.contents
    channel, other = Channel.pair()
    fields = {"protocol": PROTOCOL, "role": "server", "plan": known.plan, "session": known.session}
    other.send("NEXT", json.dumps(fields | {"next": number}).encode())
    with Client(channel, network.public, stores[0], threads=1) as client:
        with pytest.raises(MismatchError, match="the next prepared inference"):
            client.infer(np.zeros(network.inputs, np.uint32))
        assert client.left == 4
