"""The actor at the head of a table: versions, journal, and changes of all replicas.

    front               head                          replicas of all shards
    change ---------->  prepare ------------------->  compute what changes, change nothing
                        new id, record in journal
                        commit -------------------->  write rows, keep the version before
           <----------  parameters
    newer  <----------  (fronts then name the version in their batches)

A replica that fails in `prepare` or `commit` is left out; the change goes on if each shard has
another one. A record in the journal decides: the head sends changes again to replicas that come
back without them. So a change is never made in part, and none is lost that was acknowledged.
"""

import logging
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import FileError, NescioError, ResourceError
from ...pir import TableParams
from ...pir._change import make_change
from ...pir._sharded import HeadTable, RowUpdate
from ...pir._sharded._head import keep_versions_of, merged_tops
from ...pir._vacancy import Vacancy
from ._connect import Actor, Ray
from ._journal import Base, HeadJournal, Tops, store_base, stored_base
from ._messages import HeadState, ShardInfo
from ._placement import Placement
from ._replica import Replica
from ._replicas import wait_for
from ._shard import ShardOptions, ShardSource, start_shard

_LOG = logging.getLogger(__name__)
_CALL_SECONDS = 30.0
_PING_SECONDS = 1.0
_START_SECONDS = 600.0
_PAUSE_SECONDS = 0.1
_START_PAUSE_SECONDS = 2.0
_DRAIN_SECONDS = 2.0  # in which fronts learn which replicas end, and get their last answers


