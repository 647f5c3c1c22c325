"""Fixtures of the tests of private inference."""

import numpy as np
import pytest

from nescio.ot import _party, _receiver, _sender
from nescio.ot import parameters as sets
from ot.parties import TINY


@pytest.fixture
def quick_transfers(monkeypatch):
    """Replaces base OTs, and shrinks OT extension: tests of OT have the faults of their frames."""

    def give(channel, count, randomness, malicious, **options):
        t = randomness.blocks(count)
        channel.send("FAKE", t)
        return (t[:, 0] & np.uint64(1)).astype(np.uint8), t

    def take(channel, delta, count, randomness, malicious, **options):
        t = np.frombuffer(bytearray(channel.receive("FAKE", 16 * count)), np.uint64).reshape(-1, 2)
        return t ^ delta * (t[:, :1] & np.uint64(1))

    monkeypatch.setattr(_receiver, "seed_receiver", give)
    monkeypatch.setattr(_sender, "seed_sender", take)
    monkeypatch.setattr(sets, "PRIMAL", (*sets.PRIMAL, TINY))
    monkeypatch.setattr(_party, "DEFAULT_PRIMAL", TINY.name)
