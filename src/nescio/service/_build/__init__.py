"""Tables built as shards: rows from files and URLs, a shard at a time, here or on a Ray cluster.

    _files     ranges of bytes of files and URLs
    _raw       rows of .npy and of safetensors files
    _parquet   rows of Parquet files
    _inputs    all input files as one sequence of rows
    _output    the folder or URL of the shards
    _run       the shards one after the other, then the description of the table
    _ray       the same as tasks of a Ray cluster

Ray Data is not used. It streams blocks of unknown rows through operators, and a shard needs a range
of rows: each reader here reads ranges, so a task reads what its shard holds and no rows travel
between nodes.
"""

from ._inputs import Rows, open_rows
from ._output import open_output
from ._ray import on_ray
from ._run import BuildOptions, Built, Here, Runner, build

__all__ = [
    "BuildOptions",
    "Built",
    "Here",
    "Rows",
    "Runner",
    "build",
    "on_ray",
    "open_output",
    "open_rows",
]
