"""The cases of `nescio bench infer`: layers, their inputs from a seed, and their checks."""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..._arrays import as_count, as_threads
from ...errors import ArgumentError
from ...mpc import Activation, Convolution, Dense, Layer, Network, Term
from ...mpc._layout import ConvolutionShape, linear
from ...mpc._maps import Ring
from ...mpc._tables import MAX_BITS, MAX_TABLES, MIN_BITS
from ..parties import parse_link
from .names import DEFAULT_SHAPES

__all__ = ["SHIFT", "Inputs", "Task", "convolution", "convolve", "tasks"]

SHIFT = 12
_EXAMPLES = dict(zip(("conv", "linear"), DEFAULT_SHAPES, strict=True))
_SHAPE = re.compile(r"([0-9]{1,5})-([0-9]{1,5})(?:x([0-9]{1,4}))?")
_SEED = 4
_KERNEL = 3


def convolution(channels: int, outputs: int, size: int, stride: int = 1) -> ConvolutionShape:
    """Returns the shape of a convolution of 3 x 3 with padding, on square images."""
    kernel = (_KERNEL, _KERNEL)
    return ConvolutionShape(channels, outputs, (size, size), kernel, (stride, stride), (1, 1))


def convolve(shape: ConvolutionShape, x: Ring, weights: npt.NDArray[np.signedinteger]) -> Ring:
    """Returns the convolution modulo 2^32, by other code than that of `nescio.mpc`."""
    rows, columns = shape.output
    padded = np.pad(x, [(0, 0), *((pad, pad) for pad in shape.padding)])
    out: Ring = np.zeros((shape.out_channels, rows, columns), np.uint32)
    for a in range(shape.kernel[0]):
        for b in range(shape.kernel[1]):
            part = padded[:, a :: shape.stride[0], b :: shape.stride[1]][:, :rows, :columns]
            taps = weights[:, :, a, b].astype(np.uint32)
            out += np.einsum("oc,cij->oij", taps, part)
    return out


@dataclass(frozen=True)
class Task:
    """One layer to measure; both parties and their parent know it."""

    layer: str
    size: str
    threads: int
    link: str
    repeat: int
    table_bits: int | None = None
    shape: ConvolutionShape | None = None

    @property
    def elements(self) -> int:
        """The numbers that the layer gives."""
        if self.shape is None:
            return int(self.size)
        return self.shape.out_channels * self.shape.output[0] * self.shape.output[1]

    @property
    def activation(self) -> Activation:
        """The table of a ReLU."""
        assert self.table_bits is not None
        return Activation(lambda values: np.maximum(values, 0), bits=self.table_bits)


class Inputs(NamedTuple):
    """The values of a ReLU, and the client's shares of them, both uint32 (elements,)."""

    values: Ring
    client: Ring

    @classmethod
    def of(cls, task: Task) -> "Inputs":
        """Draws values inside the window of the table, rounding included."""
        random, activation = np.random.default_rng(_SEED), task.activation
        high = activation.low + len(activation.entries) - 1
        values = random.integers(activation.low << SHIFT, high << SHIFT, task.elements)
        shares = random.integers(0, 1 << 32, task.elements, np.uint32)
        return cls(values.astype(np.uint32), shares)


class Product:
    """A network of one linear layer with weights of 8 bits, and an input."""

    def __init__(self, task: Task) -> None:
        assert task.shape is not None
        self.shape, random = task.shape, np.random.default_rng(_SEED)
        size = (self.shape.out_channels, self.shape.in_channels, *self.shape.kernel)
        self._weights = random.integers(-128, 128, size, np.int8)
        self._bias = random.integers(-(1 << 20), 1 << 20, self.shape.out_channels)
        image = (self.shape.in_channels, *self.shape.image)
        self._image = random.integers(0, 1 << 32, image, np.uint32)
        self._dense = task.layer == "linear"

    @cached_property
    def network(self) -> Network:
        """The network."""
        if self._dense:
            dense = Dense(self._weights[:, :, 0, 0])
            return Network(dense.inputs, (Layer((Term(0, dense),), self._bias),))
        map_ = Convolution(self._weights, self._image.shape, self.shape.stride, self.shape.padding)
        return Network(map_.inputs, (Layer((Term(0, map_),), self._bias),))

    @property
    def inputs(self) -> Ring:
        """The input of one inference."""
        return self._image.reshape(1, *self.network.inputs)

    def expected(self) -> Ring:
        """Returns the outputs of one inference, by code that the parties do not run."""
        found = convolve(self.shape, self._image, self._weights)
        return (found + self._bias.astype(np.uint32)[:, None, None]).reshape(-1)


def tasks(arguments: argparse.Namespace) -> Iterator[Task]:
    """Yields all cases. Raises ArgumentError for sizes outside the limits."""
    as_count(arguments.repeat, "repeat", 1, 1000)
    for layer, threads, link in product(arguments.layer, arguments.threads, arguments.link):
        parse_link(link)
        common = (as_threads(threads), link, arguments.repeat)
        if layer != "relu":
            for size, shape in _shapes(layer, arguments.shape):
                yield Task(layer, size, *common, shape=shape)
            continue
        for elements, bits in product(arguments.elements, arguments.table_bits):
            as_count(elements, "elements", 1, MAX_TABLES)
            as_count(bits, "table-bits", MIN_BITS, MAX_BITS)
            yield Task(layer, str(elements), *common, table_bits=bits)


def _shapes(layer: str, sizes: list[str]) -> Iterator[tuple[str, ConvolutionShape]]:
    """Yields the shapes of a kind of layer: those of convolutions have a size of the image."""
    found = 0
    for size in sizes:
        match = _SHAPE.fullmatch(size)
        if match is None:
            raise ArgumentError(
                f"shape: found {size!r}, expected CHANNELS-OUTPUTSxSIZE for conv, such as "
                f"{_EXAMPLES['conv']}, or INPUTS-OUTPUTS for linear, such as {_EXAMPLES['linear']}"
            )
        inputs, outputs, image = (None if text is None else int(text) for text in match.groups())
        assert inputs is not None
        assert outputs is not None
        if (image is not None) == (layer == "conv"):
            found += 1
            yield (
                size,
                linear(inputs, outputs) if image is None else convolution(inputs, outputs, image),
            )
    if not found:
        raise ArgumentError(
            f"shape: found {','.join(sizes)}, expected one for {layer} too, such as "
            f"{_EXAMPLES[layer]}; or leave {layer} out of --layer"
        )
