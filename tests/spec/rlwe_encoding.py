"""Convolutions as products of polynomials, in plain Python.

A tile has h x w results. Its image is (h + k - 1) x (w + m - 1) pixels, for phases of k x m taps:
B coefficients. A polynomial has `inputs` channels, and a product `outputs` of them.

Source: Cheetah (Huang et al., USENIX Security 2022), section 4; a convolution of stride s is one of
stride 1 on the phases of the image (src/nescio/mpc/_encoding.py).
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from .rlwe import MODULUS, N, Polynomial

Image = list[list[list[int]]]
Kernels = list[list[list[list[int]]]]


@dataclass(frozen=True)
class Layer:
    """A convolution and its packing; pairs are (rows, columns)."""

    in_channels: int
    out_channels: int
    image: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    tile: tuple[int, int]
    inputs: int
    outputs: int

    def results(self, axis: int) -> int:
        """Count the results in a direction."""
        padded = self.image[axis] + 2 * self.padding[axis]
        return (padded - self.kernel[axis]) // self.stride[axis] + 1

    def taps(self, axis: int) -> int:
        """Count the taps of a phase in a direction."""
        return -(-self.kernel[axis] // self.stride[axis])

    def side(self, axis: int) -> int:
        """Count the pixels of a tile in a direction."""
        return self.tile[axis] + self.taps(axis) - 1

    def tiles(self) -> list[tuple[int, int]]:
        """List the first result of each tile."""
        rows, columns = (range(0, self.results(a), self.tile[a]) for a in (0, 1))
        return list(itertools.product(rows, columns))

    def channels(self) -> list[tuple[int, int, int]]:
        """List the channels of all phases: channel, phase down, phase across."""
        p, q = (range(min(self.stride[a], self.kernel[a])) for a in (0, 1))
        return list(itertools.product(range(self.in_channels), p, q))


def pixel(layer: Layer, x: Image, c: int, row: int, column: int) -> int:
    """Return a pixel of the padded image, and zero beyond it."""
    i, j = row - layer.padding[0], column - layer.padding[1]
    inside = 0 <= i < layer.image[0] and 0 <= j < layer.image[1]
    return x[c][i][j] if inside else 0


def tap(layer: Layer, weights: Kernels, o: int, c: int, a: int, b: int) -> int:
    """Return a tap of a kernel, and zero beyond it."""
    inside = a < layer.kernel[0] and b < layer.kernel[1]
    return weights[o][c][a][b] if inside else 0


def pixels(layer: Layer) -> Iterator[tuple[int, int]]:
    """Yield the pixels of a tile."""
    return itertools.product(range(layer.side(0)), range(layer.side(1)))


def encode_input(layer: Layer, x: Image) -> list[Polynomial]:
    """Return the polynomials of all tiles."""
    block, channels = layer.side(0) * layer.side(1), layer.channels()
    polynomials = []
    for (row, column), first in itertools.product(
        layer.tiles(), range(0, len(channels), layer.inputs)
    ):
        polynomial = [0] * N
        for slot, (c, p, q) in enumerate(channels[first : first + layer.inputs]):
            for i, j in pixels(layer):
                value = pixel(
                    layer, x, c, (row + i) * layer.stride[0] + p, (column + j) * layer.stride[1] + q
                )
                polynomial[slot * block + i * layer.side(1) + j] = value
        polynomials.append(polynomial)
    return polynomials


def encode_weights(layer: Layer, weights: Kernels) -> list[list[Polynomial]]:
    """Return the polynomials (outputs, inputs)."""
    outputs, inputs = (
        -(-layer.out_channels // layer.outputs),
        -(-len(layer.channels()) // layer.inputs),
    )
    polynomials = [[[0] * N for _ in range(inputs)] for _ in range(outputs)]
    for o, (given, (c, p, q)) in itertools.product(
        range(layer.out_channels), enumerate(layer.channels())
    ):
        target = polynomials[o // layer.outputs][given // layer.inputs]
        slot, place = o % layer.outputs, given % layer.inputs
        start = first_result(layer, slot) - place * layer.side(0) * layer.side(1)
        for a, b in itertools.product(range(layer.taps(0)), range(layer.taps(1))):
            value = tap(layer, weights, o, c, a * layer.stride[0] + p, b * layer.stride[1] + q)
            target[start - a * layer.side(1) - b] = value
    return polynomials


def first_result(layer: Layer, slot: int) -> int:
    """Return the position of the first result of an output channel."""
    block = layer.side(0) * layer.side(1)
    last = (layer.taps(0) - 1) * layer.side(1) + layer.taps(1) - 1
    return ((slot + 1) * layer.inputs - 1) * block + last


def positions(layer: Layer) -> list[list[int]]:
    """Return the positions of the results in each output of a tile."""
    return [
        [
            first_result(layer, o - first) + i * layer.side(1) + j
            for o in range(first, min(first + layer.outputs, layer.out_channels))
            for i in range(layer.tile[0])
            for j in range(layer.tile[1])
        ]
        for first in range(0, layer.out_channels, layer.outputs)
    ]


def decode(layer: Layer, shares: list[int]) -> Image:
    """Arrange the results of all tiles by channel, row and column."""
    values = iter(shares)
    rows, columns = layer.results(0), layer.results(1)
    out = [[[0] * columns for _ in range(rows)] for _ in range(layer.out_channels)]
    for (row, column), o in itertools.product(layer.tiles(), range(layer.out_channels)):
        for i, j in itertools.product(range(layer.tile[0]), range(layer.tile[1])):
            value = next(values)
            if row + i < rows and column + j < columns:
                out[o][row + i][column + j] = value
    return out


def convolve(layer: Layer, x: Image, weights: Kernels) -> Image:
    """Return the convolution in Z_2^32 by its definition."""
    taps = list(
        itertools.product(range(layer.in_channels), range(layer.kernel[0]), range(layer.kernel[1]))
    )
    return [
        [
            [
                sum(
                    weights[o][c][a][b]
                    * pixel(layer, x, c, i * layer.stride[0] + a, j * layer.stride[1] + b)
                    for c, a, b in taps
                )
                % MODULUS
                for j in range(layer.results(1))
            ]
            for i in range(layer.results(0))
        ]
        for o in range(layer.out_channels)
    ]
