"""Convolutions as products of polynomials, in plain Python.

A tile has h x w results. Its image is (h + k - 1) x (w + m - 1) pixels, for phases of k x m taps,
in rows that are `pitch` apart. A polynomial has `inputs` channels. Channels share the zeros between
them, and so do rows. Convolutions of several images are added: a product of all their polynomials
has `packed` channels of the sum.

Source: Cheetah (Huang et al., USENIX Security 2022), section 4; a convolution of stride s is one of
stride 1 on the phases of the image (src/nescio/mpc/_layout.py).
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from .rlwe import MODULUS, N, Polynomial

Image = list[list[list[int]]]
Kernels = list[list[list[list[int]]]]


@dataclass(frozen=True)
class Layer:
    """A convolution and the layout of its input; pairs are (rows, columns)."""

    in_channels: int
    image: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    tile: tuple[int, int]
    pitch: int
    inputs: int

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

    def zeros(self, axis: int) -> tuple[int, int]:
        """Count the rows or columns of zeros before and after the pixels of every channel.

        At most as many as a result has taps beside its pixel; none if there are several tiles.
        """
        if self.tile[axis] < self.results(axis):
            return 0, 0
        most, before, after = self.taps(axis) - 1, [], []
        for phase in range(min(self.stride[axis], self.kernel[axis])):
            places = (
                i * self.stride[axis] + phase - self.padding[axis] for i in range(self.side(axis))
            )
            inside = [0 <= place < self.image[axis] for place in places]
            before.append([*inside, True].index(True))
            after.append([*inside[::-1], True].index(True))
        return min(most, *before), min(most, *after)

    def block(self) -> int:
        """Count the coefficients from a channel to the next."""
        return (self.side(0) - min(self.zeros(0))) * self.pitch

    def length(self) -> int:
        """Count the coefficients of all channels, with their zeros."""
        last = (self.inputs - 1) * self.block()
        return last + (self.side(0) - 1) * self.pitch + self.side(1)

    def spacing(self) -> int:
        """Return the least distance of two output channels."""
        (above, below), (left, right) = self.zeros(0), self.zeros(1)
        return self.length() - min(above * self.pitch + left, below * self.pitch + right)


@dataclass(frozen=True)
class Sum:
    """Convolutions whose results are added, and the channels of a product."""

    layers: tuple[Layer, ...]
    out_channels: int
    packed: int

    def start(self, slot: int) -> int:
        """Return the position of the first result of an output channel."""
        first = max((own.inputs - 1) * own.block() + last_tap(own) for own in self.layers)
        return first + slot * max(own.spacing() for own in self.layers)


def last_tap(layer: Layer) -> int:
    """Return the offset of a kernel's first tap, if that of its last one is 0."""
    return (layer.taps(0) - 1) * layer.pitch + layer.taps(1) - 1


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
    block, channels = layer.block(), layer.channels()
    polynomials = []
    for (row, column), first in itertools.product(
        layer.tiles(), range(0, len(channels), layer.inputs)
    ):
        polynomial = [0] * (N + layer.length())
        for slot, (c, p, q) in enumerate(channels[first : first + layer.inputs]):
            for i, j in pixels(layer):
                value = pixel(
                    layer, x, c, (row + i) * layer.stride[0] + p, (column + j) * layer.stride[1] + q
                )
                polynomial[slot * block + i * layer.pitch + j] += value
        assert not any(polynomial[N:])
        polynomials.append(polynomial[:N])
    return polynomials


def encode_weights(total: Sum, weights: list[Kernels]) -> list[list[Polynomial]]:
    """Return the polynomials (outputs, inputs of all layers)."""
    parts = [_weights_of(total, *own) for own in zip(total.layers, weights, strict=True)]
    return [[polynomial for own in row for polynomial in own] for row in zip(*parts, strict=True)]


def _weights_of(total: Sum, layer: Layer, weights: Kernels) -> list[list[Polynomial]]:
    outputs, inputs = (
        -(-total.out_channels // total.packed),
        -(-len(layer.channels()) // layer.inputs),
    )
    polynomials = [[[0] * N for _ in range(inputs)] for _ in range(outputs)]
    for o, (given, (c, p, q)) in itertools.product(
        range(total.out_channels), enumerate(layer.channels())
    ):
        target = polynomials[o // total.packed][given // layer.inputs]
        start = total.start(o % total.packed) - given % layer.inputs * layer.block()
        for a, b in itertools.product(range(layer.taps(0)), range(layer.taps(1))):
            value = tap(layer, weights, o, c, a * layer.stride[0] + p, b * layer.stride[1] + q)
            target[start - a * layer.pitch - b] = value
    return polynomials


def positions(total: Sum) -> list[list[int]]:
    """Return the positions of the results in each output of a tile."""
    layer = total.layers[0]
    return [
        [
            total.start(o - first) + i * layer.pitch + j
            for o in range(first, min(first + total.packed, total.out_channels))
            for i in range(layer.tile[0])
            for j in range(layer.tile[1])
        ]
        for first in range(0, total.out_channels, total.packed)
    ]


def decode(total: Sum, shares: list[int]) -> Image:
    """Arrange the results of all tiles by channel, row and column."""
    layer, values = total.layers[0], iter(shares)
    rows, columns = layer.results(0), layer.results(1)
    out = [[[0] * columns for _ in range(rows)] for _ in range(total.out_channels)]
    for (row, column), o in itertools.product(layer.tiles(), range(total.out_channels)):
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
        for o in range(len(weights))
    ]
