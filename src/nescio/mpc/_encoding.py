"""Convolutions and matrix products as products of polynomials, by their coefficients.

A convolution of stride 1 without padding is one product of polynomials. Let a tile have h x w
pixels in each channel, and a kernel have k x m taps. With blocks of B = h w coefficients,

    pixel (i, j) of channel c               at  c B + i w + j
    tap (a, b) of channels c and o          at  (o C + C - 1 - c) B + D - a w - b
    result (i, j) of output channel o       at  (o C + C - 1) B + D + i w + j

where C input channels are in one polynomial, and D = (k - 1) w + m - 1. One product has the results
of O output channels if C O B <= N: terms that wrap around, of a degree of N or more, end below
(C - 1) B + D. A matrix product is a convolution of 1 x 1.

Padding is zeros around the image. A convolution of stride s has stride 1 on the phases of the
image: phase (p, q) has the pixels (s i + p, s j + q) and the taps (s a + p, s b + q). So each phase
of a channel is a channel. A large image is cut into tiles that overlap by a kernel less one.

Source: Huang, Lu, Hong and Ding, "Cheetah: Lean and Fast Secure Two-Party Deep Neural Network
Inference" (USENIX Security 2022), section 4; phases instead of its strided results.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import ArgumentError
from ._maps import Ring

__all__ = ["ConvolutionShape", "Encoding", "Packing", "linear"]

WeightArray = npt.NDArray[np.int32]

N = _core.RLWE_DEGREE
SEED_BYTES = 32
CIPHERTEXT_BYTES = 2 * N * 30 // 8
UPPER_BYTES = N * 40 // 8
RESULT_BYTES = 4


@dataclass(frozen=True)
class ConvolutionShape:
    """The public shape of a two-dimensional convolution; pairs are (rows, columns).

    Raises ArgumentError if a size is not positive, a padding is negative, or the kernel is larger
    than the padded image.
    """

    in_channels: int
    out_channels: int
    image: tuple[int, int]
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        sizes = (self.in_channels, self.out_channels, *self.image, *self.kernel, *self.stride)
        if min(sizes) < 1 or min(self.padding) < 0:
            raise ArgumentError(f"{self}: found a size below 1 or a padding below 0")
        if min(self.output) < 1:
            raise ArgumentError(f"{self}: the kernel is larger than the padded image")

    @property
    def output(self) -> tuple[int, int]:
        """The rows and columns of each output channel."""
        rows, columns = (
            (size + 2 * pad - taps) // step + 1
            for size, pad, taps, step in zip(
                self.image, self.padding, self.kernel, self.stride, strict=True
            )
        )
        return rows, columns

    @property
    def phases(self) -> tuple[int, int]:
        """The phases with taps, down and across."""
        return min(self.stride[0], self.kernel[0]), min(self.stride[1], self.kernel[1])

    @property
    def taps(self) -> tuple[int, int]:
        """The taps of a phase, down and across."""
        return (
            math.ceil(self.kernel[0] / self.stride[0]),
            math.ceil(self.kernel[1] / self.stride[1]),
        )

    @property
    def phase_channels(self) -> int:
        """The channels of all phases."""
        return self.in_channels * self.phases[0] * self.phases[1]


def linear(in_features: int, out_features: int, batch: int = 1) -> ConvolutionShape:
    """Returns the shape of a matrix product; its vectors are an array (features, 1, batch)."""
    return ConvolutionShape(in_features, out_features, (1, batch))


@dataclass(frozen=True)
class Packing:
    """The results of a tile, (rows, columns), and the channels of a polynomial."""

    tile: tuple[int, int]
    inputs: int
    outputs: int


@dataclass(frozen=True)
class Encoding:
    """A convolution and its packing; both parties compute the same one from the public shape.

    `Encoding.of` chooses the packing.
    """

    shape: ConvolutionShape
    packing: Packing

    @classmethod
    def of(cls, shape: ConvolutionShape) -> "Encoding":
        """Returns the encoding with the fewest bytes of both messages.

        Raises ArgumentError if a kernel has more taps than a polynomial has coefficients.
        """
        rows, columns = (
            sorted({math.ceil(size / parts) for parts in range(1, size + 1)})
            for size in shape.output
        )
        choices = [
            cls(shape, Packing((h, w), min(room // outputs, shape.phase_channels), outputs))
            for h in rows
            for w in columns
            for room in (N // ((h + shape.taps[0] - 1) * (w + shape.taps[1] - 1)),)
            for outputs in range(1, min(room, shape.out_channels) + 1)
        ]
        if not choices:
            raise ArgumentError(f"{shape}: the taps of a kernel exceed {N} coefficients")
        return min(choices, key=lambda choice: (choice.bytes, choice.products))

    # ---- Sizes -----------------------------------------------------------------------------------

    @property
    def block(self) -> tuple[int, int]:
        """The rows and columns of a tile's pixels."""
        (h, w), (k, m) = self.packing.tile, self.shape.taps
        return h + k - 1, w + m - 1

    @property
    def tiles(self) -> tuple[int, int]:
        """The tiles, down and across."""
        (rows, columns), (h, w) = self.shape.output, self.packing.tile
        return math.ceil(rows / h), math.ceil(columns / w)

    @property
    def tile_count(self) -> int:
        """The number of tiles."""
        return self.tiles[0] * self.tiles[1]

    @property
    def inputs(self) -> int:
        """The input polynomials of a tile."""
        return math.ceil(self.shape.phase_channels / self.packing.inputs)

    @property
    def outputs(self) -> int:
        """The output polynomials of a tile."""
        return math.ceil(self.shape.out_channels / self.packing.outputs)

    @property
    def products(self) -> int:
        """The products of polynomials."""
        return self.tile_count * self.inputs * self.outputs

    @property
    def bytes_in(self) -> int:
        """The bytes of the client's message."""
        return SEED_BYTES + self.tile_count * self.inputs * CIPHERTEXT_BYTES

    @property
    def bytes_out(self) -> int:
        """The bytes of the server's message."""
        results = self.shape.out_channels * math.prod(self.packing.tile)
        return self.tile_count * (self.outputs * UPPER_BYTES + results * RESULT_BYTES)

    @property
    def bytes(self) -> int:
        """The bytes of both messages."""
        return self.bytes_in + self.bytes_out

    # ---- Coefficients ----------------------------------------------------------------------------

    @cached_property
    def _sources(self) -> npt.NDArray[np.intp]:
        """The index in the flat input of every coefficient, or that of a zero after it."""
        shape, (rows, columns) = self.shape, self.shape.image
        row, column = (
            size * np.arange(tiles)[:, None, None] * step
            + np.arange(phases)[:, None]
            + np.arange(pixels) * step
            - pad
            for size, tiles, phases, pixels, step, pad in zip(
                self.packing.tile,
                self.tiles,
                shape.phases,
                self.block,
                shape.stride,
                shape.padding,
                strict=True,
            )
        )
        # The axes: tile down, tile across, channel, phase down, phase across, row, column.
        row, column = row[:, None, None, :, None, :, None], column[:, None, None, :, None, :]
        channel = np.arange(shape.in_channels)[:, None, None, None, None]
        inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        zero = shape.in_channels * rows * columns
        index = np.where(inside, (channel * rows + row) * columns + column, zero)
        return self._in_polynomials(index.reshape(self.tile_count, shape.phase_channels, -1), zero)

    def _in_polynomials(self, index: npt.NDArray[np.intp], zero: int) -> npt.NDArray[np.intp]:
        """Arranges blocks (tiles, channels, B) as polynomials (tiles * inputs, N)."""
        tiles, channels, size = index.shape
        padded = np.full((tiles, self.inputs * self.packing.inputs, size), zero)
        padded[:, :channels] = index
        sources = np.full((tiles * self.inputs, N), zero)
        sources[:, : self.packing.inputs * size] = padded.reshape(tiles * self.inputs, -1)
        return sources

    def encode_input(self, x: Ring) -> Ring:
        """Places words (in_channels, rows, columns) in polynomials (tiles * inputs, N).

        Raises ArgumentError for another dtype or shape.
        """
        expected = (self.shape.in_channels, *self.shape.image)
        if x.shape != expected or x.dtype != np.uint32:
            raise ArgumentError(f"input: found {x.dtype} {x.shape}, expected uint32 {expected}")
        return np.append(x.ravel(), np.uint32(0))[self._sources]

    def encode_weights(self, weights: npt.NDArray[np.signedinteger]) -> WeightArray:
        """Places weights (out_channels, in_channels, rows, columns) in (outputs, inputs, N).

        Raises ArgumentError for another shape, and for dtypes other than int8, int16 and int32.
        """
        expected = (self.shape.out_channels, self.shape.in_channels, *self.shape.kernel)
        if weights.shape != expected or weights.dtype not in (np.int8, np.int16, np.int32):
            raise ArgumentError(
                f"weights: found {weights.dtype} {weights.shape}, expected int8, int16 or int32 "
                f"{expected}"
            )
        given, taps = np.arange(self.shape.phase_channels), self.shape.taps
        output, slot = np.divmod(np.arange(self.shape.out_channels), self.packing.outputs)
        source, place = np.divmod(given, self.packing.inputs)
        block = (slot[:, None] + 1) * self.packing.inputs - 1 - place
        tap = np.arange(taps[0])[:, None] * self.block[1] + np.arange(taps[1])
        at = block[:, :, None, None] * math.prod(self.block) + self._last - tap
        polynomials = np.zeros((self.outputs, self.inputs, N), np.int32)
        polynomials[output[:, None, None, None], source[:, None, None], at] = self._phased(weights)
        return polynomials

    def _phased(self, weights: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.signedinteger]:
        """Splits kernels into their phases: (out_channels, phase_channels, taps)."""
        (down, across), (k, m), (p, q) = self.shape.stride, self.shape.taps, self.shape.phases
        channels = weights.shape[:2]
        padded = np.zeros((*channels, k * down, m * across), weights.dtype)
        padded[:, :, : weights.shape[2], : weights.shape[3]] = weights
        phases = padded.reshape(*channels, k, down, m, across).transpose(0, 1, 3, 5, 2, 4)
        return phases[:, :, :p, :q].reshape(channels[0], self.shape.phase_channels, k, m)

    @property
    def _last(self) -> int:
        """The offset D of a kernel's first tap, and of a block's first result."""
        return (self.shape.taps[0] - 1) * self.block[1] + self.shape.taps[1] - 1

    @cached_property
    def results(self) -> _core.RlweResults:
        """The positions of the results in a tile's outputs."""
        (h, w), each = self.packing.tile, self.packing.outputs
        channels = np.arange(self.shape.out_channels)
        block = (channels % each + 1) * self.packing.inputs - 1
        pixel = np.arange(h)[:, None] * self.block[1] + np.arange(w)
        at = block[:, None, None] * math.prod(self.block) + self._last + pixel
        counts = np.bincount(channels // each, minlength=self.outputs) * h * w
        return _core.RlweResults(counts.astype(np.uint32), at.ravel().astype(np.uint32))

    def decode(self, shares: Ring) -> Ring:
        """Arranges shares by tile, output and position as (out_channels, rows, columns)."""
        (down, across), (h, w), (rows, columns) = self.tiles, self.packing.tile, self.shape.output
        tiles = shares.reshape(down, across, self.shape.out_channels, h, w)
        whole = tiles.transpose(2, 0, 3, 1, 4).reshape(-1, down * h, across * w)
        return np.ascontiguousarray(whole[:, :rows, :columns])
