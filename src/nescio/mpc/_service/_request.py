"""The first frame of a client's connection, the only one of the service's own with content.

    client -> server   SRVC   JSON: {"protocol": 1, "plan": ..., "what": "prepare", "count": ...}
                              or    {"protocol": 1, "plan": ..., "what": "infer", "session": ...}
    then               the frames of `prepare`, or those of inferences
    server -> client   DONE   nothing, after `prepare`: the server's store is complete

`plan` is the digest of the public plan, `session` that of a preparation. A server that refuses
aborts with its reason.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from ..._arrays import shown
from ...errors import MalformedMessageError, MismatchError, PeerRefusedError, ResourceError
from ...net import Channel
from .._plans.plan import PublicPlan
from .._store import MAX_COUNT

NO_STORE = "this server has no store of the preparation"
OTHER_WEIGHTS = "this preparation was made with other weights of the model"

__all__ = [
    "NO_STORE",
    "OTHER_WEIGHTS",
    "RefusalError",
    "Request",
    "confirm",
    "is_gone",
    "plan_digest",
    "receive_request",
    "wait_for_server",
]

_PROTOCOL = 1
_MAX_BYTES = 1024
_FIRST, _DONE = "SRVC", "DONE"
_DIGEST = re.compile("[0-9a-f]{64}")


class RefusalError(ResourceError):
    """A request that this server does not fulfil; the client is told the text."""


@dataclass(frozen=True, slots=True)
class Request:
    """A client's request: to prepare `count` inferences, or to infer with those of a session."""

    plan: str
    what: Literal["prepare", "infer"]
    count: int = 0
    session: str = ""

    def send(self, channel: Channel) -> None:
        """Sends the request. Raises the errors of the channel."""
        own: dict[str, object] = {"count": self.count}
        if self.what == "infer":
            own = {"session": self.session}
        first = {"protocol": _PROTOCOL, "plan": self.plan, "what": self.what}
        channel.send(_FIRST, json.dumps({**first, **own}).encode())

    @classmethod
    def from_bytes(cls, data: bytes | bytearray) -> "Request":
        """Reads the data of a first frame.

        Raises MalformedMessageError for any other data, MismatchError for another protocol.
        """
        found = _parsed(data)
        number = found.get("protocol")
        if type(number) is not int or number != _PROTOCOL:
            version = shown(number)
            text = f"protocol of the service: found {version}, expected {_PROTOCOL}"
            raise MismatchError(text, found=version, expected=str(_PROTOCOL))
        what = found.get("what")
        own = {"prepare": "count", "infer": "session"}.get(what) if type(what) is str else None
        if own is None or set(found) != {"protocol", "plan", "what", own}:
            raise _malformed(f"what {shown(what)} with the fields {shown(sorted(found))}")
        for name in {"plan", own} - {"count"}:
            if type(found[name]) is not str or not _DIGEST.fullmatch(found[name]):
                raise _malformed(f"{name} {shown(found[name])}")
        if own == "session":
            return cls(found["plan"], "infer", session=found["session"])
        count = found["count"]
        if type(count) is not int or not 1 <= count <= MAX_COUNT:
            raise _malformed(f"count {shown(count)}")
        return cls(found["plan"], "prepare", count)


def _parsed(data: bytes | bytearray) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _malformed(f"the data {shown(bytes(data[:16]))}")
    return found


def _malformed(found: str) -> MalformedMessageError:
    return MalformedMessageError(
        f"first message of a client: found {found}, expected a request to prepare or to infer"
    )


def is_gone(error: BaseException) -> bool:
    """Tells if a server refused because it does not have its half of a client's store."""
    text = str(error)
    return isinstance(error, PeerRefusedError) and (NO_STORE in text or OTHER_WEIGHTS in text)


def receive_request(channel: Channel, plan: str) -> Request:
    """Receives a client's request for a plan.

    Raises as `Request.from_bytes`, MismatchError for another plan, and the errors of the channel.
    """
    request = Request.from_bytes(channel.receive_at_most(_FIRST, _MAX_BYTES))
    if request.plan != plan:
        text = (
            f"plan: found {request.plan[:12]}, expected {plan[:12]}: the client has the public "
            "file of another model; its owner has the right one"
        )
        raise MismatchError(text, found=request.plan, expected=plan)
    return request


def confirm(channel: Channel) -> None:
    """Tells the client that the server's store is complete."""
    channel.send(_DONE, b"")


def wait_for_server(channel: Channel) -> None:
    """Waits until the server's store is complete."""
    channel.receive(_DONE, 0)


def plan_digest(public: PublicPlan) -> str:
    """Returns the digest of a public plan: shapes, tables and scales."""
    return hashlib.sha256(public.to_bytes()).hexdigest()
