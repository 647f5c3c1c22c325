"""Opens a table on a cluster: finds its actors, or starts them, and connects a front to them."""

import json
import logging
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..._arrays import as_count, load_array
from ...errors import ArgumentError, FileError, NescioError, ResourceError
from ...pir import TableParams
from ...pir._params import MAX_ROWS
from ...pir._rows import RowKind, new_params, servable
from ...pir._sharded import Part, check_parts, cut
from ._connect import NamedActor, Ray, head_name, import_ray
from ._failure import cause_of
from ._found import HeadArguments, check_found, ignored
from ._front import ClusterServer, FrontTable
from ._head import start_head
from ._messages import MAX_REPLICAS, PROTOCOL, HeadState, TableOptions
from ._replicas import Replicas, wait_for
from ._shard import ShardOptions, ShardSource
from ._starting import check_room, start_seconds, wait_opened

_LOG = logging.getLogger(__name__)
_CALL_SECONDS = 30.0


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
        as_count(self.replicas, "--replicas", 1, MAX_REPLICAS)
        if self.max_replicas is not None:
            as_count(self.max_replicas, "--max-replicas", self.replicas, MAX_REPLICAS)
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


def open_table(
    name: str, sources: Sources, options: ClusterOptions, say: Callable[[str], None] = _LOG.info
) -> ClusterServer:
    """Connects to the actors of a table, which are started if they do not run.

    `say` is told of options that do not count, and of shards that take long. Raises ResourceError
    if the actors cannot be started, or do not answer; ArgumentError if a table of this name runs
    with other rows, another data folder or other answers.
    """
    ray = import_ray()
    arguments = _arguments(name, sources, options)
    with ExitStack() as closing:
        replicas = Replicas(ray, sources.parts)
        closing.callback(replicas.stop)
        try:
            head, state = _find(ray, arguments, say)
            table = FrontTable(ray, head, state, replicas)
            closing.callback(table.stop)
        except NescioError:
            raise
        except Exception as error:
            why = cause_of(error)
            raise ResourceError(f"table {name!r}: its actors did not start: {why}") from error
        seconds = start_seconds(sources.shards)
        if not wait_for(lambda: not replicas.missing, seconds):
            missing = ", ".join(map(str, replicas.missing))
            raise ResourceError(
                f"table {name!r}: no replica answers of shards {missing} after {seconds:.0f} s: "
                "see `nescio cluster status` and Ray's logs"
            )
        server = ClusterServer(table, replicas, options.party, tuple(options.devices))
        closing.pop_all()
    return server


def _arguments(name: str, sources: Sources, options: ClusterOptions) -> HeadArguments:
    own = ShardOptions(options.party, options.threads, options.keep, tuple(options.devices))
    table = TableOptions(
        options.replicas,
        options.max_replicas or options.replicas,
        options.queue_seconds,
        None if options.data is None else (options.data / name).resolve(),
        options.max_journal,
    )
    return HeadArguments(name, sources.params, sources.occupied, sources.shards, own, table)


def _find(
    ray: Ray, arguments: HeadArguments, say: Callable[[str], None]
) -> tuple[NamedActor, HeadState]:
    """Finds the head of a table, or starts it; returns its state too.

    A head that cannot open the table ends again if it was started here.
    """
    name = head_name(arguments.name)
    started = _start(ray, name, arguments)
    head = NamedActor(ray, name)
    ask = lambda: head.state.remote()  # noqa: E731, PLW0108 - of the actor that has the name then
    state: HeadState | NescioError = wait_opened(ray, arguments.name, ask, arguments.shards, say)
    if isinstance(state, NescioError):
        if started:
            ray.get(head.drain.remote())
            ray.kill(ray.get_actor(name))
        raise state
    if state.protocol == PROTOCOL:  # a front refuses others
        found = HeadArguments(*ray.get(head.arguments.remote(), timeout=_CALL_SECONDS))
        check_found(found, arguments)
        if text := ignored(found, arguments):
            say(text)
    return head, state


def _start(ray: Ray, name: str, arguments: HeadArguments) -> bool:
    """Starts the head of a table, and returns True, unless it runs."""
    try:
        ray.get_actor(name)
    except ValueError:
        check_room(ray, arguments.name, arguments.shards, arguments.own)
        start_head(ray, *arguments)
        return True
    return False
