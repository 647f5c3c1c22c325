"""Tables on devices: NVIDIA GPUs, and the emulated device that runs their kernels on the processor.

A device is named "cuda" (the first), "cuda:1", or "emulated". The last is for tests: it computes
the same bits from the same source, many thousands of times more slowly. "emulated:1" gives the
threads of a block their turns in the other order, which no answer may depend on.
"""

import importlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple, Protocol, cast, get_args

import numpy as np

from . import _core
from ._arrays import ByteArray, IndexArray, shown
from .dpf import Output
from .errors import ArgumentError, ResourceError

Strategy = Literal["auto", "branch", "level", "bounded", "cooperative"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

NODES_AT_A_TIME = 128
"""Nodes that a bounded walk expands at a time: the K of the paper, and its value there."""

_NAME = re.compile(r"(cuda|emulated)(?::([0-9]{1,3}))?")
SHARD_ROWS = 512
"""Rows are written from multiples of this on, and shards begin there."""


class EngineTable(Protocol):
    """What the engine's modules offer: rows of a table in one device's memory."""

    bytes: int

    def store(self, first: int, rows: object) -> None: ...
    def replace(self, indices: IndexArray, rows: ByteArray) -> None: ...
    def answer(
        self, keys: _core.Keys, strategy: str, run: int
    ) -> tuple[ByteArray, dict[str, int]]: ...
    def seconds_per_pass(self) -> float: ...
    def products_per_second(self) -> float: ...
    def calls_per_second(self, generator: str, leaves: bool) -> float: ...


class Engine(Protocol):
    """A module of the engine for one kind of device."""

    def devices(self) -> int: ...
    def device_info(self, device: int) -> dict[str, Any]: ...
    def Table(  # noqa: N802 - a class
        self, *, device: int, first_row: int, rows: int, domain: int, row_bytes: int, output: str
    ) -> EngineTable: ...


class Rows(Protocol):
    """An array of uint8, of shape (rows, row_bytes), of any library with DLPack."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, rows: slice, /) -> object: ...


class Device(NamedTuple):
    """A device by its kind ("cuda", "emulated") and its number."""

    kind: str
    number: int

    @classmethod
    def parse(cls, name: object) -> "Device":
        """The device of a name. Raises ArgumentError if it is no name of one."""
        match = _NAME.fullmatch(name) if isinstance(name, str) else None
        if match is None:
            raise ArgumentError(
                f"device: found {shown(name)}, expected a GPU: 'cuda', 'cuda:1' and so on"
            )
        return cls(match[1], int(match[2] or 0))

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"

    def engine(self) -> Engine:
        """The engine's module for it. Raises ResourceError if this build has none."""
        try:
            return cast(Engine, importlib.import_module(f"._{self.kind}", __package__))
        except ImportError as error:
            raise ResourceError(f"{self}: {_why_not(self.kind, error)}") from error


class Work(NamedTuple):
    """What an answer took, on all devices together."""

    expansions: int
    leaves: int
    launches: int
    peak_bytes: int


class DeviceTable:
    """The rows of a table on one device or several, which then hold a stretch of the rows each.

    Rows are as bytes. May be used from several threads. Raises ResourceError if there is no such
    device or it has no room, ArgumentError for more devices than stretches of 512 rows.
    """

    def __init__(
        self, devices: Sequence[Device], rows: int, row_bytes: int, output: Output
    ) -> None:
        blocks = -(-rows // SHARD_ROWS)
        if len(devices) > blocks:
            raise ArgumentError(
                f"{rows} rows cannot be split over {len(devices)} devices: each gets a multiple of "
                f"{SHARD_ROWS} rows"
            )
        self.rows, self.row_bytes, self.output = rows, row_bytes, output
        self.devices = tuple(devices)
        ends = [
            min(rows, blocks * (i + 1) // len(devices) * SHARD_ROWS) for i in range(len(devices))
        ]
        self._firsts = [0, *ends[:-1]]
        self._ends = ends
        self._shards = [
            device.engine().Table(
                device=device.number,
                first_row=first,
                rows=end - first,
                domain=rows,
                row_bytes=row_bytes,
                output=output,
            )
            for device, first, end in zip(devices, self._firsts, ends, strict=True)
        ]
        self._together = ThreadPoolExecutor(len(devices)) if len(devices) > 1 else None

    @property
    def bytes(self) -> int:
        """Device memory that the rows stand in."""
        return sum(shard.bytes for shard in self._shards)

    @property
    def shards(self) -> Sequence[EngineTable]:
        """The engine's tables, a device each."""
        return self._shards

    def store(self, first: int, rows: Rows) -> None:
        """Writes rows (count, row_bytes) of uint8 from row `first`, a multiple of 512, on.

        The rest of the last 512 becomes zero. Rows that lie on a GPU (DLPack) do not pass the host.
        """
        stop = first + rows.shape[0]
        for shard, begin, end in zip(self._shards, self._firsts, self._ends, strict=True):
            low, high = max(first, begin), min(stop, end)
            if low < high:
                try:
                    shard.store(low - begin, rows[low - first : high - first])
                except (TypeError, BufferError) as error:  # what the binding makes of no array
                    raise ArgumentError(
                        "the rows' library does not hand them out: expected C-contiguous uint8, "
                        f"found {type(rows).__name__} ({error})"
                    ) from error

    def replace(self, indices: IndexArray, rows: ByteArray) -> None:
        """Overwrites the rows at `indices`, which are all different."""
        for shard, begin, end in zip(self._shards, self._firsts, self._ends, strict=True):
            own = (indices >= begin) & (indices < end)
            shard.replace(
                np.ascontiguousarray(indices[own] - np.uint64(begin)),
                np.ascontiguousarray(rows[own]),
            )

    def answer(self, keys: _core.Keys) -> ByteArray:
        """Answers to keys, a row each, in the strategy that is best."""
        return self.answer_by("auto", keys)[0]

    def answer_by(
        self, strategy: Strategy, keys: _core.Keys, run: int = NODES_AT_A_TIME
    ) -> tuple[ByteArray, Work]:
        """Answers to keys in a strategy of the paper's, and what they took."""

        def part(shard: EngineTable) -> tuple[ByteArray, dict[str, int]]:
            return shard.answer(keys, strategy, run)

        run_all = map if self._together is None else self._together.map
        parts = list(run_all(part, self._shards))
        total, work = parts[0][0], Work(**parts[0][1])
        for answers, more in parts[1:]:
            summed = _core.combine(self.output, total.reshape(-1), answers.reshape(-1))
            total = summed.reshape(answers.shape)
            work = Work(*(a + b for a, b in zip(work, Work(**more), strict=True)))
        return total, work


def open_table(device: str, rows: int, row_bytes: int, output: Output) -> DeviceTable:
    """A table on one device, by its name; its rows are not written yet. Errors: DeviceTable's."""
    return DeviceTable([Device.parse(device)], rows, row_bytes, output)


def describe(devices: Sequence[Device]) -> str:
    """The devices' own names and numbers. Raises ResourceError if one is not there."""
    return " + ".join(
        f"{device.engine().device_info(device.number)['name']} ({device})" for device in devices
    )


def parse_several(names: str) -> list[Device]:
    """The devices of a command line's "cuda:0+cuda:1"; none for "auto" and "cpu", the processor.

    Raises ArgumentError.
    """
    if names in ("auto", "cpu"):
        return []
    return [Device.parse(name) for name in names.split("+")]


def chosen(device: object, devices: object) -> list[Device]:
    """The devices that a server is told to use; none for the processor. Raises ArgumentError."""
    if devices is not None:
        if device != "auto":
            raise ArgumentError("give a device, or several as `devices`, not both")
        if isinstance(devices, str) or not isinstance(devices, Sequence) or not devices:
            raise ArgumentError(f"devices: found {devices!r}, expected a list of names")
        return [Device.parse(name) for name in devices]
    if device in ("auto", "cpu"):
        return []
    try:
        return [Device.parse(device)]
    except ArgumentError as error:
        raise ArgumentError(f"{error}; or 'auto', or 'cpu'") from error


def gpus() -> list[str]:
    """The GPUs of this machine, a line each; or one line that says why there are none."""
    try:
        engine = Device("cuda", 0).engine()
        return [_described(engine, number) for number in range(engine.devices())]
    except ResourceError as error:
        return [f"none: {str(error).removeprefix('cuda:0: ')}"]


def _described(engine: Engine, number: int) -> str:
    try:
        info = engine.device_info(number)
    except ResourceError as error:  # one card that is out of order does not hide the others
        return f"cuda:{number} {error}"
    memory, capability = info["memory_bytes"] / 1e9, info["capability"] / 10
    return f"cuda:{number} {info['name']}, {memory:.0f} GB, compute capability {capability}"


def _why_not(kind: str, error: ImportError) -> str:
    if not isinstance(error, ModuleNotFoundError):
        return f"this build's part for it cannot be loaded: {error}"
    if kind == "cuda":
        return "this build has no GPU part: it was made without nvcc 12.4 or newer"
    return "this build has no emulated device"
