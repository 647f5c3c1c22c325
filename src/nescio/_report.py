"""Tables that commands print line by line, and the check of files before a long run."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from .errors import FileError

__all__ = ["Case", "Column", "Report", "check_writable"]

Case = dict[str, object]
"""The fields of one line, by name."""

Column = tuple[str, str, str]
"""The name of a field, its heading, and its format specification, width included."""


class Report:
    """A table that prints each line as soon as it is added.

    A field that a case lacks, or that is None, is printed as a dash. `copy`, if given, receives the
    same lines.
    """

    def __init__(self, columns: Sequence[Column], copy: TextIO | None = None) -> None:
        self._columns = columns
        self._copy = copy
        self._widths = [
            max(len(heading), *map(int, re.findall(r"^>?([0-9]+)", spec)), 0)
            for _, heading, spec in columns
        ]
        self._print(heading for _, heading, _ in columns)

    def add(self, case: Case) -> None:
        """Prints one case."""
        self._print(_cell(case.get(field), spec) for field, _, spec in self._columns)

    def _print(self, cells: Iterable[str]) -> None:
        padded = (cell.rjust(width) for cell, width in zip(cells, self._widths, strict=True))
        line = "  ".join(padded).rstrip()
        print(line, flush=True)
        if self._copy is not None:
            print(line, file=self._copy, flush=True)


def _cell(value: object, spec: str) -> str:
    return "-" if value is None else format(value, spec)


def check_writable(path: str | None) -> None:
    """Raises FileError if a file cannot be written; call it before a long run."""
    if path is None:
        return
    existed = Path(path).exists()
    try:
        with Path(path).open("ab"):  # changes nothing in an existing file
            pass
        if not existed:
            Path(path).unlink()
    except OSError as error:
        reason = error.strerror or "it is not a file name"
        raise FileError(f"{path!r} cannot be written: {reason}") from error
