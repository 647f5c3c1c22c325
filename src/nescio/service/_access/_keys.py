"""Keys of clients: a file of hashes, which may change while the service runs."""

import hashlib
import logging
import math
import re
import secrets
from pathlib import Path
from typing import NamedTuple

from ..._arrays import check_file, shown
from ...errors import FileError

_LOG = logging.getLogger(__name__)
_KEY_BYTES = 32
_PREFIX = "nescio_"
_NAME = re.compile(r"[A-Za-z0-9._~@-]{1,64}")
_HASH = re.compile(r"[0-9a-f]{64}")
_MAX_FILE_BYTES = 64 << 20


class KnownClient(NamedTuple):
    """A client that has a key: its name, and its keys a second, if it has a budget of its own."""

    name: str
    budget: float | None


def new_client_key(name: str, budget: float | None = None) -> tuple[str, str]:
    """Makes a random key; returns it, and its line in the file. Raises FileError for a name."""
    key = _PREFIX + secrets.token_urlsafe(_KEY_BYTES)
    rate = "" if budget is None else f" {budget:g}"
    line = f"{name} {_digest(key).hex()}{rate}"
    _parse_line(line)
    return key, line


class ClientKeys:
    """The clients of a file with lines `NAME SHA256 [KEYS_PER_SECOND]`; `#` begins a comment.

    A name may have several keys, so that an old and a new one are valid for a time. Raises
    FileError for an unreadable file, and for an invalid line.

    Keys are found by their hash in a dictionary. The time of that says at most something about the
    hashes of guessed keys, not about the keys: nobody can choose a key for the beginning of its
    SHA-256 better than by trying, and a key has 256 random bits. For the same reason a fast hash
    is enough: there is no dictionary of likely keys to try.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._clients = _read(path)

    def reload(self) -> bool:
        """Reads the file again; returns False if it is the same. After an error nothing changes."""
        clients = _read(self._path)
        if clients == self._clients:
            return False
        self._clients = clients
        _LOG.info("the keys of clients are loaded again: %d of them", len(clients))
        return True

    def find(self, key: str) -> KnownClient | None:
        """Returns the client of a key; None for an unknown key."""
        return self._clients.get(_digest(key))


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def _read(path: Path) -> dict[bytes, KnownClient]:
    check_file(path, "the file of the clients' keys")
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_MAX_FILE_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"the clients' keys cannot be read from {path}: {error}") from error
    if len(text) > _MAX_FILE_BYTES:
        raise FileError(f"{path}: found more than {_MAX_FILE_BYTES} characters of clients' keys")
    clients: dict[bytes, KnownClient] = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            found = _parse_line(line.partition("#")[0])
        except FileError as error:
            raise FileError(f"{path}, line {number}: {error}") from None
        if found is not None:
            clients[found[0]] = found[1]
    return clients


def _parse_line(line: str) -> tuple[bytes, KnownClient] | None:
    """Parses a line; None if it is empty. An error shows nothing of it but the name."""
    parts = line.split()
    if not parts:
        return None
    if len(parts) not in (2, 3):
        raise FileError(
            f"found {len(parts)} words, expected NAME SHA256 [KEYS_PER_SECOND]; "
            "nescio admin client-key prints such a line"
        )
    name = parts[0]
    if not _NAME.fullmatch(name):
        raise FileError(
            f"found the name {shown(name)}, expected 1 to 64 letters, digits and . _ ~ @ -"
        )
    if not _HASH.fullmatch(parts[1]):
        raise FileError(f"{name}: expected a SHA-256 of 64 hexadecimal digits, in lower case")
    return bytes.fromhex(parts[1]), KnownClient(name, _rate(name, parts[2:]))


def _rate(name: str, parts: list[str]) -> float | None:
    if not parts:
        return None
    try:
        rate = float(parts[0])
    except ValueError:
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0):
        raise FileError(f"{name}: expected keys a second, more than 0")
    return rate
