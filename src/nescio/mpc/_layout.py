"""Images as polynomials: the places of their pixels in ciphertexts.

A polynomial has some channels of a tile, each in a block of B coefficients, with rows P apart:

    pixel (i, j) of channel c               at  c B + i P + j

Padding is zeros around the image. A convolution of stride s has stride 1 on the phases of the
image: phase (p, q) has the pixels (s i + p, s j + q) and the taps (s a + p, s b + q). So each phase
of a channel is a channel. A large image is cut into tiles that overlap by a kernel less one.

Zeros are shared where nothing else is beside them: those at the end of a row are those at the start
of the next row, and those under a channel are those above the next channel. An image of 16 x 16
with a padding of 1 takes 17 x 17 coefficients instead of 18 x 18.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import ArgumentError
from ._maps import Ring

__all__ = ["CIPHERTEXT_BYTES", "SEED_BYTES", "ConvolutionShape", "Layout", "N", "Pair", "linear"]

N = _core.RLWE_DEGREE
SEED_BYTES = 32
CIPHERTEXT_BYTES = 2 * N * 30 // 8

Pair = tuple[int, int]


@dataclass(frozen=True)
class ConvolutionShape:
    """The public shape of a two-dimensional convolution; pairs are (rows, columns).

    Raises ArgumentError if a size is not positive, a padding is negative, or the kernel is larger
    than the padded image.
    """

    in_channels: int
    out_channels: int
    image: Pair
    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)

    def __post_init__(self) -> None:
        sizes = (self.in_channels, self.out_channels, *self.image, *self.kernel, *self.stride)
        if min(sizes) < 1 or min(self.padding) < 0:
            raise ArgumentError(f"{self}: found a size below 1 or a padding below 0")
        if min(self.output) < 1:
            raise ArgumentError(f"{self}: the kernel is larger than the padded image")

    @property
    def output(self) -> Pair:
        """The rows and columns of each output channel."""
        rows, columns = (
            (size + 2 * pad - taps) // step + 1
            for size, pad, taps, step in zip(
                self.image, self.padding, self.kernel, self.stride, strict=True
            )
        )
        return rows, columns

    @property
    def phases(self) -> Pair:
        """The phases with taps, down and across."""
        return min(self.stride[0], self.kernel[0]), min(self.stride[1], self.kernel[1])

    @property
    def taps(self) -> Pair:
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
class Layout:
    """The input of a convolution in polynomials, by tiles of so many results (rows, columns).

    `pitch` is the distance P of rows, at least `least_pitch`; `channels` is those of a polynomial.
    """

    shape: ConvolutionShape
    tile: Pair
    pitch: int = 1
    channels: int = 1

    @cached_property
    def _zeros(self) -> tuple[Pair, Pair]:
        """The zeros of all channels: (above, below), (left, right); none if there are more tiles.

        At most as many as a result has taps beside its pixel, so that each result has a place.
        """
        return self._zeros_of(0), self._zeros_of(1)

    def _zeros_of(self, axis: int) -> Pair:
        shape, size = self.shape, self.tile[axis]
        if size < shape.output[axis]:
            return 0, 0
        pad, step = shape.padding[axis], shape.stride[axis]
        most = shape.taps[axis] - 1
        before = math.ceil((pad - shape.phases[axis] + 1) / step)
        after = size + most - math.ceil((shape.image[axis] + pad) / step)
        return min(max(before, 0), most), min(max(after, 0), most)

    @property
    def _pixels(self) -> Pair:
        """The rows and columns of a tile's pixels."""
        (h, w), (k, m) = self.tile, self.shape.taps
        return h + k - 1, w + m - 1

    @property
    def least_pitch(self) -> int:
        """The distance of rows that share their zeros."""
        return self._pixels[1] - min(self._zeros[1])

    @property
    def block(self) -> int:
        """The coefficients B of a channel, without the zeros that it shares with the next one."""
        return (self._pixels[0] - min(self._zeros[0])) * self.pitch

    @property
    def tiles(self) -> Pair:
        """The tiles, down and across."""
        (rows, columns), (h, w) = self.shape.output, self.tile
        return math.ceil(rows / h), math.ceil(columns / w)

    @property
    def tile_count(self) -> int:
        """The number of tiles."""
        return self.tiles[0] * self.tiles[1]

    @property
    def inputs(self) -> int:
        """The polynomials of a tile."""
        return math.ceil(self.shape.phase_channels / self.channels)

    @property
    def count(self) -> int:
        """The polynomials of all tiles."""
        return self.tile_count * self.inputs

    @property
    def bytes(self) -> int:
        """The bytes of the client's message."""
        return SEED_BYTES + self.count * CIPHERTEXT_BYTES

    @property
    def last(self) -> int:
        """The offset D of a kernel's first tap: that of the last one is 0."""
        return (self.shape.taps[0] - 1) * self.pitch + self.shape.taps[1] - 1

    @property
    def length(self) -> int:
        """The coefficients from the first pixel to the last one, with all zeros around them."""
        rows, columns = self._pixels
        return (self.channels - 1) * self.block + (rows - 1) * self.pitch + columns

    @property
    def spacing(self) -> int:
        """The least distance of the results of two output channels, for which no terms meet."""
        (above, below), (left, right) = self._zeros
        return self.length - min(above * self.pitch + left, below * self.pitch + right)

    def fits(self, shape: ConvolutionShape) -> Pair | None:
        """Returns where another convolution's taps are in this one's kernel, or None."""
        own = self.shape
        if (own.in_channels, own.image, own.stride, own.output) != (
            shape.in_channels,
            shape.image,
            shape.stride,
            shape.output,
        ):
            return None
        down, right = (a - b for a, b in zip(own.padding, shape.padding, strict=True))
        ends = down + shape.kernel[0], right + shape.kernel[1]
        inside = min(down, right) >= 0 and ends[0] <= own.kernel[0] and ends[1] <= own.kernel[1]
        return (down, right) if inside else None

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
                self.tile,
                self.tiles,
                shape.phases,
                self._pixels,
                shape.stride,
                shape.padding,
                strict=True,
            )
        )
        # The axes: tile down, tile across, channel, phase down, phase across, row, column.
        row, column = row[:, None, None, :, None, :, None], column[:, None, None, :, None, :]
        channel = np.arange(shape.in_channels)[:, None, None, None, None]
        index = (channel * rows + row) * columns + column
        inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        inside = np.broadcast_to(inside, index.shape)
        zero = shape.in_channels * rows * columns
        sizes = self.tile_count, shape.phase_channels, *self._pixels
        return self._in_polynomials(index.reshape(sizes), inside.reshape(sizes), zero)

    def _in_polynomials(
        self, index: npt.NDArray[np.intp], inside: npt.NDArray[np.bool_], zero: int
    ) -> npt.NDArray[np.intp]:
        """Arranges pixels (tiles, channels, rows, columns) as polynomials (count, N)."""
        tile, channel, row, column = np.nonzero(inside)
        polynomial, place = np.divmod(channel, self.channels)
        sources = np.full((self.count, N), zero)
        at = place * self.block + row * self.pitch + column
        sources[tile * self.inputs + polynomial, at] = index[inside]
        return sources

    def encode(self, x: Ring) -> Ring:
        """Places words (in_channels, rows, columns) in polynomials (count, N).

        Raises ArgumentError for another dtype or shape.
        """
        expected = (self.shape.in_channels, *self.shape.image)
        if x.shape != expected or x.dtype != np.uint32:
            raise ArgumentError(f"input: found {x.dtype} {x.shape}, expected uint32 {expected}")
        return np.append(x.ravel(), np.uint32(0))[self._sources]
