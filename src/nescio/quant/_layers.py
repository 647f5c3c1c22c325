"""Layers in NumPy alone: what a model becomes where it is only used, without PyTorch.

A layer is called with NumPy arrays. Its arrays are named as PyTorch names them, and a model is a
tree: `Sequential` runs its layers one after the other, `Group` holds those of a model whose own
code says how they are used.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import ClassVar, Protocol, Self

import numpy as np

from .._arrays import Array, as_array, as_indices, shown
from ..errors import ArgumentError
from ._matrix import BitSerialMatrix, FloatMatrix, Matrix
from ._weights import (
    MOST_COLUMNS,
    MOST_WEIGHT_BITS,
    WORD_BITS,
    FloatArray,
    QuantizedWeights,
    as_float32,
)

Options = dict[str, object]
MOST_ROWS = 1 << 40
_FEW = 8


class Stored(Protocol):
    """A layer of a file, as `nescio.quant._store` hands it out: everything is checked."""

    @property
    def children(self) -> "Mapping[str, Layer]":
        """Its parts."""

    @property
    def threads(self) -> int:
        """Threads for its products."""

    def count(self, option: str, least: int, most: int) -> int:
        """An option that is an integer from `least` to `most`."""

    def number(self, option: str) -> float:
        """An option that is a number."""

    def flag(self, option: str) -> bool:
        """An option that is true or false."""

    def names(self, option: str) -> list[str]:
        """An option that is a list of names."""

    def array(self, name: str, dtype: str, shape: tuple[int, ...]) -> Array:
        """An array of this dtype and shape."""

    def any_array(self, name: str) -> Array:
        """An array of any dtype and shape."""


class Layer(ABC):
    """A part of a model: called with arrays, and made of options, arrays and smaller layers."""

    KIND: ClassVar[str]
    OPTIONS: ClassVar[tuple[str, ...]] = ()

    def children(self) -> "dict[str, Layer]":
        """The layers that it is made of, by name."""
        return {}

    def options(self) -> Options:
        """What `restore` needs beside arrays: numbers, flags, lists of names."""
        return {}

    def arrays(self) -> dict[str, Array]:
        """Its own arrays by name, those of its children not among them."""
        return {}

    def with_children(self, children: "Mapping[str, Layer]") -> "Layer":  # noqa: ARG002
        """The same layer made of others, which have the same names."""
        return self

    @classmethod
    @abstractmethod
    def restore(cls, stored: Stored) -> Self:
        """The layer of a file. Raises what `stored` raises, and ArgumentError."""

    @abstractmethod
    def __call__(self, x: object, /) -> object:
        """The layer's output."""


