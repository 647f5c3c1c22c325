"""Variants of a model for a search: each layer is quantized once per number of weight bits."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ._layers import Layer, Linear, named_layers
from ._matrix import BitSerialMatrix
from ._plan import QUANTIZABLE, Bits, Choice, quantizable_layers, quantize_layer

Shape = tuple[int, int]


class Variants(ABC):
    """Model that a search can quantize by different plans."""

    @property
    @abstractmethod
    def shapes(self) -> dict[str, list[Shape]]:
        """The (rows, columns) of the matrices of each layer that can be quantized."""

    @abstractmethod
    def model(self, plan: Mapping[str, Choice]) -> object:
        """Returns the model quantized by a plan of layer names, without wildcards."""

    def quality(self, plan: Mapping[str, Choice], quality: Callable[[Any], Any]) -> Any:  # noqa: ANN401
        """Calls `quality` with the model quantized by a plan."""
        return quality(self.model(plan))


class LayerVariants(Variants):
    """Variants of a model of NumPy layers."""

    def __init__(
        self,
        model: Layer,
        *,
        per_row: bool = False,
        group: int = 0,
        clip: bool = True,
        threads: int = 0,
    ) -> None:
        self._model = model
        self._layers = quantizable_layers(model)
        self._per_row, self._group = per_row, group
        self._clip, self._threads = clip, threads
        self._cache: dict[tuple[str, int], Layer] = {}

    @property
    def shapes(self) -> dict[str, list[Shape]]:
        return {name: list(_shapes(layer)) for name, layer in self._layers.items()}

    def model(self, plan: Mapping[str, Choice]) -> Layer:
        def walk(name: str, layer: Layer) -> Layer:
            bits = plan.get(name)
            if bits is not None:
                return self._quantized(name, bits)
            children = layer.children()
            if not children or isinstance(layer, QUANTIZABLE):
                return layer
            return layer.with_children(
                {
                    key: walk(f"{name}.{key}" if name else key, part)
                    for key, part in children.items()
                }
            )

        return walk("", self._model)

    def _quantized(self, name: str, bits: Bits) -> Layer:
        key = (name, bits[0])
        if key not in self._cache:
            self._cache[key] = quantize_layer(
                self._layers[name],
                bits,
                per_row=self._per_row,
                group=self._group,
                clip=self._clip,
                threads=self._threads,
            )
        return _with_activation_bits(self._cache[key], bits[1])


def _shapes(layer: Layer) -> Iterable[Shape]:
    for _, part in named_layers(layer):
        if isinstance(part, Linear):
            yield part.matrix.rows, part.matrix.columns


def _with_activation_bits(layer: Layer, bits: int) -> Layer:
    if isinstance(layer, Linear):
        assert isinstance(layer.matrix, BitSerialMatrix)
        return Linear(layer.matrix.with_activation_bits(bits))
    parts = layer.children().items()
    return layer.with_children({name: _with_activation_bits(part, bits) for name, part in parts})
