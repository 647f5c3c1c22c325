"""Independence of delta and the receiver's view: no bits correlate over many sessions."""

import numpy as np
import pytest

from nescio.net import Channel
from nescio.ot import parameters as sets
from ot.parties import TINY, replace_base_ots, session

SESSIONS = 64
ROWS = 8
FRAME_BYTES = 128
LIMIT = 6.5
"""Standard deviations: independent bits exceed it in one of 10^11 tests; there are 10^5 tests."""


class Overheard:
    """A channel that records received frames by kind."""

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
    replace_base_ots(monkeypatch)


def bits(*arrays):
    """Maps all bits to 1 and -1."""
    raw = b"".join(bytes(memoryview(np.ascontiguousarray(array)).cast("B")) for array in arrays)
    return np.unpackbits(np.frombuffer(raw, np.uint8)).astype(np.float64) * 2 - 1


def farthest(deltas, seen):
    """Computes the largest correlation of any two bits, in standard deviations."""
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
    assert farthest(deltas, planted) > LIMIT  # the planted leak is found
