"""Keys by which a server knows its clients."""

from collections.abc import Sequence

from ..._arrays import shown
from ...errors import ArgumentError

_MAX_LENGTH = 512


def client_keys(key: str | Sequence[str] | None, urls: Sequence[Sequence[str]]) -> dict[str, str]:
    """Returns the client key for the answers of each URL: one for all, or one for each party.

    Raises ArgumentError for a key that is not printable ASCII; the message does not show it.
    """
    if key is None:
        return {}
    keys = [key] * len(urls) if isinstance(key, str) else list(key)
    if len(keys) != len(urls):
        raise ArgumentError(
            f"client_key: found {shown(len(keys))} keys, expected one, or one for each party"
        )
    for one in keys:
        if not isinstance(one, str) or not 0 < len(one) <= _MAX_LENGTH or not _is_plain(one):
            raise ArgumentError(
                f"client_key: expected 1 to {_MAX_LENGTH} printable ASCII characters, no spaces"
            )
    return {f"{url}/answer": one for one, own in zip(keys, urls, strict=True) for url in own}


def _is_plain(key: str) -> bool:
    return key.isascii() and key.isprintable() and " " not in key
