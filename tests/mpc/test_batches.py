"""Inputs that run together: outcomes, limits, sizes from outside, and what a broken batch loses."""

import numpy as np
import pytest

from mpc.layers import relu, weights
from mpc.relay import Cut, relayed
from mpc.sessions import Dealt, input_of, small_network
from nescio.errors import (
    ArgumentError,
    ChannelError,
    MessageError,
    PeerGoneError,
    PeerRefusedError,
    ResourceError,
)
from nescio.mpc import _session
from nescio.mpc._activation import Activation
from nescio.mpc._maps import Dense
from nescio.mpc._network import Layer, Network, Term
from nescio.mpc._session import Client, Server, batch_of
from nescio.mpc._store import Store
from nescio.net import Channel
from ot.parties import together


@pytest.fixture
def random():
    return np.random.default_rng(8)


def setting(random, folder, count, network=None):
    """Returns both parties' stores, and an input for each prepared inference."""
    network = small_network(random) if network is None else network
    inputs = [input_of(network, random) for _ in range(count)]
    return Dealt(network, folder, count), np.stack(inputs)


def odd_network(random, *, bits=5, outputs=3):
    """Layers whose packed places and entries do not end with a byte."""
    activation = Activation(
        lambda x: np.minimum(relu(x), 2**outputs - 1), bits=bits, outputs=outputs
    )
    return Network(
        (5,),
        (
            Layer((Term(0, Dense(weights(random, 3, 5))),), weights(random, 3), activation, 4),
            Layer((Term(1, Dense(weights(random, 7, 3))),), weights(random, 7), activation, 3),
            Layer((Term(2, Dense(weights(random, 2, 7))),), weights(random, 2)),
        ),
    )


def asking(dealt, sizes, inputs, batch=0, steps=None):
    """Returns a client that asks for batches of some sizes; 1 is a single inference."""

    def client(channel):
        found, first = [], 0
        with Client(channel, dealt.public, dealt.client, threads=1, batch=batch) as party:
            for size in sizes:
                own = inputs[first : first + size]
                found += [party.infer(own[0])] if size == 1 else list(party.infer_batch(own))
                first += size
                if steps is not None:
                    steps.append(party.counts)
        return found

    return client


def serving(dealt, calls, batch=0):
    """Returns a server that serves so often; it returns how many inputs ran each time."""

    def server(channel):
        with Server(channel, dealt.network, dealt.server, threads=1, batch=batch) as party:
            return [party.serve() for _ in range(calls)]

    return server


def used(dealt):
    found = []
    for path in (dealt.client, dealt.server):
        with Store(path) as store:
            found.append(store.next)
    return found


@pytest.mark.parametrize("make", [small_network, odd_network])
@pytest.mark.parametrize("sizes", [(1, 3, 1, 4), (9,), (2, 2, 2, 2, 1)])
def test_outputs_are_those_of_the_simulator(random, tmp_path, make, sizes):
    """Singles and batches, bit for bit, for the dithers of each prepared inference."""
    dealt, inputs = setting(random, tmp_path, 9, make(random))
    found, served = together(asking(dealt, sizes, inputs), serving(dealt, len(sizes)))
    for number, own in enumerate(found):
        assert np.array_equal(own, dealt.expected(number, inputs[number]))
    assert tuple(served) == sizes
    assert used(dealt) == [9, 9]


@pytest.mark.parametrize(("bits", "outputs"), [(4, 1), (7, 11), (9, 9), (12, 16)])
def test_tables_of_any_size(random, tmp_path, bits, outputs):
    network = odd_network(random, bits=bits, outputs=outputs)
    dealt, inputs = setting(random, tmp_path, 5, network)
    found, _ = together(asking(dealt, (5,), inputs), serving(dealt, 1))
    for number, own in enumerate(found):
        assert np.array_equal(own, dealt.expected(number, inputs[number]))


def test_a_batch_takes_the_rounds_of_one(random, tmp_path):
    (dealt, inputs), steps = setting(random, tmp_path, 8), []
    together(asking(dealt, (1, 1, 6), inputs, steps=steps), serving(dealt, 3))
    _, one, six = ([step.counts for step in own] for own in steps)
    assert sum(own.rounds for own in one) == sum(own.rounds for own in six) == 3
    assert sum(own.sent_frames for own in one) == sum(own.sent_frames for own in six)
    data = [sum(own.sent_bytes - 16 * own.sent_frames for own in part) for part in (one, six)]
    assert data[1] == 6 * data[0]


@pytest.mark.parametrize("limits", [(2, 0), (0, 2), (2, 5), (7, 2)])
def test_the_smaller_limit_counts(random, tmp_path, limits):
    """More inputs run in several batches."""
    (dealt, inputs), (mine, theirs) = setting(random, tmp_path, 5), limits
    client = asking(dealt, (5,), inputs, batch=mine)
    found, served = together(client, serving(dealt, 3, batch=theirs))
    assert served == [2, 2, 1]
    for number, own in enumerate(found):
        assert np.array_equal(own, dealt.expected(number, inputs[number]))


