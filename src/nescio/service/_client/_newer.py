"""The header with which a server names a newer version than the one that it was asked for."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...errors import MalformedMessageError
from ...pir import TableParams
from ._attempt import Reply

HEADER = "Nescio-Newer"
_MAX_BYTES = 4096


class Newer(NamedTuple):
    """A newer version that a party, or both, name.

    `urgent` says that half of the versions that a party keeps are newer than the one in use.
    """

    params: TableParams
    urgent: bool


def newer_version(replies: Sequence[Reply], params: TableParams) -> Newer | None:
    """Returns the newer version that both parties name in their replies to a query of `params`.

    Returns None unless both name the same one: what one server says alone changes nothing. Headers
    that are too long or not valid count as none.
    """
    try:
        first, second = (_parse(reply.headers.get(HEADER, "")) for reply in replies)
    except MalformedMessageError:
        return None
    if first.params != second.params or first.params == params:
        return None
    return Newer(first.params, first.urgent or second.urgent)


def _parse(text: str) -> Newer:
    """Parses a header. Raises MalformedMessageError for any that no honest server sends."""
    try:
        named = json.loads(text) if len(text) <= _MAX_BYTES else None
    except (ValueError, RecursionError):
        named = None
    if not isinstance(named, Mapping):
        raise MalformedMessageError(f"{HEADER}: found no JSON object of at most {_MAX_BYTES} bytes")
    params = TableParams.from_dict(named.get("params"))
    if named.get("id") != params.id.hex():
        raise MalformedMessageError(f"{HEADER}: the id is not that of the parameters")
    return Newer(params, _is_urgent(named))


def _is_urgent(named: Mapping[str, object]) -> bool:
    """Tests if the version in use will soon be gone; a server that does not say counts as yes."""
    age, kept = named.get("age"), named.get("kept")
    return not (isinstance(age, int) and isinstance(kept, int) and 0 <= 2 * age < kept)
