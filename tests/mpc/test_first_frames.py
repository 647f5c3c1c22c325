"""The first frames of clients of a server of private inference: valid, or refused."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc.services import PLAN, serving
from nescio.errors import (
    MessageError,
    PeerRefusedError,
)
from nescio.mpc._service._request import Request, plan_digest

DIGEST = plan_digest(PLAN.public)
GOOD = {"protocol": 1, "plan": DIGEST, "what": "prepare", "count": 3}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=70),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*GOOD, "session", "more"]), JSON))
@settings(max_examples=150, deadline=None)
def test_first_frames_are_valid_or_refused(changes):
    message = {**GOOD, **changes}
    try:
        found = Request.from_bytes(json.dumps(message).encode())
    except MessageError:
        assert json.dumps(message) != json.dumps(GOOD)  # True equals 1 in Python
    else:
        assert set(message) == {*GOOD}
        assert type(message["count"]) is int
        assert (found.what, found.count) == ("prepare", message["count"])


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_bytes_that_are_no_first_frame(data):
    with pytest.raises(MessageError):
        Request.from_bytes(data)


BAD = [
    ("SRVC", b"", "first message"),
    ("SRVC", b"[1]", "first message"),
    ("SRVC", b"[" * 1000, "first message"),
    ("SRVC", json.dumps({**GOOD, "protocol": 2}).encode(), "protocol"),
    ("SRVC", json.dumps({**GOOD, "protocol": True}).encode(), "protocol"),
    ("SRVC", json.dumps({**GOOD, "count": 0}).encode(), "count"),
    ("SRVC", json.dumps({**GOOD, "count": 2**70}).encode(), "count"),
    ("SRVC", json.dumps({**GOOD, "what": "infer"}).encode(), "what"),
    ("SRVC", json.dumps({**GOOD, "what": []}).encode(), "what"),
    ("SRVC", json.dumps({**GOOD, "plan": "../../etc"}).encode(), "plan"),
    ("SRVC", b" " * 2000, "SRVC"),
    ("PREP", b"{}", "SRVC"),
]


def test_bad_first_frames_end_their_connection_alone(folder, store):
    with serving(folder) as service:
        for kind, data, said in BAD:
            with service.connect() as channel:
                channel.send(kind, data)
                with pytest.raises(PeerRefusedError, match=said):
                    channel.receive("DONE", 0)
        path = {"protocol": 1, "plan": DIGEST, "what": "infer", "session": "../" * 21 + "a"}
        with pytest.raises(MessageError, match="session"):
            Request.from_bytes(json.dumps(path).encode())
        service.remote().prepare(store, 1)
        assert len(service.wait_for(len(BAD) + 1)) == len(BAD) + 1
