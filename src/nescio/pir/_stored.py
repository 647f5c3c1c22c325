"""The file format of a stored table, which can be mapped into memory.

    offset    bytes
    0         8       "NESCIOTB"
    8         4       version of this format, 5
    12        4       length of the JSON
    16        32      SHA-256 of the JSON, the tops, the checksums of the blocks and the layout
    48        ...     JSON: {"layout_bytes", "params", "source"}
    4096 a            the tops, 32 bytes each, which hash to the table's digest
    4096 b            the checksums of the blocks, XXH3 with 128 bits, 16 bytes each
    4096 c            the layout that clients get, `layout_bytes` long
    4096 d            the records in the engine's layout
    4096 e            each hash table in the engine's layout, lowest first, at multiples of 4096

A snapshot of a data folder has `"snapshot": true` too: its blocks were copied while changes went
on, and it is a table only together with the journal of these changes.

Each part begins at the next multiple of 4,096. A block is 4 MiB of the records or of a hash table
in the engine's layout; the last one of each may be shorter. `source` identifies the file that the
rows came from and its state; with it `nescio serve --cache` detects that the file has changed.

A file is checked as a whole before its rows are used. The check is against accidents, so that a
fast checksum of the layout is enough: an attacker who can write the file could also write hashes.
"""

import hashlib
import json
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from .. import _core
from .._arrays import ByteArray, check_file
from .._disk import OWNER_ONLY, mapped_copy, replacing
from ..errors import ArgumentError, FileError, MalformedMessageError, NescioError
from ._checksums import (
    BLOCK_BYTES,
    CHECKSUM_BYTES,
    Progress,
    Source,
    block_parts,
    blocks_of,
    sum_block,
    sum_file,
)
from ._hash_shape import HASH_BYTES
from ._hash_tree import HashTree
from ._params import MAX_LAYOUT_BYTES, TableParams, layout_digest

_MAGIC = b"NESCIOTB"
_VERSION = 5
_HEAD = struct.Struct("<8sII32s")
_ALIGNMENT = 4096
_MAX_JSON = 1 << 16
_USERS_MODE = 0o666  # less the umask
_SYNC_BLOCKS = 8  # written between two synchronizations of a snapshot


class StoredTable(NamedTuple):
    """The content of a file."""

    params: TableParams
    records: _core.Table
    tree: HashTree
    layout: bytes


def write(
    path: Path,
    params: TableParams,
    rows: _core.Table,
    tree: HashTree,
    *,
    layout: bytes,
    source: Source | None,
    copy: Callable[[ByteArray], ByteArray] | None = None,
) -> None:
    """Writes a table to a temporary file and renames it. Raises FileError if that fails.

    With `copy`, which copies a block of memory that may change at other times, the file is a
    snapshot, readable by its owner alone. It is synchronized in steps, so that other files are too.
    """
    fields: dict[str, object] = {
        "layout_bytes": len(layout),
        "params": params.to_dict(),
        "source": None if source is None else asdict(source),
    }
    text = json.dumps(fields if copy is None else {**fields, "snapshot": True}).encode()
    tops = np.ascontiguousarray(tree.tops)
    memory = [np.asarray(table.memory()).reshape(-1) for table in (rows, *tree.tables)]
    places = _Places.of(len(text), params, len(layout))
    try:
        with replacing(path, _USERS_MODE if copy is None else OWNER_ONLY) as file:
            blocks = _write_blocks(file, places, memory, copy)
            head = _HEAD.pack(_MAGIC, _VERSION, len(text), _seal(text, tops, blocks, layout))
            offsets = (0, places.tops, places.blocks, places.layout)
            contents = (head + text, tops.tobytes(), blocks.tobytes(), layout)
            for offset, content in zip(offsets, contents, strict=True):
                file.seek(offset)
                file.write(content)
    except OSError as error:
        raise FileError(f"the table cannot be written to {path}: {error.strerror}") from error


