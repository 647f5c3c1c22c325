"""Opens a table on a cluster: finds its actors, or starts them, and connects a front to them."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..._arrays import as_count, load_array
from ...errors import ArgumentError, FileError, NescioError, ResourceError
from ...pir import TableParams
from ...pir._params import MAX_ROWS
from ...pir._rows import RowKind, new_params, servable
from ...pir._sharded import Part, check_parts, cut
from ._connect import NamedActor, Ray, import_ray
from ._front import ClusterServer, FrontTable
from ._head import start_head
from ._messages import HeadState, TableOptions
from ._replicas import Replicas, wait_for
from ._shard import ShardOptions, ShardSource

_UP_SECONDS = 600.0  # for replicas that read their rows, and make the changes of a journal


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The placement of a table: shards, replicas, threads of a shard (0: all processors).

    `devices` are the GPUs of each replica, "cuda:0", "cuda:1" and so on; none are the processors.
    Raises ArgumentError for other numbers.
    """

    party: int
    shards: int = 1
    replicas: int = 1
    threads: int = 0
    keep: int = 16
    data: Path | None = None
    mapped: bool = False
    devices: Sequence[str] = ()
    max_journal: int | None = None
    max_replicas: int | None = None
    queue_seconds: float = 0.1

    def __post_init__(self) -> None:
        expected = [f"cuda:{number}" for number in range(len(self.devices))]
        emulated = all(name.startswith("emulated") for name in self.devices)
        if list(self.devices) != expected and not emulated:
            raise ArgumentError(
                f"--device: found {'+'.join(self.devices)}, expected cuda, cuda:0+cuda:1 and so "
                "on: each replica numbers the GPUs that Ray gives it"
            )
        as_count(self.shards, "--shards", 1, 1 << 16)
        as_count(self.replicas, "--replicas", 1, 64)
        if self.max_replicas is not None:
            as_count(self.max_replicas, "--max-replicas", self.replicas, 64)
        if not 0 < self.queue_seconds < math.inf:
            raise ArgumentError(
                f"--queue-target: found {self.queue_seconds}, expected a positive time"
            )


class Sources(NamedTuple):
    """A table as its files have it: parameters, occupied rows, parts, and where each part is."""

    params: TableParams
    occupied: int
    parts: Sequence[Part]
    shards: Sequence[ShardSource]


def array_sources(
    path: Path,
    options: ClusterOptions,
    *,
    spare: Callable[[int], int],
    **fields: Any,  # noqa: ANN401 - of new_params
) -> Sources:
    """Cuts the table of an array. Raises ArgumentError for one that cannot be cut so."""
    values = servable(load_array(path))
    rows = len(values) + as_count(spare(len(values)), "spare rows", 0, MAX_ROWS - len(values))
    kind = RowKind(rows, values.shape[1:], values.dtype)
    params = new_params(kind, record_rows=None, bins=(), layout=b"", **fields)
    parts = cut(params, options.shards)
    resolved = path.resolve()
    sources = [ShardSource(params, part, resolved, is_array=True) for part in parts]
    return Sources(params, len(values), parts, sources)


def built_sources(folder: Path, options: ClusterOptions) -> Sources:
    """Reads the description of a table that `nescio build` wrote. Raises FileError."""
    path = folder / "table.json"
    try:
        found = json.loads(path.read_text())
        params = TableParams.from_dict(found["params"])
        parts = [Part(*part) for part in found["parts"]]
        occupied = found["occupied"]
        names = [str(name) for name in found["files"]]
        check_parts(params, parts)
        if len(names) != len(parts) or any(Path(name).name != name for name in names):
            raise ArgumentError(f"files: found {len(names)}, expected one for each part")
        as_count(occupied, "occupied rows", 1, params.rows)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, NescioError) as error:
        raise FileError(f"{path} is not the description of a table: {error}") from error
    root = folder.resolve()
    shards = [
        ShardSource(params, part, root / name, is_array=False, mapped=options.mapped)
        for part, name in zip(parts, names, strict=True)
    ]
    return Sources(params, occupied, parts, shards)


def open_table(name: str, sources: Sources, options: ClusterOptions) -> ClusterServer:
    """Connects to the actors of a table, which are started if they do not run.

    Raises ResourceError if they cannot be started, or do not answer.
    """
    ray = import_ray()
    replicas = Replicas(ray, sources.parts)
    try:
        _start(ray, name, sources, options)
        head = NamedActor(ray, f"{name}/head")
        state: HeadState | NescioError = ray.get(head.state.remote())
        if isinstance(state, NescioError):
            ray.get(head.drain.remote())
            ray.kill(ray.get_actor(f"{name}/head"))
            raise state
        table = FrontTable(ray, head, state, replicas)
        wait_for(lambda: not replicas.missing, _UP_SECONDS)
    except NescioError:
        replicas.stop()
        raise
    except Exception as error:
        replicas.stop()
        raise ResourceError(f"table {name!r}: its actors did not start: {error}") from error
    server = ClusterServer(table, replicas, options.party, tuple(options.devices))
    if len(state.parts) != len(sources.parts):
        server.stop()
        raise ArgumentError(
            f"table {name!r}: found {len(state.parts)} shards on the cluster, expected "
            f"{len(sources.parts)}: give their number, or drain the table first"
        )
    return server


def _start(ray: Ray, name: str, sources: Sources, options: ClusterOptions) -> None:
    """Starts the head of a table, unless it runs."""
    own = ShardOptions(options.party, options.threads, options.keep, tuple(options.devices))
    table = TableOptions(
        options.replicas,
        options.max_replicas or options.replicas,
        options.queue_seconds,
        None if options.data is None else (options.data / name).resolve(),
        options.max_journal,
    )
    start_head(ray, name, sources.params, sources.occupied, sources.shards, own, table)
