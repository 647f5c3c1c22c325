"""Opens the tables of `nescio serve`: arrays, stored tables, batch tables, tables with keys."""

import argparse
import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array, check_file, load_array
from ..errors import ArgumentError, FileError
from ..pir import KeyedTable, Table
from ..pir import _stored as stored
from ..pir._checksums import Source
from ..pir._layout_kind import layout_kind
from ..pir._params import MAX_ROWS
from ..pir._vacancy import Vacancy
from ..pir.batch import BatchTable, Layout, build

DEFAULTS = {"version": "1", "output": "bit", "generator": "chacha20"}

Shown = Callable[[int, int], None] | None
"""Shows the bytes done and their total; None without a terminal."""


class TableFiles(NamedTuple):
    """The name of a table, its file, and the file of its keys or of its layout if it has one."""

    name: str
    path: Path
    keys: Path | None
    layout: Path | None


class Spare(NamedTuple):
    """The rows of an array, and the vacant rows after them."""

    rows: int
    spare: int

    @classmethod
    def of(cls, text: str, path: Path) -> "Spare":
        """Parses the option for the array of a file."""
        array = load_array(path)
        rows = len(array) if array.ndim else 0
        return cls(rows, spare_rows(text, rows))

    def extra_of(self, path: Path) -> bytes:
        """Returns the vacant rows of a stored table. Raises ArgumentError for another table."""
        total, found = self.rows + self.spare, stored.rows_of(path)
        if found != total:
            raise ArgumentError(
                f"{path} is stored with {found} rows: expected {self.rows} and {self.spare} vacant "
                "ones"
            )
        vacancy = Vacancy(self.rows)
        vacancy.grow(total)
        return vacancy.to_bytes()


def spare_rows(text: str, rows: int) -> int:
    """Parses the number of vacant rows after `rows` others. Raises ArgumentError."""
    found = re.fullmatch(r"(\d{1,13})(%?)", text, re.ASCII)
    count = int(found[1]) if found else -1
    if found and found[2]:
        count = -(-rows * count // 100)
    if not 0 <= count <= MAX_ROWS - rows:
        raise ArgumentError(
            f"--spare: found {text!r}, expected a number of vacant rows, or a percentage, as 10%"
        )
    return count


def check_spare(text: str, files: TableFiles) -> None:
    """Raises ArgumentError for vacant rows of a table that is not one of an array."""
    if not spare_rows(text, 100):
        return
    if files.keys is not None or files.layout is not None:
        reason = "found keys or a layout, whose tables have no vacant rows"
    elif stored.is_stored(files.path):
        reason = f"{files.path} is a stored table, which has all its rows"
    else:
        return
    raise ArgumentError(f"--spare: table {files.name!r}: {reason}: expected the file of an array")


def table_files(arguments: argparse.Namespace, names: Sequence[str]) -> list[TableFiles]:
    """Returns the files of all tables, which exist. Raises ArgumentError and FileError."""
    for path in arguments.tables:
        if arguments.cluster is None or not path.is_dir():
            check_file(path, "the file of a table: a NumPy array, or what Table.save wrote")
    keys = keys_by_table(arguments.keys, names)
    for path in keys.values():
        check_file(path, "a file of keys: text with a key on each line, or a NumPy array")
    layouts = keys_by_table(arguments.layout, names, "--layout")
    for name, path in layouts.items():
        check_file(path, "a layout file")
        if name in keys:
            raise ArgumentError(f"table {name!r}: found keys and a layout, expected one of them")
    return [
        TableFiles(name, path, keys.get(name), layouts.get(name))
        for name, path in zip(names, arguments.tables, strict=True)
    ]


def open_table(files: TableFiles, arguments: argparse.Namespace, shown: Shown) -> Table:
    """Opens a table from its files."""
    path, threads = files.path, arguments.threads
    given: dict[str, Any] = {name: getattr(arguments, name) for name in DEFAULTS}
    if files.keys is not None:
        check_spare(arguments.spare, files)
        return _keyed_table(path, files.keys, threads, _options(given), shown)
    layout = None if files.layout is None else Layout.load(files.layout)
    check_spare(arguments.spare, files)
    if stored.is_stored(path):
        given["layout"] = None if layout is None else layout.digest
        return _as_batch(_stored_table(path, threads, given, shown))
    options = _options(given)
    cache = path.with_name(path.name + ".nescio")
    source = Source.of(path)
    if arguments.cache:
        wanted = {**options, "layout": "" if layout is None else layout.digest}
        spare = None if layout is not None else Spare.of(arguments.spare, path)
        cached = _cached_table(cache, source, threads, wanted, shown, spare=spare)
        if cached is not None:
            return _as_batch(cached)
    with _unchanged(path):
        array, options = load_array(path), {**options, "threads": threads, "progress": shown}
        if layout is None:
            table = Table(array, spare=spare_rows(arguments.spare, len(array)), **options)
        else:
            table = build(array, layout, **options).table
    if arguments.cache:
        table.save(cache, source=source)
    return table


def _as_batch(table: Table) -> Table:
    """Returns a table; changes of one with a batch layout are then about the layout's rows."""
    return BatchTable(table).table if layout_kind(table.layout) == "batch" else table


def _options(given: Mapping[str, str | None]) -> dict[str, Any]:
    return {name: given[name] or default for name, default in DEFAULTS.items()}


@contextlib.contextmanager
def _unchanged(*paths: Path) -> Iterator[None]:
    """Raises FileError if a file changes within the block."""
    sources = [Source.of(path) for path in paths]
    yield
    for path, source in zip(paths, sources, strict=True):
        if Source.of(path) != source:
            raise FileError(
                f"{path} has changed while it was read: start again after it is complete"
            )


def _keyed_table(
    path: Path, keys: Path, threads: int, options: Mapping[str, Any], shown: Shown
) -> Table:
    if stored.is_stored(path):
        raise ArgumentError(
            f"{path} is a stored table: expected an array of a value for each key of {keys}"
        )
    with _unchanged(path, keys):
        names, values = read_keys(keys), load_array(path)
        if values.ndim == 0 or len(names) != len(values):
            raise ArgumentError(
                f"{keys} has {len(names)} keys, {path} has an array of shape {values.shape}: "
                "expected a key for each row"
            )
        try:
            return KeyedTable(names, values, threads=threads, progress=shown, **options).table
        except ArgumentError as error:
            raise ArgumentError(f"{path} with the keys of {keys}: {error}") from error


def read_keys(path: Path) -> list[str] | Array:
    """Reads keys from an array file, or from a text file with a key on each line.

    An array has one dimension; its elements are integers, bytes of one length (`S`) or text (`U`).
    A uint8 array of two dimensions has the bytes of a key in each row. A text file is UTF-8. Line
    ends of Unix and of Windows are not a part of a key; spaces are. Raises FileError for other
    files, and for a text file with an empty line.
    """
    check_file(path, "a file of keys: text with a key on each line, or a NumPy array")
    if path.suffix == ".npy":
        keys = load_array(path)
        if keys.ndim != 1 and not (keys.ndim == 2 and keys.dtype == np.uint8):
            raise FileError(
                f"{path}: found keys of shape {keys.shape} and {keys.dtype}, expected one "
                "dimension, or a uint8 array of two: keys of bytes"
            )
        return keys
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"{path}, line {line}: found bytes that are not UTF-8, expected a key; convert the "
            "file, or save an array of keys with numpy.save"
        ) from error
    lines = text.removesuffix("\n").replace("\r\n", "\n").removesuffix("\r").split("\n")
    if "" in lines:
        raise FileError(f"{path}, line {lines.index('') + 1}: found no key, expected one each line")
    return lines


