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
from typing import Any

from ...errors import ArgumentError, NescioError, ResourceError
from ...pir import TableParams
from ...pir._change import make_change
from ...pir._sharded import RowUpdate
from ...pir._sharded._head import merged_tops
from ._autoscale import Autoscaler, Policy, Queues, Report
from ._checkpoint import Checkpoints
from ._connect import Actor, Ray, head_name
from ._failure import cause_of
from ._head_open import find_base, open_head
from ._head_replicas import HeadReplicas, no_replica
from ._journal import HeadJournal, Tops
from ._messages import (
    MAX_REPLICAS,
    PROTOCOL,
    CheckpointState,
    HeadState,
    ReplicaStatus,
    TableOptions,
)
from ._replica import Replica
from ._replicas import wait_for
from ._shard import ShardOptions, ShardSource

_LOG = logging.getLogger(__name__)
_CALL_SECONDS = 30.0
_SCALE_SECONDS = 1.0
_AGAIN_SECONDS = 5.0  # to open a table whose files could not be read
_HEAD_CONCURRENCY = 64
_FIRST_SECONDS = 5.0
_PAUSE_SECONDS = 0.1
_PULSE_SECONDS = 0.002  # a replica: the pings of many leave most of the head's time to changes
_DRAIN_SECONDS = 2.0  # in which fronts learn which replicas end, and get their last answers


