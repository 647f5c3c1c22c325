"""Networks of floats as networks of integers: scales, windows and shifts, from calibration.

A result of a layer is an integer times a scale, one for each channel. The values of the layer, in
units of the scale, have an integer part, which is a place in the table, and `shift` bits below it.
The window of places holds the lowest and the highest value of the calibration, and a margin: a
value outside of it wraps, and its result is wrong.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from ..._arrays import Array, as_count, shown
from ...errors import ArgumentError
from .._activation import Activation
from .._classes import Classes, class_layers, classes_of, ranking
from .._maps import MAX_WEIGHT, Floats, Ring
from .._network import Layer, Network, Term
from .._products import overloaded
from .floats import RELU, FloatLayer, Function, Windows, windows_of

MIN_WEIGHT_BITS, MAX_WEIGHT_BITS = 2, 15
MAX_MARGIN = 1000
_SMALLEST = 1e-6  # of the values of a channel, in units of those of its layer
_ZERO = 2.0**-64  # in place of 0, before a division
_COARSE_BITS = 8  # of scales that are public
_VALUE_BITS = 31  # of values, with their signs: one less than the ring has
INPUT_MAX = 127


class Scaled:
    """Inputs as integers, and outputs as floats, by a scale of each, or as one of `classes`."""

    input_scale: float
    output_scale: float
    classes: int | None

    def encode(self, inputs: Floats) -> Ring:
        """Rounds inputs (n, *inputs) to integers of 8 bits, modulo 2^32; larger ones are cut."""
        whole = np.clip(np.rint(inputs / self.input_scale), -INPUT_MAX, INPUT_MAX)
        return whole.astype(np.int32).view(np.uint32)

    def decode(self, outputs: Ring) -> Floats | Classes:
        """Returns the outputs as floats, or the classes (n,)."""
        if self.classes is not None:
            return classes_of(outputs, self.classes)
        floats: Floats = outputs.view(np.int32).astype(np.float64)
        return floats * self.output_scale


@dataclass(frozen=True, eq=False)
class Quantized(Scaled):
    """A network of integers, the scale of its inputs, and that of its outputs.

    `largest` is the largest magnitude of an output in the calibration, and a margin. If the outputs
    are classes, `classes` is their number, the scale is 1, and `largest` is None.
    """

    network: Network
    input_scale: float
    output_scale: float
    classes: int | None = None
    largest: float | None = None


def quantize(
    layers: Sequence[FloatLayer],
    calibration: Floats,
    *,
    bits: int | Sequence[int] = 8,
    margin: float = 0.25,
    weight_bits: int = 11,
    windows: Windows | None = None,
    as_class: bool = False,
) -> Quantized:
    """Returns the network of integers for layers whose last one has no activation.

    `calibration` (n, *inputs) decides the windows, which have `margin` more on both sides. Tables
    have 2^bits entries: a number, or one for each layer with a function. Weights have up to
    `weight_bits` bits and a sign. `windows` are those of `windows_of`, if they are known. With
    `as_class`, further layers find the largest output. Raises ArgumentError.
    """
    as_count(weight_bits, "weight_bits", MIN_WEIGHT_BITS, MAX_WEIGHT_BITS)
    if not isinstance(margin, Real) or not 0 <= margin <= MAX_MARGIN:
        raise ArgumentError(
            f"margin: found {shown(margin)}, expected a number from 0 to {MAX_MARGIN}"
        )
    if not len(calibration) or not np.isfinite(calibration).all():
        raise ArgumentError("calibration: found no inputs, or numbers that are not finite")
    if not calibration.any():
        raise ArgumentError(
            "calibration: found zeros alone, expected inputs like those that clients will have"
        )
    windows = windows_of(layers, calibration) if windows is None else windows
    count = len(layers) - 1
    widths = [bits] * count if isinstance(bits, int) else [*bits]
    precisions = [weight_bits] * len(layers)
    while True:
        own = _Quantizer(layers, windows, widths, float(margin), precisions)
        found = own.quantized(calibration, as_class=as_class)
        excess = [number for number in overloaded(found.network) if number < len(layers)]
        if not excess:
            return found
        for number in excess:
            precisions[number] -= 1
        if min(precisions) < MIN_WEIGHT_BITS:
            raise ArgumentError(
                f"layer {excess[0] + 1}: found sums of too many weights, also with "
                f"{MIN_WEIGHT_BITS} bits each; divide the layer, or average fewer numbers"
            )


class _Quantizer:
    """The parts of `quantize`, for widths of tables and bits of weights of each layer."""

    def __init__(
        self,
        layers: Sequence[FloatLayer],
        windows: Windows,
        widths: Sequence[int],
        margin: float,
        precisions: Sequence[int],
    ) -> None:
        self._layers, self._windows, self._widths = layers, windows, widths
        self._margin, self._precisions = margin, precisions

    def quantized(self, calibration: Floats, *, as_class: bool) -> Quantized:
        """Returns the network, with its scales."""
        largest = float(np.abs(calibration).max()) * (1 + self._margin)
        input_scale = coarse(largest / INPUT_MAX)
        scales = [np.full(calibration.shape[1], input_scale)]
        made = [self._hidden(number, scales) for number in range(len(self._layers) - 1)]
        low, high = self._windows[-1]
        last, bits = self._layers[-1], self._precisions[-1]
        if as_class:
            made += _class_layers(last, scales, (low.min(), high.max(), self._margin), bits)
            network = Network(calibration.shape[1:], tuple(made))
            return Quantized(network, input_scale, 1.0, int(np.prod(last.outputs)))
        largest = coarse((1 + self._margin) * _magnitude(low, high))
        layer, output_scale = _last_layer(last, scales, largest, bits)
        network = Network(calibration.shape[1:], (*made, layer))
        return Quantized(network, input_scale, output_scale, largest=largest)

    def _hidden(self, number: int, scales: list[Floats]) -> Layer:
        """Returns a layer with a table; adds the scales of its results."""
        layer, (low, high) = self._layers[number], self._windows[number]
        window = low, high, self._margin
        try:
            activation, own, results = _tabled(layer.function, window, self._widths[number])
        except ArgumentError as error:
            raise ArgumentError(f"layer {number + 1}: {error}") from error
        found = _layer(layer, activation, scales, own, self._precisions[number])
        scales.append(results)
        return found


def coarse(scale: float) -> float:
    """Returns a scale with 8 significant bits, not below it: public ones tell little of weights."""
    fraction, exponent = math.frexp(scale)
    return math.ldexp(math.ceil(math.ldexp(fraction, _COARSE_BITS)), exponent - _COARSE_BITS)


def _magnitude(low: Floats, high: Floats) -> float:
    """Returns the largest magnitude of a layer's values, or 1 if all are 0."""
    return max(float(np.abs(low).max()), float(np.abs(high).max())) or 1.0


