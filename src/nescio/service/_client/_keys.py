"""The keys that servers know a client by."""

from collections.abc import Mapping, Sequence

from ...errors import ArgumentError


def headers_by_url(
    urls: Sequence[str], client_key: str | Sequence[str] | None
) -> Mapping[str, Mapping[str, str]]:
    """Returns the header for the answers of each table's URL: one key for both, or one each.

    Raises ArgumentError for keys that do not fit into a header; the error does not show them.
    """
    if client_key is None:
        return {}
    keys = [client_key] * len(urls) if isinstance(client_key, str) else list(client_key)
    fits = all(key and key.isascii() and key.isprintable() and " " not in key for key in keys)
    if len(keys) != len(urls) or not fits:
        raise ArgumentError(
            "client_key: expected a key of printable ASCII characters, or one for each server in "
            "the order of the servers"
        )
    return {
        f"{url}/answer": {"Authorization": f"Bearer {key}"}
        for url, key in zip(urls, keys, strict=True)
    }
