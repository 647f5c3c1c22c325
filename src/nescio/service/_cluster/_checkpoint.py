"""Checkpoints of a sharded table: its rows at one version in files, and a new journal after it.

    freeze     one replica of each shard keeps the version, while changes go on
    advance    a new journal begins; a start reads the journal before it, and then this one
    write      these replicas write their files; nothing refers to them yet
    switch     the base is replaced by one that names the files, in one step; what it does not need
               is removed

A crash before the switch leaves the base before, its files and both journals; after it, the new
base with its files and the new journal. So every change that was acknowledged is in what is left.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import FileError, NescioError
from .._data._snapshots import Snapshots
from ._base import Base, shard_name
from ._connect import Actor, Ray
from ._head_replicas import HeadReplica, HeadReplicas

_CALL_SECONDS = 30.0
_PAUSE_SECONDS = 0.1
_POLL_SECONDS = 0.5
_SILENT_SECONDS = 60  # of a replica that writes


class Checkpoints:
    """Takes checkpoints of the table of some replicas, one at a time, in a thread."""

    def __init__(
        self, ray: Ray, name: str, replicas: HeadReplicas, folder: Path, max_journal: int | None
    ) -> None:
        self._ray = ray
        self._replicas = replicas
        self._folder = folder
        self._max_journal = max_journal
        self.snapshots = Snapshots(name, self._take)

    def tidy(self) -> None:
        """Begins a checkpoint if the journal is long."""
        replicas = self._replicas
        with replicas.table.changing():
            if replicas.journal.is_long(self._max_journal) and self.snapshots.due:
                self.snapshots.start()

    def begin(self) -> None:
        """Begins a checkpoint, unless one is under way."""
        with self._replicas.table.changing():
            self.snapshots.start()

    def _take(self, pause: Callable[[], None]) -> None:
        """Takes a checkpoint. Raises FileError if that fails; the older one then counts."""
        replicas = self._replicas
        try:
            with replicas.table.changing():
                chosen = replicas.one_each()
                self._freeze(chosen)
                base = replicas.journal.advance()
            base = replace(
                base,
                parts=[one.part for one in replicas.sources],
                files=[shard_name(shard, base.number) for shard in range(len(chosen))],
            )
            self._write(chosen, base, pause)
            replicas.journal.switch(base)
        except NescioError as error:
            raise FileError(str(error)) from error

    def _freeze(self, chosen: Sequence[HeadReplica]) -> None:
        """Lets replicas keep the current version. The caller holds `changing`."""
        ident = self._replicas.table.params.id
        refs = [one.actor.freeze.remote(ident) for one in chosen]
        end = time.monotonic() + _CALL_SECONDS
        for one, ref in zip(chosen, refs, strict=True):
            while not self._ray.wait([ref], timeout=_PAUSE_SECONDS)[0]:
                if not one.up or time.monotonic() > end:  # changes wait for this
                    raise FileError(f"replica {one.name} does not answer")
            self._result(one, ref)

    def _write(self, chosen: Sequence[HeadReplica], base: Base, pause: Callable[[], None]) -> None:
        """Lets replicas write their files, and waits for all of them; removes them on an error."""
        refs = {
            one.actor.write.remote(self._folder / name): one
            for one, name in zip(chosen, base.files, strict=True)
        }
        try:
            self._wait_written(refs, base.params.id, pause)
        except BaseException:
            with suppress(Exception):
                self._ray.get([one.actor.thaw.remote() for one in chosen], timeout=_CALL_SECONDS)
            for name in base.files:
                (self._folder / name).unlink(missing_ok=True)
            raise

    def _wait_written(
        self, refs: Mapping[Actor, HeadReplica], ident: bytes, pause: Callable[[], None]
    ) -> None:
        waiting, answered = list(refs), time.monotonic()
        while waiting:
            pause()
            ready, waiting = self._ray.wait(waiting, timeout=_POLL_SECONDS)
            for ref in ready:
                if self._result(refs[ref], ref) != ident:
                    raise FileError(f"replica {refs[ref].name} has written another version")
            silent = [refs[ref].name for ref in waiting if not refs[ref].up]
            answered = answered if silent else time.monotonic()
            if time.monotonic() - answered > _SILENT_SECONDS:
                raise FileError(f"replica {silent[0]} has not answered for {_SILENT_SECONDS} s")

    def _result(self, replica: HeadReplica, ref: Actor) -> Any:  # noqa: ANN401
        try:
            return self._ray.get(ref)
        except Exception as error:  # of the actor, of the node, of the shard's own code
            raise FileError(f"replica {replica.name}: {error}") from error