def _tabled(
    function: Function, window: tuple[Floats, Floats, float], bits: int
) -> tuple[Activation, Floats, Floats]:
    """Chooses a table and its window; returns them, and the scales of places and of results.

    `window` has the lowest and highest value of each channel, and the margin.
    """
    low, high, margin = window
    if function.scales:
        first, own = _window(low, high, bits, margin)
        real = 1.0
    else:
        first, scale = _window(low.min(keepdims=True), high.max(keepdims=True), bits, margin)
        own, real = np.repeat(scale, len(low)), float(scale[0])
    places = np.arange(-first, (1 << bits) - first, dtype=np.float64)
    with np.errstate(all="ignore"):  # what is not finite is refused
        found = function(real * places)
    if not np.isfinite(found).all():
        bad = float(real * places[~np.isfinite(found)][0])
        raise ArgumentError(
            f"found a function ({function.name}) that is not finite at {bad:.6g}, expected finite "
            f"numbers from {real * places[0]:.6g} to {real * places[-1]:.6g}, which are the values "
            "of the calibration and a margin; clamp its input in the model, or lower `margin`"
        )
    signed = bool(found.min() < 0)
    unit = 1.0 if function is RELU else _unit(found, bits, signed=signed)
    entries = np.rint(found / unit).astype(np.int64)
    activation = Activation(lambda _: entries, bits=bits, low=-first, signed=signed)
    return activation, own, own * (unit / real)


