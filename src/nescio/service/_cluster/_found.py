"""The comparison of a table that runs on a cluster with the one that a front is started for.

A head has the arguments of the front that started it. Those of other fronts must be the same where
they decide about rows, about durability or about answers; others do not count.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import NamedTuple

from ...errors import ArgumentError
from ...pir import TableParams
from ._messages import TableOptions
from ._shard import ShardOptions, ShardSource

_Difference = tuple[str, object, object]


class HeadArguments(NamedTuple):
    """The arguments of a table's head."""

    name: str
    params: TableParams
    occupied: int
    shards: Sequence[ShardSource]
    own: ShardOptions
    options: TableOptions


def check_found(found: HeadArguments, expected: HeadArguments) -> None:
    """Raises ArgumentError if a head has other rows, another data folder or other answers."""
    for what, one, other in _differences(found, expected):
        raise ArgumentError(
            f"table {expected.name!r}: found {what.format(one)} on the cluster, expected "
            f"{other}: give the same options, or drain the table first (nescio cluster drain)"
        )


def ignored(found: HeadArguments, expected: HeadArguments) -> str:
    """Describes the options of a front that do not count, because a head has other ones."""
    own, other = found.options, expected.options
    pairs = [
        ("--replicas", own.replicas, other.replicas),
        ("--max-replicas", own.max_replicas, other.max_replicas),
        ("--queue-target", 1000 * own.queue_seconds, 1000 * other.queue_seconds),
        ("--threads", found.own.threads, expected.own.threads),
        ("--max-journal", own.max_journal, other.max_journal),
    ]
    texts = [f"{what} {_number(one)}, not {_number(two)}" for what, one, two in pairs if one != two]
    return f"table {expected.name} runs with {'; '.join(texts)}" if texts else ""


def _differences(found: HeadArguments, expected: HeadArguments) -> Iterator[_Difference]:
    """Yields what differs: a text with a place for what was found, that, and what is expected."""
    pairs = [
        ("{} shards", len(found.shards), len(expected.shards)),
        *_of_params(found.params, expected.params),
        ("{} occupied rows", found.occupied, expected.occupied),
        *_of_sources(found.shards, expected.shards),
        ("{}", _folder(found.options), _folder(expected.options)),
        ("--keep-versions {}", found.own.keep, expected.own.keep),
        ("--device {}", _devices(found.own), _devices(expected.own)),
        ("party {}", found.own.party, expected.own.party),
    ]
    yield from (one for one in pairs if one[1] != one[2])


def _of_params(found: TableParams, expected: TableParams) -> Iterator[_Difference]:
    for field in fields(TableParams):
        name = field.name.replace("_", " ")
        yield f"{name} {{}}", getattr(found, field.name), getattr(expected, field.name)


def _of_sources(
    found: Sequence[ShardSource], expected: Sequence[ShardSource]
) -> Iterator[_Difference]:
    for shard, (one, other) in enumerate(zip(found, expected, strict=False)):
        yield f"tops {{}} in shard {shard}", tuple(one.part), tuple(other.part)
        yield f"rows of {{}} in shard {shard}", one.path, other.path
        yield "{}", _mapped(one), _mapped(other)


def _folder(options: TableOptions) -> str:
    return "no data folder" if options.folder is None else f"data folder {options.folder}"


def _devices(own: ShardOptions) -> str:
    return "+".join(own.devices) or "cpu"


def _mapped(source: ShardSource) -> str:
    return "rows in files (--mapped)" if source.mapped else "rows in memory (no --mapped)"


def _number(value: float | None) -> str:
    return "its default" if value is None else f"{value:.9g}"
