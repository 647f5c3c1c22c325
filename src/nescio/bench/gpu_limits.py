"""What devices could do at most: their memory, their matrix instructions, the generator alone."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .._device import Device
from ..dpf import Generator, Output
from ..pir._device_table import DeviceTable, Shard
from .limits import Tree

_ELEMENT_BYTES = {"u8": 1, "u32": 4, "u64": 8, "u128": 16}


class LimitSeconds(NamedTuple):
    """The time that each part of an answer takes if it has the devices to itself."""

    memory: float  # reading the table once
    product: float  # matrix instructions, their operands in registers
    generator: float  # calls of it, everything in registers

    @property
    def longest(self) -> float:
        """What no answer can be faster than."""
        return max(self)


class DeviceLimits:
    """Limits of devices; a rate is measured once in a run, a pass once for each table.

    Where rows are split over devices, the slowest counts.
    """

    def __init__(self) -> None:
        self._rates: dict[tuple[object, ...], float] = {}

    def floor(self, table: DeviceTable, generator: Generator, batch: int) -> LimitSeconds:
        """The limits of a batch that is answered with as few calls and products as can be."""
        tree = Tree.of(table.rows, table.output, generator)
        calls = Tree(batch * tree.expansions, batch * tree.leaves)
        return LimitSeconds(
            max(shard.seconds_per_pass() for shard in table.shards),
            self._products(table, batch),
            self.generator(table, generator, calls),
        )

    def generator(self, table: DeviceTable, generator: Generator, calls: Tree) -> float:
        """Seconds for some calls of a generator."""
        return max(
            share
            * (
                calls.expansions / self._calls(device, shard, generator, leaves=False)
                + calls.leaves / self._calls(device, shard, generator, leaves=True)
            )
            for device, shard, share in _parts(table)
        )

    def _products(self, table: DeviceTable, batch: int) -> float:
        wanted = batch * products_of(table.rows, table.row_bytes, table.output)
        return max(
            share * wanted / self._rate((device, table.output == "bit"), shard.products_per_second)
            for device, shard, share in _parts(table)
        )

    def _calls(self, device: Device, shard: Shard, generator: Generator, *, leaves: bool) -> float:
        return self._rate(
            (device, generator, leaves), lambda: shard.calls_per_second(generator, leaves)
        )

    def _rate(self, key: tuple[object, ...], measure: Callable[[], float]) -> float:
        if key not in self._rates:
            self._rates[key] = measure()
        return self._rates[key]


def products_of(rows: int, row_bytes: int, output: Output) -> float:
    """Products, of bits or of bytes, that an answer needs.

    Of words of w bytes those of byte i of a share with byte j of a row count if i + j < w, which
    are (w + 1) / 2 for each byte of a row.
    """
    if output == "bit":
        return rows * row_bytes * 8
    width = _ELEMENT_BYTES[output]
    return rows * -(-row_bytes // width) * width * (width + 1) / 2


def _parts(table: DeviceTable) -> Iterator[tuple[Device, Shard, float]]:
    """Each device, its rows, and which share of all rows they are."""
    for device, shard in zip(table.devices, table.shards, strict=True):
        yield device, shard, shard.bytes / table.bytes
