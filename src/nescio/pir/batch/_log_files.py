"""Files of access logs: CSV and Parquet with one line per access, .npz with sets.

offsets   int64, (inferences + 1,)    0 first, ascending
rows      int64, (accesses,)          the rows of an inference differ
users     int64, (inferences,)        optional
times     float64, (inferences,)      optional
"""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..._arrays import Array, check_file, shown
from ..._npz import Arrays, read_arrays, write_arrays
from ...errors import FileError
from ._columns import Columns, Floats, Integers, Sets, check_times, codes_of, distinct, seconds

__all__ = ["read_csv", "read_npz", "read_parquet", "write_npz"]

_NEEDED = ("inference", "row")
_OPTIONAL = ("user", "time")
_CHUNK = 1 << 16
_DAMAGED = (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error)
_TYPES = {"offsets": "i8", "rows": "i8", "users": "i8", "times": "f8"}


# ---- CSV -----------------------------------------------------------------------------------------


def read_csv(path: Path) -> Columns:
    """Reads the columns of a CSV file. Raises FileError, which names the line and the value."""
    check_file(path, "the CSV file of an access log")
    reader = None
    try:
        with _opened(path) as file:
            reader = csv.reader(file)
            return _Lines(path, next(reader, [])).read(reader)
    except _DAMAGED as error:
        near = f", near line {reader.line_num}" if reader else ""
        raise FileError(f"{path}{near}: cannot be read as CSV: {error}") from error


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


class _Lines:
    """The lines of a CSV file with a header, which become columns."""

    def __init__(self, path: Path, header: list[str]) -> None:
        names = [name.strip() for name in header]
        missing = [name for name in _NEEDED if name not in names]
        if missing:
            raise FileError(
                f"{path}, line 1: found the columns {shown(names)}, expected inference, row and "
                "optionally user and time"
            )
        self._path, self._width = path, len(names)
        self._at = {name: names.index(name) for name in (*_NEEDED, *_OPTIONAL) if name in names}
        self._codes: dict[str, dict[str, int]] = {"inference": {}, "user": {}}
        self._parts: dict[str, list[Array]] = {name: [] for name in self._at}
        self._lines: list[Integers] = []

    def read(self, reader: Any) -> Columns:  # noqa: ANN401 - csv names no type of its reader
        """Reads all lines after the header."""
        records = self._records(reader)
        while chunk := list(islice(records, _CHUNK)):
            lines = np.array([line for line, _ in chunk])
            self._lines.append(lines)
            for name, at in self._at.items():
                self._parts[name].append(self._values(name, [one[at] for _, one in chunk], lines))
        found = {name: np.concatenate(parts) for name, parts in self._parts.items() if parts}
        lines = np.concatenate([*self._lines, np.zeros(0, np.int64)])
        return Columns(
            found.get("inference", np.zeros(0, np.int64)),
            found.get("row", np.zeros(0, np.int64)),
            found.get("user"),
            found.get("time"),
            lambda i: f"{self._path}, line {lines[i]}",
        )

    def _records(self, reader: Any) -> Iterator[tuple[int, list[str]]]:  # noqa: ANN401
        for record in reader:
            if not record:
                continue  # an empty line
            if len(record) != self._width:
                raise FileError(
                    f"{self._path}, line {reader.line_num}: found {len(record)} fields, expected "
                    f"{self._width} as in line 1"
                )
            yield reader.line_num, record

    def _values(self, name: str, texts: list[str], lines: Integers) -> Array:
        if name in self._codes:
            return np.array(codes_of(texts, self._codes[name]), np.int64)
        parse, kind = (int, np.int64) if name == "row" else (_time, np.float64)
        try:
            return np.fromiter(map(parse, texts), kind, len(texts))
        except (ValueError, OverflowError) as error:
            raise self._refused(name, parse, texts, lines) from error

    def _refused(
        self, name: str, parse: Callable[[str], float], texts: list[str], lines: Integers
    ) -> FileError:
        """Makes the error for the first text that is not a value."""
        wanted = "an integer" if name == "row" else "a number or an ISO 8601 date"
        for line, text in zip(lines, texts, strict=True):
            try:
                np.int64(parse(text)) if name == "row" else parse(text)
            except (ValueError, OverflowError):
                return FileError(
                    f"{self._path}, line {line}: found the {name} {shown(text)}, expected {wanted}"
                )
        raise AssertionError


