"""Tables whose rows have keys: text, bytes or integers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from ... import _core
from ..._arrays import ByteArray, as_array, as_bytes, as_threads
from ...dpf import Generator, Output
from ...errors import ArgumentError
from .._checksums import Progress
from .._params import TableParams
from .._rows import servable
from .._table import Table
from ._keys import SEED_BYTES, PackedKeys, Words, pack_keys
from ._layout import KeyedLayout
from ._places import Name, Slots, build, check_different, enlarged, is_full


class KeyedTable:
    """A table of values by key, for private lookups: `KeyedTable(["hello", "world"], values)`.

    Keys are text, bytes or integers (-2^63 to 2^64 - 1), all of one type; `array` has a value for
    each on its first axis. Serve `table`, a `nescio.Table`; clients look up keys with
    `KeyedClient`.

    The table has three subtables, together 1.11 rows for each key. A key's row is in one of them,
    at a place that is a hash of the key (cuckoo hashing), and has 8 bytes more than its value: a
    fingerprint of the key. So a lookup of a key gets a row of each subtable.

    `version`, `output`, `generator`, `record_rows`, `threads` and `progress` are those of
    `nescio.Table`, but a record has as many rows as fit 640 bytes by default. `seed`, 32 bytes, is
    that of the hashes; by default a hash of all keys.

    The table keeps a hash of each key (32 bytes), and not the keys. Two servers that make the same
    changes in the same order have the same table, bit for bit. A table may be read and changed from
    several threads.

    Raises ArgumentError for no keys, an invalid one (empty, longer than 4,096 bytes, out of range),
    keys of several types, equal keys, or another number of values than of keys; and the errors of
    `nescio.Table`.
    """

    def __init__(
        self,
        keys: object,
        array: object,
        *,
        version: str = "1",
        output: Output = "bit",
        generator: Generator = "chacha20",
        record_rows: int | None = None,
        seed: bytes | None = None,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> None:
        packed, values = pack_keys(keys), servable(array)
        if packed.shape != (len(values),):
            raise ArgumentError(
                f"keys: found shape {packed.shape}, expected ({len(values)},): one for each value"
            )
        pool = _core.ThreadPool(as_threads(threads))
        self._pool = pool
        seed, words, self._places = build(packed, _checked_seed(seed, packed), pool)
        shape = values.shape[1:]
        self._layout = KeyedLayout(seed, packed.kind, self._places.rows, values.dtype, shape)
        physical = self._layout.empty_rows()
        physical[self._places.find(words)] = _rows(words, self._layout.value_rows(values))
        self._table = Table(
            physical,
            version=version,
            output=output,
            generator=generator,
            record_rows=self._layout.record_rows if record_rows is None else record_rows,
            bins=self._layout.bins,
            layout=self._layout.to_bytes(),
            threads=threads,
            progress=progress,
        )

    @property
    def table(self) -> Table:
        """The physical table, for `nescio.Server`. Change it with the methods of this class."""
        return self._table

    @property
    def params(self) -> TableParams:
        """The public parameters of the current version of `table`."""
        return self._table.params

    @property
    def layout(self) -> KeyedLayout:
        """The current layout, which clients need."""
        return self._layout

    @property
    def bytes(self) -> int:
        """The memory of `table` and of the hashes of the keys, in bytes."""
        return self._table.bytes + self._places.bytes

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._places)

    def __contains__(self, key: object) -> bool:
        """Tests if the table has a key. Raises ArgumentError for an invalid key."""
        packed = self._packed(key)
        if packed.shape:
            raise ArgumentError(f"key: found {len(packed)} keys, expected one")
        return bool((self._places.find(self._hashed(packed)) >= 0).all())

    def __repr__(self) -> str:
        """Describes the table in one line."""
        return f"KeyedTable({len(self)} {self._layout.keys} keys, {self.params.describe()})"

    def insert(self, keys: object, values: object, *, version: str | None = None) -> TableParams:
        """Inserts keys, or overwrites the values of those that are there; returns the parameters.

        If more than 0.9 of the rows would be used, the subtables grow by an eighth: a new physical
        table is built, while the old one answers. Raises ArgumentError for equal keys, values of
        another shape or dtype, or a version that the table has had; then nothing changes.
        """
        packed = self._packed(keys)
        rows = self._values(values, packed)
        return self.insert_words(self._hashed(packed), rows, version=version, name=packed.describe)

    def update(self, keys: object, values: object, *, version: str | None = None) -> TableParams:
        """Overwrites the values of keys; returns the parameters of the new version.

        Raises ArgumentError for a key that is not in the table; and the errors of `insert`.
        """
        packed = self._packed(keys)
        rows = self._values(values, packed)
        return self.update_words(self._hashed(packed), rows, version=version, name=packed.describe)

    def delete(self, keys: object, *, version: str | None = None) -> TableParams:
        """Deletes keys; returns the parameters of the new version. The table does not shrink.

        Raises ArgumentError for a key that is not in the table, equal keys, or a version that the
        table has had; then nothing changes.
        """
        packed = self._packed(keys)
        return self.delete_words(self._hashed(packed), version=version, name=packed.describe)

    def insert_words(
        self, words: Words, values: ByteArray, *, version: str | None, name: Name
    ) -> TableParams:
        """Inserts hashed keys with values as bytes; see `insert`."""
        check_different(words, name)
        rows = _rows(words, values)
        with self._table.changing():
            new = words[self._places.find(words) < 0]
            full = is_full(self._places.rows, len(self) + len(new))
            if full or not self._places.insert(new):
                return self._grow(words, rows, new, version)
            with self._undone_by_errors():
                left, reached, _ = self._places.moves()
                where = np.concatenate([reached, self._places.find(words)])
                return self._table.update(
                    where, np.concatenate([self._table[left], rows]), version=version
                )

    def update_words(
        self, words: Words, values: ByteArray, *, version: str | None, name: Name
    ) -> TableParams:
        """Overwrites the values of hashed keys; see `update`."""
        check_different(words, name)
        with self._table.changing():
            slots = self._known(words, name)
            return self._table.update(slots, _rows(words, values), version=version)

    def delete_words(self, words: Words, *, version: str | None, name: Name) -> TableParams:
        """Deletes hashed keys; see `delete`."""
        check_different(words, name)
        with self._table.changing():
            slots = self._known(words, name)
            self._places.erase(words)
            with self._undone_by_errors():
                empty = np.zeros((len(slots), self._layout.row_bytes), np.uint8)
                return self._table.update(slots, empty, version=version)

    def _grow(self, words: Words, rows: ByteArray, new: Words, version: str | None) -> TableParams:
        """Inserts into larger subtables; `new` are the words that are not in the table."""
        places = enlarged(self._places, new)
        slots, held = self._places.entries()
        layout = replace(self._layout, rows=places.rows)
        physical = layout.empty_rows()
        physical[places.find(held)] = self._table[slots]
        physical[places.find(words)] = rows
        params = self._table.replace(
            physical, bins=layout.bins, layout=layout.to_bytes(), version=version
        )
        self._places, self._layout = places, layout
        return params

    @contextmanager
    def _undone_by_errors(self) -> Iterator[None]:
        """Undoes the last change of the places if the table's change fails."""
        try:
            yield
        except BaseException:
            self._places.undo()
            raise

    def _known(self, words: Words, name: Name) -> Slots:
        """Returns the slots of keys. Raises ArgumentError if one is not in the table."""
        slots = self._places.find(words)
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            raise ArgumentError(
                f"keys: found {len(missing)} that are not in the table, such as "
                f"{name(int(missing[0]))}; insert adds keys"
            )
        return slots

    def _packed(self, keys: object) -> PackedKeys:
        return self._layout.checked(pack_keys(keys))

    def _hashed(self, keys: PackedKeys) -> Words:
        return keys.hashed(self._layout.seed, self._pool)

    def _values(self, values: object, keys: PackedKeys) -> ByteArray:
        """Converts values to bytes. Raises ArgumentError for another shape or dtype."""
        found, layout = as_array(values, "values"), self._layout
        expected = (*keys.shape, *layout.shape)
        if found.shape != expected or found.dtype != layout.dtype:
            raise ArgumentError(
                f"values: found shape {found.shape} and dtype {found.dtype}, expected {expected} "
                f"and {layout.dtype}"
            )
        return layout.value_rows(found)


def _rows(words: Words, values: ByteArray) -> ByteArray:
    """Joins fingerprints and values to rows of the physical table."""
    fingerprints = np.ascontiguousarray(words[:, 3:].astype("<u8", copy=False)).view(np.uint8)
    return np.concatenate([fingerprints, values], axis=1)


def _checked_seed(seed: object, keys: PackedKeys) -> bytes:
    if seed is None:
        return keys.seed()
    found = as_bytes(seed, "seed").tobytes()
    if len(found) != SEED_BYTES:
        raise ArgumentError(f"seed: found {len(found)} bytes, expected {SEED_BYTES}")
    return found
