"""The header with which a server names a newer version than the one that it was asked for."""

import json
from collections.abc import Mapping, Sequence

from ...errors import MalformedMessageError
from ...pir import TableParams
from ._attempt import Reply

HEADER = "Nescio-Newer"
_MAX_BYTES = 4096


def newer_version(replies: Sequence[Reply], params: TableParams) -> TableParams | None:
    """Returns the newer version that both parties name in their replies to a query of `params`.

    Returns None unless both name the same one: what one server says alone changes nothing. Headers
    that are too long or not valid count as none.
    """
    texts = [reply.headers.get(HEADER, "") for reply in replies]
    if not all(0 < len(text) <= _MAX_BYTES for text in texts):
        return None
    try:
        first, second = map(json.loads, texts)
    except (ValueError, RecursionError):
        return None
    if not isinstance(first, Mapping) or first != second or first.get("id") == params.id.hex():
        return None
    try:
        newer = TableParams.from_dict(first.get("params"))
    except MalformedMessageError:
        return None
    return newer if first.get("id") == newer.id.hex() else None
