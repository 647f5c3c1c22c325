"""Files of data sets: text, gzipped or not, with errors that say where to get a set."""

import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from nescio.errors import FileError

_DEFAULT = "../shared/data"


def data_folder(name: str) -> Path:
    """Returns the folder of a data set: in the folder that NESCIO_DATA names, or in the default."""
    return Path(os.environ.get("NESCIO_DATA") or _DEFAULT) / name


def find(folder: Path, names: Sequence[str]) -> Path | None:
    """Returns the first file of these names in a folder, plain or gzipped; None without one."""
    candidates = (folder / f"{name}{end}" for name in names for end in ("", ".gz"))
    return next((path for path in candidates if path.is_file()), None)


def missing(folder: Path, expected: str, source: str) -> FileError:
    """Makes the error for a data set that is not there; `source` says where to get it."""
    found = "no such files" if folder.is_dir() else "no such folder"
    if folder.is_file():
        found, expected = "a file", f"a folder with {expected}"
    return FileError(f"{folder}: found {found}, expected {expected}; {source}")


@contextmanager
def open_text(path: Path, encoding: str = "utf-8-sig") -> Iterator[TextIO]:
    """Opens a text file, which is gzipped if its name ends with .gz, and closes it with the block.

    A byte order mark is skipped.

    Raises FileError if the file cannot be read, also while the block reads it.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding=encoding) as file:
            yield file
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise FileError(
            f"{path}: found a file that cannot be read as text ({error}); get the data set again"
        ) from error
