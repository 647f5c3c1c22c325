"""Each extension has its own code and proof, and the sender waits for the receiver's verdict."""

import hashlib
import threading

import numpy as np
import pytest

from nescio.errors import ConsistencyError, PeerRefusedError
from nescio.net import Channel
from nescio.ot import Receiver, Sender, _kernels, _keys
from ot.parties import session, together
from spec import ot_keys
from spec.blocks import to_block

ENCODERS = {"encode_primal": 2, "encode_ec": 1, "encode_qc": 1}
"""The methods that multiply by a code, and the position of the code's seed."""
FAMILIES = [
    {"family": "primal"},
    {"family": "dual", "malicious": True},
    {"family": "dual", "parameters": "qc"},
]


class Recorded:
    """A channel that keeps the frames it sends, and can change those of one kind before."""

    def __init__(self, channel, kind=None, change=None):
        self._channel, self._kind, self._change = channel, kind, change
        self.frames = []

    def send(self, kind, data):
        raw = bytearray(memoryview(data).cast("B"))
        if kind == self._kind:
            self._change(raw)
        self.frames.append((kind, bytes(raw)))
        self._channel.send(kind, raw)

    def sent(self, kind):
        return [data for found, data in self.frames if found == kind]

    def __getattr__(self, name):
        return getattr(self._channel, name)


def digest(channels):
    """Hashes the nonces in both parties' first messages, as the specification does."""
    return ot_keys.session_digest(*(channel.sent("PARM")[0][:16] for channel in channels))


@pytest.fixture
def seeds(monkeypatch):
    """Lists the seeds of all codes that both parties use, in the order of their use."""
    used = []
    for name, place in ENCODERS.items():
        method = getattr(_kernels.CpuKernels, name)

        def encode(self, *arguments, method=method, place=place):
            used.append((threading.get_ident(), arguments[place]))
            return method(self, *arguments)

        monkeypatch.setattr(_kernels.CpuKernels, name, encode)
    return used


@pytest.mark.parametrize("options", FAMILIES, ids=lambda options: " ".join(map(str, options)))
def test_each_extension_has_a_code_of_its_own(options, seeds):
    """One code for many extensions: an attacker inverts its matrix once and tests all of them."""
    channels = [Recorded(channel) for channel in Channel.pair(timeout=20)]
    session(
        lambda s: [s.extend(1 << 15) for _ in range(2)],
        lambda c: [c.extend(1 << 15) for _ in range(2)],
        channels,
        **options,
    )
    parties = sorted({thread for thread, _ in seeds}, key=[thread for thread, _ in seeds].index)
    own, other = ([seed for thread, seed in seeds if thread == party] for party in parties)
    assert own == other
    assert len(set(own)) == len(own) == 2
    challenges = channels[1].sent("CHAL") or [b"", b""]
    expected = [ot_keys.code_seed(digest(channels), i, c) for i, c in enumerate(challenges)]
    assert own == expected


def test_each_session_has_codes_of_its_own(seeds):
    for _ in range(2):
        session(lambda s: s.extend(10), lambda c: c.extend(10), family="dual")
    assert len(seeds) == 4
    assert len({seed for _, seed in seeds}) == 2


def test_a_receiver_that_shifts_its_challenge_gets_a_hash_of_this_extension_only(monkeypatch):
    """Its challenge makes the sender hash its combination XOR delta: a target to search delta for.

    The hash tests this extension alone: without the context, one table would serve all sessions.
    """
    combinations = []
    proof = _keys.ExtensionKeys.proof

    def recorded(self, challenge, combined):
        combinations.append(to_block(combined))
        return proof(self, challenge, combined)

    monkeypatch.setattr(_keys.ExtensionKeys, "proof", recorded)

    def shift(challenge):
        challenge[16] ^= 1

    first, second = Channel.pair(timeout=20)
    channels = Recorded(first), Recorded(second, "CHAL", shift)
    deltas = []

    def sender(channel):
        party = Sender(channel, family="dual", malicious=True)
        deltas.append(to_block(party.delta.tobytes()))
        with pytest.raises(PeerRefusedError):
            party.extend(10)

    def receiver(channel):
        with pytest.raises(ConsistencyError):
            Receiver(channel, family="dual", malicious=True).extend(10)

    together(sender, receiver, channels)
    low, high = combinations
    assert low ^ high == deltas[0]  # so a receiver knows the hash of a known value XOR delta
    (found,), (challenge,) = channels[0].sent("PROF"), channels[1].sent("CHAL")
    context = digest(channels)
    hashes = [ot_keys.proof(context, 0, challenge, value) for value in combinations]
    assert found in hashes
    value = combinations[hashes.index(found)].to_bytes(16, "little")
    assert found != hashlib.sha256(b"Nescio OT consistency\0" + value).digest()
    assert found != ot_keys.proof(context, 1, challenge, to_block(value))
    assert found != ot_keys.proof(digest(channels[::-1]), 0, challenge, to_block(value))


@pytest.mark.parametrize("family", ["primal", "dual"])
def test_the_sender_returns_nothing_that_the_receiver_has_not_accepted(family):
    """The receiver alone sees that the proof is wrong, here changed on its way."""

    def change(proof):
        proof[0] ^= 1

    first, second = Channel.pair(timeout=20)
    returned = []

    def sender(channel):
        with pytest.raises(PeerRefusedError, match="consistency check"):
            returned.append(Sender(channel, family=family, malicious=True).extend(1000))

    def receiver(channel):
        with pytest.raises(ConsistencyError):
            Receiver(channel, family=family, malicious=True).extend(1000)

    together(sender, receiver, (Recorded(first, "PROF", change), second))
    assert not returned


def test_an_accepted_proof_is_said_in_each_extension():
    channels = [Recorded(channel) for channel in Channel.pair(timeout=20)]
    _, r, _, (choices, t) = session(
        lambda s: s.extend(1000),
        lambda c: c.extend(1000),
        channels,
        family="primal",
        malicious=True,
    )
    assert channels[1].sent("PASS") == [b"", b""]  # the first extension makes the second's inputs
    assert (t[:, 0] & np.uint64(1) == choices).all()
    assert (r[:, 0] & np.uint64(1) == 0).all()
