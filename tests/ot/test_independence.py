"""What the receiver sees against delta: over many sessions no bit tells of another."""

import numpy as np
import pytest

from nescio.net import Channel
from nescio.ot import _receiver, _sender
from nescio.ot import parameters as sets
from ot.parties import TINY, session

SESSIONS = 64
ROWS = 8
FRAME_BYTES = 128
LIMIT = 6.5
"""Standard deviations: a fair pair of bits is beyond in one of 10^11 tests, and there are 10^5."""


class Overheard:
    """A channel that keeps what was received, by kind."""

    def __init__(self, channel):
        self._channel = channel
        self.received = {}

    def receive(self, kind, length):
        data = self._channel.receive(kind, length)
        self.received.setdefault(kind, bytes(data))
        return data

    def __getattr__(self, name):
        return getattr(self._channel, name)


@pytest.fixture
def quick_seeds(monkeypatch):
    """Seeds without base OTs, which have tests of their own: the receiver tells the sender its."""

    def give(channel, count, randomness, malicious):
        t = np.frombuffer(randomness.draw(16 * count), np.uint64).reshape(-1, 2)
        channel.send("FAKE", t)
        return (t[:, 0] & np.uint64(1)).astype(np.uint8), t

    def take(channel, delta, count, randomness, malicious):
        t = np.frombuffer(channel.receive("FAKE", 16 * count), np.uint64).reshape(-1, 2)
        return t ^ delta * (t[:, :1] & np.uint64(1))

    monkeypatch.setattr(_receiver, "seed_receiver", give)
    monkeypatch.setattr(_sender, "seed_sender", take)


def bits(*arrays):
    """All bits as 1 and -1."""
    raw = b"".join(bytes(memoryview(np.ascontiguousarray(array)).cast("B")) for array in arrays)
    return np.unpackbits(np.frombuffer(raw, np.uint8)).astype(np.float64) * 2 - 1


def farthest(deltas, seen):
    """The largest correlation of any two bits, in standard deviations."""
    return np.abs(np.array(deltas).T @ np.array(seen)).max() / np.sqrt(len(deltas))


@pytest.mark.parametrize(("family", "parameters"), [("primal", TINY.name), ("dual", "ec")])
def test_nothing_that_the_receiver_sees_tells_of_delta(
    family, parameters, quick_seeds, monkeypatch
):
    monkeypatch.setattr(sets, "PRIMAL", (*sets.PRIMAL, TINY))
    deltas, seen, planted = [], [], []
    for _ in range(SESSIONS):
        first, second = Channel.pair(timeout=20)
        ear = Overheard(second)
        sender, _, _, (_, t) = session(
            lambda s: s.extend(ROWS),
            lambda c: c.extend(ROWS),
            (first, ear),
            family=family,
            parameters=parameters,
            malicious=True,
        )
        frames = [
            np.frombuffer(ear.received[kind][:FRAME_BYTES], np.uint8) for kind in ("TREE", "PROF")
        ]
        deltas.append(np.delete(bits(sender.delta), 7))  # without its lowest bit, which is 1
        seen.append(bits(t, *frames))
        leak = t.copy()
        leak[ROWS - 1] = sender.delta
        planted.append(bits(leak, *frames))
    assert farthest(deltas, seen) < LIMIT
    assert farthest(deltas, planted) > LIMIT  # the mistake that this is to find