def _time(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        date = datetime.fromisoformat(text.strip())
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


# ---- Parquet -------------------------------------------------------------------------------------


def read_parquet(path: Path) -> Columns:
    """Reads the columns of a Parquet file. Raises FileError, ModuleNotFoundError for pyarrow."""
    check_file(path, "the Parquet file of an access log")
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "reading Parquet needs pyarrow: pip install 'nescio[tune]', or write the log as CSV"
        ) from error
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            _check_names(path, names)
            wanted = [name for name in (*_NEEDED, *_OPTIONAL) if name in names]
            table = file.read(columns=wanted)
    except (OSError, pa.ArrowException) as error:
        raise FileError(f"{path}: cannot be read as Parquet: {error}") from error
    columns = {name: table.column(name).combine_chunks() for name in wanted}
    for name, column in columns.items():
        if column.null_count:
            at = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise FileError(f"{path}, record {at}: found no {name}, expected a value")
    return Columns(
        _arrow_codes(columns["inference"]),
        _arrow_rows(columns["row"], path),
        _arrow_codes(columns["user"]) if "user" in columns else None,
        _arrow_times(columns["time"], path) if "time" in columns else None,
        lambda i: f"{path}, record {i}",
    )


def _check_names(path: Path, names: list[str]) -> None:
    if not {*_NEEDED} <= {*names}:
        raise FileError(
            f"{path}: found the columns {shown(names)}, expected inference, row and optionally "
            "user and time"
        )


def _arrow_codes(column: Any) -> Integers:  # noqa: ANN401 - an array of pyarrow
    encoded = column.dictionary_encode()
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)


def _arrow_rows(column: Any, path: Path) -> Integers:  # noqa: ANN401
    values: Array = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "iu" or values.max(initial=0) >= 1 << 63:
        raise FileError(f"{path}: found rows of type {column.type}, expected integers")
    return values.astype(np.int64)


def _arrow_times(column: Any, path: Path) -> Floats:  # noqa: ANN401
    values: Array = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "M":
        return seconds(values)
    if values.dtype.kind not in "iuf":
        raise FileError(f"{path}: found times of type {column.type}, expected numbers or dates")
    return values.astype(np.float64)


# ---- .npz ----------------------------------------------------------------------------------------


def write_npz(path: Path, sets: Sets) -> None:
    """Writes a log. Raises FileError if that fails."""
    arrays = {name: array for name, array in sets._asdict().items() if array is not None}
    write_arrays(arrays, path, "the access log")


def read_npz(path: Path) -> Sets:
    """Reads a log that `write_npz` wrote. Raises FileError."""
    refusal = partial(_not_a_log, path)
    found = read_arrays(path, "the access log", {"offsets", "rows"}, {"users", "times"}, refusal)
    for name, array in found.items():
        if array.dtype != _TYPES[name] or array.ndim != 1:
            raise refusal(f"{name} has the type {array.dtype} and {array.ndim} dimensions")
    offsets, rows = found["offsets"], found["rows"]
    if not len(offsets) or offsets[0] or offsets[-1] != len(rows) or (np.diff(offsets) < 0).any():
        raise refusal("its offsets do not divide its rows")
    _check_people(found, refusal)
    if rows.min(initial=0) < 0 or len(distinct(offsets, rows)[1]) != len(rows):
        raise refusal("an inference has a negative or a repeated row")
    return Sets(offsets, rows, found.get("users"), found.get("times"))


def _check_people(found: Arrays, refusal: Callable[[str], FileError]) -> None:
    for name in ("users", "times"):
        if name in found and len(found[name]) != len(found["offsets"]) - 1:
            raise refusal(f"it has {len(found[name])} {name}, expected one for each inference")
    check_times(found.get("times"), "inference {}".format)
    if "users" in found and found["users"].min(initial=0) < 0:
        raise refusal("a user has a negative number")


def _not_a_log(path: Path, why: str) -> FileError:
    return FileError(
        f"{path} is not an access log: {why}; expected a file of AccessLog.save, or one whose name "
        "ends with .csv, .csv.gz or .parquet"
    )
