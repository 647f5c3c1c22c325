"""Connections of the tables of a description: lookups by name, checked."""

from collections.abc import Mapping, Sequence
from typing import Any

from .._arrays import shown
from ..errors import ArgumentError, MismatchError
from ._description import TableEntry
from ._source import Source, source_of, stored_dtype


def connect(
    tables: Mapping[str, TableEntry], lookups: object, *, check_digest: bool
) -> dict[str, Source]:
    """Returns the source of each table. Raises as `load` does, and then closes what it opened."""
    if _is_pair(lookups):
        lookups = dict.fromkeys(tables, lookups)
    check_names("lookups", lookups, tables)
    assert isinstance(lookups, Mapping)
    opened: list[Any] = []
    found: dict[str, Source] = {}
    try:
        for name, entry in tables.items():
            one = lookups[name]
            if _is_pair(one):
                one = _remote(one, name, entry.digest if check_digest else None)
                opened.append(one)
            found[name] = source_of(one)
            _check_table(name, entry, found[name], check_digest=check_digest)
    except BaseException:
        for table in opened:
            table.close()
        raise
    return found


def check_names(what: str, given: object, tables: Mapping[str, TableEntry]) -> None:
    """Raises ArgumentError unless a mapping has the names of all tables, and no other."""
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{what}: found {shown(given)}, expected a mapping of {sorted(tables)}")
    if set(given) != set(tables):
        found = shown(sorted(map(str, given)))
        raise ArgumentError(f"{what}: found {found}, expected {shown(sorted(tables))}")


def _is_pair(value: object) -> bool:
    """Tests for the addresses of two servers, or lists of those of each party's replicas."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return all(
        isinstance(entry, str)
        or (isinstance(entry, list | tuple) and all(isinstance(one, str) for one in entry))
        for entry in value
    )


def _remote(servers: Any, name: str, digest: str | None) -> object:  # noqa: ANN401
    from ..service import RemoteTable  # noqa: PLC0415 - needs the extra `service`

    return RemoteTable(servers, name, digest=digest)


def _check_table(name: str, entry: TableEntry, source: Source, *, check_digest: bool) -> None:
    """Raises MismatchError unless the rows of a source are those of a table."""
    found = f"{source.params.dtype.name} of shape {(source.rows, *source.row_shape)}"
    expected = f"{stored_dtype(entry.dtype).name} of shape {(entry.rows, entry.columns)}"
    if found == expected:
        found, expected = _layout(source.params.layout), _layout(entry.layout)
    if found == expected and check_digest:
        found, expected = f"the digest {source.params.digest}", f"the digest {entry.digest}"
    if found != expected:
        raise MismatchError(
            f"table {name!r}: found {found}, expected {expected}, which was exported; serve the "
            "tables of this export, or pass check_digest=False if rows have changed since",
            found=found,
            expected=expected,
        )


def _layout(digest: str) -> str:
    return f"the layout {digest}" if digest else "no layout"
