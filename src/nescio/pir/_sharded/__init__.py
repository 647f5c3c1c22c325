"""Tables cut by rows: shards that hold a part of the rows, and the head that adds what they answer."""

from ._build import build_shard
from ._change import RowUpdate
from ._cut import Part, check_parts, cut
from ._file import read_shard, write_shard
from ._head import HeadTable
from ._shard import ShardServer, ShardTable

__all__ = [
    "HeadTable",
    "Part",
    "RowUpdate",
    "ShardServer",
    "ShardTable",
    "build_shard",
    "check_parts",
    "cut",
    "read_shard",
    "write_shard",
]
