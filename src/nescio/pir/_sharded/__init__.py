"""Tables cut by rows: shards that hold a part of the rows, and the head that has none."""

from ._build import build_shard
from ._change import RowUpdate
from ._cut import Part, check_parts, cut
from ._file import name_shard, read_shard, shard_bytes, write_frozen, write_shard
from ._frozen import Frozen
from ._head import HeadTable
from ._shard import ShardServer, ShardTable

__all__ = [
    "Frozen",
    "HeadTable",
    "Part",
    "RowUpdate",
    "ShardServer",
    "ShardTable",
    "build_shard",
    "check_parts",
    "cut",
    "name_shard",
    "read_shard",
    "shard_bytes",
    "write_frozen",
    "write_shard",
]