class Linear(Layer):
    """y = W x + b, for x of shape (..., in)."""

    KIND = "Linear"
    OPTIONS = ("in", "out", "bias", "weight_bits", "activation_bits")

    def __init__(self, matrix: Matrix) -> None:
        if not isinstance(matrix, BitSerialMatrix | FloatMatrix):
            found = type(matrix).__name__
            raise ArgumentError(f"matrix: found {found}, expected a BitSerialMatrix or FloatMatrix")
        self.matrix = matrix

    def options(self) -> Options:
        """Its shape and bits; no bits are floats."""
        matrix = self.matrix
        bits = (0, 0)
        if isinstance(matrix, BitSerialMatrix):
            bits = (matrix.weights.bits, matrix.activation_bits)
        return {
            "in": matrix.columns,
            "out": matrix.rows,
            "bias": matrix.bias is not None,
            "weight_bits": bits[0],
            "activation_bits": bits[1],
        }

    def arrays(self) -> dict[str, Array]:
        """Planes as int64, because few readers of the format have uint64, and the scale; or W."""
        matrix = self.matrix
        bias = {} if matrix.bias is None else {"bias": matrix.bias}
        if isinstance(matrix, FloatMatrix):
            return {"weight": matrix.weight, **bias}
        weights = matrix.weights
        return {"planes": weights.planes.view(np.int64), "scale": weights.scale, **bias}

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """The layer of a file."""
        rows, columns = stored.count("out", 1, MOST_ROWS), stored.count("in", 1, MOST_COLUMNS)
        bits = stored.count("weight_bits", 0, MOST_WEIGHT_BITS)
        activation_bits = stored.count("activation_bits", 0, 32 if bits else 0)
        bias = stored.array("bias", "float32", (rows,)) if stored.flag("bias") else None
        if not bits:
            return cls(FloatMatrix(stored.array("weight", "float32", (rows, columns)), bias))
        planes = stored.array("planes", "int64", (bits, rows, -(-columns // WORD_BITS)))
        scale = stored.array("scale", "float32", (rows,))
        weights = QuantizedWeights(planes.view(np.uint64), columns, scale)
        return cls(BitSerialMatrix(weights, activation_bits, bias=bias, threads=stored.threads))

    def __call__(self, x: object, /) -> FloatArray:
        """The products, float32 (..., out). Raises ArgumentError for another shape or dtype."""
        return self.matrix(x)


class Embedding(Layer):
    """Rows of a table, which stays in floats, float32. Raises ArgumentError for another array."""

    KIND = "Embedding"
    OPTIONS = ("rows", "columns")

    def __init__(self, weight: object) -> None:
        table = as_array(weight, "weight")
        if table.ndim != 2 or table.dtype.kind != "f" or not table.size:
            raise ArgumentError(
                f"weight: found {table.dtype} of shape {table.shape}, expected floats of shape "
                "(rows, columns)"
            )
        self.weight = as_float32(table)

    def options(self) -> Options:
        """The table's shape."""
        return {"rows": len(self.weight), "columns": self.weight.shape[1]}

    def arrays(self) -> dict[str, Array]:
        """The table."""
        return {"weight": self.weight}

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """The layer of a file."""
        shape = (stored.count("rows", 1, MOST_ROWS), stored.count("columns", 1, MOST_ROWS))
        return cls(stored.array("weight", "float32", shape))

    def __call__(self, x: object, /) -> FloatArray:
        """The rows at indices of any shape. Raises IndexRangeError for one that does not exist."""
        rows: FloatArray = self.weight[as_indices(x, len(self.weight), "indices")]
        return rows


class Sequential(Layer):
    """Layers one after the other. Raises ArgumentError for names that are empty or have dots."""

    KIND = "Sequential"

    def __init__(self, *layers: Layer, named: Mapping[str, Layer] | None = None) -> None:
        together = {str(i): layer for i, layer in enumerate(layers)} | dict(named or {})
        self._layers = check_names(together)

    def __getitem__(self, name: int | str) -> Layer:
        """A layer by its name or number."""
        return find(self._layers, str(name))

    def __len__(self) -> int:
        return len(self._layers)

    def children(self) -> dict[str, Layer]:
        """The layers."""
        return dict(self._layers)

    def with_children(self, children: Mapping[str, Layer]) -> Layer:
        """Other layers, one after the other."""
        return Sequential(named=children)

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """The layer of a file."""
        return cls(named=stored.children)

    def __call__(self, x: object, /) -> object:
        """The last layer's output. Raises what the layers raise."""
        for layer in self._layers.values():
            x = layer(x)
        return x


class Group(Layer):
    """Layers and arrays of a model that has code of its own: `group["name"]` is one of them.

    `of` names the class that it comes from.
    """

    KIND = "Group"
    OPTIONS = ("of", "arrays")

    def __init__(
        self,
        layers: Mapping[str, Layer],
        arrays: Mapping[str, Array] | None = None,
        of: str = "a model",
    ) -> None:
        self._layers = check_names(layers)
        self._arrays = {name: as_array(array, name) for name, array in (arrays or {}).items()}
        self.of = str(of)[:200]

    def __getitem__(self, name: str) -> Layer:
        """A layer by its name, dots for those further down. Raises ArgumentError without one."""
        return find(self._layers, name)

    def children(self) -> dict[str, Layer]:
        """The layers."""
        return dict(self._layers)

    def with_children(self, children: Mapping[str, Layer]) -> Layer:
        """A group of other layers, with the same arrays."""
        return Group(children, self._arrays, self.of)

    def options(self) -> Options:
        """Where it comes from, and the names of its arrays."""
        return {"of": [self.of], "arrays": list(self._arrays)}

    def arrays(self) -> dict[str, Array]:
        """Parameters and buffers that belong to no layer."""
        return dict(self._arrays)

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        """The layer of a file."""
        arrays = {name: stored.any_array(name) for name in stored.names("arrays")}
        return cls(stored.children, arrays, "".join(stored.names("of")))

    def __call__(self, x: object, /) -> object:  # noqa: ARG002 - as all layers
        """Raises ArgumentError: only its class knows how."""
        raise ArgumentError(
            f"{self.of} has code of its own, which is not in the file: call its parts, "
            + (listed(self._layers) if self._layers else "of which there are none")
        )


def check_names(layers: Mapping[str, Layer]) -> dict[str, Layer]:
    """Layers by name. Raises ArgumentError for a name with a dot, and for what is no layer."""
    for name, layer in layers.items():
        if not isinstance(name, str) or not name or "." in name:
            raise ArgumentError(f"a layer's name: found {shown(name)}, expected text without dots")
        if not isinstance(layer, Layer):
            raise ArgumentError(
                f"layer {shown(name)}: found {type(layer).__name__}, expected a Layer"
            )
    return dict(layers)


def listed(names: Collection[str]) -> str:
    """Names for a message, of many the first few."""
    first = ", ".join(map(shown, islice(names, _FEW)))
    more = len(names) - _FEW
    return f"{first} and {more} more" if more > 0 else first or "none"


def find(layers: Mapping[str, Layer], name: str) -> Layer:
    """The layer of a dotted name. Raises ArgumentError if there is none."""
    first, _, rest = name.partition(".")
    if first not in layers:
        raise ArgumentError(f"layer: found {shown(first)}, expected one of {listed(layers)}")
    return find(layers[first].children(), rest) if rest else layers[first]


def named_layers(root: Layer, name: str = "") -> Iterator[tuple[str, Layer]]:
    """Every layer of a tree with its dotted name, parents first; the root's is empty."""
    yield name, root
    for child, layer in root.children().items():
        yield from named_layers(layer, f"{name}.{child}" if name else child)
