"""Floors of a private layer: bytes by arithmetic, and times of the inner loops of one thread."""

import math
from typing import NamedTuple

import numpy as np

from ... import _core
from ..._timing import median_seconds
from ...mpc import Activation
from ...mpc._encoding import Encoding
from ...mpc._layout import ConvolutionShape
from ...mpc._plans.costs import online_bits, table_messages
from ...ot import parameters
from ...ot._party import DEFAULT_PRIMAL
from ..ot.run import limit_seconds
from ..quant_limits import Reading
from .cases import Task

__all__ = ["Floors", "floors", "product_seconds"]

_RING_BYTES = 4
_CACHED_BYTES = 1 << 17
_SECONDS = 0.05


class Floors(NamedTuple):
    """The least bytes of both directions, wall times and CPU time of both parties."""

    online_bytes: int
    offline_bytes: int
    online_seconds: float
    offline_seconds: float
    cpu_seconds: float


def floors(task: Task) -> Floors:
    """Computes bytes, and measures the inner loops."""
    if task.shape is not None:
        return _product(task.shape)
    return _lookups(task.elements, task.activation)


def _lookups(count: int, activation: Activation) -> Floors:
    """Returns the floors of ReLUs; the parties look up in turns, and make tables at once.

    Offline bytes are the packed messages without those of the OTs, offline time is that of the OTs.
    """
    lookup = _lookup_seconds(count, activation)
    transfers, offline_bits = table_messages(activation.bits, activation.outputs)
    making = limit_seconds(count * transfers, parameters.primal(DEFAULT_PRIMAL))
    return Floors(
        math.ceil(count * online_bits(activation) / 8),
        math.ceil(count * offline_bits / 8),
        2 * lookup,
        making,
        2 * (lookup + making),
    )


def _lookup_seconds(count: int, activation: Activation) -> float:
    """Returns one party's time: lookups in the cache, or one read of the tables if longer."""
    words = max(1, (1 << activation.bits) // 64)
    cached = max(64, _CACHED_BYTES // (8 * words))
    one_hot, opened = np.zeros((cached, words), np.uint64), np.zeros(cached, np.uint16)
    pool = _core.ThreadPool(1)
    backward = np.zeros(2 << activation.bits, activation.entries.dtype)
    padding = np.zeros(_core.lut_table_padding() // backward.itemsize, backward.dtype)
    twice = np.concatenate([backward, padding])

    def look_up() -> object:
        return _core.lut_look_up(activation.bits, twice, one_hot, opened, pool)

    in_cache = median_seconds(look_up, _SECONDS) / cached
    stored = 8 * words + 2 + 2 + _RING_BYTES * activation.outputs
    reading = Reading(count * stored, pool)
    return max(count * in_cache, reading.seconds(median_seconds(reading, _SECONDS)))


def _product(shape: ConvolutionShape) -> Floors:
    """Returns the floors of a linear layer: its ciphertexts and shares, its inner loops."""
    encoding, results = Encoding.of(shape), math.prod(shape.output)
    numbers = shape.in_channels * math.prod(shape.image) + shape.out_channels * results
    taps = shape.in_channels * math.prod(shape.kernel)
    values, weights = np.ones((results, taps)), np.ones((taps, shape.out_channels))
    plain = median_seconds(lambda: values @ weights, _SECONDS)
    offline = product_seconds(encoding)
    return Floors(_RING_BYTES * numbers, encoding.bytes, plain, offline, plain + offline)


def product_seconds(encoding: Encoding) -> float:
    """Returns the time of the inner loops of both parties, each alone in the cache."""
    forward, inverse, product, block = _core.seconds_per_row()
    inputs = sum(layout.count for layout in encoding.layouts)
    outputs = encoding.tile_count * encoding.outputs
    stream = 256  # blocks of a row's residues; errors and ternary values take twice as many
    encrypt = inputs * (2 * forward + 2 * product + 4 * stream * block)
    expand = inputs * 2 * stream * block
    terms = inputs // encoding.tile_count + 1
    rows = 2 * forward + 4 * inverse + 4 * terms * product
    evaluate = outputs * (rows + 4 * stream * block)
    decrypt = outputs * 2 * (forward + product + inverse)
    return encrypt + expand + evaluate + decrypt
