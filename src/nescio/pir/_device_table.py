"""Tables in the memory of GPUs or emulated devices."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, NamedTuple, Protocol, cast, get_args

import numpy as np

from .. import _core
from .._arrays import ByteArray, IndexArray
from .._device import Device, Engine
from ..dpf import Output
from ..errors import ArgumentError
from ._bins import Bins

Strategy = Literal["auto", "branch", "level", "bounded", "cooperative"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

DEFAULT_NODES = 128
"""Nodes per key that a bounded walk expands in one step: K in the paper, with the paper's value."""

Window = tuple[int, int]
"""The first row in memory and the number of rows there, of a table that is in memory in part."""

SHARD_ROWS = 512
"""Shards begin at multiples of this in a bin, and rows are written from multiples of this."""


class Shard(Protocol):
    """The engine's class `Table` for one device: a contiguous range of rows in its memory."""

    bytes: int

    def store(self, first: int, rows: object) -> None: ...
    def replace(self, indices: IndexArray, rows: ByteArray) -> None: ...
    def answer(
        self, keys: Sequence[_core.Keys], strategy: str, nodes: int, /
    ) -> tuple[ByteArray, dict[str, int]]: ...
    def seconds_per_pass(self) -> float: ...
    def products_per_second(self) -> float: ...
    def calls_per_second(self, generator: str, leaves: bool) -> float: ...


class LookupEngine(Engine, Protocol):
    """The engine's module for one kind of device, with its tables."""

    def Table(  # noqa: N802 - a class
        self,
        *,
        device: int,
        bins: Sequence[Bins],
        first_row: int,
        rows: int,
        row_bytes: int,
        output: str,
    ) -> Shard: ...


