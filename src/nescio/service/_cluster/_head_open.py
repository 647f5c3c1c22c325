"""The opening of a table by its head: from the base in its data folder, or from its shards."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import FileError
from ...pir import TableParams
from ...pir._history import KnownIds
from ...pir._rows import NO_DIGEST
from ...pir._sharded import HeadTable
from ...pir._sharded._head import Shards, keep_versions_of
from ...pir._vacancy import Vacancy
from ...pir._versions import UsedVersions
from ._base import Base, store_base, stored_base
from ._head_replicas import HeadReplicas
from ._messages import ShardInfo
from ._replicas import wait_for

_START_SECONDS = 600.0


def find_base(name: str, replicas: HeadReplicas, params: TableParams, folder: Path | None) -> Base:
    """Returns the base in a folder, or else that of the shards, which is stored.

    `params` are those of the table's own files. Raises FileError if these are of another table than
    the folder, and ResourceError if a shard does not start.
    """
    stored = stored_base(folder)
    if stored is not None and stored.files:
        _check_stored(name, replicas, stored, params)
    base = stored or _new_base(replicas, params, folder)
    for shard in range(len(replicas.sources)):
        info = replicas.info(shard)
        own = base.tops[info.part.first : info.part.end]
        if info.fresh and not np.array_equal(info.tops, own):
            raise FileError(
                f"table {name!r}: the file of its rows has changed, but its data folder "
                "counts: restore the file, and make the change with `nescio admin`"
            )
    return base


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
    built_again = params.digest != NO_DIGEST and params.id != stored.origin
    if found != stored.params or built_again:
        raise FileError(
            f"table {name!r}: its files are those of another table than its data folder, which "
            "counts: restore them, and make the change with `nescio admin`"
        )
    for source in replicas.sources:
        stored.file_of(source.part)


def _new_base(replicas: HeadReplicas, params: TableParams, folder: Path | None) -> Base:
    """Returns the parameters of the sources' table, with its digest, and its tops."""
    infos = [_fresh_info(replicas, shard, params) for shard in range(len(replicas.sources))]
    tops = np.concatenate([info.tops for info in infos])
    made = Base(replace(params, digest=params.digest_of(tops)), tops)
    if folder is not None:
        store_base(folder, made)
    return made


def _fresh_info(replicas: HeadReplicas, shard: int, params: TableParams) -> ShardInfo:
    """Describes a shard that has the rows of its source, after a restart if it had others."""
    info = replicas.info(shard)
    if not info.fresh and info.ident != params.id:
        replicas.restart(replicas.shards[shard][0])
        wait_for(lambda: _is_fresh(replicas, shard, params), _START_SECONDS)
        info = replicas.info(shard)
    return info


def _is_fresh(replicas: HeadReplicas, shard: int, params: TableParams) -> bool:
    info = replicas.info(shard)
    return info.fresh or info.ident == params.id
