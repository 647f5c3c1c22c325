"""Peak rates of devices: memory, matrix instructions, and the generator alone."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .._device import Device
from ..dpf import Generator, Output
from ..pir._device_table import DeviceTable, Shard
from .limits import Tree

_ELEMENT_BYTES = {"u8": 1, "u32": 4, "u64": 8, "u128": 16}


class LimitSeconds(NamedTuple):
    """The time of each part of an answer if it has the devices to itself."""

    memory: float  # reading the table once
    product: float  # matrix instructions on operands in registers
    generator: float  # the generator's calls, all data in registers

    @property
    def longest(self) -> float:
        """The lower bound of the answer's time."""
        return max(self)


class DeviceLimits:
    """The limits of devices. A rate is measured once per run, a pass once per table.

    If rows are split between devices, the slowest device counts.
    """

    def __init__(self) -> None:
        self._rates: dict[tuple[object, ...], float] = {}

    def floor(self, table: DeviceTable, generator: Generator, batch: int) -> LimitSeconds:
        """Returns the limits of lookups answered with the fewest calls and products."""
        trees = [
            (batch * group.slots, Tree.of(group.rows, table.output, generator))
            for group in table.bins
        ]
        calls = Tree(
            sum(keys * tree.expansions for keys, tree in trees),
            sum(keys * tree.leaves for keys, tree in trees),
        )
        return LimitSeconds(
            max(shard.seconds_per_pass() for shard in table.shards),
            self._products(table, batch),
            self.generator(table, generator, calls),
        )

    def generator(self, table: DeviceTable, generator: Generator, calls: Tree) -> float:
        """Returns the seconds for the given calls of a generator."""
        return max(
            share
            * (
                calls.expansions / self._calls(device, shard, generator, leaves=False)
                + calls.leaves / self._calls(device, shard, generator, leaves=True)
            )
            for device, shard, share in _parts(table)
        )

    def _products(self, table: DeviceTable, batch: int) -> float:
        wanted = batch * sum(
            group.slots * products_of(group.rows, table.row_bytes, table.output)
            for group in table.bins
        )
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
    """Returns the number of products, of bits or of bytes, in one answer.

    For words of w bytes, the product of byte i of a share and byte j of a row counts if i + j < w:
    (w + 1) / 2 products for each byte of a row.
    """
    if output == "bit":
        return rows * row_bytes * 8
    width = _ELEMENT_BYTES[output]
    return rows * -(-row_bytes // width) * width * (width + 1) / 2


def _parts(table: DeviceTable) -> Iterator[tuple[Device, Shard, float]]:
    """Yields each device, its rows, and its fraction of all rows."""
    for device, shard in zip(table.devices, table.shards, strict=True):
        yield device, shard, shard.bytes / table.bytes
