"""Layers in NumPy, for inference without PyTorch.

A layer is called with NumPy arrays and names its own arrays as PyTorch does. A model is a tree of
layers: `Sequential` runs its layers in order; `Group` holds the layers of a module whose `forward`
is not stored.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import ClassVar, Protocol, Self

import numpy as np

from .._arrays import Array, as_array, as_indices, shown
from ..errors import ArgumentError
from ._groups import GROUPS, check_group, groups_of
from ._matrix import BitSerialMatrix, FloatMatrix, Matrix
from ._weights import (
    MAX_COLUMNS,
    MAX_WEIGHT_BITS,
    WORD_BITS,
    FloatArray,
    QuantizedWeights,
    as_float32,
)

Options = dict[str, object]
MAX_ROWS = 1 << 40
_MAX_LISTED = 8  # names in a message


class Stored(Protocol):
    """Stored layer that `nescio.quant._store` has read; each method checks what it returns."""

    @property
    def children(self) -> "Mapping[str, Layer]":
        """Child layers by name."""

    @property
    def threads(self) -> int:
        """Threads per product."""

    def count(self, option: str, low: int, high: int) -> int:
        """Returns an option that is an integer from `low` to `high`."""

    def number(self, option: str) -> float:
        """Returns an option that is a number."""

    def flag(self, option: str) -> bool:
        """Returns an option that is true or false."""

    def names(self, option: str) -> list[str]:
        """Returns an option that is a list of names."""

    def array(self, name: str, dtype: str, shape: tuple[int, ...]) -> Array:
        """Returns an array of this dtype and shape."""

    def any_array(self, name: str) -> Array:
        """Returns an array of any dtype and shape."""


class Layer(ABC):
    """Part of a model: a function of arrays, defined by options, arrays and child layers."""

    KIND: ClassVar[str]
    OPTIONS: ClassVar[tuple[str, ...]] = ()
    ADDED: ClassVar[
        Mapping[str, object]
    ] = {}  # options of later versions: absent from a file, or not

    def children(self) -> "dict[str, Layer]":
        """Returns the child layers by name."""
        return {}

    def options(self) -> Options:
        """Returns the numbers, flags and lists of names that `restore` needs besides arrays."""
        return {}

    def arrays(self) -> dict[str, Array]:
        """Returns the layer's own arrays by name, without those of its children."""
        return {}

    def with_children(self, children: "Mapping[str, Layer]") -> "Layer":  # noqa: ARG002
        """Returns the same layer with other children of the same names."""
        return self

    @classmethod
    @abstractmethod
    def restore(cls, stored: Stored) -> Self:
        """Reconstructs the layer from a stored model.

        Raises ArgumentError for invalid options or arrays, FileError for missing ones.
        """

    @abstractmethod
    def __call__(self, x: object, /) -> object:
        """Returns the layer's output."""


