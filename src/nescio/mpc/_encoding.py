"""Convolutions and matrix products as products of polynomials, by their coefficients.

A convolution of stride 1 without padding is one product of polynomials; `_layout` places the input.
Where a kernel has k x m taps, with D = (k - 1) P + m - 1,

    tap (a, b) of channels c and o          at  o S + F - c B - a P - b
    result (i, j) of output channel o       at  o S + F + i P + j

A result is the sum of all taps times the pixels under them. Convolutions of several images are
added in one product, if their tiles and P are equal. F is the largest (C - 1) B + D of a layout of
C channels, and S the largest `spacing`: other terms end below the results or start above them. One
product has the results of as many output channels as have places below N. A matrix product is a
convolution of 1 x 1.

Results are modulo 2^bits: the answer is shorter where the sums are not needed modulo 2^32.

Source: Huang, Lu, Hong and Ding, "Cheetah: Lean and Fast Secure Two-Party Deep Neural Network
Inference" (USENIX Security 2022), section 4; phases instead of its strided results.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import ArgumentError
from ._layout import CIPHERTEXT_BYTES, ConvolutionShape, Layout, N, Pair
from ._maps import Ring

__all__ = ["Encoding", "cheapest"]

RESULT_BITS = 32
EXTRA_BITS = 8  # of a coefficient of c1, over those of a result


@dataclass(frozen=True)
class Encoding:
    """A sum of convolutions: the layouts of their inputs, and the channels of an output polynomial.

    Both parties compute the same one from the public shapes.
    """

    layouts: tuple[Layout, ...]
    out_channels: int
    packed: int
    bits: int = RESULT_BITS

    @classmethod
    def of(cls, shape: ConvolutionShape, bits: int = RESULT_BITS) -> "Encoding":
        """Returns the encoding of a convolution with the fewest bytes of both messages.

        Raises ArgumentError if a kernel has more taps than a polynomial has coefficients.
        """
        found = cheapest((shape,), (), shape.out_channels, bits)
        if found is None:
            raise ArgumentError(f"{shape}: the taps of a kernel exceed {N} coefficients")
        return found

    # ---- Sizes -----------------------------------------------------------------------------------

    @property
    def tile_count(self) -> int:
        """The number of tiles."""
        return self.layouts[0].tile_count

    @property
    def outputs(self) -> int:
        """The output polynomials of a tile."""
        return math.ceil(self.out_channels / self.packed)

    @property
    def products(self) -> int:
        """The products of polynomials."""
        return self.outputs * sum(layout.count for layout in self.layouts)

    @property
    def bytes_in(self) -> int:
        """The bytes of the client's messages, one for each layout."""
        return sum(layout.bytes for layout in self.layouts)

    @property
    def bytes_out(self) -> int:
        """The bytes of the server's message."""
        results = math.prod(self.layouts[0].tile)
        full, rest = divmod(self.out_channels, self.packed)
        lower = full * _packed_bytes(self.packed * results, self.bits)
        lower += _packed_bytes(rest * results, self.bits)
        return self.tile_count * (self.outputs * _packed_bytes(N, self.bits + EXTRA_BITS) + lower)

    @property
    def bytes(self) -> int:
        """The bytes of both messages."""
        return self.bytes_in + self.bytes_out

    @property
    def fits(self) -> bool:
        """All results have places that no other terms have."""
        longest = max(layout.length for layout in self.layouts)
        return (self.packed - 1) * self._spacing + longest <= N

    # ---- Coefficients ----------------------------------------------------------------------------

    @property
    def _first(self) -> int:
        """The position F of the first result."""
        return max(own.last + (own.channels - 1) * own.block for own in self.layouts)

    @property
    def _spacing(self) -> int:
        """The distance S of output channels."""
        return max(layout.spacing for layout in self.layouts)

    def positions(self, layout: Layout) -> Ring:
        """Returns the positions of the weights in each polynomial of a layout, uint32.

        Their order is that of output channels, channels and taps.
        """
        taps = layout.shape.taps
        slot, place = np.arange(self.packed)[:, None], np.arange(layout.channels)
        block = self._first + slot * self._spacing - place * layout.block
        tap = np.arange(taps[0])[:, None] * layout.pitch + np.arange(taps[1])
        return (block[:, :, None, None] - tap).ravel().astype(np.uint32)

    def coefficients(
        self, layout: Layout, weights: npt.NDArray[np.signedinteger]
    ) -> npt.NDArray[np.int32]:
        """Arranges weights (channels, *kernel's shape) as (outputs, inputs, positions).

        `channels` are the output channels of some output polynomials. Raises ArgumentError for
        another shape, and for dtypes other than int8, int16 and int32.
        """
        shape, taps = layout.shape, layout.shape.taps
        expected = (len(weights), shape.in_channels, *shape.kernel)
        if weights.shape != expected or weights.dtype not in (np.int8, np.int16, np.int32):
            raise ArgumentError(
                f"weights: found {weights.dtype} {weights.shape}, expected int8, int16 or int32 "
                f"{(self.out_channels, *expected[1:])}"
            )
        outputs = math.ceil(len(weights) / self.packed)
        sizes = outputs * self.packed, layout.inputs * layout.channels, *taps
        whole = np.zeros(sizes, np.int32)
        whole[: len(weights), : shape.phase_channels] = _phased(shape, weights)
        parts = whole.reshape(outputs, self.packed, layout.inputs, layout.channels, *taps)
        return parts.swapaxes(1, 2).reshape(outputs, layout.inputs, -1)

    def present(self, layout: Layout, groups: int) -> npt.NDArray[np.bool_]:
        """Finds the polynomials (outputs, inputs) in which a convolution in groups has weights."""
        low, high = _groups(self.out_channels, self.packed, groups)
        first, last = _groups(layout.shape.phase_channels, layout.channels, groups)
        found: npt.NDArray[np.bool_] = (low[:, None] <= last) & (first <= high[:, None])
        return found

    @cached_property
    def results(self) -> _core.RlweResults:
        """The positions of the results in a tile's outputs."""
        (h, w), pitch = self.layouts[0].tile, self.layouts[0].pitch
        channels = np.arange(self.out_channels)
        block = self._first + channels % self.packed * self._spacing
        at = block[:, None, None] + np.arange(h)[:, None] * pitch + np.arange(w)
        counts = np.bincount(channels // self.packed, minlength=self.outputs) * h * w
        return _core.RlweResults(
            counts.astype(np.uint32), at.ravel().astype(np.uint32), bits=self.bits
        )

    def decode(self, shares: Ring) -> Ring:
        """Arranges shares by tile, output and position as (out_channels, rows, columns)."""
        layout = self.layouts[0]
        (down, across), (h, w), (rows, columns) = layout.tiles, layout.tile, layout.shape.output
        tiles = shares.reshape(down, across, self.out_channels, h, w)
        whole = tiles.transpose(2, 0, 3, 1, 4).reshape(-1, down * h, across * w)
        return np.ascontiguousarray(whole[:, :rows, :columns])


@lru_cache(maxsize=1024)
def cheapest(
    shapes: tuple[ConvolutionShape, ...], given: tuple[Layout, ...], out_channels: int, bits: int
) -> Encoding | None:
    """Returns a sum of convolutions with `given` layouts, and new ones of `shapes` after them.

    It is the encoding with the fewest bytes of the new messages and the answer, or None if there is
    none: the layouts must have one tile and pitch.
    """
    best: Encoding | None = None
    for tile in [given[0].tile] if given else _tiles(shapes[0].output):
        if best is not None and _least_bytes(shapes, tile, bits) > _cost(best, len(given))[0]:
            continue
        choices = _encodings(shapes, given, tile, out_channels, bits)
        found = [*choices] if best is None else [best, *choices]
        best = min(found, key=lambda choice: _cost(choice, len(given)), default=None)
    return best


def _least_bytes(shapes: Sequence[ConvolutionShape], tile: Pair, bits: int) -> int:
    """Returns the bytes of one ciphertext of each input, and one of the answer, for each tile."""
    count = math.prod(-(-size // own) for size, own in zip(shapes[0].output, tile, strict=True))
    return count * (len(shapes) * CIPHERTEXT_BYTES + _packed_bytes(N, bits + EXTRA_BITS))


def _cost(encoding: Encoding, given: int) -> tuple[int, int]:
    """Returns the bytes of the messages, and the products."""
    sent = sum(layout.bytes for layout in encoding.layouts[given:])
    return sent + encoding.bytes_out, encoding.products


def _encodings(
    shapes: Sequence[ConvolutionShape],
    given: Sequence[Layout],
    tile: Pair,
    out_channels: int,
    bits: int,
) -> Iterator[Encoding]:
    new = [Layout(replace(shape, out_channels=1), tile) for shape in shapes]
    pitch = given[0].pitch if given else max(layout.least_pitch for layout in new)
    wide = any(layout.least_pitch > pitch for layout in new)
    if wide or any((layout.tile, layout.pitch) != (tile, pitch) for layout in given):
        return
    new = [replace(layout, pitch=pitch) for layout in new]
    for outputs in range(out_channels, 0, -1):
        packed = math.ceil(out_channels / outputs)
        if math.ceil(out_channels / packed) < outputs:
            continue
        filled = [_filled(layout, packed) for layout in new]
        if any(layout.channels < 1 for layout in filled):
            return
        encoding = Encoding((*given, *filled), out_channels, packed, bits)
        if encoding.fits:
            yield encoding


def _tiles(output: Pair) -> Iterator[Pair]:
    """Yields sizes of tiles that cut the results in equal parts, the largest first."""
    rows, columns = (
        sorted({math.ceil(size / parts) for parts in range(1, size + 1)}, reverse=True)
        for size in output
    )
    return ((h, w) for h in rows for w in columns)


def _filled(layout: Layout, packed: int) -> Layout:
    """Returns a layout of one channel with as many as fit, or 0: the same in all polynomials."""
    left = N - (packed - 1) * layout.spacing - layout.length
    most = left // (packed * layout.block) + 1
    channels = layout.shape.phase_channels
    return replace(layout, channels=-(-channels // -(-channels // most)) if most > 0 else 0)


def _groups(
    channels: int, each: int, groups: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Returns the groups of the first and the last channel of each polynomial."""
    first = np.arange(0, channels, each)
    last = np.minimum(first + each, channels) - 1
    return first * groups // channels, last * groups // channels


def _packed_bytes(count: int, bits: int) -> int:
    return (count * bits + 7) // 8


def _phased(
    shape: ConvolutionShape, weights: npt.NDArray[np.signedinteger]
) -> npt.NDArray[np.signedinteger]:
    """Splits kernels into their phases: (out_channels, phase_channels, taps)."""
    (down, across), (k, m), (p, q) = shape.stride, shape.taps, shape.phases
    channels = weights.shape[:2]
    padded = np.zeros((*channels, k * down, m * across), weights.dtype)
    padded[:, :, : weights.shape[2], : weights.shape[3]] = weights
    phases = padded.reshape(*channels, k, down, m, across).transpose(0, 1, 3, 5, 2, 4)
    return phases[:, :, :p, :q].reshape(channels[0], shape.phase_channels, k, m)
