"""The base of a sharded table's data folder: the table before the first change of its journals.

The file `base` of a table that has had no checkpoint is one line of JSON, the table's parameters,
and the tops; the rows are in the table's own files. After a checkpoint it is, all little-endian:

    offset    bytes
    0         8       "NESCIOCB"
    8         4       version of this format, 1
    12        4       length j of the JSON
    16        16      XXH3 with 128 bits of all that follows
    32        j       JSON: {"params", "number", "origin", "parts", "files", "last", "sections"}
    32 + j    ...     the sections, one after the other; "sections" has their lengths

`number` is that of the first journal after the base, `origin` the id of the first version in this
folder, `files` the names of the files of the `parts` in this folder, `last` the message of the last
change or null. The sections: the tops, the versions that the table has had, their ids, its vacant
rows (see ../_data/_state.py). The base is replaced as a whole: it decides which files count.
"""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from xxhash import xxh3_128_digest

from ..._arrays import ByteArray
from ..._disk import replacing, sync_folder
from ...errors import FileError, NescioError
from ...pir import TableParams
from ...pir._hash_shape import HASH_BYTES
from ...pir._sharded import Part
from ...pir._versions import LastChange

_MAGIC = b"NESCIOCB"
_VERSION = 1
_HEAD = struct.Struct("<8sII16s")
_LAST = ("name", "content", "changed")


@dataclass(frozen=True, slots=True)
class Base:
    """The parameters and all tops of a version, and the files of its rows if it has its own.

    `used`, `ids` and `vacancy` are those of `UsedVersions.to_bytes`, `KnownIds.to_bytes` and
    `Table.extra_state`; a base without files has none of them.
    """

    params: TableParams
    tops: ByteArray
    number: int = 1
    origin: bytes = b""
    parts: Sequence[Part] = ()
    files: Sequence[str] = ()
    last: LastChange | None = None
    used: bytes = b""
    ids: bytes = b""
    vacancy: bytes = b""

    def encode(self) -> bytes:
        """Encodes the base."""
        if not self.files:
            return self.params.to_json().encode() + b"\n" + self.tops.tobytes()
        sections = [self.tops.tobytes(), self.used, self.ids, self.vacancy]
        last = self.last
        fields = {
            "params": self.params.to_dict(),
            "number": self.number,
            "origin": self.origin.hex(),
            "parts": [list(part) for part in self.parts],
            "files": list(self.files),
            "last": last and {name: getattr(last, name).hex() for name in _LAST},
            "sections": list(map(len, sections)),
        }
        text = json.dumps(fields).encode()
        body = b"".join([text, *sections])
        return _HEAD.pack(_MAGIC, _VERSION, len(text), xxh3_128_digest(body)) + body

    @classmethod
    def parse(cls, data: bytes) -> "Base":
        """Parses the bytes of a file. Raises FileError, and errors of damaged descriptions."""
        if not data.startswith(_MAGIC):
            text, _, tops = data.partition(b"\n")
            return cls._checked(TableParams.from_dict(json.loads(text)), tops)
        _, version, length, checksum = _HEAD.unpack_from(data)
        if version != _VERSION:
            raise FileError(
                f"it has version {version} of the format, this release reads version {_VERSION}: "
                "start the release that wrote it"
            )
        body = data[_HEAD.size :]
        if xxh3_128_digest(body) != checksum:
            raise FileError("it is damaged")
        fields = json.loads(body[:length])
        ends = np.cumsum([length, *fields["sections"]]).tolist()
        tops, used, ids, vacancy = (
            body[end - size : end] for end, size in zip(ends[1:], fields["sections"], strict=True)
        )
        last = fields["last"]
        return cls._checked(
            TableParams.from_dict(fields["params"]),
            tops,
            number=fields["number"],
            origin=bytes.fromhex(fields["origin"]),
            parts=[Part(*part) for part in fields["parts"]],
            files=fields["files"],
            last=last and LastChange(*(bytes.fromhex(last[name]) for name in _LAST)),
            used=used,
            ids=ids,
            vacancy=vacancy,
        )

    @classmethod
    def _checked(cls, params: TableParams, tops: bytes, **fields: object) -> "Base":
        hashes: ByteArray = np.frombuffer(tops, np.uint8).reshape(-1, HASH_BYTES)
        if params.digest_of(hashes) != params.digest:
            raise FileError("it is damaged: restore the folder from a backup")
        return cls(params, hashes, **fields)  # type: ignore[arg-type]

    def file_of(self, part: Part) -> str | None:
        """Returns the name of the file of a part; None if the base has no files.

        Raises FileError for a part that is not one of the files.
        """
        if not self.files:
            return None
        if part not in self.parts:
            raise FileError(
                f"found {len(self.parts)} shards in the data folder, none of them with tops "
                f"{part.first} to {part.end}: give their number"
            )
        return self.files[list(self.parts).index(part)]


def stored_base(folder: Path | None) -> Base | None:
    """Reads the base of a folder; returns None for a folder without one.

    Raises FileError for a damaged one.
    """
    path = None if folder is None else folder / "base"
    if path is None or not path.exists():
        return None
    try:
        return Base.parse(path.read_bytes())
    except (OSError, ValueError, KeyError, TypeError, struct.error, NescioError) as error:
        raise FileError(f"{path} cannot be used: {error}") from error


def store_base(folder: Path, base: Base) -> None:
    """Writes the base of a folder, which it makes. Raises FileError if that fails."""
    try:
        make_folder(folder)
        sync_folder(folder)  # the files that the base names
        with replacing(folder / "base") as file:
            file.write(base.encode())
        sync_folder(folder)
    except OSError as error:
        raise FileError(f"the data folder {folder} cannot be written: {error.strerror}") from error


def make_folder(folder: Path) -> None:
    """Makes a folder, and those above it, if they do not exist; their names are durable.

    Raises OSError.
    """
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for one in new:
        sync_folder(one.parent)


def journal_path(folder: Path, number: int) -> Path:
    """Returns the path of the journal with a number, from 1 on."""
    return folder / ("journal" if number == 1 else f"journal-{number}")


def shard_name(shard: int, number: int) -> str:
    """Returns the name of a shard's file of the checkpoint before the journal with a number."""
    return f"shard-{shard}-{number}"


def clean(folder: Path, base: Base) -> None:
    """Removes files of older bases, and of checkpoints that were not completed."""
    kept = {"base", "lock", *base.files}
    for path in folder.iterdir():
        name, _, number = path.name.rpartition("-")
        newer = name == "journal" and number.isdecimal() and int(number) >= base.number
        first = path.name == "journal" and base.number == 1
        known = path.name.startswith(("base.", "journal", "shard-"))
        if known and path.name not in kept and not newer and not first:
            path.unlink(missing_ok=True)
