"""Messages between fronts, heads and shards. Ray carries them within one party's cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..._arrays import ByteArray
from ...errors import MismatchError
from ...pir import TableParams
from ...pir._sharded import Part
from ...pir._state import Kept, Overwritten
from ...pir._versions import LastChange


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

    `names` are those of the replicas of each shard; `epoch` counts changes of any of this.
    """

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
