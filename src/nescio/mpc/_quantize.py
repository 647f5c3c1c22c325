"""Networks of floats as networks of integers: scales, windows and shifts, from calibration.

A result of a layer is an integer times a scale, one for each channel. The values of the layer, in
units of the scale, have an integer part, which is a place in the table, and `shift` bits below it.
The window of places holds the lowest and the highest value of the calibration, and a margin: a
value outside of it wraps, and its result is wrong.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._arrays import Array, as_count
from ..errors import ArgumentError
from ._activation import Activation
from ._classes import Classes, class_layers, classes_of, ranking
from ._maps import MAX_WEIGHT, Convolution, Dense, Floats, Ring, Shape
from ._network import Layer, Network, Term

MIN_WEIGHT_BITS, MAX_WEIGHT_BITS = 2, 15
_SMALLEST = 1e-6  # of a window, in units of the values
_VALUE_BITS = 31  # of values, with their signs: one less than the ring has
_CHUNK = 64
INPUT_MAX = 127

Windows = list[tuple[Floats, Floats]]


class FloatTerm(NamedTuple):
    """A linear map with float weights: `geometry` is a map of the same shapes."""

    source: int
    geometry: Convolution | Dense
    weights: Floats

    def __call__(self, values: Floats) -> Floats:
        """Maps a batch of values."""
        return self.geometry.floats(values, self.weights)

    def scaled(self, scales: Floats, results: Floats) -> Floats:
        """Returns the weights for inputs and results that are multiples of a scale a channel."""
        geometry, after = self.geometry, (1,) * (self.weights.ndim - 2)
        if isinstance(geometry, Dense):
            own = np.repeat(scales, self.weights.shape[1] // len(scales))[None]
        else:
            groups, each = geometry.groups, len(self.weights) // geometry.groups
            own = np.repeat(scales.reshape(groups, -1), each, axis=0)
        found: Floats = self.weights * own.reshape(*own.shape, *after)
        return found / results.reshape(-1, 1, *after)

    def rounded(self, scales: Floats, results: Floats) -> Term:
        """Returns the map with rounded weights for them."""
        whole = np.rint(self.scaled(scales, results)).astype(np.int64)
        geometry = replace(self.geometry, weights=whole)
        return Term(self.source, geometry)


@dataclass(frozen=True, eq=False)
class Function:
    """A function of one number. `scales` says that f(s x) = s f(x) for all s above 0.

    A function that scales may have another scale for each channel.
    """

    name: str
    of: Callable[[Floats], Floats]
    scales: bool = False

    def __call__(self, values: Floats) -> Floats:
        """Maps each number."""
        return self.of(values)


RELU = Function("relu", lambda values: np.maximum(values, 0), scales=True)


@dataclass(frozen=True, eq=False)
class FloatLayer:
    """Terms and a bias, then a function unless it is the last layer.

    The bias has one number a channel, or the shape of a result.
    """

    terms: tuple[FloatTerm, ...]
    bias: Floats
    function: Function = RELU

    @property
    def outputs(self) -> Shape:
        """The shape of a result."""
        return self.terms[0].geometry.outputs

    def values(self, results: Sequence[Floats]) -> Floats:
        """Returns the values of the layer, before its activation."""
        first, *others = (term(results[term.source]) for term in self.terms)
        for other in others:
            first = first + other
        if self.bias.ndim > 1:
            return first + self.bias
        return first + self.bias.reshape(-1, *(1,) * (first.ndim - 2))


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
        """Returns the outputs as floats, or the classes (n,).

        Raises ConsistencyError for a number that is no class.
        """
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


def run(layers: Sequence[FloatLayer], inputs: Floats) -> Iterator[Floats]:
    """Yields the values of every layer for inputs (n, *inputs)."""
    results = [inputs]
    for layer in layers:
        values = layer.values(results)
        yield values
        results.append(layer.function(values))


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
    if not margin >= 0:
        raise ArgumentError(f"margin: found {margin}, expected a number of at least 0")
    if not len(calibration) or not np.isfinite(calibration).all():
        raise ArgumentError("calibration: found no inputs, or numbers that are not finite")
    input_scale = float(np.abs(calibration).max()) * (1 + margin) / INPUT_MAX or 1.0
    scales = [np.full(calibration.shape[1], input_scale)]
    windows = windows_of(layers, calibration) if windows is None else windows
    widths = [bits] * (len(layers) - 1) if isinstance(bits, int) else bits
    made = []
    for layer, (low, high), width in zip(layers[:-1], windows[:-1], widths, strict=True):
        activation, own, results = _tabled(layer.function, low, high, width, margin)
        made.append(_layer(layer, activation, scales, own, weight_bits))
        scales.append(results)
    low, high = windows[-1]
    if as_class:
        made += _class_layers(layers[-1], scales, (low.min(), high.max(), margin), weight_bits)
        network = Network(calibration.shape[1:], tuple(made))
        return Quantized(network, input_scale, 1.0, int(np.prod(layers[-1].outputs)))
    largest = (1 + margin) * max(float(high.max()), float(-low.min()), _SMALLEST)
    last, output_scale = _last_layer(layers[-1], scales, largest, weight_bits)
    made.append(last)
    network = Network(calibration.shape[1:], tuple(made))
    return Quantized(network, input_scale, output_scale, largest=largest)


def windows_of(layers: Sequence[FloatLayer], calibration: Floats) -> Windows:
    """Returns the lowest and highest value of each channel, for every layer."""
    found: Windows = []
    for first in range(0, len(calibration), _CHUNK):
        for number, values in enumerate(run(layers, calibration[first : first + _CHUNK])):
            axes = tuple(axis for axis in range(values.ndim) if axis != 1)
            low, high = values.min(axes), values.max(axes)
            if first:
                low, high = np.minimum(low, found[number][0]), np.maximum(high, found[number][1])
                found[number] = low, high
            else:
                found.append((low, high))
    return found


def _tabled(
    function: Function, low: Floats, high: Floats, bits: int, margin: float
) -> tuple[Activation, Floats, Floats]:
    """Chooses a table and its window; returns them, and the scales of places and of results."""
    if function.scales:
        first, own = _window(low, high, bits, margin)
        real = 1.0
    else:
        first, scale = _window(low.min(keepdims=True), high.max(keepdims=True), bits, margin)
        own, real = np.repeat(scale, len(low)), float(scale[0])
    places = np.arange(-first, (1 << bits) - first, dtype=np.float64)
    found = function(real * places)
    signed = bool(found.min() < 0)
    unit = 1.0 if function is RELU else _unit(found, bits, signed=signed)
    entries = np.rint(found / unit).astype(np.int64)
    activation = Activation(lambda _: entries, bits=bits, low=-first, signed=signed)
    return activation, own, own * (unit / real)


def _unit(found: Floats, bits: int, *, signed: bool) -> float:
    """Returns the finest unit of entries of so many bits."""
    most = (1 << bits - 1) - 1 if signed else (1 << bits) - 1
    return max(float(np.abs(found).max()) / most, _SMALLEST)


def _window(low: Floats, high: Floats, bits: int, margin: float) -> tuple[int, Floats]:
    """Chooses the places below zero, and the finest scales of the channels."""
    below, above = np.maximum(-low, _SMALLEST), np.maximum(high, _SMALLEST)
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
    scale = max(largest / (1 << _VALUE_BITS - 1), finest)
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
    return max(_SMALLEST, *(float(one.max()) for one in weights))


def _rounded(
    layer: FloatLayer, scales: Sequence[Floats], units: Floats
) -> tuple[tuple[Term, ...], Array]:
    """Returns the terms and the bias in units of the results."""
    terms = tuple(term.rounded(scales[term.source], units) for term in layer.terms)
    each = units.reshape(-1, *(1,) * (layer.bias.ndim - 1))
    return terms, np.rint(layer.bias / each).astype(np.int64)