def _write_blocks(
    file: BinaryIO,
    places: "_Places",
    memory: list[ByteArray],
    copy: Callable[[ByteArray], ByteArray] | None,
) -> ByteArray:
    """Writes the tables; returns the checksums of their blocks."""
    sums = []
    for place, part in zip(places.parts, memory, strict=True):
        file.seek(place.first)
        for block in block_parts(part):
            content = block if copy is None else copy(block)
            sums.append(sum_block(content))
            file.write(content.data)
            if copy is not None and len(sums) % _SYNC_BLOCKS == 0:
                os.fdatasync(file.fileno())
    return np.frombuffer(b"".join(sums), np.uint8).reshape(-1, CHECKSUM_BYTES)


def read(
    path: Path, threads: int, progress: Progress | None, *, snapshot: bool = False
) -> StoredTable:
    """Checks a file and maps its table into memory, or reads it there if it is a snapshot.

    The changes since a snapshot would copy most pages of a mapping, one at a time. And a disk that
    fails later would end the process. Raises FileError if the file is not a table, or a snapshot
    where a whole table is expected.
    """
    try:
        with _opened(path) as file:
            return _read(path, file, threads, progress, snapshot)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error


def _read(
    path: Path, file: BinaryIO, threads: int, progress: Progress | None, snapshot: bool
) -> StoredTable:
    description = _read_head(path, file)
    if bool(description.fields.get("snapshot")) != snapshot:
        raise FileError(
            f"{path} is a whole table, expected a snapshot: restore the folder from a backup"
            if snapshot
            else f"{path} is a snapshot, which is a table only with its journal: serve its folder "
            "with nescio serve --data"
        )
    try:
        params = TableParams.from_dict(description.fields.get("params"))
    except NescioError as error:
        raise _not_a_table(path, str(error)) from error
    layout_bytes = description.fields.get("layout_bytes")
    if type(layout_bytes) is not int or not 0 <= layout_bytes <= MAX_LAYOUT_BYTES:
        raise _not_a_table(path, "its description is damaged")
    places = _Places.of(len(description.text), params, layout_bytes)
    found = os.fstat(file.fileno()).st_size
    if found != places.end:
        raise _not_a_table(path, f"it has {found} bytes, expected {places.end}")
    whole = mapped_copy(file)  # changes to the table do not reach the file
    tops, blocks = (
        np.array(whole[offset:][: count * size]).reshape(-1, size)
        for offset, count, size in (
            (places.tops, params.hashes.tops, HASH_BYTES),
            (places.blocks, places.block_count, CHECKSUM_BYTES),
        )
    )
    layout = whole[places.layout :][:layout_bytes].tobytes()
    if _seal(description.text, tops, blocks, layout) != description.seal:
        raise _not_a_table(path, "its description or its hashes have changed")
    tables = [_core.Table(*sizes) for sizes in params.layouts] if snapshot else []
    memory = [np.asarray(table.memory()).reshape(-1) for table in tables]
    wrong = _changed_blocks(file, places, blocks, threads, progress, memory=memory)
    if wrong:
        raise _not_a_table(
            path,
            f"{len(wrong)} of {len(blocks)} blocks have changed, the first at byte {wrong[0]}",
        )
    if not snapshot:
        tables = [
            _core.Table(*sizes, np.asarray(whole[part.first : part.first + part.size]))
            for sizes, part in zip(params.layouts, places.parts, strict=True)
        ]
    tree = HashTree(tuple(tables[1:]), tops)
    if tree.digest(params) != params.digest or layout_digest(layout) != params.layout:
        raise _not_a_table(path, "its hashes do not match its parameters")
    return StoredTable(params, tables[0], tree, layout)


def _changed_blocks(
    file: BinaryIO,
    places: "_Places",
    blocks: ByteArray,
    threads: int,
    progress: Progress | None,
    *,
    memory: Sequence[ByteArray],
) -> list[int]:
    """Compares all blocks with their checksums; returns the places of those that differ.

    Fills the `memory` of each part, if there is any.
    """
    done, total = 0, sum(part.size for part in places.parts)
    wrong: list[int] = []
    for part, into in zip_longest(places.parts, memory):

        def note(part_done: int, _: int, before: int = done) -> None:
            if progress is not None:
                progress(before + part_done, total)

        own, blocks = np.split(blocks, [blocks_of(part.size)])
        found = sum_file(file.fileno(), part.first, part.size, threads, note, into=into)
        differ = np.flatnonzero((found != own).any(axis=1))
        wrong += [part.first + int(block) * BLOCK_BYTES for block in differ]
        done += part.size
    return wrong


