"""Sessions between two parties: agreement on parameters, processes, and malicious parties."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nescio import _core
from nescio.errors import (
    ArgumentError,
    ChannelError,
    ConsistencyError,
    MalformedMessageError,
    MismatchError,
    PeerRefusedError,
    ResourceError,
)
from nescio.net import Channel
from nescio.ot import Receiver, Sender, _check
from ot.parties import session, together

VECTORS = Path(__file__).parents[1] / "vectors" / "ot.json"


def drawn(first, second, n=(1000, 1000)):
    """Runs `extend` of both parties and returns the error of each, or None."""
    raised = [None, None]

    def party(k, kind, options):
        def run(channel):
            try:
                kind(channel, **options).extend(n[k])
            except Exception as error:
                raised[k] = error

        return run

    together(party(0, Sender, first), party(1, Receiver, second))
    return raised


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ({"family": "dual"}, {"family": "primal"}, "primal"),
        ({"parameters": "b10"}, {"parameters": "b11"}, "b11"),
        ({"malicious": True}, {}, "false"),
    ],
)
def test_parties_with_different_parameters(first, second, found):
    for error in drawn(first, second):
        assert isinstance(error, MismatchError)
        assert error.found != error.expected
    assert found in drawn(first, second)[0].found


def test_two_senders():
    def run(channel):
        with pytest.raises(MismatchError, match='"role":"sender"'):
            Sender(channel).extend(1)

    together(run, run)


def test_parties_that_draw_different_numbers():
    sender, receiver = drawn({"family": "dual"}, {"family": "dual"}, (1000, 1001))
    assert isinstance(receiver, MismatchError)
    assert (receiver.found, receiver.expected) == ("1000 COT after 0", "1001 COT after 0")
    assert isinstance(sender, ChannelError)


class Tampering:
    """A channel that changes the frames of one kind before it sends them."""

    def __init__(self, channel, kind, change):
        self._channel, self._kind, self._change = channel, kind, change

    def send(self, kind, data):
        if kind == self._kind:
            data = self._change(np.frombuffer(bytearray(data), np.uint8))
        self._channel.send(kind, data)

    def __getattr__(self, name):
        return getattr(self._channel, name)


def flip_first(data):
    data[0] ^= 2
    return data


def flip_last(data):
    data[-1] ^= 2
    return data


@pytest.mark.parametrize("change", [flip_first, flip_last])
@pytest.mark.parametrize("family", ["primal", "dual"])
def test_a_sender_whose_trees_are_not_trees_is_caught(family, change):
    first, second = Channel.pair(timeout=20)
    options = {"family": family, "malicious": True}
    raised = []

    def sender(channel):
        with pytest.raises(PeerRefusedError, match="cheats"):  # in the same call
            Sender(channel, **options).extend(1 << 16)

    def receiver(channel):
        with pytest.raises(ConsistencyError) as caught:
            Receiver(channel, **options).extend(1 << 16)
        raised.append(caught.value)

    together(sender, receiver, (Tampering(first, "TREE", change), second))
    assert raised


def test_without_the_check_the_same_is_wrong_and_nobody_is_told():
    """Shows the need for `malicious`: results are wrong without an error."""
    first, second = Channel.pair(timeout=20)
    channels = (Tampering(first, "TREE", flip_first), second)
    sender, r, _, (choices, t) = session(
        lambda s: s.extend(1000), lambda c: c.extend(1000), channels, family="dual"
    )
    assert not np.array_equal(t, r ^ choices.astype(np.uint64)[:, None] * sender.delta)


def test_a_receiver_that_answers_the_check_wrongly_gains_nothing():
    """Its mask selects where the sender adds delta: a wrong mask fails the receiver's own check."""
    first, second = Channel.pair(timeout=20)
    options = {"family": "dual", "malicious": True}

    def sender(channel):
        with pytest.raises(PeerRefusedError):  # in the same call
            Sender(channel, **options).extend(1 << 16)

    def receiver(channel):
        with pytest.raises(ConsistencyError):
            Receiver(channel, **options).extend(1 << 16)

    together(sender, receiver, (first, Tampering(second, "CHAL", flip_last)))


@pytest.mark.parametrize(
    ("kind", "change", "error"),
    [
        ("TREE", lambda data: data[:-16], MalformedMessageError),
        ("TREE", lambda data: np.concatenate([data, data]), MalformedMessageError),
        ("PARM", lambda data: data[:-1], MismatchError),
        ("PARM", lambda data: np.full(4000, 7, np.uint8), MismatchError),
    ],
)
def test_frames_that_are_wrong(kind, change, error):
    first, second = Channel.pair(timeout=20)

    def sender(channel):
        party = Sender(channel, family="dual")
        with contextlib.suppress(ChannelError):  # if the receiver's abort arrives first
            party.extend(60_000)

    def receiver(channel):
        with pytest.raises((error, MismatchError)):
            Receiver(channel, family="dual").extend(60_000)

    together(sender, receiver, (Tampering(first, kind, change), second))


