"""The versions of a table: their order, the ones that it has had, the change that made the last."""

import hashlib
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._arrays import shown
from ..errors import ArgumentError
from ._params import MAX_VERSION_LENGTH, TableParams

_MAX_USED = 1 << 20
_SHORT_BYTES = 8
_FEWEST = 64


@dataclass(frozen=True, slots=True)
class LastChange:
    """The message of a change: its random name, a hash of all the rest, and the id it changed."""

    name: bytes
    content: bytes
    changed: bytes


Record = Callable[[TableParams], None]
"""Makes a change durable before it is made; an exception prevents the change."""


class Journal(Protocol):
    """A record of all changes of a table, from which they can be made again."""

    def check(self) -> None:
        """Raises FileError if no change can be recorded."""

    def recording(self, message: bytes) -> AbstractContextManager[Record]:
        """Gives the function that records the change of a message, which the block makes."""


def next_version(version: str) -> str:
    """Increments a version: "7" is followed by "8", "may" by "may+1"."""
    base, counter = re.fullmatch(r"(.*?)(\d*)", version, re.DOTALL).groups()  # type: ignore[union-attr]
    if counter and (not base or base.endswith("+")):
        return f"{base}{int(counter) + 1}"
    return f"{version}+1"


def check_version(version: object) -> None:
    """Raises ArgumentError unless a version is a text of 1 to 128 printable characters."""
    if not isinstance(version, str) or not 1 <= len(version) <= MAX_VERSION_LENGTH:
        raise ArgumentError(
            f"version: found {shown(version)}, expected a text of 1 to {MAX_VERSION_LENGTH} "
            "characters"
        )
    if not version.isprintable():
        raise ArgumentError(f"version: found {shown(version)}, expected printable characters")


class RecentIds:
    """The last ids of some that are added, of `words` words of 8 bytes each, in their order.

    Takes the bytes of the ids, in memory that doubles as they become more: a server keeps those of
    a million updates. A test reads all of them, 0.1 ms for 2^18.
    """

    def __init__(self, words: int, most: int) -> None:
        self._ids = np.zeros((_FEWEST, words), np.uint64)
        self._most = most
        self._added = 0

    def __len__(self) -> int:
        """The number of ids."""
        return min(self._added, self._most)

    def __contains__(self, ident: bytes) -> bool:
        """Tests if an id is one of them."""
        found = np.ones((), np.bool_)
        for word, own in zip(
            np.frombuffer(ident, np.uint64), self._ids[: len(self)].T, strict=True
        ):
            found = found & (own == word)
        return bool(found.any())

    def add(self, ident: bytes) -> None:
        """Adds an id; if there are too many, forgets the one that was added first."""
        if self._added == len(self._ids) < self._most:
            self._ids = np.concatenate([self._ids, np.zeros_like(self._ids)])[: self._most]
        self._ids[self._added % self._most] = np.frombuffer(ident, np.uint64)
        self._added += 1

    def to_bytes(self) -> bytes:
        """Encodes the ids, the first one first."""
        first = self._added % self._most if self._added > self._most else 0
        return np.roll(self._ids[: len(self)], -first, axis=0).tobytes()

    def replace(self, data: bytes) -> None:
        """Replaces all ids by those of `to_bytes`."""
        ids = np.frombuffer(data, np.uint64).reshape(-1, self._ids.shape[1])[-self._most :]
        self._added = len(ids)
        self._ids = np.concatenate([ids, np.zeros_like(self._ids[:_FEWEST])])[: self._most]


class UsedVersions:
    """The versions that a table has had, up to the last 2^20: none of them names another content.

    Remembers 8 bytes of each; two versions of which one is refused by mistake are improbable.
    """

    def __init__(self, first: str) -> None:
        self._used = RecentIds(1, _MAX_USED)
        self.add(first)

    def __contains__(self, version: str) -> bool:
        """Tests if the table has had a version."""
        return _short(version) in self._used

    def add(self, version: str) -> None:
        """Adds a version."""
        self._used.add(_short(version))

    def to_bytes(self) -> bytes:
        """Encodes all versions, 8 bytes each, oldest first."""
        return self._used.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, current: str) -> "UsedVersions":
        """Decodes the bytes of `to_bytes`, which end with the `current` version."""
        used = cls(current)
        used._used.replace(data)
        return used

    def choose(self, version: str | None, current: str) -> str:
        """Returns the version of a change to `current`; None chooses the next one that is unused.

        Raises ArgumentError for anything but text that can be a version, and if the table has had
        the version before.
        """
        if version is None:
            version = next_version(current)
            while version in self:
                version = next_version(version)
            if len(version) > MAX_VERSION_LENGTH:
                raise ArgumentError(
                    f"version: found None, expected a version: the one after {current!r} would "
                    f"have more than {MAX_VERSION_LENGTH} characters"
                )
            return version
        check_version(version)
        if version in self:
            raise ArgumentError(
                f"version: found {version!r}, which this table has had already, expected a new "
                f"one, such as {self.choose(None, current)!r}"
            )
        return version


def _short(version: str) -> bytes:
    return hashlib.sha256(version.encode(errors="surrogatepass")).digest()[:_SHORT_BYTES]
