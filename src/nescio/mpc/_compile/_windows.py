"""Convolutions whose first place, step and gaps are free, and their compositions.

Output (y, x) of a window reads the pixels offset + stride * (y, x) + dilation * tap; pixels outside
of the image are zeros. Slices, zeros around an image and shortcuts are windows of one tap.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import torch
from torch import Tensor

from .._maps import Convolution, Floats, Shape

Pair = tuple[int, int]
AXES = (0, 1)


@dataclass(frozen=True, eq=False)
class Window:
    """A kernel (outputs, channels / groups, height, width) on an image (channels, height, width).

    `size` is the height and width of the outputs.
    """

    kernel: Tensor
    inputs: Shape
    size: Pair
    offset: Pair = (0, 0)
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    groups: int = 1

    @property
    def shape(self) -> Shape:
        """The shape of the outputs."""
        return (len(self.kernel), *self.size)

    @property
    def taps(self) -> Pair:
        """The height and width of the kernel."""
        rows, columns = self.kernel.shape[2:]
        return int(rows), int(columns)

    @property
    def is_depthwise(self) -> bool:
        """True if output channel k reads input channel k."""
        return bool(self.kernel.shape[1] == 1 and len(self.kernel) == self.groups == self.inputs[0])

    @property
    def reads_one_channel(self) -> bool:
        """True if no output channel reads two input channels."""
        used = (self.kernel != 0).any(-1).any(-1).sum(1)
        return bool(used.max() <= 1)

    def ungrouped(self) -> "Window":
        """Returns the window with zeros between its groups."""
        if self.groups == 1:
            return self
        each, wide = len(self.kernel) // self.groups, self.kernel.shape[1]
        kernel = self.kernel.new_zeros(len(self.kernel), self.inputs[0], *self.taps)
        for group in range(self.groups):
            rows = slice(group * each, (group + 1) * each)
            kernel[rows, group * wide : (group + 1) * wide] = self.kernel[rows]
        return replace(self, kernel=kernel, groups=1)

    def scaled(self, factors: Tensor) -> "Window":
        """Multiplies each output channel by a factor."""
        return replace(self, kernel=self.kernel * factors.reshape(-1, 1, 1, 1))

    def sliced(self, axis: int, first: int, length: int, step: int) -> "Window":
        """Keeps `length` outputs of an axis (0: channels), from `first` on, `step` apart."""
        if axis == 0:
            if (first, length, step) == (0, len(self.kernel), 1):
                return self
            whole = self.ungrouped()
            return replace(whole, kernel=whole.kernel[first::step][:length])
        axis -= 1
        offset = self.offset[axis] + self.stride[axis] * first
        return replace(
            self,
            size=_put(self.size, axis, length),
            offset=_put(self.offset, axis, offset),
            stride=_put(self.stride, axis, self.stride[axis] * step),
        )

    def padded(self, axis: int, before: int, after: int) -> "Window | None":
        """Adds outputs of zeros, if the window reads nothing but zeros there; else None."""
        if axis == 0:
            whole = self.ungrouped()
            kernel = torch.nn.functional.pad(whole.kernel, (0, 0, 0, 0, 0, 0, before, after))
            return replace(whole, kernel=kernel)
        axis -= 1
        size = self.size[axis]
        if not self._is_blank(axis, [*range(-before, 0), *range(size, size + after)]):
            return None
        offset = self.offset[axis] - self.stride[axis] * before
        return replace(
            self,
            size=_put(self.size, axis, size + before + after),
            offset=_put(self.offset, axis, offset),
        )

    def _is_blank(self, axis: int, places: Iterable[int]) -> bool:
        """Tests if the outputs at places, which may not exist, read no pixel of the image."""
        lines = np.array(list(places), np.int64)[:, None] * self.stride[axis] + self.offset[axis]
        found = lines + self.dilation[axis] * np.arange(self.taps[axis])
        return not ((found >= 0) & (found < self.inputs[axis + 1])).any()

    def then(self, outer: "Window") -> "Window | None":
        """Returns the window that computes `outer` of the outputs of this one, if there is one.

        Returns None if `outer` reads zeros around the outputs where this one has other values.
        """
        for axis in AXES:
            lines = np.arange(outer.size[axis])[:, None] * outer.stride[axis] + outer.offset[axis]
            read = (lines + outer.dilation[axis] * np.arange(outer.taps[axis])).ravel()
            beyond = read[(read < 0) | (read >= self.size[axis])]
            if not self._is_blank(axis, np.unique(beyond).tolist()):
                return None
        apart = [self.stride[axis] * outer.dilation[axis] for axis in AXES]
        unit = _pair(
            _unit((apart[axis], outer.taps[axis]), (self.dilation[axis], self.taps[axis]))
            for axis in AXES
        )
        kernel, groups = _composed(self, outer, apart, unit)
        return Window(
            kernel,
            self.inputs,
            outer.size,
            _pair(self.offset[axis] + self.stride[axis] * outer.offset[axis] for axis in AXES),
            _pair(self.stride[axis] * outer.stride[axis] for axis in AXES),
            unit,
            groups,
        )

    def plus(self, other: "Window") -> "Window | None":
        """Returns the window of the sum of both, if they have one stride and one size."""
        if self.stride != other.stride or self.shape != other.shape:
            return None
        first, second = self, other
        if self.groups != other.groups:
            first, second = self.ungrouped(), other.ungrouped()
        offset = _pair(min(self.offset[axis], other.offset[axis]) for axis in AXES)
        unit = _pair(
            _unit(
                (self.dilation[axis], self.taps[axis]),
                (other.dilation[axis], other.taps[axis]),
                (abs(self.offset[axis] - other.offset[axis]), 2),
            )
            for axis in AXES
        )
        parts = [_spread(one, offset, unit) for one in (first, second)]
        taps = [max(part.shape[2 + axis] for part in parts) for axis in AXES]
        kernel = parts[0].new_zeros(*parts[0].shape[:2], *taps)
        for part in parts:
            kernel[:, :, : part.shape[2], : part.shape[3]] += part
        return replace(first, kernel=kernel, offset=offset, dilation=unit)

    def geometry(self) -> tuple[Convolution, Floats]:
        """Returns the convolution, with as much padding on both sides, and its weights."""
        fitted = [self._fitted(axis) for axis in AXES]
        if None in fitted:
            return _spread_to_one(self).geometry()
        (top, above, below), (side, left, right) = (one for one in fitted if one is not None)
        weights = torch.nn.functional.pad(self.kernel, (left, right, above, below)).numpy()
        empty = np.zeros(weights.shape, np.int64)
        padding = top, side
        own = Convolution(empty, self.inputs, self.stride, padding, self.dilation, self.groups)
        assert own.outputs == self.shape
        return own, weights.astype(np.float64)

    def _fitted(self, axis: int) -> tuple[int, int, int] | None:
        """Returns the padding, and the taps of zeros before and after, that give the outputs."""
        size, offset, step = self.inputs[axis + 1], self.offset[axis], self.stride[axis]
        apart, taps, wanted = self.dilation[axis], self.taps[axis], self.size[axis]
        for padding in count(max(0, -offset)):
            before, rest = divmod(offset + padding, apart)
            room = size + 2 * padding - apart * (before + taps - 1) - 1
            for after in count() if not rest else ():
                found = (room - apart * after) // step + 1
                if found == wanted:
                    return padding, before, after
                if found < wanted:
                    break
            if apart > 1 and padding > size + apart * taps - offset:
                return None
        raise AssertionError("a padding fits")


def identity(shape: Shape) -> Window:
    """Returns the window of one tap that copies an image."""
    channels, height, width = shape
    ones = torch.ones(channels, 1, 1, 1, dtype=torch.float64)
    return Window(ones, shape, (height, width), groups=channels)


def _composed(inner: Window, outer: Window, apart: Sequence[int], unit: Pair) -> tuple[Tensor, int]:
    """Returns the kernel of a composition, with gaps of `unit`, and its groups."""
    if not inner.is_depthwise and not outer.is_depthwise:
        inner, outer = inner.ungrouped(), outer.ungrouped()
    taps = [
        (apart[axis] * (outer.taps[axis] - 1) + inner.dilation[axis] * (inner.taps[axis] - 1))
        // unit[axis]
        + 1
        for axis in AXES
    ]
    kernel = None
    for row in range(outer.taps[0]):
        for column in range(outer.taps[1]):
            part = _joined(inner, outer, outer.kernel[:, :, row, column])
            if kernel is None:
                kernel = part.new_zeros(*part.shape[:2], *taps)
            first = apart[0] * row // unit[0], apart[1] * column // unit[1]
            own = (
                slice(start, None, max(1, inner.dilation[axis] // unit[axis]))
                for axis, start in enumerate(first)
            )
            rows, columns = own
            kernel[:, :, rows, columns][:, :, : inner.taps[0], : inner.taps[1]] += part
    assert kernel is not None
    return kernel, outer.groups if inner.is_depthwise else inner.groups


def _joined(inner: Window, outer: Window, tap: Tensor) -> Tensor:
    """Returns the inner kernel under one tap (outputs, channels / groups) of the outer one."""
    if inner.is_depthwise:
        own = inner.kernel[:, 0].reshape(outer.groups, -1, *inner.taps)
        return tap[:, :, None, None] * own.repeat_interleave(len(tap) // outer.groups, 0)
    if outer.is_depthwise:
        return tap[:, :, None, None] * inner.kernel
    return torch.einsum("oc,cihw->oihw", tap, inner.kernel)


def _spread(window: Window, offset: Pair, unit: Pair) -> Tensor:
    """Returns the kernel that starts at `offset` and has gaps of `unit`."""
    first = [(window.offset[axis] - offset[axis]) // unit[axis] for axis in AXES]
    steps = [max(1, window.dilation[axis] // unit[axis]) for axis in AXES]
    taps = [first[axis] + steps[axis] * (window.taps[axis] - 1) + 1 for axis in AXES]
    kernel = window.kernel.new_zeros(*window.kernel.shape[:2], *taps)
    kernel[:, :, first[0] :: steps[0], first[1] :: steps[1]] = window.kernel
    return kernel


def _spread_to_one(window: Window) -> Window:
    kernel = _spread(window, window.offset, (1, 1))
    return replace(window, kernel=kernel, dilation=(1, 1))


def _unit(*parts: tuple[int, int]) -> int:
    """Returns the greatest common divisor of the gaps of kernels with more than one tap."""
    return math.gcd(*(apart for apart, taps in parts if taps > 1)) or 1


def _put(pair: Pair, axis: int, number: int) -> Pair:
    return (number, pair[1]) if axis == 0 else (pair[0], number)


def _pair(numbers: Iterable[int]) -> Pair:
    first, second = numbers
    return first, second