def test_the_limit_follows_from_the_memory(random, monkeypatch):
    network = small_network(random).public
    assert batch_of(network, "client") == 64
    size = _session.material.size(network, "client")
    monkeypatch.setattr(_session, "_BATCH_BYTES", 3 * size + size // 2)
    assert batch_of(network, "client") == 3
    monkeypatch.setattr(_session, "_BATCH_BYTES", 1)
    assert batch_of(network, "client") == 1
    assert batch_of(network, "client", 100) == 100


@pytest.mark.parametrize("batch", [-1, 1.0, True, 5000, "4"])
def test_limits_that_are_none(random, tmp_path, batch):
    (dealt, _), (channel, other) = setting(random, tmp_path, 1), Channel.pair()
    with pytest.raises(ArgumentError, match="batch"):
        Client(channel, dealt.public, dealt.client, batch=batch)
    with pytest.raises(ArgumentError, match="batch"):
        Server(other, dealt.network, dealt.server, batch=batch)


def test_no_inputs(random, tmp_path):
    dealt, inputs = setting(random, tmp_path, 1)
    with Client(Channel.pair()[0], dealt.public, dealt.client) as client:
        assert client.infer_batch(inputs[:0]).shape == (0, 3)
        with pytest.raises(ArgumentError, match="inputs: found"):
            client.infer_batch(inputs[0])
    assert used(dealt) == [0, 0]


def test_more_inputs_than_prepared_inferences(random, tmp_path):
    """None is used up."""
    dealt, inputs = setting(random, tmp_path, 3)
    outcome = relayed(asking(dealt, (4,), np.tile(inputs, (2, 1, 1, 1))), serving(dealt, 1))
    assert isinstance(outcome.errors[0], ResourceError)
    assert "found 4 inputs, expected at most 3" in str(outcome.errors[0])
    assert isinstance(outcome.errors[1], PeerRefusedError)
    assert "too few" in str(outcome.errors[1])
    assert used(dealt) == [0, 0]


def test_a_server_that_is_ahead(random, tmp_path):
    """After the agreement the client knows how many both have left."""
    dealt, inputs = setting(random, tmp_path, 5)
    with Store(dealt.server) as store:
        store.use(2)

    def client(channel):
        with Client(channel, dealt.public, dealt.client, threads=1, batch=9) as party:
            before = party.left, party.batch
            party.agree()
            after = party.left, party.batch
            return before, after, party.infer_batch(inputs[: party.left])

    (before, after, found), _ = together(client, serving(dealt, 1, batch=6))
    assert before == (5, 9)
    assert after == (2, 6)
    for number, own in enumerate(found):
        assert np.array_equal(own, dealt.expected(3 + number, inputs[number]))


# ---- sizes from outside --------------------------------------------------------------------------

EACH = 4 * 9  # bytes of an input


@pytest.mark.parametrize(
    "size", [0, 1, EACH - 1, EACH + 1, 2 * EACH + 4, 4 * EACH, 1 << 20], ids=lambda size: f"{size}"
)
@pytest.mark.parametrize(("batch", "prepared"), [(3, 9), (9, 3)])
def test_masked_inputs_of_another_size(random, tmp_path, size, batch, prepared):
    """The server refuses them with a typed error, and nothing is used up there."""
    dealt, inputs = setting(random, tmp_path, prepared)

    def change(frame):
        return frame.changed(data=bytes(size)) if frame.kind == "INPT" else frame.raw

    client = asking(dealt, (1,), inputs)
    outcome = relayed(client, serving(dealt, 1, batch=batch), change)
    assert isinstance(outcome.errors[1], MessageError)
    assert "found" in str(outcome.errors[1])
    assert isinstance(outcome.errors[0], PeerRefusedError)
    assert used(dealt) == [1, 0]


def test_masked_inputs_for_which_none_is_left_use_none(random, tmp_path):
    """A client that lies about its size after some inferences."""
    (dealt, inputs), sent = setting(random, tmp_path, 3), []

    def change(frame):
        if frame.kind == "INPT":
            sent.append(frame)
        more = frame.kind == "INPT" and len(sent) == 2
        return frame.changed(data=2 * frame.data) if more else frame.raw

    client = asking(dealt, (2, 1), inputs)
    outcome = relayed(client, serving(dealt, 2), change)
    assert isinstance(outcome.errors[1], MessageError)
    assert used(dealt) == [3, 2]


# ---- broken batches ------------------------------------------------------------------------------


def cut(_):
    raise Cut


@pytest.mark.parametrize("kind", ["INPT", "ASKS", "ANSW", "OUTS"])
def test_a_broken_batch_is_lost_alone(random, tmp_path, kind):
    """Its prepared inferences are not used again, and the next batch works."""
    dealt, inputs = setting(random, tmp_path, 9)
    outcome = relayed(
        asking(dealt, (3,), inputs),
        serving(dealt, 1),
        lambda frame: cut(frame) if frame.kind == kind else frame.raw,
    )
    assert isinstance(outcome.errors[0], PeerGoneError)
    assert used(dealt) == [3, 0 if kind == "INPT" else 3]
    again = relayed(asking(dealt, (3,), inputs), serving(dealt, 1))
    assert again.errors == [None, None]
    for number, own in enumerate(again.values[0]):
        assert np.array_equal(own, dealt.expected(3 + number, inputs[number]))
    assert used(dealt) == [6, 6]


def test_a_damaged_part_loses_its_batch(random, tmp_path):
    dealt, inputs = setting(random, tmp_path, 6)
    with Store(dealt.server) as store:
        contents = store.contents
    with dealt.server.open("r+b") as file:
        file.seek(contents.parts_at + contents.size + 8)
        file.write(b"damaged!")
    outcome = relayed(asking(dealt, (3,), inputs), serving(dealt, 1))
    assert "prepared inference 1 is damaged" in str(outcome.errors[1])
    assert isinstance(outcome.errors[0], ChannelError)
    assert used(dealt) == [3, 3]
    again = relayed(asking(dealt, (3,), inputs), serving(dealt, 1))
    assert again.errors == [None, None]
