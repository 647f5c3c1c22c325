"""The time and bytes of one batch at a shard, from the parameters of the table."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nescio.errors import ArgumentError
from nescio.pir import TableParams
from nescio.pir._bins import Bins
from nescio.pir._rows import RowKind, new_params
from nescio.pir.batch import bins_for

from .constants import Constants

__all__ = ["NODES", "Node", "Work", "table_params"]

HASHES = 4
"""Of exact mode: each puts every row into a bin of its own."""


@dataclass(frozen=True)
class Node:
    """A machine: its cores, the bandwidth of its memory, and its card, if it has one.

    `memory_bytes` is that of the table: the card's, on a machine with one. Bandwidth in bytes a
    second is the limit of all cores together.
    """

    name: str
    cores: int
    bytes_per_second: float
    memory_bytes: float
    gpu: bool = False


# The bandwidths of machines with many cores are assumed: a part of DDR5 with eight channels, and
# all of it with twelve. The H200 is that of docs/gpu-figures.md.
NODES = {
    node.name: node
    for node in (
        Node("cpu16", 16, 120e9, 100e9),
        Node("cpu64", 64, 350e9, 400e9),
        Node("h200", 16, 4.27e12, 130e9, gpu=True),
    )
}


@dataclass(frozen=True)
class Work:
    """The work of one shard of `shards`, which hold a table's records and hash tables in parts.

    A lookup has one key for a table of one bin, and one key for each bin otherwise. Each shard gets
    every key of a table that is not cut to bins, and returns an answer as long as the whole one. Of
    a table in bins it gets the keys of the bins of which it has rows.
    """

    params: TableParams
    shards: int = 1
    verify: bool = True

    @property
    def _tables(self) -> int:
        return len(self.params.layouts) if self.verify else 1

    @cached_property
    def table_bytes(self) -> float:
        """The bytes of a shard that a pass reads."""
        layouts = self.params.layouts[: self._tables]
        return sum(layout.rows * layout.row_bytes for layout in layouts) / self.shards

    @cached_property
    def key_records(self) -> float:
        """The records that the keys of one lookup walk over."""
        return self._walked(each_byte=False)

    @cached_property
    def key_bytes_walked(self) -> float:
        """The bytes of these records."""
        return self._walked(each_byte=True)

    def _walked(self, each_byte: bool) -> float:
        walked = sum(
            group.slots * group.rows * (layout.row_bytes if each_byte else 1)
            for layout in self.params.layouts[: self._tables]
            for group in layout.bins
        )
        return walked / self.shards

    @cached_property
    def _part(self) -> float:
        """The part of a lookup's keys that one shard gets."""
        bins = self.params.grouping.bins
        return math.ceil(bins / self.shards) / bins

    @cached_property
    def key_bytes(self) -> float:
        """The bytes of a lookup's keys for one shard."""
        return sum(self.params.key_widths[: self._tables]) * self._part

    @cached_property
    def answer_bytes(self) -> float:
        """The bytes of a shard's partial answer to one lookup."""
        return sum(self.params.answer_widths[: self._tables]) * self._part

    def seconds(self, constants: Constants, node: Node, keys: float, threads: int = 0) -> float:
        """Computes the time in which a shard on a node answers a batch of lookups.

        Whatever the bins, `keys` counts lookups. `threads` of 0 is every core.
        """
        if node.gpu:
            return self._gpu_seconds(constants, node, keys)
        threads = threads or node.cores
        rate = min(node.bytes_per_second, threads * constants.core_bytes_per_second)
        memory = self.table_bytes / rate
        whole = math.ceil(keys / constants.kernel_keys) * constants.kernel_keys
        arithmetic = keys * self.key_records * constants.expansion
        arithmetic += whole * self.key_bytes_walked * constants.product
        arithmetic /= 1 + (threads - 1) * constants.thread_share
        return constants.batch_seconds + joined(memory, arithmetic, constants.overlap)

    def _gpu_seconds(self, constants: Constants, node: Node, keys: float) -> float:
        memory = self.table_bytes / min(constants.gpu_bytes_per_second, node.bytes_per_second)
        arithmetic = keys * self.key_records * constants.gpu_expansion
        arithmetic += keys * self.key_bytes_walked * constants.gpu_product
        host = constants.gpu_table_seconds + constants.gpu_key_seconds * keys * self.key_slots
        return host * self._tables + joined(memory, arithmetic, constants.overlap)

    @property
    def key_slots(self) -> float:
        """The keys of a lookup for one shard and one table."""
        return self.params.slots * self._part


def joined(first: float, second: float, exponent: float) -> float:
    """Returns the time of two works that overlap: the larger one, and more if they are close."""
    high, low = max(first, second), min(first, second)
    if high == 0.0:
        return 0.0
    return high * float((1 + (low / high) ** exponent) ** (1 / exponent))


def table_params(
    rows: int, row_bytes: int, wanted: int = 1, mode: str = "whole", generator: str = "chacha20"
) -> TableParams:
    """Returns the parameters of a table that is not built.

    `mode` is "whole", or "partial" or "exact" for bins from which a lookup gets `wanted` rows: as
    many bins, or enough for all rows by four hashes. Raises ArgumentError.
    """
    if mode == "whole":
        bins, layout = (Bins(1, rows),), b""
    elif mode in ("partial", "exact"):
        hashes = HASHES if mode == "exact" else 1
        count = bins_for(wanted, HASHES) // HASHES if mode == "exact" else wanted
        bins, layout = (Bins(count * hashes, -(-rows // count)),), b"simulated"
    else:
        raise ArgumentError(f"mode: found {mode!r}, expected whole, partial or exact")
    kind = RowKind(sum(group.total_rows for group in bins), (row_bytes,), np.dtype("u1"))
    return new_params(
        kind,
        version="1",
        output="bit",
        generator=generator,  # type: ignore[arg-type]
        record_rows=None,
        bins=bins,
        layout=layout,
    )