class Rows(Protocol):
    """An array of uint8 of shape (rows, row_bytes), from any library with DLPack."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, rows: slice, /) -> object: ...


class Work(NamedTuple):
    """The work that an answer took, summed over all devices."""

    expansions: int
    leaves: int
    launches: int
    peak_bytes: int


class DeviceTable:
    """A table's rows in device memory. With several devices, each holds a contiguous range of rows.

    Rows are bytes, numbered through the bins. `window` is the first row, a multiple of 512, and the
    number of those in memory, if a table of one bin is not there as a whole; answers are then sums
    over these rows. A device table may be used from several threads. Raises ResourceError if a
    device does not exist or lacks the memory, ArgumentError if there are more devices than blocks
    of at most 512 rows, which do not cross bins.
    """

    def __init__(
        self,
        devices: Sequence[Device],
        bins: Sequence[Bins],
        row_bytes: int,
        output: Output,
        window: Window | None = None,
    ) -> None:
        begin, rows = window or (0, sum(group.total_rows for group in bins))
        block, blocks = begin // SHARD_ROWS, blocks_of(bins, window)
        if len(devices) > blocks:
            raise ArgumentError(
                f"{rows} records cannot be split over {len(devices)} devices: each gets a "
                f"multiple of {SHARD_ROWS}, or whole bins"
            )
        self.rows, self.row_bytes, self.output = rows, row_bytes, output
        self.bins, self.devices = tuple(bins), tuple(devices)
        ends = [
            min(_first_row(bins, block + blocks * (i + 1) // len(devices)), begin + rows)
            for i in range(len(devices))
        ]
        self._firsts = [begin, *ends[:-1]]
        self._ends = ends
        self._shards = [
            open_shard(
                device,
                bins=bins,
                first_row=first,
                rows=end - first,
                row_bytes=row_bytes,
                output=output,
            )
            for device, first, end in zip(devices, self._firsts, ends, strict=True)
        ]
        self._workers = ThreadPoolExecutor(len(devices)) if len(devices) > 1 else None

    @property
    def bytes(self) -> int:
        """Device memory that holds the rows."""
        return sum(shard.bytes for shard in self._shards)

    @property
    def shards(self) -> Sequence[Shard]:
        """The shards, one per device."""
        return self._shards

    def store(self, first: int, rows: Rows) -> None:
        """Writes `rows`, uint8 of shape (count, row_bytes), from row `first` on.

        `first` is a multiple of 512 in its bin. The rest of the last block of 512 rows becomes
        zero. Rows in GPU memory (DLPack) are not copied through the host. Raises ArgumentError for
        rows of another width or library.
        """
        if rows.shape[1] != self.row_bytes:
            raise ArgumentError(
                f"rows of a table: found {rows.shape[1]} bytes, expected {self.row_bytes} bytes"
            )
        stop = first + rows.shape[0]
        for shard, begin, end in zip(self._shards, self._firsts, self._ends, strict=True):
            low, high = max(first, begin), min(stop, end)
            if low < high:
                try:
                    shard.store(low - begin, rows[low - first : high - first])
                except (TypeError, BufferError) as error:  # the binding found no DLPack array
                    raise ArgumentError(
                        "the rows cannot be exported with DLPack: expected C-contiguous uint8, "
                        f"found {type(rows).__name__} ({error})"
                    ) from error

    def replace(self, indices: IndexArray, rows: ByteArray) -> None:
        """Overwrites the rows at `indices`, which must be distinct."""
        for shard, begin, end in zip(self._shards, self._firsts, self._ends, strict=True):
            own = (indices >= begin) & (indices < end)
            shard.replace(
                np.ascontiguousarray(indices[own] - np.uint64(begin)),
                np.ascontiguousarray(rows[own]),
            )

    def answer(self, keys: Sequence[_core.Keys]) -> ByteArray:
        """Answers lookups, given the keys for each group of bins, with the fastest strategy.

        The keys of a group are in the order lookup, bin, key. The result has a row for each key, in
        the order lookup, group, bin, key. Raises ArgumentError for keys of different numbers of
        lookups, MismatchError for keys to other tables.
        """
        return self.answer_by("auto", keys)[0]

    def answer_by(
        self, strategy: Strategy, keys: Sequence[_core.Keys], nodes: int = DEFAULT_NODES
    ) -> tuple[ByteArray, Work]:
        """Answers keys with one of the paper's strategies, and counts the work."""

        def answer_shard(shard: Shard) -> tuple[ByteArray, dict[str, int]]:
            return shard.answer(keys, strategy, nodes)

        run_all = map if self._workers is None else self._workers.map
        partial = list(run_all(answer_shard, self._shards))
        total, work = partial[0][0], Work(**partial[0][1])
        for answers, more in partial[1:]:
            summed = _core.combine(self.output, total.reshape(-1), answers.reshape(-1))
            total = summed.reshape(answers.shape)
            work = Work(*(a + b for a, b in zip(work, Work(**more), strict=True)))
        return total, work


def blocks_of(bins: Sequence[Bins], window: Window | None = None) -> int:
    """Returns the blocks of at most 512 rows, which do not cross bins, of a table or a window."""
    if window is not None:
        return -(-window[1] // SHARD_ROWS)
    return sum(group.bins * -(-group.rows // SHARD_ROWS) for group in bins)


def _first_row(bins: Sequence[Bins], block: int) -> int:
    """Returns the first row of a block, or the number of rows for the number of blocks."""
    row = 0
    for group in bins:
        each = -(-group.rows // SHARD_ROWS)
        if block < group.bins * each:
            return row + block // each * group.rows + block % each * SHARD_ROWS
        block -= group.bins * each
        row += group.total_rows
    return row


def open_shard(
    device: Device,
    *,
    bins: Sequence[Bins],
    first_row: int,
    rows: int,
    row_bytes: int,
    output: str,
) -> Shard:
    """Allocates rows of a table on one device; they are not written yet. Raises ResourceError."""
    return cast(LookupEngine, device.engine()).Table(
        device=device.number,
        bins=bins,
        first_row=first_row,
        rows=rows,
        row_bytes=row_bytes,
        output=output,
    )


def open_table(device: str, rows: int, row_bytes: int, output: Output) -> DeviceTable:
    """Allocates a table of one bin on one device, by name; its rows are not written yet.

    Raises ArgumentError and ResourceError as `DeviceTable` does.
    """
    return DeviceTable([Device.parse(device)], [Bins(1, rows)], row_bytes, output)
