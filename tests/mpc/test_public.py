"""Public networks as bytes, and the counts of a session."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc.layers import relu, weights
from nescio.errors import ArgumentError, FileError, MalformedMessageError
from nescio.mpc import (
    Activation,
    Client,
    Convolution,
    Dense,
    Layer,
    Network,
    PublicNetwork,
    Server,
    Term,
    insecure_dealer,
    prepare,
)
from nescio.net import Channel
from ot.parties import together


def made():
    random = np.random.default_rng(3)
    first = Convolution(weights(random, 4, 1, 3, 3), (2, 6, 6), padding=(1, 1), groups=2)
    shortcut = Convolution(weights(random, 4, 2, 1, 1), (2, 6, 6))
    second = Convolution(weights(random, 4, 4, 3, 3), (4, 6, 6), padding=(1, 1))
    last = Dense(weights(random, 3, 144), (4, 6, 6))
    wide, narrow = Activation(relu, low=-100), Activation(relu, bits=5, outputs=6, low=-10)
    return Network(
        (2, 6, 6),
        (
            Layer((Term(0, first),), weights(random, 4), wide, 4),
            Layer((Term(1, second), Term(0, shortcut)), weights(random, 4), narrow, 5),
            Layer((Term(2, last),), weights(random, 3)),
        ),
    )


NETWORK = made()


def test_public_bytes_make_the_same_public_network():
    data = NETWORK.public.to_bytes()
    found = PublicNetwork.from_bytes(data)
    assert found.digest == NETWORK.public.digest
    assert found.to_bytes() == data
    for one, other in zip(found.layers[:-1], NETWORK.layers[:-1], strict=True):
        assert np.array_equal(one.activation.entries, other.activation.entries)


def test_shapes_of_numpy_integers_and_lists():
    dense = Dense([[1, 2, 3]], [np.int64(3)])
    convolution = Convolution([[[[1]]]], [1, np.int64(1), 3], stride=[1, np.int64(1)])
    layers = (
        Layer((Term(0, convolution),), [0], Activation(relu)),
        Layer((Term(1, Dense([[1, 2, 3]], (1, 1, 3))),), [0]),
    )
    assert (
        Network((1, 1, 3), layers).public.to_bytes()
        == PublicNetwork.from_bytes(
            Network([np.int64(1), 1, 3], layers).public.to_bytes()
        ).to_bytes()
    )
    assert Network([np.int64(3)], (Layer((Term(0, dense),), [5]),)).public.inputs == (3,)


def test_numbers_of_numpy():
    """They are those of Python, in the bytes too."""
    own = np.ones((2, 1, 1, 1), int)

    def network(zero, one, two):
        groups = Convolution(own, (2, 1, 3), groups=two)
        first = Layer((Term(zero, groups),), [0, 0], Activation(relu), two)
        return Network((2, 1, 3), (first, Layer((Term(one, Dense([6 * [1]], (2, 1, 3))),), [0])))

    expected = network(0, 1, 2).public.to_bytes()
    assert network(np.int64(0), np.uint8(1), np.int32(2)).public.to_bytes() == expected


def test_tables_that_differ_in_their_sign_alone():
    """Entries have the same bits, and 7 to 15 are other numbers."""
    entries = np.arange(16)
    plain = Activation(lambda _: entries, bits=4)
    signed = Activation(lambda _: (entries ^ 8) - 8, bits=4, signed=True)
    assert np.array_equal(plain.entries, signed.entries)
    one = Dense([[1]])
    last = Layer((Term(3, one),), [0])
    layers = [Layer((Term(k, one),), [0], own) for k, own in enumerate((plain, signed, plain))]
    public = Network((1,), (*layers, last)).public
    read = PublicNetwork.from_bytes(public.to_bytes())
    assert [layer.activation.signed for layer in read.layers[:-1]] == [False, True, False]
    assert len(json.loads(public.to_bytes())["activations"]) == 2


@pytest.mark.parametrize(
    "begin",
    [
        lambda channel, path: Client(channel, NETWORK, path),
        lambda channel, path: Server(channel, NETWORK.public, path),
        lambda channel, path: prepare(channel, [NETWORK], path, 1),
    ],
)
def test_a_party_with_the_other_ones_part(tmp_path, begin):
    channel, _ = Channel.pair()
    with pytest.raises(ArgumentError, match="the server has a Network, the client its `public`"):
        begin(channel, tmp_path / "store")


def test_a_client_with_public_bytes_alone_infers(tmp_path):
    """It has the outputs of the simulator, up to their rounding, and counts of each layer."""
    public = PublicNetwork.from_bytes(NETWORK.public.to_bytes())
    paths = tmp_path / "client", tmp_path / "server"
    offline = together(
        lambda channel: prepare(channel, public, paths[0], 2, threads=1),
        lambda channel: prepare(channel, NETWORK, paths[1], 2, threads=1),
    )
    x = np.arange(72, dtype=np.uint32).reshape(2, 6, 6)

    def client(channel):
        with Client(channel, public, paths[0], threads=1) as party:
            return [(party.infer(x), party.counts) for _ in range(2)]

    def server(channel):
        with Server(channel, NETWORK, paths[1], threads=1) as party:
            return [(party.serve(), party.counts) for _ in range(2)]

    ours, theirs = together(client, server)
    for outputs, _ in ours:
        drawn = NETWORK.simulate(np.repeat(x[None], 64, 0)).outputs.view(np.int32)
        assert (np.abs(outputs.view(np.int32) - drawn.mean(0)) <= 8 * drawn.std(0) + 2).all()
    names = [(step.phase, step.layer) for step in ours[1][1]]
    assert names[0] == ("store", 0)
    assert names[1:] == [("input", 0), ("lookups", 1), ("lookups", 2), ("outputs", 3)]
    assert ours[0][1][0].phase == "agreement"
    for mine, other in ((ours[1][1], theirs[1][1]), (offline[0], offline[1])):
        sent = {step[:2]: step.counts.sent_bytes for step in mine}
        assert sent == {step[:2]: step.counts.received_bytes for step in other}
    first = ours[1][1][2].counts
    assert (first.sent_bytes, first.received_bytes) == (144 * 5 + 16, 144 * 2 + 16)
    assert (first.sent_frames, first.received_frames, first.rounds) == (1, 1, 1)
    assert [step.phase for step in offline[0]] == [
        "agreement",
        "keys",
        "products",
        "tables",
        "places",
        "store",
    ]


def test_a_dealer_writes_both_stores(tmp_path):
    paths = tmp_path / "client", tmp_path / "server"
    insecure_dealer(NETWORK, *paths, 3, seed=1)
    x = np.zeros((2, 6, 6), np.uint32)

    def client(channel):
        with Client(channel, NETWORK.public, paths[0], threads=1) as party:
            return [party.infer(x) for _ in range(3)], party.left

    def server(channel):
        with Server(channel, NETWORK, paths[1], threads=1) as party:
            for _ in range(3):
                party.serve()

    (outputs, left), _ = together(client, server)
    assert left == 0
    drawn = NETWORK.simulate(np.repeat(x[None], 64, 0)).outputs.view(np.int32)
    for found in outputs:
        assert (np.abs(found.view(np.int32) - drawn.mean(0)) <= 8 * drawn.std(0) + 2).all()
    with pytest.raises(FileError, match="exists"):
        insecure_dealer(NETWORK, *paths, 3, seed=1)


def test_inputs_of_another_shape_use_nothing_up(tmp_path):
    insecure_dealer(NETWORK, tmp_path / "client", tmp_path / "server", 1, seed=1)
    channel, _ = Channel.pair()
    with Client(channel, NETWORK.public, tmp_path / "client") as client:
        with pytest.raises(ValueError, match=r"expected uint32 of shape \(2, 6, 6\)"):
            client.infer(np.zeros((2, 6, 5), np.uint32))
        assert client.left == 1


def test_a_client_that_leaves_uses_nothing_up_at_the_server(tmp_path):
    insecure_dealer(NETWORK, tmp_path / "client", tmp_path / "server", 3, seed=1)

    def client(channel):
        with channel, Client(channel, NETWORK.public, tmp_path / "client", threads=1) as party:
            party.infer(np.zeros((2, 6, 6), np.uint32))

    def server(channel):
        with Server(channel, NETWORK, tmp_path / "server", threads=1) as party:
            party.serve()
            with pytest.raises(Exception, match="closed|gone"):
                party.serve()
            return party.left

    assert together(client, server)[1] == 2


def change(path, value):
    """Returns the public bytes with one value changed."""
    found = json.loads(NETWORK.public.to_bytes())
    *steps, name = path
    part = found
    for step in steps:
        part = part[step]
    part[name] = value
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["inputs"], [2, 6, 7], "expected"),
        (["inputs"], [2, 6, 1 << 40], "expected 0 to"),
        (["inputs"], [4096, 4096, 4096], "numbers"),
        (["inputs"], "266", "no list"),
        (["layers"], [], "layers"),
        (["layers", 0, "outputs"], [4, 6, 5], "expected one shape"),
        (["layers", 0, "shift"], 25, "shift"),
        (["layers", 0, "shift"], True, "shift"),
        (["layers", 0, "activation"], None, "found no activation"),
        (["layers", 2, "activation"], 0, "found an activation"),
        (["layers", 0, "activation"], 7, "found"),
        (["layers", 0, "terms"], [], "maps"),
        (["layers", 0, "terms", 0, "source"], 1, "a source"),
        (["layers", 0, "terms", 0, "source"], -1, "a source"),
        (["layers", 0, "terms", 0, "kernel"], [3], "no pair"),
        (["layers", 0, "terms", 0, "kernel"], [9, 9], "expected"),
        (["layers", 0, "terms", 0, "stride"], [0, 1], "stride"),
        (["layers", 0, "terms", 0, "groups"], 3, "groups"),
        (["layers", 0, "terms", 0, "groups"], 0, "groups"),
        (["layers", 0, "terms", 0, "more"], 1, "no object of"),
        (["activations", 0, "bits"], 13, "expected"),
        (["activations", 0, "bits"], 1 << 70, "bits"),
        (["activations", 0, "bits"], 7, "entries"),
        (["activations", 0, "low"], 1, "low"),
        (["activations", 0, "low"], float("nan"), "low"),
        (["activations", 0, "outputs"], 4, "entries"),
        (["activations", 0, "entries"], "?", "found"),
        (["activations", 0, "entries"], [], "found"),
    ],
)
def test_public_bytes_with_another_value(path, value, said):
    with pytest.raises(MalformedMessageError, match=said):
        PublicNetwork.from_bytes(change(path, value))


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b"9" * 10_000, b" " * (1 << 25)]
)
def test_bytes_that_are_no_public_network(data):
    with pytest.raises(MalformedMessageError, match="ask the server"):
        PublicNetwork.from_bytes(data)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_change_of_public_bytes_is_refused_or_a_network(data):
    whole = bytearray(NETWORK.public.to_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    try:
        found = PublicNetwork.from_bytes(bytes(whole))
    except MalformedMessageError:
        return
    assert PublicNetwork.from_bytes(found.to_bytes()).digest == found.digest
