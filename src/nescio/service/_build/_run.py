"""The build of a table: each shard from its own rows, then the digest of all tops.

One shard is in memory at a time. The digest is in each shard's file, and is known when all shards
are built. Files that can be changed get it then. Those that cannot, as at an object store, are
written in a second pass over the input; the first one only hashes.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from ... import _core
from ..._arrays import ByteArray, as_count, as_threads
from ...dpf import Generator, Output
from ...errors import FileError
from ...pir import TableParams
from ...pir._rows import RowKind, new_params, rows_as_bytes
from ...pir._sharded import Part, ShardTable, build_shard, cut, shard_bytes, write_shard
from ._inputs import Rows
from ._output import DESCRIPTION
from ._output import Output as Place


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """The options of a table and of its cut. `spare` counts vacant rows; 0 threads are all."""

    shards: int
    version: str = "1"
    output: Output = "bit"
    generator: Generator = "chacha20"
    spare: int = 0
    threads: int = 0

    def params(self, rows: Rows) -> TableParams:
        """Returns the parameters without a digest. Raises ArgumentError for invalid ones."""
        as_threads(self.threads)
        kind = RowKind(rows.rows + self.spare, rows.row_shape, rows.dtype)
        return new_params(
            kind,
            version=self.version,
            output=self.output,
            generator=self.generator,
            record_rows=None,
            bins=(),
            layout=b"",
        )


class Built(NamedTuple):
    """A table that was built: its parameters, and the bytes of all files and of the largest."""

    params: TableParams
    files: Sequence[str]
    bytes: int
    largest: int


class Task(NamedTuple):
    """One shard: built from its rows, written if there is a place for it."""

    rows: Rows
    params: TableParams
    part: Part
    threads: int
    place: Place | None
    name: str

    def run(self, progress: Callable[[int, int], None] | None = None) -> ByteArray:
        """Returns the tops of the shard. Raises FileError if reading or writing fails."""
        pool = _core.ThreadPool(self.threads)
        state = build_shard(self.params, self.part, self._load, pool, progress)
        table = ShardTable.of(state, self.part, pool)
        if self.place is not None:
            self.place.put(self.name, partial(write_shard, table=table))
        return table.own_tops().copy()

    def _load(self, first: int, count: int) -> ByteArray:
        """Returns rows as bytes; those after the input's are vacant."""
        own = max(0, min(count, self.rows.rows - first))
        rows = rows_as_bytes(self.rows.read(first, own), own, self.params)
        return np.pad(rows, ((0, count - own), (0, 0))) if own < count else rows


class Runner(Protocol):
    """A way to run tasks."""

    def __call__(self, what: str, tasks: Sequence[Task]) -> Iterable[tuple[int, ByteArray]]:
        """Yields the number of each task and its tops, in any order; `what` names the pass."""


Told = Callable[[str, int, int], None]
"""Is told the pass, the shards that are done, and the rows that are done."""


class Here:
    """Runs tasks in this process, one after the other."""

    def __init__(self, told: Told) -> None:
        self._told = told

    def __call__(self, what: str, tasks: Sequence[Task]) -> Iterator[tuple[int, ByteArray]]:
        """Yields the number of each task and its tops."""
        for number, task in enumerate(tasks):
            yield number, task.run(partial(self._tell, what, number, task))
            self._told(what, number + 1, task.part.rows(task.params)[1])

    def _tell(self, what: str, number: int, task: Task, records: int, _: int) -> None:
        """Tells of a shard whose first records are stored."""
        first = task.part.rows(task.params)[0]
        self._told(what, number, first + records * task.params.record_rows)


def build(rows: Rows, place: Place, options: BuildOptions, run: Runner) -> Built:
    """Builds the shards of a table, then its description, which makes it whole.

    Raises ArgumentError for rows that cannot be a table or be cut so, FileError if reading or
    writing fails. What was written is then removed.
    """
    as_count(options.shards, "shards", 1, 1 << 16)
    params = options.params(rows)
    parts = cut(params, options.shards)
    names = [f"shard-{number:05d}" for number in range(len(parts))]
    sizes = [shard_bytes(params, part) for part in parts]
    place.begin(sizes)

    def tasks(params: TableParams, where: Place | None) -> list[Task]:
        return [
            Task(rows, params, part, options.threads, where, name)
            for part, name in zip(parts, names, strict=True)
        ]

    try:
        params = _written(params, place, run, tasks, names)
        text = {
            "params": params.to_dict(),
            "occupied": rows.rows,
            "parts": [list(part) for part in parts],
            "files": names,
        }
        place.finish(json.dumps(text))
    except BaseException:
        place.abandon([*names, DESCRIPTION])
        raise
    return Built(params, names, sum(sizes), max(sizes))


def _written(
    params: TableParams,
    place: Place,
    run: Runner,
    tasks: Callable[[TableParams, Place | None], list[Task]],
    names: Sequence[str],
) -> TableParams:
    """Writes all shards; returns the parameters with the digest."""
    if place.is_changeable:
        params = _with_digest(params, run("written", tasks(params, place)))
        for name in names:
            place.name(name, params)
        return params
    params = _with_digest(params, run("hashed", tasks(params, None)))
    again = _with_digest(params, run("written", tasks(params, place)))
    if again != params:
        raise FileError(
            f"the input has changed while it was read: found digests {params.digest} and "
            f"{again.digest}; build again once it is complete"
        )
    return params


def _with_digest(params: TableParams, found: Iterable[tuple[int, ByteArray]]) -> TableParams:
    tops = dict(found)
    whole = np.concatenate([tops[number] for number in range(len(tops))])
    return replace(params, digest=params.digest_of(whole))
