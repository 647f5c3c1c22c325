"""The file of a shard, which can be mapped into memory.

    offset    bytes
    0         8       "NESCIOSH"
    8         4       version of this format, 1
    12        4       length of the JSON
    16        32      SHA-256 of the JSON, the tops and the checksums of the blocks
    48        ...     JSON: {"params", "part": [first top, end]}
    4096 a            the part's tops, 32 bytes each
    4096 b            the checksums of the blocks, XXH3 with 128 bits, 16 bytes each
    4096 c            the records of the part in the engine's layout
    4096 d            each hash table's rows of the part, lowest first, at multiples of 4096

Blocks and checks are those of stored tables (../_stored.py). The digest of the table is that of the
tops of all parts.
"""

import hashlib
import json
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from ... import _core
from ..._arrays import ByteArray
from ..._disk import OWNER_ONLY, mapped_copy, replacing
from ...errors import FileError, NescioError
from .._checksums import (
    BLOCK_BYTES,
    CHECKSUM_BYTES,
    Progress,
    blocks_of,
    sum_block,
    sum_file,
)
from .._hash_shape import HASH_BYTES
from .._hash_tree import HashTree
from .._params import TableParams
from .._rows import NO_DIGEST
from .._state import TableState
from ._cut import Part
from ._frozen import Frozen
from ._shard import ShardTable

_MAGIC = b"NESCIOSH"
_VERSION = 1
_HEAD = struct.Struct("<8sII32s")
_ALIGNMENT = 4096
_MAX_JSON = 1 << 16


