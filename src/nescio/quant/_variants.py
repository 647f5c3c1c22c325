"""A model under many plans: each layer is quantised once for each number of bits."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ._layers import Layer, Linear, named_layers
from ._matrix import BitSerialMatrix
from ._plan import QUANTISABLE, Bits, Choice, quantisable_layers, quantize_layer

Shape = tuple[int, int]


class Variants(ABC):
    """A model whose layers can be quantised, each in several ways."""

    @property
    @abstractmethod
    def shapes(self) -> dict[str, list[Shape]]:
        """The matrices of each layer that can be quantised, as (rows, columns)."""

    @abstractmethod
    def model(self, plan: Mapping[str, Choice]) -> object:
        """The model under a plan, in which every name is a layer's."""

    def quality(self, plan: Mapping[str, Choice], quality: Callable[[Any], Any]) -> Any:  # noqa: ANN401
        """What a function says of the model under a plan."""
        return quality(self.model(plan))


class LayerVariants(Variants):
    """A model of NumPy layers."""

    def __init__(
        self, model: Layer, *, per_row: bool = False, clip: bool = True, threads: int = 0
    ) -> None:
        self._model = model
        self._layers = quantisable_layers(model)
        self._per_row, self._clip, self._threads = per_row, clip, threads
        self._made: dict[tuple[str, int], Layer] = {}

    @property
    def shapes(self) -> dict[str, list[Shape]]:
        """The matrices of each layer that can be quantised, as (rows, columns)."""
        return {name: list(_shapes(layer)) for name, layer in self._layers.items()}

    def model(self, plan: Mapping[str, Choice]) -> Layer:
        """The model under a plan, in which every name is a layer's."""

        def walk(name: str, layer: Layer) -> Layer:
            bits = plan.get(name)
            if bits is not None:
                return self._quantised(name, bits)
            children = layer.children()
            if not children or isinstance(layer, QUANTISABLE):
                return layer
            return layer.with_children(
                {
                    key: walk(f"{name}.{key}" if name else key, part)
                    for key, part in children.items()
                }
            )

        return walk("", self._model)

    def _quantised(self, name: str, bits: Bits) -> Layer:
        key = (name, bits[0])
        if key not in self._made:
            self._made[key] = quantize_layer(
                self._layers[name],
                bits,
                per_row=self._per_row,
                clip=self._clip,
                threads=self._threads,
            )
        return _with_activation_bits(self._made[key], bits[1])


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