class Linear(Layer):
    """Computes y = W x + b for x (..., in)."""

    KIND = "Linear"
    OPTIONS = ("in", "out", "bias", "weight_bits", "activation_bits")
    ADDED: ClassVar[Mapping[str, object]] = {"group": 0}

    def __init__(self, matrix: Matrix) -> None:
        if not isinstance(matrix, BitSerialMatrix | FloatMatrix):
            found = type(matrix).__name__
            raise ArgumentError(f"matrix: found {found}, expected a BitSerialMatrix or FloatMatrix")
        self.matrix = matrix

    def options(self) -> Options:
        """Returns the shape, the bits, and the group if there is one; zero bits mean float32."""
        matrix = self.matrix
        bits, group = (0, 0), {}
        if isinstance(matrix, BitSerialMatrix):
            bits = (matrix.weights.bits, matrix.activation_bits)
            group = {"group": matrix.weights.group} if matrix.weights.group else {}
        return {
            "in": matrix.columns,
            "out": matrix.rows,
            "bias": matrix.bias is not None,
            "weight_bits": bits[0],
            "activation_bits": bits[1],
            **group,
        }

    def arrays(self) -> dict[str, Array]:
        """Returns planes and scale, or the float weights.

        Planes are int64, as in the PyTorch modules.
        """
        matrix = self.matrix
        bias = {} if matrix.bias is None else {"bias": matrix.bias}
        if isinstance(matrix, FloatMatrix):
            return {"weight": matrix.weight, **bias}
        weights = matrix.weights
        return {"planes": weights.planes.view(np.int64), "scale": weights.scale, **bias}

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        rows, columns = stored.count("out", 1, MAX_ROWS), stored.count("in", 1, MAX_COLUMNS)
        bits = stored.count("weight_bits", 0, MAX_WEIGHT_BITS)
        activation_bits = stored.count("activation_bits", 0, 32 if bits else 0)
        bias = stored.array("bias", "float32", (rows,)) if stored.flag("bias") else None
        if not bits:
            return cls(FloatMatrix(stored.array("weight", "float32", (rows, columns)), bias))
        planes = stored.array("planes", "int64", (bits, rows, -(-columns // WORD_BITS)))
        group = check_group(stored.count("group", 0, max(GROUPS)))
        scale = (
            stored.array("scale", "float16", (rows, groups_of(columns, group)))
            if group
            else stored.array("scale", "float32", (rows,))
        )
        weights = QuantizedWeights(planes.view(np.uint64), columns, scale, group)
        return cls(BitSerialMatrix(weights, activation_bits, bias=bias, threads=stored.threads))

    def __call__(self, x: object, /) -> FloatArray:
        """Returns products, float32 (..., out). Raises ArgumentError for another shape or dtype."""
        return self.matrix(x)


class Embedding(Layer):
    """Looks up rows of a float32 matrix. Raises ArgumentError unless `weight` is a float matrix."""

    KIND = "Embedding"
    OPTIONS = ("rows", "columns")

    def __init__(self, weight: object) -> None:
        matrix = as_array(weight, "weight")
        if matrix.ndim != 2 or matrix.dtype.kind != "f" or not matrix.size:
            raise ArgumentError(
                f"weight: found {matrix.dtype} of shape {matrix.shape}, expected floats of shape "
                "(rows, columns)"
            )
        self.weight = as_float32(matrix)

    def options(self) -> Options:
        return {"rows": len(self.weight), "columns": self.weight.shape[1]}

    def arrays(self) -> dict[str, Array]:
        return {"weight": self.weight}

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        shape = (stored.count("rows", 1, MAX_ROWS), stored.count("columns", 1, MAX_ROWS))
        return cls(stored.array("weight", "float32", shape))

    def __call__(self, x: object, /) -> FloatArray:
        """Returns the rows at indices of any shape.

        Raises IndexRangeError for an index out of range.
        """
        rows: FloatArray = self.weight[as_indices(x, len(self.weight), "indices")]
        return rows


class Sequential(Layer):
    """Runs layers in order. Raises ArgumentError for names that are empty or contain dots."""

    KIND = "Sequential"

    def __init__(self, *layers: Layer, named: Mapping[str, Layer] | None = None) -> None:
        numbered = {str(i): layer for i, layer in enumerate(layers)}
        self._layers = check_names(numbered | dict(named or {}))

    def __getitem__(self, name: int | str) -> Layer:
        """Returns a layer by name or number."""
        return find(self._layers, str(name))

    def __len__(self) -> int:
        return len(self._layers)

    def children(self) -> dict[str, Layer]:
        return dict(self._layers)

    def with_children(self, children: Mapping[str, Layer]) -> Layer:
        return Sequential(named=children)

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        return cls(named=stored.children)

    def __call__(self, x: object, /) -> object:
        """Returns the last layer's output. Raises what the layers raise."""
        for layer in self._layers.values():
            x = layer(x)
        return x


class Group(Layer):
    """Layers and arrays of a module whose `forward` is not stored; `group["name"]` is a layer.

    `of` is the name of the module's class.
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
        """Returns a layer by its dotted name. Raises ArgumentError if it does not exist."""
        return find(self._layers, name)

    def children(self) -> dict[str, Layer]:
        return dict(self._layers)

    def with_children(self, children: Mapping[str, Layer]) -> Layer:
        return Group(children, self._arrays, self.of)

    def options(self) -> Options:
        return {"of": [self.of], "arrays": list(self._arrays)}

    def arrays(self) -> dict[str, Array]:
        """Returns the module's own parameters and buffers."""
        return dict(self._arrays)

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        arrays = {name: stored.any_array(name) for name in stored.names("arrays")}
        return cls(stored.children, arrays, "".join(stored.names("of")))

    def __call__(self, x: object, /) -> object:  # noqa: ARG002 - signature of Layer
        """Raises ArgumentError, because a model file does not store the module's code."""
        raise ArgumentError(
            f"{self.of}: found a call, but a model file does not store a module's forward(); "
            f"expected calls of its layers ({listed(self._layers)})"
        )


def check_names(layers: Mapping[str, Layer]) -> dict[str, Layer]:
    """Returns layers by name. Raises ArgumentError for invalid names and values."""
    for name, layer in layers.items():
        if not isinstance(name, str) or not name or "." in name:
            raise ArgumentError(f"layer name: found {shown(name)}, expected text without dots")
        if not isinstance(layer, Layer):
            raise ArgumentError(
                f"layer {shown(name)}: found {type(layer).__name__}, expected a Layer"
            )
    return dict(layers)


def listed(names: Collection[str]) -> str:
    """Formats names for a message; of many, the first few."""
    first = ", ".join(map(shown, islice(names, _MAX_LISTED)))
    more = len(names) - _MAX_LISTED
    return f"{first} and {more} more" if more > 0 else first or "none"


def find(layers: Mapping[str, Layer], name: str) -> Layer:
    """Returns the layer of a dotted name. Raises ArgumentError if it does not exist."""
    first, _, rest = name.partition(".")
    if first not in layers:
        raise ArgumentError(f"layer: found {shown(first)}, expected one of {listed(layers)}")
    return find(layers[first].children(), rest) if rest else layers[first]


def named_layers(root: Layer, name: str = "") -> Iterator[tuple[str, Layer]]:
    """Yields each layer of a tree with its dotted name, parents first; the root's name is empty."""
    yield name, root
    for child, layer in root.children().items():
        yield from named_layers(layer, f"{name}.{child}" if name else child)
