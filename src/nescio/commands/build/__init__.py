"""`nescio build`: a table cut by rows into shards, from files or URLs."""

import argparse

from ...dpf import OUTPUTS
from .. import Subparsers, generator
from .._tables import DEFAULTS
from ._run import run


def add_parser(commands: Subparsers) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "build",
        help="build a table that is cut into shards, from files or URLs",
        description="Builds a table whose rows are cut into shards, which nescio serve --cluster "
        "serves. The rows of all files are one table, in the order of the files. One shard at a "
        "time is in memory: a table may be larger than the memory of any machine. The digest is "
        "that of the same rows in one table. If it cannot be built, the exit code is 1 and "
        "the files of the incomplete table are removed.",
    )
    add = parser.add_argument
    add(
        "inputs",
        nargs="+",
        metavar="FILE",
        help="file of rows, or a URL that fsspec reads, as s3://bucket/part-*.parquet: .npy, "
        ".parquet or .safetensors",
    )
    add(
        "--out",
        required=True,
        metavar="FOLDER|URL",
        help="new or empty folder of the shards; a URL gets one shard after the other, and takes a "
        "second pass over the input",
    )
    add(
        "--shards", required=True, type=int, metavar="N", help="number of shards, of about one size"
    )
    add(
        "--column",
        action="append",
        default=[],
        metavar="NAME",
        help="column of a Parquet file that has lists of numbers, or a number of each row: repeat "
        "the option for rows of several columns; or the tensor of a safetensors file (default: the "
        "only one)",
    )
    _add_table_options(parser)
    add(
        "--ray",
        metavar="ADDRESS",
        help="build shards on all nodes of a Ray cluster, which must reach the files and the "
        "folder or URL by the same names; 'local' starts one on this machine (default: this "
        "process builds them, one after the other)",
    )
    parser.set_defaults(run=run)


def _add_table_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--spare",
        default="0",
        metavar="N|P%",
        help="vacant rows at the end, a number or a percentage of the rows: nescio admin append "
        "puts new rows in their place (default: %(default)s)",
    )
    add(
        "--version",
        default=DEFAULTS["version"],
        help="version of the table; must be the same on both servers (default: %(default)s)",
    )
    add(
        "--output",
        choices=OUTPUTS,
        default=DEFAULTS["output"],
        help="group in which the shares of answers are added (default: %(default)s)",
    )
    add(
        "--generator",
        type=generator,
        default=DEFAULTS["generator"],
        help="pseudorandom generator of the DPF keys (default: %(default)s)",
    )
    add(
        "--threads",
        type=int,
        default=0,
        help="number of worker threads of a shard; 0 uses all processors (default: 0)",
    )
