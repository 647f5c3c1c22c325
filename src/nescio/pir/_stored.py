"""The file format of a stored table, which can be mapped into memory.

    offset    bytes
    0         8       "NESCIOTB"
    8         4       version of this format, 1
    12        4       length of the JSON
    16        ...     JSON: {"params", "source"}
    4096 a            the hashes of the chunks, 32 bytes each
    4096 b            the rows in the engine's layout

Both blocks begin at the next multiple of 4,096. `source` is the length and modification time of the
file that the rows came from; with it `nescio serve --cache` detects that the file has changed.
"""

import json
import os
import secrets
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .. import _core
from .._arrays import ByteArray
from ..errors import FileError, NescioError
from ._digest import CHUNK_ROWS, HASH_BYTES, digest_of
from ._params import TableParams

_MAGIC = b"NESCIOTB"
_VERSION = 1
_HEAD = struct.Struct("<8sII")
_ALIGNMENT = 4096
_MAX_JSON = 1 << 16


@dataclass(frozen=True, slots=True)
class Source:
    """The length and modification time of a file, which change when it is written."""

    bytes: int
    modified_nanoseconds: int

    @classmethod
    def of(cls, path: Path) -> "Source":
        """Reads the current length and modification time of a file."""
        status = path.stat()
        return cls(status.st_size, status.st_mtime_ns)


def write(
    path: Path, params: TableParams, rows: _core.Table, hashes: ByteArray, source: Source | None
) -> None:
    """Writes a table to a temporary file and renames it. Raises FileError if that fails."""
    text = json.dumps(
        {"params": params.to_dict(), "source": None if source is None else asdict(source)}
    ).encode()
    hashes_at = _aligned(_HEAD.size + len(text))
    rows_at = _aligned(hashes_at + hashes.nbytes)
    try:
        with _temporary_file(path) as file:
            try:
                file.write(_HEAD.pack(_MAGIC, _VERSION, len(text)) + text)
                file.seek(hashes_at)
                file.write(np.ascontiguousarray(hashes).data)
                file.seek(rows_at)
                file.write(rows.memory().data)
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


def read(path: Path) -> tuple[TableParams, _core.Table, ByteArray]:
    """Maps a table into memory. Raises FileError if the file is not a table."""
    fields, hashes_at = _read_head(path)
    try:
        params = TableParams.from_dict(fields.get("params"))
    except NescioError as error:
        raise _not_a_table(path, str(error)) from error
    chunks = -(-params.rows // CHUNK_ROWS)
    rows_at = _aligned(hashes_at + chunks * HASH_BYTES)
    expected = rows_at + _core.table_bytes(params.rows, params.row_bytes, params.output)
    if path.stat().st_size != expected:
        raise _not_a_table(path, f"it has {path.stat().st_size} bytes, expected {expected}")
    # Copy on write: changes to the table do not reach the file.
    whole = np.memmap(path, np.uint8, mode="c")
    hashes = np.array(whole[hashes_at : hashes_at + chunks * HASH_BYTES]).reshape(
        chunks, HASH_BYTES
    )
    if digest_of(hashes) != params.digest:
        raise _not_a_table(path, "its hashes do not match its parameters")
    data = np.asarray(whole[rows_at:])
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
    source = _read_head(path)[0].get("source")
    if source is None:
        return None
    stamp = source if isinstance(source, dict) else {}
    length, modified = stamp.get("bytes"), stamp.get("modified_nanoseconds")
    if not isinstance(length, int) or not isinstance(modified, int):
        raise _not_a_table(path, "its source is damaged")
    return Source(length, modified)


def _read_head(path: Path) -> tuple[dict[str, object], int]:
    """Reads the JSON at the beginning of a file, and the offset of the hashes."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size or not head.startswith(_MAGIC):
                raise _not_a_table(path, "it does not begin with the bytes NESCIOTB")
            _, version, length = _HEAD.unpack(head)
            if version != _VERSION or length > _MAX_JSON:
                raise _not_a_table(
                    path, f"found version {version}, this release reads version {_VERSION}"
                )
            fields = json.loads(file.read(length))
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        raise _not_a_table(path, "its description is not JSON") from error
    if not isinstance(fields, dict):
        raise _not_a_table(path, "its description is not a JSON object")
    return fields, _aligned(_HEAD.size + length)


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def _not_a_table(path: Path, why: str) -> FileError:
    return FileError(
        f"{path} is not a Nescio table ({why}); "
        "check the path, or recreate the file with Table.save"
    )
