"""The file from which an interrupted search goes on: one JSON text per line.

The first line is {"nescio": "tune", "key": ...}, where the key is a hash of all that scores depend
on. Each other line has a design and its score. A last line without an end is an interrupted write.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np

from ....errors import FileError
from .._log import AccessLog
from .design import Design
from .score import Score

__all__ = ["FORMAT", "State", "key_of"]

FORMAT = 2
"""The version of the file, and of how designs are scored: a part of each key."""

_MAX_LINE = 1 << 16


def key_of(logs: Mapping[str, AccessLog], options: Mapping[str, object]) -> str:
    """Computes a hash of logs and of options, which are JSON types."""
    found = sha256(json.dumps(options, sort_keys=True).encode())
    for name, log in sorted(logs.items()):
        for array in (log.offsets, log.rows, log.users, log.times):
            found.update(f"{name} {0 if array is None else len(array)} ".encode())
            if array is not None:
                found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


class State:
    """Scores of earlier runs, and the file that gets those of this run.

    Raises FileError if the file is of another search, or cannot be read or written.
    """

    def __init__(self, path: Path | None, key: str) -> None:
        self._path = path
        self.scores: dict[Design, Score] = {}
        if path is None:
            return
        try:
            if path.exists() and path.stat().st_size:
                self._read(path, key)
            else:
                path.write_text(json.dumps({"nescio": "tune", "key": key}) + "\n")
        except OSError as error:
            raise FileError(f"{path}: cannot be used: {error.strerror or error}") from error

    def add(self, design: Design, score: Score) -> None:
        """Appends a score. Raises FileError if that fails."""
        self.scores[design] = score
        if self._path is None:
            return
        line = json.dumps({"design": design.to_dict(), "score": list(score)})
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            raise FileError(f"{self._path}: cannot be written: {error.strerror}") from error

    def _read(self, path: Path, key: str) -> None:
        whole = 0
        for number, line in enumerate(_lines(path)):
            if not line.endswith(b"\n") and number:
                break
            self._take(path, number, line, key)
            whole += len(line)
        if whole < path.stat().st_size:
            with path.open("r+b") as file:
                file.truncate(whole)

    def _take(self, path: Path, number: int, line: bytes, key: str) -> None:
        try:
            fields = json.loads(line)
            if number == 0:
                found = fields["key"] if fields["nescio"] == "tune" else None
            else:
                score = Score(*map(float, fields["score"]))
                self.scores[Design(**fields["design"])] = score
                return
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise FileError(
                f"{path}, line {number + 1}: found {line[:40]!r}, expected a file that "
                "nescio tune --state wrote; name another file"
            ) from error
        if found != key:
            raise FileError(
                f"{path} is of a search with another log or other options: name another file, "
                "which begins a new search"
            )


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while line := file.readline(_MAX_LINE):
            yield line
