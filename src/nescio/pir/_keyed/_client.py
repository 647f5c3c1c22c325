"""The client of a keyed table."""

from typing import NamedTuple

import numpy as np

from ... import _core
from ..._arrays import Array, ByteArray
from ...errors import ArgumentError, LayoutChangedError, MismatchError
from .._layout_kind import layout_kind
from .._local import Lookups
from .._params import layout_digest
from ._keys import Words, pack_keys, places_of
from ._layout import FINGERPRINT_BYTES, KeyedLayout

_TRIES = 8


class KeyedResult(NamedTuple):
    """The values of keys, and if the table has each key; other keys have values of zero bytes."""

    values: Array
    found: Array


class KeyedClient:
    """Looks up keys of a keyed table without revealing them: `client.lookup(["hello", "world"])`.

    `lookups` is a `RemoteTable` or a `LocalTable` of the physical table, or another `Lookups`.

    A lookup gets a row of each of the three subtables, also for a key that the table does not have,
    and `lookups` checks all three rows. The servers learn the number of keys, but neither the keys
    nor if the table has them: messages have the same sizes, and nothing is asked again. With a
    probability of 3 * 2^-64 a key that the table does not have gets the value of another key.

    Which of the rows has the value affects neither time nor memory accesses. The time to convert
    and hash a key depends on its length. A caller that acts on `found` where a server sees it, for
    example with another lookup, reveals it.

    Raises ArgumentError if the table has no keys, MalformedMessageError for an invalid layout,
    MismatchError for one that does not fit the table.
    """

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups
        self._pool = _core.ThreadPool(1)
        self._layout = _parsed(lookups)

    @property
    def layout(self) -> KeyedLayout:
        """The layout of the current version of the table, as far as `lookups` knows."""
        if self._lookups.layout != self._layout.to_bytes():
            self._layout = _parsed(self._lookups)
        return self._layout

    def lookup(self, keys: object) -> KeyedResult:
        """Looks up one key, a list of keys, or an array of keys of any shape.

        Returns `(values, found)`: values of the shape of the keys, then that of a value, and a bool
        for each key. Each key is a lookup of its own, equal ones included.

        Raises ArgumentError for an invalid key or one of another type than the table's keys,
        MismatchError if the table grows during every one of several tries, and the errors of
        `lookups`.
        """
        packed = pack_keys(keys)
        for _ in range(_TRIES):
            layout = self.layout
            words = layout.checked(packed).hashed(layout.seed, self._pool)
            rows = self._rows(layout, words)
            if rows is not None:
                values, found = select(words, rows)
                typed: Array = values.view(layout.dtype).reshape((*packed.shape, *layout.shape))
                return KeyedResult(typed, found.reshape(packed.shape))
        raise MismatchError(
            f"the table has changed its layout in each of {_TRIES} tries: try again later",
            found="another layout",
            expected=f"{layout.rows} rows a subtable",
        )

    def _rows(self, layout: KeyedLayout, words: Words) -> ByteArray | None:
        """Gets three rows for each key; None if the layout has changed meanwhile."""
        places = places_of(words, layout.rows)
        try:
            rows: ByteArray = self._lookups.lookup(places, layout=layout_digest(layout.to_bytes()))
        except LayoutChangedError:
            return None
        return rows


def _parsed(lookups: Lookups) -> KeyedLayout:
    """Parses the layout of a table, which may change meanwhile."""
    for _ in range(_TRIES):
        text, params = lookups.layout, lookups.params
        if layout_digest(text) == params.layout:
            break
    else:
        raise MismatchError(
            f"the layout was of another version of the table in each of {_TRIES} tries: try again "
            "later",
            found=layout_digest(text),
            expected=params.layout,
        )
    if layout_kind(text) != "keyed":
        raise ArgumentError(_without_keys(text))
    layout = KeyedLayout.from_bytes(text)
    layout.check(params)
    return layout


def _without_keys(layout: bytes) -> str:
    """Says how to look up the rows of a table without keys."""
    if layout_kind(layout) == "batch":
        return (
            "the table has no keys: found a batch table, expected one of KeyedTable; look up its "
            "rows with nescio.pir.batch.BatchClient"
        )
    return (
        "the table has no keys: found a table without the layout of a keyed one; look up rows by "
        "their numbers"
    )


def select(words: Words, rows: ByteArray) -> tuple[ByteArray, Array]:
    """Selects the values with the fingerprints of keys from rows (n, 3, bytes): (n, bytes), (n,).

    Of several such rows, the first counts; without one, the value is zero. Neither the time nor the
    memory accesses depend on the rows' contents.
    """
    fingerprints = np.ascontiguousarray(rows[:, :, :FINGERPRINT_BYTES]).view("<u8")[:, :, 0]
    equal = (fingerprints == words[:, 3:]).astype(np.uint8)
    equal[:, 1] &= ~equal[:, 0]
    equal[:, 2] &= ~(equal[:, 0] | equal[:, 1])
    masks = np.uint8(0) - equal
    values = np.bitwise_or.reduce(rows[:, :, FINGERPRINT_BYTES:] & masks[:, :, None], axis=1)
    return values, np.bitwise_or.reduce(equal, axis=1).astype(bool)
