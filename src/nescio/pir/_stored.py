"""The file format of a stored table, which can be mapped into memory.

    offset    bytes
    0         8       "NESCIOTB"
    8         4       version of this format, 3
    12        4       length of the JSON
    16        32      SHA-256 of the JSON, the hashes of the chunks, the checksums of the blocks
    48        ...     JSON: {"params", "source"}
    4096 a            the hashes of the chunks, 32 bytes each, which the table's digest covers
    4096 b            the checksums of the blocks, XXH3 with 128 bits, 16 bytes each
    4096 c            the rows in the engine's layout

Each part begins at the next multiple of 4,096. A block is 4 MiB of the rows in the engine's layout;
the last one may be shorter. `source` identifies the file that the rows came from and its state;
with it `nescio serve --cache` detects that the file has changed.

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
from typing import BinaryIO

import numpy as np

from .. import _core
from .._arrays import ByteArray
from ..errors import FileError, NescioError
from ._checksums import BLOCK_BYTES, CHECKSUM_BYTES, Progress, blocks_of, sum_file, sum_memory
from ._digest import CHUNK_ROWS, HASH_BYTES, digest_of
from ._params import TableParams

_MAGIC = b"NESCIOTB"
_VERSION = 3
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


def write(
    path: Path,
    params: TableParams,
    rows: _core.Table,
    hashes: ByteArray,
    *,
    source: Source | None,
    threads: int,
) -> None:
    """Writes a table to a temporary file and renames it. Raises FileError if that fails."""
    text = json.dumps(
        {"params": params.to_dict(), "source": None if source is None else asdict(source)}
    ).encode()
    memory = np.asarray(rows.memory()).reshape(-1)
    blocks = sum_memory(memory, threads)
    places = _Places.of(len(text), params)
    head = _HEAD.pack(_MAGIC, _VERSION, len(text), _seal(text, hashes, blocks))
    try:
        with _temporary_file(path) as file:
            try:
                file.write(head + text)
                file.seek(places.hashes)
                file.write(np.ascontiguousarray(hashes).data)
                file.seek(places.blocks)
                file.write(blocks.data)
                file.seek(places.rows)
                file.write(memory.data)
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


def read(
    path: Path, threads: int, progress: Progress | None
) -> tuple[TableParams, _core.Table, ByteArray]:
    """Checks a file and maps its table into memory. Raises FileError if the file is not a table."""
    try:
        with path.open("rb") as file:
            return _read(path, file, threads, progress)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error


def _read(
    path: Path, file: BinaryIO, threads: int, progress: Progress | None
) -> tuple[TableParams, _core.Table, ByteArray]:
    description = _read_head(path, file)
    try:
        params = TableParams.from_dict(description.fields.get("params"))
    except NescioError as error:
        raise _not_a_table(path, str(error)) from error
    places = _Places.of(len(description.text), params)
    found = os.fstat(file.fileno()).st_size
    if found != places.end:
        raise _not_a_table(path, f"it has {found} bytes, expected {places.end}")
    # Copy on write: changes to the table do not reach the file.
    whole = np.memmap(file, np.uint8, mode="c")
    hashes = np.array(whole[places.hashes :][: places.chunk_count * HASH_BYTES])
    blocks = np.array(whole[places.blocks :][: places.block_count * CHECKSUM_BYTES])
    hashes, blocks = hashes.reshape(-1, HASH_BYTES), blocks.reshape(-1, CHECKSUM_BYTES)
    if _seal(description.text, hashes, blocks) != description.seal:
        raise _not_a_table(path, "its description or its hashes have changed")
    if digest_of(hashes) != params.digest:
        raise _not_a_table(path, "its hashes do not match its parameters")
    size = places.end - places.rows
    computed = sum_file(file.fileno(), places.rows, size, threads, progress)
    wrong = np.flatnonzero((computed != blocks).any(axis=1))
    if len(wrong):
        first = places.rows + int(wrong[0]) * BLOCK_BYTES
        raise _not_a_table(
            path, f"{len(wrong)} of {len(blocks)} blocks have changed, the first at byte {first}"
        )
    data = np.asarray(whole[places.rows :])
    return params, _core.Table(params.rows, params.row_bytes, params.output, data), hashes


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


@dataclass(frozen=True, slots=True)
class _Places:
    """The offsets of the parts of a file, and the numbers of hashes and checksums."""

    hashes: int
    chunk_count: int
    blocks: int
    block_count: int
    rows: int
    end: int

    @classmethod
    def of(cls, text_bytes: int, params: TableParams) -> "_Places":
        size = _core.table_bytes(params.rows, params.row_bytes, params.output)
        chunk_count, block_count = -(-params.rows // CHUNK_ROWS), blocks_of(size)
        hashes = _aligned(_HEAD.size + text_bytes)
        blocks = _aligned(hashes + chunk_count * HASH_BYTES)
        rows = _aligned(blocks + block_count * CHECKSUM_BYTES)
        return cls(hashes, chunk_count, blocks, block_count, rows, rows + size)


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


def _seal(text: bytes, hashes: ByteArray, blocks: ByteArray) -> bytes:
    seal = hashlib.sha256(text)
    seal.update(np.ascontiguousarray(hashes).data)
    seal.update(np.ascontiguousarray(blocks).data)
    return seal.digest()


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def _not_a_table(path: Path, why: str) -> FileError:
    return FileError(
        f"{path} is not a valid Nescio table ({why}); "
        "check the path, or recreate the file with Table.save"
    )