def keys_by_table(
    given: Sequence[str], names: Sequence[str], option: str = "--keys"
) -> dict[str, Path]:
    """Parses an option: a file if there is one table, else NAME=FILE. Raises ArgumentError."""
    found: dict[str, Path] = {}
    for text in given:
        name, equals, file = text.partition("=")
        if not (equals and name in names):
            if len(names) > 1:
                raise ArgumentError(
                    f"{option}: found {text!r} and {len(names)} tables, expected NAME=FILE with "
                    f"one of {', '.join(names)}"
                )
            name, file = names[0], text
        if name in found:
            raise ArgumentError(f"{option}: found two files for table {name!r}, expected one")
        found[name] = Path(file)
    return found


def _cached_table(
    cache: Path,
    source: Source,
    threads: int,
    options: Mapping[str, str | None],
    shown: Shown,
    *,
    spare: Spare | None,
) -> Table | None:
    """Loads the cache of an earlier start; returns None, and says why, if it does not apply.

    Raises FileError if the file is not a cache.
    """
    stored.check_replaceable(cache)
    if not cache.exists():
        return None
    try:
        if stored.source_of(cache) == source:
            return _stored_table(cache, threads, options, shown, spare=spare)
        reason = f"the file of the table is newer than {cache}"
    except ArgumentError as error:
        reason = str(error)
    print(f"nescio: the table is prepared again: {reason}", file=sys.stderr, flush=True)
    return None


def _stored_table(
    path: Path,
    threads: int,
    given: Mapping[str, str | None],
    shown: Shown,
    *,
    spare: Spare | None = None,
) -> Table:
    extra = b"" if spare is None else spare.extra_of(path)
    table = Table.load(path, extra=extra, threads=threads, progress=shown)
    for name, value in given.items():
        found = getattr(table.params, name)
        if name == "layout" and value is not None and value != found:
            raise ArgumentError(
                f"{path} is stored with {_layout_name(found)}: it cannot be served with "
                f"{_layout_name(value)}"
            )
        if value is not None and value != found:
            raise ArgumentError(
                f"{path} is stored with the {name} {found!r}: it cannot be served with {value!r}"
            )
    return table


def _layout_name(digest: str) -> str:
    return f"the layout {digest[:12]}" if digest else "no layout"


@contextlib.contextmanager
def progress_of(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """Shows a progress bar if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import DownloadColumn, Progress, TransferSpeedColumn  # noqa: PLC0415

    columns = (*Progress.get_default_columns()[:2], DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task(title)
        yield lambda done, total: bars.update(bar, completed=done, total=total)