class Head:
    """The methods of the actor, which starts the replicas of each shard of a table.

    The base is the table as its shards' sources have it. With a `folder` changes are durable.
    Raises FileError for a folder that cannot be used.
    """

    def __init__(  # noqa: PLR0917 - of an actor
        self,
        name: str,
        base: TableParams,
        occupied: int,
        shards: Sequence[ShardSource],
        replicas: int,
        options: ShardOptions,
        folder: Path | None,
    ) -> None:
        import ray  # noqa: PLC0415 - in an actor

        self._ray: Ray = ray
        self._name = name
        self._shards = shards
        self._options = options
        self._placement = Placement(ray)
        self._replicas = [
            [self._start(number, r) for r in range(replicas)] for number in range(len(shards))
        ]
        self._epoch = 0
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._preparing: list[tuple[Replica, str]] = []
        self._failure: NescioError | None = None
        try:
            self._begin(base, occupied, folder)
        except NescioError as error:  # an actor that fails at its start cannot say why
            self._failure = error
            return
        for own in self._replicas:
            for replica in own:
                self._bring_up(replica)
        threading.Thread(target=self._watch, name="nescio-head", daemon=True).start()

    def _begin(self, base: TableParams, occupied: int, folder: Path | None) -> None:
        """Opens the table, and makes the changes of its journal again."""
        self._base = stored_base(folder) or self._new_base(base, folder)
        params, tops = self._base
        for own in self._replicas:
            info = self._info(own[0])
            if info.fresh and not np.array_equal(info.tops, tops[info.part.first : info.part.end]):
                raise FileError(
                    f"table {self._name!r}: the file of its rows has changed, but its data folder "
                    "counts: restore the file, and make the change with `nescio admin`"
                )
        vacancy = Vacancy(occupied)
        vacancy.grow(params.rows)
        self._table = HeadTable.of(params, tops, b"", vacancy, self)
        keep_versions_of(self._table, self._options.keep)
        self._journal = HeadJournal(self._table, folder)

    # Calls of fronts and of commands

    def state(self) -> HeadState | NescioError:
        """Returns all that a front needs to know; or why the table could not be opened."""
        if self._failure is not None:
            return self._failure
        table = self._table
        with table.changing():
            used, ids, last = table.history()
            own = table.current.state
            return HeadState(
                own.params, own.tree.tops, own.layout, own.recent, own.kept, used.to_bytes(),
                ids.to_bytes(), last, table.extra_state(), [one.part for one in self._shards],
                self.names(), self._epoch,
            )  # fmt: skip

    def newer(self, epoch: int, seconds: float) -> HeadState | None:
        """Waits some seconds for another state than that of an epoch; None if there is none."""
        with self._changed:
            self._changed.wait_for(lambda: self._epoch != epoch, seconds)
        if self._epoch == epoch:
            return None
        state = self.state()
        return None if isinstance(state, NescioError) else state

    def change(self, message: bytes) -> TableParams | Exception:
        """Makes a change, once if it is sent again. Returns errors that its sender caused."""
        if self._failure is not None:
            return self._failure
        try:
            params = make_change(self._table, message)
        except NescioError as error:
            return error
        self._announce()
        return params

    def _announce(self) -> None:
        with self._changed:
            self._epoch += 1
            self._changed.notify_all()

    def names(self) -> list[list[str]]:
        """Returns the names of the replicas of each shard."""
        return [[replica.name for replica in own] for own in self._replicas]

    def scale(self, replicas: int) -> list[list[str]]:
        """Starts or ends replicas, so that each shard has as many; returns their names.

        New ones answer when they have all changes. Fronts first learn of replicas that end.
        """
        with self._table.changing():
            ended = [one for own in self._replicas for one in own[replicas:]]
            self._replicas = [
                [*own[:replicas], *(self._start(number, r) for r in range(len(own), replicas))]
                for number, own in enumerate(self._replicas)
            ]
        self._announce()
        time.sleep(_DRAIN_SECONDS if ended else 0.0)
        for replica in ended:
            self._ray.kill(replica.actor)
            self._placement.forget(replica.name)
        return self.names()

    def drain(self) -> None:
        """Ends all replicas; the head is ended by its caller."""
        self._stopped.set()
        for own in self._replicas:
            for replica in own:
                self._ray.kill(replica.actor)

    def status(self) -> list[list[tuple[str, bool, ShardInfo | None]]]:
        """Describes each replica: its name, whether it is up, and what it says of itself."""
        asked = [[(one, one.actor.info.remote()) for one in own] for own in self._replicas]
        end = time.monotonic() + _PING_SECONDS  # for all: several may be down
        return [[self._described(one, info, end) for one, info in own] for own in asked]

    # Calls of the table: `Shards`

    def prepare(self, update: RowUpdate) -> Tops:
        """Lets every replica that is up prepare a change; see `Shards`."""
        name = secrets.token_hex(8)
        asked = [
            (number, replica, replica.actor.prepare.remote(name, update))
            for number, own in enumerate(self._replicas)
            for replica in own
            if replica.up
        ]
        self._preparing = [(replica, name) for _, replica, _ in asked]
        found: dict[int, Tops] = {}
        for number, replica, ref in asked:
            try:
                tops: Tops = self._result(replica, ref)
            except Exception as error:
                replica.fail(error)
                continue
            before = found.setdefault(number, tops)
            if before[0].tobytes() != tops[0].tobytes() or before[1].tobytes() != tops[1].tobytes():
                raise ResourceError(f"the replicas of shard {number} differ: restart them")
        missing = [i for i in range(len(self._replicas)) if i not in found]
        if missing:
            raise ResourceError(f"shard {missing[0]} has no replica that answers: try again later")
        self._journal.tops = merged_tops([found[i] for i in range(len(self._replicas))])
        return self._journal.tops

    def commit(self, update: RowUpdate) -> None:
        """Lets the replicas make the change that they have prepared; it is in the journal."""
        assert update.after is not None
        self._journal.updates.append(update)
        refs = [
            (replica, replica.actor.commit.remote(name, update.after))
            for replica, name in self._preparing
            if replica.up
        ]
        for replica, ref in refs:
            try:
                self._result(replica, ref)
            except Exception as error:
                replica.fail(error)
        self._preparing = []

    def _result(self, replica: Replica, ref: Actor) -> Any:  # noqa: ANN401 - any method's
        """Waits for the result of a call, unless the replica is found not to answer."""
        end = time.monotonic() + _CALL_SECONDS
        while not self._ray.wait([ref], timeout=_PAUSE_SECONDS)[0]:
            if not replica.up or time.monotonic() > end:
                raise ResourceError("it does not answer")
        return self._ray.get(ref)

    def abandon(self, update: RowUpdate) -> None:
        """Lets replicas forget what they have prepared."""
        del update
        for replica, name in self._preparing:
            replica.actor.abandon.remote(name)
        self._preparing = []

    # Replicas that start, and come back

    def _start(self, number: int, replica: int) -> Replica:
        name = f"{self._name}/shard-{number}-replica-{replica}"
        return Replica(name, self._actor(name, number), up=False)

    def _actor(self, name: str, number: int) -> Actor:
        source = self._shards[number]
        return start_shard(self._ray, name, number, source, self._options, self._placement)

    def _new_base(self, base: TableParams, folder: Path | None) -> Base:
        """Returns the parameters of the sources' table, with its digest, and its tops."""
        infos = [self._fresh_info(own[0], base) for own in self._replicas]
        tops = np.concatenate([info.tops for info in infos])
        made = replace(base, digest=base.digest_of(tops)), tops
        if folder is not None:
            store_base(folder, made)
        return made

    def _fresh_info(self, replica: Replica, base: TableParams) -> ShardInfo:
        """Describes a shard that has the rows of its source, after a restart if it had others."""
        info = self._info(replica)
        if not info.fresh and info.ident != base.id:
            self._ray.kill(replica.actor, no_restart=False)
            wait_for(lambda: self._is_fresh(replica, base), _START_SECONDS)
            info = self._info(replica)
        return info

    def _info(self, replica: Replica) -> ShardInfo:
        """Asks a shard that may still read its rows. Raises ResourceError if it has failed."""
        try:
            info: ShardInfo = self._ray.get(replica.actor.info.remote(), timeout=_START_SECONDS)
        except Exception as error:
            raise ResourceError(f"replica {replica.name} did not start: {error}") from error
        return info

    def _is_fresh(self, replica: Replica, base: TableParams) -> bool:
        try:
            info = self._ray.get(replica.actor.info.remote(), timeout=_PING_SECONDS)
        except Exception:
            return False
        return bool(info.fresh or info.ident == base.id)

    def _bring_up(self, replica: Replica) -> None:
        """Sends a replica the changes that it lacks; it is up then. Leaves it out if that fails."""
        try:
            ident = self._ray.get(replica.ping(), timeout=_PING_SECONDS)
            node = self._ray.get(replica.actor.node.remote(), timeout=_PING_SECONDS)
            self._placement.note(replica.name, node)
            with self._table.changing():
                updates = self._journal.since(ident)
                if updates is None:
                    if not self._identify(replica):
                        return
                    updates = list(self._journal.updates)
                if updates:
                    self._ray.get(replica.actor.make.remote(updates), timeout=_CALL_SECONDS)
                replica.up = True
        except Exception as error:
            _LOG.debug("replica %s is not back: %s", replica.name, error)
            replica.ended = isinstance(error, self._ray.exceptions.ActorDiedError)

    def _identify(self, replica: Replica) -> bool:
        """Gives a fresh replica the base's parameters; lets another one start again.

        Returns False for a replica that cannot be used yet.
        """
        info: ShardInfo = self._ray.get(replica.actor.info.remote(), timeout=_CALL_SECONDS)
        params, tops = self._base
        if not info.fresh:
            _LOG.error("replica %s has rows of an unknown version: it is restarted", replica.name)
            self._ray.kill(replica.actor, no_restart=False)
            return False
        if not np.array_equal(info.tops, tops[info.part.first : info.part.end]):
            _LOG.error("replica %s: the file of its rows has changed", replica.name)
            return False
        self._ray.get(replica.actor.identify.remote(params), timeout=_CALL_SECONDS)
        return True

    def _watch(self) -> None:
        while not self._stopped.wait(_PAUSE_SECONDS):
            for number, own in enumerate(self._replicas):
                for replica in own:
                    if replica.up:
                        self._check(replica)
                    else:
                        self._bring_up(replica)
                    if replica.ended and not self._stopped.is_set():
                        self._start_again(replica, number)
            self._placement.spread(self._replicas)

    def _start_again(self, replica: Replica, number: int) -> None:
        """Starts a replica that Ray does not start again, at most once in some seconds."""
        if time.monotonic() < replica.next_start:
            return
        replica.next_start = time.monotonic() + _START_PAUSE_SECONDS
        try:
            replica.actor, replica.ended = self._actor(replica.name, number), False
        except Exception as error:
            _LOG.warning("replica %s does not start: %s", replica.name, error)

    def _check(self, replica: Replica) -> None:
        """Leaves out a replica that does not answer, or that was started again."""
        try:
            ident = self._ray.get(replica.ping(), timeout=_PING_SECONDS)
        except Exception as error:
            replica.fail(error)
            return
        changes = self._table.try_changing()
        with changes as free:
            if free and replica.up and ident != self._table.params.id:
                replica.fail("it has the rows of another version")

    def _described(
        self, replica: Replica, asked: Actor, end: float
    ) -> tuple[str, bool, ShardInfo | None]:
        try:
            info = self._ray.get(asked, timeout=max(0.0, end - time.monotonic()))
        except Exception:
            return replica.name, False, None
        return replica.name, replica.up, info
