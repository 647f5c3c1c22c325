"""Sessions on devices: the same frames and the same blocks as on the CPU."""

import numpy as np
import pytest

import devices
from nescio.errors import ArgumentError, ResourceError
from nescio.net import Channel
from nescio.ot import Sender, parameters
from nescio.ot.device import DeviceBlocks
from ot.parties import TINY, session

N = 700


@pytest.fixture
def small(monkeypatch):
    """Options for a primal set that is small enough for an emulated device."""
    monkeypatch.setattr(parameters, "PRIMAL", (*parameters.PRIMAL, TINY))
    return {"family": "primal", "parameters": TINY.name}


def drawn(draw, options):
    """Returns both parties' results with fixed coins, in host memory, and counts of frames."""
    channels = Channel.pair(timeout=60)
    results = session(draw, draw, channels, insecure_seed=bytes(16), **options)
    return (
        [_flat(results[1]), _flat(results[3])],
        [channel.counts.sent_by_kind for channel in channels],
        results,
    )


def _flat(value):
    parts = value if isinstance(value, tuple) else (value,)
    return [part.to_host() if isinstance(part, DeviceBlocks) else part for part in parts]


def same(found, expected):
    return all(
        np.array_equal(a, b)
        for mine, yours in zip(found, expected, strict=True)
        for a, b in zip(mine, yours, strict=True)
    )


@pytest.mark.parametrize("device", devices.FIRST)
@pytest.mark.parametrize(
    ("family", "malicious"), [("primal", False), ("primal", True), ("dual", True)]
)
def test_a_device_gives_what_the_processor_gives(family, malicious, device, small):
    options = {**(small if family == "primal" else {"family": "dual"}), "malicious": malicious}

    def draw(party):
        return party.extend(N)

    expected, frames, _ = drawn(draw, options)
    found, found_frames, results = drawn(draw, {**options, "device": device})
    assert same(found, expected)
    assert frames == found_frames
    assert isinstance(results[1], DeviceBlocks)
    assert isinstance(results[3][1], DeviceBlocks)


def test_several_devices(small):
    def draw(party):
        return party.extend(N)

    expected, _, _ = drawn(draw, small)
    found, _, _ = drawn(draw, {**small, "devices": ["emulated", "emulated:1"]})
    assert same(found, expected)


def test_methods_that_build_on_extensions(small, rng):
    options = {**small, "device": "emulated"}
    messages = rng.integers(0, 256, (2, 50, 20), dtype=np.uint8)
    choices = rng.integers(0, 2, 50)

    def send(sender):
        zeros, ones = sender.extend_random(300)
        sender.send(*messages)
        return zeros.to_host(), ones.to_host(), sender.extend_word_triples(3)

    def receive(receiver):
        flags, chosen = receiver.extend_random(300)
        return (
            flags,
            chosen.to_host(),
            receiver.receive(choices, 20),
            receiver.extend_word_triples(3),
        )

    _, (zeros, ones, mine), _, (flags, chosen, got, yours) = session(send, receive, **options)
    assert np.array_equal(chosen, np.where(flags[:, None], ones, zeros))
    assert np.array_equal(got, messages[choices, np.arange(50)])
    a, b, c = (x + y for x, y in zip(mine, yours, strict=True))
    assert np.array_equal(c, a * b)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"device": "gpu"}, ArgumentError, "device: found 'gpu'"),
        ({"device": "emulated:7"}, ResourceError, "emulated:7 does not exist"),
        ({"device": "emulated", "devices": ["emulated"]}, ArgumentError, "not both"),
        (
            {"device": "emulated", "family": "dual", "parameters": "qc"},
            ArgumentError,
            "'qc', which does not run on emulated:0; use parameters='ec'",
        ),
    ],
)
def test_invalid_devices(options, error, message):
    with pytest.raises(error, match=message):
        Sender(Channel.pair(timeout=1)[0], **options)
