"""Tables whose rows have keys: text, bytes or integers."""

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
from ._places import build
from ._rows import KeyedRows, join


class KeyedTable:
    """A table of values by key, for private lookups: `KeyedTable(["hello", "world"], values)`.

    Keys are text, bytes or integers (-2^63 to 2^64 - 1), all of one type; `array` has a value for
    each on its first axis. Serve `table`, a `nescio.Table`; clients look up keys with
    `KeyedClient`. Changes of the served table over the network are changes of keys.

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
        self._pool = _core.ThreadPool(as_threads(threads))
        seed, words, places = build(packed, _checked_seed(seed, packed), self._pool)
        layout = KeyedLayout(seed, packed.kind, places.rows, values.dtype, values.shape[1:])
        physical = layout.empty_rows()
        physical[places.find(words)] = join(words, layout.value_rows(values))
        self._table = Table(
            physical,
            version=version,
            output=output,
            generator=generator,
            record_rows=layout.record_rows if record_rows is None else record_rows,
            bins=layout.bins,
            layout=layout.to_bytes(),
            threads=threads,
            progress=progress,
        )
        self._rows = KeyedRows(layout, places)
        self._table.target = self._rows

    @property
    def table(self) -> Table:
        """The physical table, for `nescio.Server`.

        Change it with the methods of this class: its own methods know no keys, and a row that they
        change is no longer that of its key.
        """
        return self._table

    @property
    def params(self) -> TableParams:
        """The public parameters of the current version of `table`."""
        return self._table.params

    @property
    def layout(self) -> KeyedLayout:
        """The current layout, which clients need."""
        return self._rows.layout

    @property
    def bytes(self) -> int:
        """The memory of `table` and of the hashes of the keys, in bytes."""
        return self._table.bytes + self._rows.places.bytes

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._rows.places)

    def __contains__(self, key: object) -> bool:
        """Tests if the table has a key. Raises ArgumentError for an invalid key."""
        packed = self._packed(key)
        if packed.shape:
            raise ArgumentError(f"key: found {len(packed)} keys, expected one")
        return bool((self._rows.places.find(self._hashed(packed)) >= 0).all())

    def __repr__(self) -> str:
        """Describes the table in one line."""
        return f"KeyedTable({len(self)} {self.layout.keys} keys, {self.params.describe()})"

    def insert(self, keys: object, values: object, *, version: str | None = None) -> TableParams:
        """Inserts keys, or overwrites the values of those that are there; returns the parameters.

        If more than 0.9 of the rows would be used, the subtables grow by an eighth: a new physical
        table is built, while the old one answers. Raises ArgumentError for equal keys, values of
        another shape or dtype, or a version that the table has had; then nothing changes.
        """
        packed = self._packed(keys)
        words, rows = self._hashed(packed), self._values(values, packed)
        return self._rows.insert(self._table, words, rows, version, packed.describe)

    def update(self, keys: object, values: object, *, version: str | None = None) -> TableParams:
        """Overwrites the values of keys; returns the parameters of the new version.

        Raises ArgumentError for a key that is not in the table; and the errors of `insert`.
        """
        packed = self._packed(keys)
        words, rows = self._hashed(packed), self._values(values, packed)
        return self._rows.update(self._table, words, rows, version, packed.describe)

    def delete(self, keys: object, *, version: str | None = None) -> TableParams:
        """Deletes keys; returns the parameters of the new version. The table does not shrink.

        Raises ArgumentError for a key that is not in the table, equal keys, or a version that the
        table has had; then nothing changes.
        """
        packed = self._packed(keys)
        words = self._hashed(packed)
        return self._rows.delete(self._table, words, version, packed.describe)

    def _packed(self, keys: object) -> PackedKeys:
        return self.layout.checked(pack_keys(keys))

    def _hashed(self, keys: PackedKeys) -> Words:
        return keys.hashed(self.layout.seed, self._pool)

    def _values(self, values: object, keys: PackedKeys) -> ByteArray:
        """Converts values to bytes. Raises ArgumentError for another shape or dtype."""
        found, layout = as_array(values, "values"), self.layout
        expected = (*keys.shape, *layout.shape)
        if found.shape != expected or found.dtype != layout.dtype:
            raise ArgumentError(
                f"values: found shape {found.shape} and dtype {found.dtype}, expected {expected} "
                f"and {layout.dtype}"
            )
        return layout.value_rows(found)


def _checked_seed(seed: object, keys: PackedKeys) -> bytes:
    if seed is None:
        return keys.seed()
    found = as_bytes(seed, "seed").tobytes()
    if len(found) != SEED_BYTES:
        raise ArgumentError(f"seed: found {len(found)} bytes, expected {SEED_BYTES}")
    return found