class _Places(NamedTuple):
    """The offsets of the parts of a file: tops, checksums, and the memory of each table."""

    tops: int
    sums: int
    tables: tuple[int, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, text_bytes: int, params: TableParams, part: Part) -> "_Places":
        sizes = tuple(
            _core.table_bytes(*layout, window=part.window(params, level))
            for level, layout in enumerate(params.layouts)
        )
        at, places = _HEAD.size + text_bytes, []
        sums = sum(map(blocks_of, sizes)) * CHECKSUM_BYTES
        for size in ((part.end - part.first) * HASH_BYTES, sums, *sizes):
            at = -(-at // _ALIGNMENT) * _ALIGNMENT
            places.append(at)
            at += size
        return cls(places[0], places[1], tuple(places[2:]), sizes)

    @property
    def end(self) -> int:
        """The length of the file."""
        return self.tables[-1] + self.sizes[-1]


def write_shard(path: Path, table: ShardTable, pause: Callable[[], None] = lambda: None) -> None:
    """Writes the current version of a shard to a file, atomically, while changes go on.

    `pause` is called after each block; what it raises ends the writing. Raises FileError.
    """
    with table.frozen() as frozen:
        write_frozen(path, frozen, pause)


def write_frozen(path: Path, frozen: Frozen, pause: Callable[[], None]) -> None:
    """Writes a version of a shard, as `write_shard` does."""
    params, part, tops = frozen.state.params, frozen.part, frozen.tops
    text = _text(params, part)
    places = _Places.of(len(text), params, part)
    try:
        with replacing(path, OWNER_ONLY) as file:
            sums = _write_blocks(file, places, frozen, pause)
            file.seek(places.tops)
            file.write(tops.tobytes())
            file.seek(places.sums)
            file.write(sums.tobytes())
            file.seek(0)
            file.write(_head(text, tops, sums))
    except OSError as error:
        raise FileError(f"the shard cannot be written to {path}: {error.strerror}") from error


def shard_bytes(params: TableParams, part: Part) -> int:
    """Returns the length of the file of a shard."""
    return _Places.of(len(_text(params, part)), params, part).end


def name_shard(path: Path, params: TableParams) -> None:
    """Gives the file of a fresh shard the parameters of its table, whose digest is now known.

    They are as long as those without a digest. Of a crash in between, the seal tells. The rows are
    not read. Raises FileError if the file is not one of a fresh shard of the table.
    """
    try:
        with path.open("r+b") as file:
            old, part, text, seal = _read_head(path, file)
            new = _text(params, part)
            if old.digest != NO_DIGEST or replace(old, digest=params.digest) != params:
                raise _not_a_shard(path, f"found table {old.digest}, expected one without a digest")
            tops, sums = _read_sums(file, _Places.of(len(text), old, part), part)
            if _seal(text, tops, sums) != seal or len(new) != len(text):
                raise _not_a_shard(path, "its description or its hashes have changed")
            file.seek(0)
            file.write(_head(new, tops, sums))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise FileError(f"the shard cannot be written to {path}: {error.strerror}") from error


def _text(params: TableParams, part: Part) -> bytes:
    return json.dumps({"params": params.to_dict(), "part": list(part)}).encode()


def _head(text: bytes, tops: ByteArray, sums: ByteArray) -> bytes:
    return _HEAD.pack(_MAGIC, _VERSION, len(text), _seal(text, tops, sums)) + text


def _write_blocks(
    file: BinaryIO, places: _Places, frozen: Frozen, pause: Callable[[], None]
) -> ByteArray:
    sums = []
    for level, offset in enumerate(places.tables):
        file.seek(offset)
        for block in frozen.blocks(level):
            sums.append(sum_block(block))
            file.write(block.data)
            pause()
    return np.frombuffer(b"".join(sums), np.uint8).reshape(-1, CHECKSUM_BYTES)


def _seal(text: bytes, tops: ByteArray, sums: ByteArray) -> bytes:
    state = hashlib.sha256(text)
    state.update(tops.tobytes())
    state.update(sums.tobytes())
    return state.digest()


def read_shard(
    path: Path, threads: int, *, mapped: bool = False, progress: Progress | None = None
) -> ShardTable:
    """Reads a shard into memory, or maps it, after a check of the whole file.

    A mapped shard may be larger than the memory: the system reads its pages from the file.
    Raises FileError if the file is not a shard, or has changed since it was written.
    """
    pool = _core.ThreadPool(threads)
    try:
        with path.open("rb") as file:
            return _read(path, file, pool, mapped, progress)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error


def _read(
    path: Path, file: BinaryIO, pool: _core.ThreadPool, mapped: bool, progress: Progress | None
) -> ShardTable:
    params, part, text, seal = _read_head(path, file)
    places = _Places.of(len(text), params, part)
    found = os.fstat(file.fileno()).st_size
    if found != places.end:
        raise _not_a_shard(path, f"it has {found} bytes, expected {places.end}")
    tops, sums = _read_sums(file, places, part)
    if _seal(text, tops, sums) != seal:
        raise _not_a_shard(path, "its description or its hashes have changed")
    tables = _tables(file, places, params, part, mapped)
    into = None if mapped else [np.asarray(table.memory()).reshape(-1) for table in tables]
    _check_blocks(path, file, places, sums, pool.threads, into, progress)
    all_tops = np.zeros((params.hashes.tops, HASH_BYTES), np.uint8)
    all_tops[part.first : part.end] = tops
    state = TableState(params, tables[0], HashTree(tuple(tables[1:]), all_tops))
    return ShardTable.of(state, part, pool)


def _read_head(path: Path, file: BinaryIO) -> tuple[TableParams, Part, bytes, bytes]:
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size or not head.startswith(_MAGIC):
        raise _not_a_shard(path, "it does not begin like one")
    _, version, length, seal = _HEAD.unpack(head)
    if version != _VERSION or length > _MAX_JSON:
        raise _not_a_shard(path, f"it has version {version} of the format, expected {_VERSION}")
    text = file.read(length)
    try:
        fields = json.loads(text)
        first, end = fields["part"]
        params, part = TableParams.from_dict(fields["params"]), Part(first, end)
    except (ValueError, KeyError, TypeError, RecursionError, NescioError) as error:
        raise _not_a_shard(path, "its description is damaged") from error
    if type(first) is not int or type(end) is not int or not 0 <= first < end:
        raise _not_a_shard(path, "its part is damaged")
    if params.is_cut or end > params.hashes.tops:
        raise _not_a_shard(path, "its part is not one of the table")
    return params, part, text, seal


def _read_sums(file: BinaryIO, places: _Places, part: Part) -> tuple[ByteArray, ByteArray]:
    """Reads the tops, and the checksums of the blocks."""
    tops = _array(file, places.tops, part.end - part.first, HASH_BYTES)
    return tops, _array(file, places.sums, sum(map(blocks_of, places.sizes)), CHECKSUM_BYTES)


def _array(file: BinaryIO, offset: int, count: int, size: int) -> ByteArray:
    file.seek(offset)
    return np.frombuffer(file.read(count * size), np.uint8).reshape(count, size)


def _tables(
    file: BinaryIO, places: _Places, params: TableParams, part: Part, mapped: bool
) -> list[_core.Table]:
    """Makes the tables, whose memory is not read yet."""
    whole = mapped_copy(file) if mapped else None  # changes do not reach the file
    made = []
    for level, (layout, at, size) in enumerate(
        zip(params.layouts, places.tables, places.sizes, strict=True)
    ):
        data = None if whole is None else whole[at : at + size]
        made.append(_core.Table(*layout, data, window=part.window(params, level)))
    return made


def _check_blocks(  # noqa: PLR0917 - one step of _read
    path: Path,
    file: BinaryIO,
    places: _Places,
    sums: ByteArray,
    threads: int,
    into: Sequence[ByteArray] | None,
    progress: Progress | None,
) -> None:
    done = 0
    for number, (at, size) in enumerate(zip(places.tables, places.sizes, strict=True)):
        expected, sums = np.split(sums, [blocks_of(size)])
        found = sum_file(
            file.fileno(), at, size, threads, None, into=None if into is None else into[number]
        )
        wrong = np.flatnonzero((found != expected).any(axis=1))
        if len(wrong):
            raise _not_a_shard(
                path, f"the block at byte {at + int(wrong[0]) * BLOCK_BYTES} changed"
            )
        done += size
        if progress is not None:
            progress(done, sum(places.sizes))


def _not_a_shard(path: Path, why: str) -> FileError:
    return FileError(
        f"{path} is not a shard of Nescio ({why}): check the path, or build the table again"
    )