def _unit(found: Floats, bits: int, *, signed: bool) -> float:
    """Returns the finest unit of entries of so many bits."""
    most = (1 << bits - 1) - 1 if signed else (1 << bits) - 1
    return float(np.abs(found).max()) / most or 1.0


def _window(low: Floats, high: Floats, bits: int, margin: float) -> tuple[int, Floats]:
    """Chooses the places below zero, and the finest scales of the channels.

    A channel without values but 0 has the scale of the layer.
    """
    most = _magnitude(low, high)
    dead = np.maximum(np.abs(low), np.abs(high)) <= _SMALLEST * most
    below, above = (np.where(dead, most, np.maximum(own, _SMALLEST * most)) for own in (-low, high))
    size = 1 << bits
    choices = []
    for first in range(max(2, size // 16), size - 1, max(1, size // 16)):
        scale = np.maximum(above / (size - first - 1), below / (first - 1)) * (1 + margin)
        choices.append((float(np.log(scale).mean()), first, scale))
    _, first, scale = min(choices, key=lambda choice: choice[:2])
    return first, scale


def _layer(
    layer: FloatLayer,
    activation: Activation,
    scales: Sequence[Floats],
    own: Floats,
    weight_bits: int,
) -> Layer:
    """Rounds the weights of a layer, with as many bits below the places as they have room for."""
    largest = _largest(layer, scales, own)
    if largest > MAX_WEIGHT:
        raise ArgumentError(
            f"layer {len(scales)}: found weights of {largest:,.0f} units of its values, expected "
            f"{MAX_WEIGHT:,} at most: its values are too small in the calibration; take inputs "
            "like those that clients will have"
        )
    room = ((1 << weight_bits) - 1) / largest
    shift = int(np.clip(np.floor(np.log2(room)), 0, _VALUE_BITS - activation.bits))
    return Layer(*_rounded(layer, scales, own * 2.0**-shift), activation, shift)


def _last_layer(
    layer: FloatLayer, scales: Sequence[Floats], largest: float, weight_bits: int
) -> tuple[Layer, float]:
    """Rounds the weights of the last layer; returns it and the scale of its outputs."""
    ones = np.ones(len(layer.bias))
    finest = _largest(layer, scales, ones) / ((1 << weight_bits) - 1)
    scale = coarse(max(largest / (1 << _VALUE_BITS - 1), finest))
    return Layer(*_rounded(layer, scales, ones * scale)), scale


def _class_layers(
    layer: FloatLayer, scales: Sequence[Floats], window: tuple[float, float, float], bits: int
) -> list[Layer]:
    """Returns the last layer as ranks of a lowest and highest value, and those to the class.

    What is subtracted from all outputs does not change the largest one.
    """
    activation, unit, center = ranking(*window)
    ranked = replace(layer, bias=layer.bias - center)
    own = np.full(len(layer.bias), unit)
    first = _layer(ranked, activation, scales, own, bits)
    return [first, *class_layers(layer.outputs, len(scales))]


def _largest(layer: FloatLayer, scales: Sequence[Floats], own: Floats) -> float:
    weights = (np.abs(term.scaled(scales[term.source], own)) for term in layer.terms)
    return max(_ZERO, *(float(one.max()) for one in weights))


def _rounded(
    layer: FloatLayer, scales: Sequence[Floats], units: Floats
) -> tuple[tuple[Term, ...], Array]:
    """Returns the terms and the bias in units of the results."""
    terms = tuple(term.rounded(scales[term.source], units) for term in layer.terms)
    each = units.reshape(-1, *(1,) * (layer.bias.ndim - 1))
    return terms, np.rint(layer.bias / each).astype(np.int64)
