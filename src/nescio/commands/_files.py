"""Checks of the files that a command reads and writes, before a long run."""

import filecmp
from collections.abc import Mapping
from pathlib import Path

from ..errors import ArgumentError

__all__ = ["check_apart", "check_different"]

Paths = Mapping[str, Path | None]
"""Paths by the name of their argument; None for an argument that was not given."""


def check_apart(reads: Paths, writes: Paths) -> None:
    """Raises ArgumentError if a file that is written is also read, or is written twice."""
    seen = {name: path for name, path in reads.items() if path is not None}
    for name, path in writes.items():
        if path is None:
            continue
        for other, own in seen.items():
            if _is_same(path, own):
                raise ArgumentError(
                    f"{name}: found {path}, which is also {other}, expected another file"
                )
        seen[name] = path


def check_different(name: str, path: Path | None, other: str, own: Path) -> None:
    """Raises ArgumentError if two files that are read are one, or have the same bytes."""
    if path is None or not (path.is_file() and own.is_file()):
        return  # what reads them says what is wrong
    try:
        same = filecmp.cmp(path, own, shallow=False)
    except OSError:
        return
    if same:
        raise ArgumentError(
            f"{name}: found {path}, the same log as {other}, expected one of other inferences: "
            f"layouts are made from {other}"
        )


def _is_same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()