def test_a_peer_that_leaves():
    first, second = Channel.pair(timeout=20)
    first.close()
    with pytest.raises(ChannelError):
        Receiver(second).extend(10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "quantum"}, "family: found 'quantum', expected one of primal, dual"),
        ({"family": "dual", "parameters": "silver"}, "parameters: found 'silver', expected"),
        ({"parameters": "b9"}, "b9"),
        ({"threads": -1}, "threads"),
    ],
)
def test_parameters_that_do_not_exist(options, message):
    with pytest.raises(ArgumentError, match=message):
        Sender(Channel.pair(timeout=1)[0], **options)


def test_two_processes_over_tcp(tmp_path):
    program = """
import sys, numpy as np, nescio.ot
from nescio.net import Channel
with Channel.connect("127.0.0.1", int(sys.argv[1]), timeout=30) as channel:
    choices, t = nescio.ot.Receiver(channel, family="dual").extend(5000)
    print(channel.counts.sent_bytes)
np.savez(sys.argv[2], choices=choices, t=t)
"""
    with Channel.listener("127.0.0.1", 0, timeout=30) as listener:
        out = tmp_path / "received.npz"
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(listener.port), str(out)],
            stdout=subprocess.PIPE,
            text=True,
        )
        with listener.accept() as channel:
            sender = Sender(channel, family="dual")
            r = sender.extend(5000)
            received = channel.counts.received_bytes
        printed, _ = process.communicate(timeout=30)
    found = np.load(out)
    choices = found["choices"].astype(np.uint64)
    assert np.array_equal(found["t"], r ^ choices[:, None] * sender.delta)
    assert int(printed) == received


@pytest.mark.parametrize("tier", _core.supported_tiers())
def test_the_transcripts_of_published_vectors(tier):
    """Each frame of each party and all results are the same in every tier."""
    found = subprocess.run(
        [sys.executable, VECTORS.parent / "make_ot.py", "--print"],
        env={**os.environ, "NESCIO_CPU": tier},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout) == json.loads(VECTORS.read_text())


def test_each_bit_of_delta_but_the_lowest_is_fair():
    """test_independence.py compares delta with the receiver's view, including its choices."""
    channel, _ = Channel.pair()
    deltas = np.array([Sender(channel, threads=1).delta for _ in range(400)])
    bits = np.unpackbits(deltas.view(np.uint8), axis=1, bitorder="little")
    assert (bits[:, 0] == 1).all()
    assert (abs(bits[:, 1:].mean(axis=0) - 0.5) < 6 * 0.5 / np.sqrt(400)).all()


def test_positions_of_punctured_leaves_are_spread_evenly():
    class Plan:
        trees, depth = 2000, 6

    choices = np.random.default_rng(1).integers(0, 2, 12_000, dtype=np.uint8)
    positions = _check.punctured_positions(choices, Plan) - np.arange(2000, dtype=np.uint64) * 64
    counts = np.bincount(positions.astype(int), minlength=64)
    expected = 2000 / 64
    assert ((counts - expected) ** 2 / expected).sum() < 140


@pytest.mark.parametrize("family", ["primal", "dual"])
def test_an_error_in_the_middle_ends_the_session(family, monkeypatch):
    """No correlation is spent twice: two uses of one mask would reveal the masked values."""
    raised = []

    def sender(channel):
        party = Sender(channel, family=family, malicious=True)
        with pytest.raises(PeerRefusedError, match="not enough memory"):
            [party.extend(1 << 16) for _ in range(20)]

    def fail(self, leaves, seed):
        raise MemoryError("to be expected")

    def receiver(channel):
        party = Receiver(channel, family=family, malicious=True)
        party._kernels.chi_sum = fail.__get__(party._kernels)
        with pytest.raises(ResourceError, match="to be expected"):
            party.extend(1 << 16)
        with pytest.raises(ChannelError, match="session has ended"):
            party.extend(1)
        raised.append(party)

    together(sender, receiver)
    assert raised


@pytest.mark.parametrize(
    ("send", "receive", "found"),
    [
        (lambda s: s.extend_random(100), lambda c: c.extend(100), "100 ROT after 0"),
        (lambda s: s.extend_bit_triples(50), lambda c: c.extend_random(100), "100 BITS"),
        (lambda s: s.extend_chosen(5), lambda c: c.extend(5), "5 CHOS"),
        (
            lambda s: s.send(*np.zeros((2, 5, 3), np.uint8)),
            lambda c: c.receive(np.zeros(5, int), 4),
            "5 SEND, one of 2, 3 bytes",
        ),
    ],
)
def test_parties_that_call_different_methods(send, receive, found):
    def sender(channel):
        with contextlib.suppress(ChannelError):
            send(Sender(channel, family="dual"))

    def receiver(channel):
        with pytest.raises(MismatchError) as caught:
            receive(Receiver(channel, family="dual"))
        assert caught.value.found.startswith(found)

    together(sender, receiver)
