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

Each part begins at the next multiple of 4,096. A block is 4 MiB of the records or of a hash table
in the engine's layout; the last one of each may be shorter. `source` identifies the file that the
rows came from and its state; with it `nescio serve --cache` detects that the file has changed.

A file is checked as a whole before its rows are used. The check is against accidents, so that a
fast checksum of the layout is enough: an attacker who can write the file could also write hashes.
"""

import hashlib
import json
import os
import secrets
import struct
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from .. import _core
from .._arrays import ByteArray
from ..errors import FileError, NescioError
from ._checksums import BLOCK_BYTES, CHECKSUM_BYTES, Progress, blocks_of, sum_file, sum_memory
from ._hash_shape import HASH_BYTES
from ._hash_tree import HashTree
from ._params import MAX_LAYOUT_BYTES, TableParams, layout_digest

_MAGIC = b"NESCIOTB"
_VERSION = 5
_HEAD = struct.Struct("<8sII32s")
_ALIGNMENT = 4096
_MAX_JSON = 1 << 16
_CLOCK_STEP = 100_000_000  # nanoseconds; times of files advance in steps of some milliseconds


@dataclass(frozen=True, slots=True)
class Source:
    """A file's length, times and number, which together change when a call writes its content.

    Programs can set the time of modification back, but not the time of the last change of status,
    which every call that writes sets too. A write through a memory map may change neither, if the
    page had unwritten changes before: such maps must be closed before the state is read.
    """

    bytes: int
    modified_nanoseconds: int
    changed_nanoseconds: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> "Source":
        """Reads the current state of a file.

        Waits until the last change is at least 0.1 s old, because a second change within one step
        of the file system's clock would leave the same times.
        """
        status = path.stat()
        while 0 <= time.time_ns() - status.st_ctime_ns < _CLOCK_STEP:
            time.sleep(_CLOCK_STEP / 1e9)
            status = path.stat()
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


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
    threads: int,
) -> None:
    """Writes a table to a temporary file and renames it. Raises FileError if that fails."""
    text = json.dumps(
        {
            "layout_bytes": len(layout),
            "params": params.to_dict(),
            "source": None if source is None else asdict(source),
        }
    ).encode()
    tops = np.ascontiguousarray(tree.tops)
    memory = [np.asarray(table.memory()).reshape(-1) for table in (rows, *tree.tables)]
    blocks = np.concatenate([sum_memory(part, threads) for part in memory])
    places = _Places.of(len(text), params, len(layout))
    head = _HEAD.pack(_MAGIC, _VERSION, len(text), _seal(text, tops, blocks, layout))
    try:
        with _temporary_file(path) as file:
            try:
                file.write(head + text)
                contents = [tops, blocks, np.frombuffer(layout, np.uint8), *memory]
                for offset, content in zip(places.offsets, contents, strict=True):
                    file.seek(offset)
                    file.write(content.data)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise FileError(f"the table cannot be written to {path}: {error.strerror}") from error


def _temporary_file(path: Path) -> BinaryIO:
    """Creates a file in the same folder, with the user's default permissions."""
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}").open("xb")


def read(path: Path, threads: int, progress: Progress | None) -> StoredTable:
    """Checks a file and maps its table into memory. Raises FileError if the file is not a table."""
    try:
        with path.open("rb") as file:
            return _read(path, file, threads, progress)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error


def _read(path: Path, file: BinaryIO, threads: int, progress: Progress | None) -> StoredTable:
    description = _read_head(path, file)
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
    # Copy on write: changes to the table do not reach the file.
    whole = np.memmap(file, np.uint8, mode="c")
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
    wrong = _changed_blocks(file, places, blocks, threads, progress)
    if wrong:
        raise _not_a_table(
            path,
            f"{len(wrong)} of {len(blocks)} blocks have changed, the first at byte {wrong[0]}",
        )
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
) -> list[int]:
    """Compares all blocks with their checksums; returns the places of those that differ."""
    done, total = 0, sum(part.size for part in places.parts)
    wrong: list[int] = []
    for part in places.parts:

        def note(part_done: int, _: int, before: int = done) -> None:
            if progress is not None:
                progress(before + part_done, total)

        own, blocks = np.split(blocks, [blocks_of(part.size)])
        found = sum_file(file.fileno(), part.first, part.size, threads, note)
        differ = np.flatnonzero((found != own).any(axis=1))
        wrong += [part.first + int(block) * BLOCK_BYTES for block in differ]
        done += part.size
    return wrong


def is_stored(path: Path) -> bool:
    """Tests if a file begins like a stored table."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


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
        with path.open("rb") as file:
            source = _read_head(path, file).fields.get("source")
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    if source is None:
        return None
    names = {field.name for field in fields(Source)}
    if not isinstance(source, dict) or set(source) != names:
        raise _not_a_table(path, "its source is damaged")
    if not all(type(value) is int for value in source.values()):
        raise _not_a_table(path, "its source is damaged")
    return Source(**source)


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
    def offsets(self) -> tuple[int, ...]:
        """The offsets of the tops, the checksums, the layout, and each table."""
        return self.tops, self.blocks, self.layout, *(part.first for part in self.parts)

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