def is_stored(path: Path) -> bool:
    """Tests if a file begins like a stored table."""
    with _opened(path) as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _opened(path: Path) -> BinaryIO:
    """Opens a file. Raises FileError unless it is a regular file, OSError if it cannot be read."""
    check_file(path, "the file of a table: a NumPy array, or what Table.save wrote")
    return path.open("rb")


def check_replaceable(path: Path) -> None:
    """Raises FileError if a path exists and does not begin like a stored table."""
    if path.is_file() and is_stored(path):
        return
    if path.exists() or path.is_symlink():
        raise FileError(
            f"{path} is not a Nescio table, and would be overwritten: move it to another place, "
            "or serve the table without --cache"
        )


def source_of(path: Path) -> Source | None:
    """Reads the source of a stored table, if it has one. Raises FileError if it is not a table."""
    try:
        with _opened(path) as file:
            source = _read_head(path, file).fields.get("source")
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    if source is None:
        return None
    try:
        return Source.from_dict(source)
    except ArgumentError as error:
        raise _not_a_table(path, "its source is damaged") from error


def rows_of(path: Path) -> int:
    """Reads the number of rows of a stored table. Raises FileError if it is not a table."""
    try:
        with _opened(path) as file:
            return TableParams.from_dict(_read_head(path, file).fields.get("params")).rows
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    except MalformedMessageError as error:
        raise _not_a_table(path, str(error)) from error


@dataclass(frozen=True, slots=True)
class _Description:
    """The JSON at the beginning of a file, as text and parsed, and the seal of the hashes."""

    text: bytes
    fields: dict[str, object]
    seal: bytes


class _Part(NamedTuple):
    """The place of a table's layout in a file."""

    first: int
    size: int


@dataclass(frozen=True, slots=True)
class _Places:
    """The offsets of the parts of a file, and the number of checksums."""

    tops: int
    blocks: int
    block_count: int
    layout: int
    parts: tuple[_Part, ...]

    @property
    def end(self) -> int:
        """The length of the file."""
        return sum(self.parts[-1])

    @classmethod
    def of(cls, text_bytes: int, params: TableParams, layout_bytes: int) -> "_Places":
        sizes = [_core.table_bytes(*layout) for layout in params.layouts]
        block_count = sum(map(blocks_of, sizes))
        tops = _aligned(_HEAD.size + text_bytes)
        blocks = _aligned(tops + params.hashes.tops * HASH_BYTES)
        layout = _aligned(blocks + block_count * CHECKSUM_BYTES)
        at, parts = layout + layout_bytes, []
        for size in sizes:
            parts.append(_Part(_aligned(at), size))
            at = sum(parts[-1])
        return cls(tops, blocks, block_count, layout, tuple(parts))


def _read_head(path: Path, file: BinaryIO) -> _Description:
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size or not head.startswith(_MAGIC):
        raise _not_a_table(path, "it does not begin with the bytes NESCIOTB")
    _, version, length, seal = _HEAD.unpack(head)
    if version != _VERSION or length > _MAX_JSON:
        raise _not_a_table(path, f"found version {version}, this release reads version {_VERSION}")
    text = file.read(length)
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_a_table(path, "its description is not JSON") from error
    if not isinstance(parsed, dict):
        raise _not_a_table(path, "its description is not a JSON object")
    return _Description(text, parsed, seal)


def _seal(text: bytes, tops: ByteArray, blocks: ByteArray, layout: bytes) -> bytes:
    seal = hashlib.sha256(text)
    seal.update(np.ascontiguousarray(tops).data)
    seal.update(np.ascontiguousarray(blocks).data)
    seal.update(layout)
    return seal.digest()


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def _not_a_table(path: Path, why: str) -> FileError:
    return FileError(
        f"{path} is not a valid Nescio table ({why}); "
        "check the path, or recreate the file with Table.save"
    )
