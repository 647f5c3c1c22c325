"""The opening of a table by its head: from the base in its data folder, or from its shards."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import FileError, ResourceError
from ...pir import TableParams
from ...pir._history import KnownIds
from ...pir._rows import NO_DIGEST
from ...pir._sharded import HeadTable
from ...pir._sharded._head import Shards, keep_versions_of
from ...pir._vacancy import Vacancy
from ...pir._versions import UsedVersions
from ._base import Base, store_base, stored_base
from ._failure import cause_of, is_at_start
from ._head_replicas import HeadReplica, HeadReplicas
from ._messages import ShardInfo
from ._starting import start_seconds

_PAUSE_SECONDS = 0.1


def find_base(name: str, replicas: HeadReplicas, params: TableParams, folder: Path | None) -> Base:
    """Returns the base in a folder, or else that of the shards, which is stored.

    `params` are those of the table's own files. Raises FileError if these are of another table than
    the folder, or of several tables, and ResourceError if a shard does not start.
    """
    replicas.start_ended()
    stored = stored_base(folder)
    if stored is None:
        return _new_base(name, replicas, params, folder)
    _check_stored(name, replicas, stored, params)
    for shard in range(len(replicas.sources)):
        _check_shard(name, replicas, shard, stored)
    return stored


def open_head(base: Base, occupied: int, keep: int, shards: Shards) -> HeadTable:
    """Returns the head of a table at its base; `occupied` rows of one without files are occupied.

    It lists `keep` versions.
    """
    if base.files:
        vacancy = Vacancy.from_bytes(base.vacancy, base.params.rows)
    else:
        vacancy = Vacancy(occupied)
        vacancy.grow(base.params.rows)
    table = HeadTable.of(base.params, base.tops, b"", vacancy, shards)
    keep_versions_of(table, keep)
    if base.files:
        used = UsedVersions.from_bytes(base.used, base.params.version)
        table.restore(used, KnownIds.from_bytes(base.ids, base.params.id), base.last)
    return table


def _check_stored(name: str, replicas: HeadReplicas, stored: Base, params: TableParams) -> None:
    """Raises FileError if the table's files, or its cut, are other ones than those stored."""
    found = replace(params, version=stored.params.version, digest=stored.params.digest)
    origin = stored.origin if stored.files else stored.params.id
    built_again = params.digest != NO_DIGEST and params.id != origin
    if found != stored.params or built_again:
        raise FileError(
            f"table {name!r}: its files are those of another table than its data folder, which "
            "counts: restore them and make the change with `nescio admin`, or give a table that "
            "was built again a new data folder"
        )
    for source in replicas.sources:
        stored.file_of(source.part)


def _check_shard(name: str, replicas: HeadReplicas, shard: int, base: Base) -> None:
    """Raises FileError for a shard whose file has other rows than a base.

    One from before this head may have changes since the base: it answers when it has all of them.
    """
    replica, info = ask(replicas, replicas.shards[shard])
    _check_part(name, replicas, shard, info)
    of_base = info.fresh or info.ident == base.params.id
    own = base.tops[info.part.first : info.part.end]
    if np.array_equal(info.tops, own) if of_base else replica.seen:
        return
    if base.files:
        raise FileError(
            f"table {name!r}: shard {shard} has other rows than the data folder: expected a folder "
            "that all nodes reach at one path"
        )
    raise FileError(
        f"table {name!r}: the file of its rows has changed, but its data folder "
        "counts: restore the file, and make the change with `nescio admin`"
    )


def _check_part(name: str, replicas: HeadReplicas, shard: int, info: ShardInfo) -> None:
    part = replicas.sources[shard].part
    if info.part != part:
        raise FileError(
            f"table {name!r}: found tops {info.part.first} to {info.part.end} in the file of shard "
            f"{shard}, expected {part.first} to {part.end}: restore the files of the build"
        )


def _new_base(name: str, replicas: HeadReplicas, params: TableParams, folder: Path | None) -> Base:
    """Returns the parameters of the sources' table, with its digest, and its tops.

    Raises FileError for files of a built table that are not all of its build.
    """
    shards = range(len(replicas.sources))
    infos = [_source_info(name, replicas, shard, params) for shard in shards]
    tops = np.concatenate([info.tops for info in infos])
    digest = params.digest_of(tops)
    if params.digest not in (NO_DIGEST, digest):
        raise FileError(
            f"table {name!r}: found digest {digest} of the files of its shards, expected "
            f"{params.digest} of table.json: restore the files, or build the table again"
        )
    made = Base(replace(params, digest=digest), tops)
    if folder is not None:
        store_base(folder, made)
    return made


def _source_info(name: str, replicas: HeadReplicas, shard: int, params: TableParams) -> ShardInfo:
    """Describes a shard that has the rows of its source, after a restart if it had others."""
    replica, info = ask(replicas, replicas.shards[shard])
    if not _is_source(info, params) and replica.seen:
        info = _restarted(replicas, replica, info)
    _check_part(name, replicas, shard, info)
    if not _is_source(info, params):
        raise FileError(
            f"table {name!r}: the file of shard {shard} is of another build than table.json: "
            "restore it, or build the table again"
        )
    return info


def _is_source(info: ShardInfo, params: TableParams) -> bool:
    return info.fresh if params.digest == NO_DIGEST else info.ident == params.id


def _restarted(replicas: HeadReplicas, replica: HeadReplica, before: ShardInfo) -> ShardInfo:
    """Restarts a replica; returns what its next process says."""
    end = time.monotonic() + start_seconds(replicas.sources)
    replicas.restart(replica)
    while True:
        _, info = ask(replicas, [replica])
        if (info.node, info.pid) != (before.node, before.pid):
            return info
        if time.monotonic() > end:
            raise ResourceError(f"replica {replica.name} does not restart: see Ray's logs")
        time.sleep(_PAUSE_SECONDS)


def ask(replicas: HeadReplicas, own: Sequence[HeadReplica]) -> tuple[HeadReplica, ShardInfo]:
    """Asks replicas of a shard, which may still read their rows, until one describes itself.

    Raises FileError if none can read its rows, and ResourceError if none answers.
    """
    ray, seconds = replicas.ray, start_seconds(replicas.sources)
    end = time.monotonic() + seconds
    waiting = {one.actor.info.remote(): one for one in own}
    why: Exception = ResourceError(f"waited {seconds:.0f} s for its rows")
    while waiting and (left := end - time.monotonic()) > 0:
        for ref in ray.wait(list(waiting), timeout=left)[0]:
            replica = waiting.pop(ref)
            try:
                info: ShardInfo = ray.get(ref)
            except Exception as error:
                why = cause_of(error)
                replica.ended = isinstance(error, ray.exceptions.ActorDiedError)
                if is_at_start(error):
                    continue
            else:
                return replica, info
            time.sleep(_PAUSE_SECONDS)  # it is being started again
            replicas.start_ended()
            waiting[replica.actor.info.remote()] = replica
    if isinstance(why, FileError):
        raise why
    raise ResourceError(f"replica {own[0].name} did not start: {why}") from why
