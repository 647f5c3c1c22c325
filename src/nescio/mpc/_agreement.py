"""First messages of the parties, before they prepare or infer: JSON, checked field by field."""

import hashlib
import json
import re
import secrets
from typing import Any

from .._arrays import shown
from ..errors import MismatchError
from ..net import Channel
from ._public import PublicNetwork
from ._store import Contents, Role

PROTOCOL = 4
_MAX_HELLO = 1024
_NONCE_BYTES = 32
MAX_BATCH = 1 << 12
_DIFFERENT = {
    "plan": ("different networks", "give the client the bytes of network.public.to_bytes()"),
    "count": ("different counts", "pass one count to both parties"),
    "session": ("stores of different preparations", "use the two stores of one preparation"),
}

Fields = dict[str, Any]


def agree_to_prepare(channel: Channel, role: Role, network: PublicNetwork, count: int) -> str:
    """Compares networks and counts; returns the digest of both parties' nonces."""
    own = {"plan": network.digest, "count": count}
    nonce = secrets.token_hex(_NONCE_BYTES)
    theirs = _exchange(channel, role, "PREP", {**own, "nonce": nonce})
    for name, mine in own.items():
        if _differ(theirs.get(name), mine):
            raise _different(name, theirs.get(name), mine)
    other = theirs.get("nonce")
    if not isinstance(other, str) or not re.fullmatch(f"[0-9a-f]{{{2 * _NONCE_BYTES}}}", other):
        raise _mismatch("the other party's nonce", other, f"{2 * _NONCE_BYTES} hexadecimal digits")
    pair = (nonce, other) if role == "client" else (other, nonce)
    return hashlib.sha256(json.dumps(pair).encode()).hexdigest()


def agree_to_infer(
    channel: Channel, role: Role, contents: Contents, following: int, batch: int
) -> tuple[int, int]:
    """Compares stores; returns the next prepared inference, and the most inputs at once, of both.

    `following` and `batch` are those of this party.
    """
    own = {"plan": contents.plan, "session": contents.session}
    theirs = _exchange(channel, role, "NEXT", {**own, "next": following, "batch": batch})
    for name, mine in own.items():
        if _differ(theirs.get(name), mine):
            raise _different(name, theirs.get(name), mine)
    other, most = theirs.get("next"), theirs.get("batch")
    if type(other) is not int or not 0 <= other <= contents.count:
        raise _mismatch("the next prepared inference", other, f"0 to {contents.count}")
    if type(most) is not int or not 1 <= most <= MAX_BATCH:
        raise _mismatch("the most inputs at once", most, f"1 to {MAX_BATCH}")
    return max(following, other), min(batch, most)


def _exchange(channel: Channel, role: Role, kind: str, own: Fields) -> Fields:
    """Sends some fields and receives the other party's; the client sends first."""
    message = json.dumps({"protocol": PROTOCOL, "role": role, **own}).encode()
    if role == "client":
        channel.send(kind, message)
    theirs = _parsed(channel.receive_at_most(kind, _MAX_HELLO))
    if role == "server":
        channel.send(kind, message)
    other = "server" if role == "client" else "client"
    for name, expected in (("protocol", PROTOCOL), ("role", other)):
        if _differ(theirs.get(name), expected):
            raise _mismatch(f"the other party's {name}", theirs.get(name), expected)
    return theirs


def _parsed(data: bytearray) -> Fields:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _mismatch("the other party's message", bytes(data[:16]), "a JSON object")
    return found


def _differ(found: object, expected: object) -> bool:
    """Compares types too: in Python, True and 1.0 equal 1."""
    return type(found) is not type(expected) or found != expected


def _different(name: str, found: object, expected: object) -> MismatchError:
    what, advice = _DIFFERENT[name]
    error = _mismatch(what, found, expected)
    return MismatchError(f"{error}: {advice}", found=error.found, expected=error.expected)


def _mismatch(what: str, found: object, expected: object) -> MismatchError:
    text = f"{what}: found {shown(found)}, expected {shown(expected)}"
    return MismatchError(text, found=shown(found), expected=shown(expected))
