"""The first message of both phases, as JSON from outside: what is no agreement is refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc.sessions import Dealt, small_network
from nescio.errors import MismatchError
from nescio.mpc._agreement import PROTOCOL
from nescio.mpc._session import Client, Server, prepare
from nescio.mpc._store import Store
from nescio.net import Channel

PHASES = ["client prepares", "server prepares", "client infers", "server serves"]
FIELDS = {
    "client prepares": ["protocol", "role", "plan", "count", "nonce"],
    "server prepares": ["protocol", "role", "plan", "count", "nonce"],
    "client infers": ["protocol", "role", "plan", "session", "next", "batch"],
    "server serves": ["protocol", "role", "plan", "session", "next", "batch"],
}
MISSING = object()
WRONG = {
    "missing": MISSING,
    "null": None,
    "true": True,
    "a fraction": 1.0,
    "a text": "1",
    "a negative number": -1,
    "a huge number": 10**400,
    "an infinite number": 1e400,
    "no number": float("nan"),
    "a list": [1],
    "an object": {"1": 1},
    "half of a character": "\ud800",
    "a deep list": json.loads(300 * "[" + 300 * "]"),
}


class Place:
    """A party of each phase, whose other party sends any first message."""

    def __init__(self, folder):
        self.folder = folder
        self.dealt = Dealt(small_network(np.random.default_rng(1)), folder, 1)
        with Store(self.dealt.client) as store:
            self.session = store.contents.session

    def sound(self, phase):
        """Returns the fields that the other party would send."""
        role = "server" if phase.startswith("client") else "client"
        fields = {"protocol": PROTOCOL, "role": role, "plan": self.dealt.public.digest}
        if "prepares" in phase:
            return fields | {"count": 1, "nonce": "0f" * 32}
        return fields | {"session": self.session, "next": 0, "batch": 1}

    def refusal(self, phase, message):
        """Returns the error of a party that gets a message; it has used nothing, made nothing."""
        channel, other = Channel.pair(timeout=0.5)
        kind = "PREP" if "prepares" in phase else "NEXT"
        other.send(kind, message)
        before = sorted(self.folder.iterdir())
        with pytest.raises(MismatchError) as caught:
            self._run(phase, channel, self.folder / "new")
        assert channel.closed
        assert sorted(self.folder.iterdir()) == before
        for path in (self.dealt.client, self.dealt.server):
            with Store(path) as store:
                assert store.left == 1
        return str(caught.value)

    def _run(self, phase, channel, path):
        dealt = self.dealt
        if phase == "client prepares":
            prepare(channel, dealt.public, path, 1, threads=1)
        elif phase == "server prepares":
            prepare(channel, dealt.network, path, 1, threads=1)
        elif phase == "client infers":
            with Client(channel, dealt.public, dealt.client, threads=1) as client:
                client.infer(np.zeros(dealt.network.inputs, np.uint32))
        else:
            with Server(channel, dealt.network, dealt.server, threads=1) as server:
                server.serve()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("stores"))


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("phase", PHASES)
def test_a_field_of_another_type_is_refused(place, phase, wrong):
    """Each field; also a truth value or a fraction that equals the expected number."""
    for field in FIELDS[phase]:
        fields = place.sound(phase) | {field: WRONG[wrong]}
        if WRONG[wrong] is MISSING:
            del fields[field]
        said = place.refusal(phase, json.dumps(fields).encode())
        assert "found" in said
        assert "expected" in said
        assert len(said) < 500


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"[]",
        b"1",
        b"NaN",
        b"{",
        b'{"protocol": 1}}',
        b"\xff\xfe{}",
        b'{"protocol": "\xc3"}',
        b"[" * 1024,
        b'{"a":' * 200 + b"1" + b"}" * 200,
        b"9" * 1024,
        b"\0" * 1024,
        json.dumps({"protocol": 1}).encode("utf-16"),
    ],
)
@pytest.mark.parametrize("phase", PHASES)
def test_bytes_that_are_no_message(place, phase, message):
    place.refusal(phase, message)


@pytest.mark.parametrize("phase", PHASES)
def test_of_fields_that_come_twice_the_last_counts(place, phase):
    sound = json.dumps(place.sound(phase))
    assert "protocol" in place.refusal(phase, (sound[:-1] + ', "protocol": 7}').encode())


@pytest.mark.parametrize("phase", PHASES)
def test_a_message_that_is_too_long(place, phase):
    assert "of 1025 bytes" in place.refusal(phase, b" " * 1025)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda some: (
        st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=9), some, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from(PHASES), st.data())
def test_any_other_message_is_refused(place, phase, data):
    """A sound message with some fields replaced, or any bytes, is refused by a typed error."""
    sound = place.sound(phase)
    names = st.sampled_from(FIELDS[phase])
    changes = data.draw(st.dictionaries(names, values, min_size=1) | st.binary(max_size=1024))
    if isinstance(changes, dict):
        changes = json.dumps(sound | changes | {"protocol": 7}).encode()[:1024]
    place.refusal(phase, changes)
