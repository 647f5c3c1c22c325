"""Messages between fronts, heads and shards. Ray carries them within one party's cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..._arrays import ByteArray
from ...errors import MismatchError
from ...pir import TableParams
from ...pir._sharded import Part
from ...pir._state import Kept, Overwritten
from ...pir._versions import LastChange

PROTOCOL = 1
"""The version of these messages, and of the calls that carry them.

It is the first field of a head's state, so that releases whose other fields differ can compare it.
"""

MAX_REPLICAS = 64
"""The most replicas of a shard."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A shard's answers to the queries of a batch.

    A shard says of which part of the table its sums are, and in `versions`, of which version each
    of them is. `payload` joins the answers' shares; `errors` has those of queries without. `ident`
    is the id of the shard's current version, `fresh` is that of its ShardInfo.
    """

    part: Part
    versions: tuple[bytes, ...]
    payload: ByteArray
    errors: Mapping[int, MismatchError]
    ident: bytes
    fresh: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class HeadState:
    """All that a front needs to know of a table.

    `names` are those of the replicas of each shard; `epoch` changes with any of this.
    """

    protocol: int
    params: TableParams
    tops: ByteArray
    layout: bytes
    recent: tuple[Overwritten, ...]
    kept: tuple[Kept, ...]
    used: bytes
    ids: bytes
    last: LastChange | None
    vacancy: bytes
    parts: Sequence[Part]
    names: Sequence[Sequence[str]]
    epoch: int


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """A shard: its part, its tops, the version that it has, and where it is.

    A `fresh` one has the rows of its source, of a table whose digest it has not been told.
    """

    part: Part
    fresh: bool
    tops: ByteArray
    ident: bytes
    node: str
    pid: int
    bytes: int
    start_seconds: float


class ReplicaStatus(NamedTuple):
    """A replica: its shard, its name, its state, and what it says of itself.

    The state is "up", "down", "starting" if it has not been up yet, or "waiting" if the cluster
    does not have the memory, or the GPUs, for it. Replicas beyond those that the table has at least
    are not `needed`.
    """

    shard: int
    name: str
    state: str
    info: ShardInfo | None
    needed: bool = True

    @property
    def up(self) -> bool:
        """True for a replica that answers."""
        return self.state == "up"


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Options of a table at its head: its replicas, its data folder, its journal's maximum bytes.

    Between `replicas` and `max_replicas`, the head chooses by the queue time (_autoscale.py).
    """

    replicas: int = 1
    max_replicas: int = 1
    queue_seconds: float = 0.1
    folder: Path | None = None
    max_journal: int | None = None


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """The bytes and the changes of the journals since the base, and the checkpoints of this head.

    `active` tells if one is under way.
    """

    journal_bytes: int
    changes: int
    active: bool = False
    taken: int = 0
    failed: int = 0