class Head:
    """The methods of the actor, which starts the replicas of each shard of a table.

    The base is the table as its shards' sources have it. With a `folder` changes are durable.
    """

    def __init__(  # noqa: PLR0917 - of an actor
        self,
        name: str,
        base: TableParams,
        occupied: int,
        shards: Sequence[ShardSource],
        own: ShardOptions,
        options: TableOptions,
    ) -> None:
        import ray  # noqa: PLC0415 - in an actor

        self._ray: Ray = ray
        self._name = name
        self._arguments = name, base, occupied, shards, own, options
        self._sources = [replace(one, folder=options.folder) for one in shards]
        self._epoch = secrets.randbits(62)  # no epoch of an earlier head
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._preparing: list[tuple[Replica, str]] = []
        self._failure: NescioError | None = None
        self._checkpoints: Checkpoints | None = None
        self._queues = Queues()
        self._scaler = Autoscaler(
            Policy(options.replicas, options.max_replicas, options.queue_seconds)
        )
        self._replicas = HeadReplicas(
            ray, name, self._sources, own, options.replicas, self._announce
        )
        self._open()
        if self._failure is None:
            wait_for(self._is_up, _FIRST_SECONDS)
        threading.Thread(target=self._watch, name="nescio-head", daemon=True).start()
        if options.max_replicas > options.replicas:
            threading.Thread(target=self._autoscale, name="nescio-scale", daemon=True).start()

    def _open(self) -> None:
        """Opens the table, or notes why that fails: an actor cannot say why it did not start."""
        try:
            self._begin()
        except Exception as error:
            self._failure = cause_of(error)
            bug = None if isinstance(error, NescioError) else error
            _LOG.error("table %s was not opened: %s", self._name, self._failure, exc_info=bug)
            return
        self._failure = None

    def _begin(self) -> None:
        """Opens the table, and makes the changes of its journals again."""
        _, params, occupied, _, own, options = self._arguments
        folder = options.folder
        base = find_base(self._name, self._replicas, params, folder)
        table = open_head(base, occupied, own.keep, self)
        self._journal = HeadJournal(table, folder, base)
        self._table = self._replicas.table = table
        self._replicas.journal = self._journal
        if folder is not None:
            self._checkpoints = Checkpoints(
                self._ray, self._name, self._replicas, folder, options.max_journal
            )

    def _is_up(self) -> bool:
        self._replicas.pulse()
        return all(any(one.up for one in own) for own in self._replicas.shards)

    def _watch(self) -> None:
        """Watches the replicas. A table that could not be opened is tried again first."""
        while self._failure is not None and not self._stopped.wait(_AGAIN_SECONDS):
            self._open()
        while not self._stopped.wait(max(_PAUSE_SECONDS, _PULSE_SECONDS * len(self._replicas.all))):
            try:
                self._replicas.pulse()
            except Exception:
                _LOG.exception("replicas could not be watched")

    def _autoscale(self) -> None:
        """Adds and ends replicas by the queue time of the fronts."""
        while not self._stopped.wait(_SCALE_SECONDS):
            if self._failure is not None:
                continue
            now, count = time.monotonic(), self._replicas.count
            queue = self._queues.seconds(now)
            wanted = self._scaler.wanted(now, queue, count, self._replicas.starting)
            if wanted != count:
                _LOG.warning(
                    "queue time %.0f ms: %d replicas in place of %d",
                    1e3 * (queue or 0),
                    wanted,
                    count,
                )
                self.scale(wanted)

    # Calls of fronts and of commands

    def report(self, front: str, report: Report) -> None:
        """Takes the report of a front."""
        self._queues.add(time.monotonic(), front, report)

    def arguments(self) -> tuple[Any, ...]:
        """Returns the arguments of another head of the table."""
        return self._arguments

    def state(self) -> HeadState | NescioError:
        """Returns all that a front needs to know; or why the table could not be opened."""
        if self._failure is not None:
            return self._failure
        table = self._table
        with table.changing():
            used, ids, last = table.history()
            own = table.current.state
            return HeadState(
                PROTOCOL, own.params, own.tree.tops, own.layout, own.recent, own.kept,
                used.to_bytes(), ids.to_bytes(), last, table.extra_state(),
                [one.part for one in self._sources], self._replicas.names(), self._epoch,
            )  # fmt: skip

    def newer(self, epoch: int, seconds: float) -> HeadState | None:
        """Waits some seconds for another state than that of an epoch; None if there is none."""
        with self._changed:
            opened = self._failure is None
            self._changed.wait_for(lambda: opened and self._epoch != epoch, seconds)
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
        if self._checkpoints is not None:
            self._checkpoints.tidy()
        return params

    def _announce(self) -> None:
        with self._changed:
            self._epoch += 1
            self._changed.notify_all()

    def scale(self, replicas: int) -> list[list[str]] | NescioError:
        """Starts or ends replicas, so that each shard has as many, 1 to 64; returns their names.

        New ones answer when they have all changes. Fronts first learn of replicas that end.
        """
        if self._failure is not None:
            return self._failure
        if not 1 <= replicas <= MAX_REPLICAS:
            return ArgumentError(f"replicas: found {replicas}, expected 1 to {MAX_REPLICAS}")
        with self._table.changing():
            ended = self._replicas.scale(replicas)
        self._announce()
        time.sleep(_DRAIN_SECONDS if ended else 0.0)
        self._replicas.kill(ended)
        return self._replicas.names()

    def renew(self, name: str) -> str | NescioError:
        """Ends a replica, and starts another one in its place; returns its name.

        Fronts leave the replica before it ends.
        """
        if self._failure is not None:
            return self._failure
        try:
            with self._table.changing():
                shard, old = self._replicas.take_out(name)
            self._announce()
            time.sleep(_DRAIN_SECONDS)
            self._replicas.kill([old])
            with self._table.changing():
                return self._replicas.add(shard).name
        except NescioError as error:
            return error

    def is_asked(self, name: str) -> bool:
        """Tests if all fronts that report ask the replica with a name."""
        return self._queues.all_ask(time.monotonic(), name)

    def begin_checkpoint(self) -> NescioError | None:
        """Begins a checkpoint, unless one is under way; returns an error without a data folder."""
        if self._failure is not None:
            return self._failure
        if self._checkpoints is None:
            return ArgumentError(f"table {self._name!r} has no data folder: serve it with --data")
        self._checkpoints.begin()
        return None

    def checkpoint_state(self) -> CheckpointState | NescioError:
        """Describes the journal and the checkpoints."""
        if self._failure is not None:
            return self._failure
        taken = CheckpointState(self._journal.bytes, len(self._journal.updates))
        if self._checkpoints is None:
            return taken
        snapshots = self._checkpoints.snapshots
        return replace(
            taken, active=snapshots.active, taken=snapshots.taken, failed=snapshots.failed
        )

    def drain(self) -> None:
        """Ends all replicas; the head is ended by its caller."""
        self._stopped.set()
        if self._checkpoints is not None:
            self._checkpoints.snapshots.stop()
        self._replicas.end()

    def status(self) -> list[list[ReplicaStatus]]:
        """Describes each replica of each shard."""
        return self._replicas.status()

    # Calls of the table: `Shards`

    def prepare(self, update: RowUpdate) -> Tops:
        """Lets every replica that is up prepare its rows of a change; see `Shards`."""
        name, params = secrets.token_hex(8), self._table.params
        parts = [update.of(params, one.part) for one in self._sources]
        asked = [
            (number, replica, replica.actor.prepare.remote(name, parts[number]))
            for number, own in enumerate(self._replicas.shards)
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
        shards = range(len(self._sources))
        missing = [shard for shard in shards if shard not in found]
        if missing:
            raise no_replica(missing[0])
        self._journal.tops = merged_tops([found[shard] for shard in shards])
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


def start_head(ray: Ray, *arguments: Any) -> Actor:  # noqa: ANN401 - those of Head
    """Starts the head of a table, or finds it."""
    actor = ray.remote(Head).options(
        name=head_name(arguments[0]),
        lifetime="detached",
        get_if_exists=True,
        max_restarts=-1,
        max_concurrency=_HEAD_CONCURRENCY,
        num_cpus=0,
    )
    return actor.remote(*arguments)
