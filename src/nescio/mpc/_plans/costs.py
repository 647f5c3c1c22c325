"""Bytes of each layer in both phases, computed ahead from what is public.

The offline phase joins the messages of all layers, so that its counts from the channel are those of
a phase. These are the parts of each layer; tests compare their sums with the channel's.
"""

import math
from typing import NamedTuple

from .._activation import Activation
from .._linear import POLYNOMIAL_BYTES
from .._products import ProductPlan
from .._public import PublicLayer, PublicNetwork
from .._tables import TREES_FROM
from .._transfers import dabit_field, level_field
from .._trees import BLOCK_BITS, MESSAGE_BYTES

_TRANSFER_BYTES = 0.13  # of silent OT for a random transfer in a long run, as measured
_RING_BYTES = 4


class LayerCost(NamedTuple):
    """Bytes of both directions for one inference; frames and their headers are not counted.

    `lookups` is the number of tables, and `table_bits` is None for the last layer, which has none.
    `linear_bytes` has the encrypted masks that no earlier layer uses, and the products.
    `weight_bytes` is the server's memory for transformed weights, which serve all inferences.
    """

    layer: int
    lookups: int
    table_bits: int | None
    online_bytes: int
    table_bytes: int
    linear_bytes: int
    weight_bytes: int

    @property
    def offline_bytes(self) -> int:
        """The bytes of the offline phase."""
        return self.table_bytes + self.linear_bytes


def costs(network: PublicNetwork) -> list[LayerCost]:
    """Computes the bytes of every layer."""
    plan, seen, found = ProductPlan.of(network), set[int](), []
    for number, (layer, products) in enumerate(zip(network.layers, plan.layers, strict=True), 1):
        linear = sum(product.encoding.bytes_out for product in products)
        new = {message for product in products for message in product.messages} - seen
        linear += sum(plan.messages[message].layout.bytes for message in new)
        seen |= new
        inputs = _RING_BYTES * math.prod(network.inputs) if number == 1 else 0
        weights = POLYNOMIAL_BYTES * sum(product.polynomials for product in products)
        found.append(_layer_cost(number, layer, inputs, (linear, weights)))
    return found


def _layer_cost(
    number: int, layer: PublicLayer, inputs: int, products: tuple[int, int]
) -> LayerCost:
    """Adds the bytes of lookups; `products` are the linear bytes and those of weights."""
    own = layer.activation
    if own is None:
        return LayerCost(number, 0, None, inputs + _RING_BYTES * layer.size, 0, *products)
    online = layer.size * online_bits(own) // 8
    tables = round(layer.size * table_bytes(own.bits, own.outputs))
    return LayerCost(number, layer.size, own.bits, inputs + online, tables, *products)


def online_bits(activation: Activation) -> int:
    """Counts the bits of a lookup: a place, two masked entries, a number."""
    return activation.bits + 2 * activation.outputs + 8 * _RING_BYTES


def table_bytes(bits: int, outputs: int) -> float:
    """Returns the bytes of a table, with the client's place and an estimate for its OTs."""
    transfers, message = table_messages(bits, outputs)
    return message / 8 + _TRANSFER_BYTES * transfers


def table_messages(bits: int, outputs: int) -> tuple[int, int]:
    """Counts the OTs of a table, and the bits of its messages and of the client's place.

    A tree takes a correction a level from each party, and a chosen bit in one of its two OTs.
    """
    low = bits if bits < TREES_FROM else BLOCK_BITS
    high = bits - low
    levels = [level_field(level, bits, low) for level in range(bits)]
    vectors = 2 * sum(field.entries for field in levels)
    numbers = [*levels, *(dabit_field(number) for number in range(outputs))]
    trees = high * (2 * 8 * MESSAGE_BYTES + 1)
    transfers = bits + outputs + low - 1 + 2 * high
    return transfers, vectors + sum(field.product for field in numbers) + trees + bits
