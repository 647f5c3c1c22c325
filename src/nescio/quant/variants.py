"""A model under many plans, for a search: layers are quantised once, and their products timed.

found = search_model(model, quality)          # quality(model) is a number, larger is better
"""

import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from .._arrays import as_threads, shown
from ..errors import ArgumentError
from .layers import Layer, Linear, listed, named_layers
from .matrix import BitSerialMatrix, FloatMatrix
from .plan import QUANTISABLE, Bits, quantisable_layers, quantize_layer
from .search import DEFAULT_EVALUATIONS, Choice, Found, Method, search
from .steps import levels
from .weights import from_integers

Shape = tuple[int, int]
Cost = Callable[[str, Choice], float]

WEIGHT_BITS = (1, 2, 4, 8)
ACTIVATION_BITS = (8, 16, 32)

_FEWEST_RUNS = 5


class MeasuredCost:
    """Seconds of a layer's products with one vector, measured: a cost for `search`.

    `shapes` has each layer's matrices as (rows, columns). A measurement takes the median of about
    `seconds`, and is made once for each shape and bits. None is NumPy's float32 product.
    """

    def __init__(
        self, shapes: Mapping[str, Iterable[Shape]], *, seconds: float = 0.02, threads: int = 1
    ) -> None:
        self._shapes = {name: list(own) for name, own in shapes.items()}
        self._seconds, self._threads = seconds, as_threads(threads)
        self._known: dict[tuple[Shape, Choice], float] = {}

    def __call__(self, name: str, bits: Choice, /) -> float:
        """The seconds. Raises ArgumentError for a layer that is not in `shapes`."""
        if name not in self._shapes:
            known = listed(self._shapes)
            raise ArgumentError(f"layer: found {shown(name)}, expected one of {known}")
        return sum(self._of(shape, bits) for shape in self._shapes[name])

    def _of(self, shape: Shape, bits: Choice) -> float:
        if (shape, bits) not in self._known:
            self._known[shape, bits] = self._measured(shape, bits)
        return self._known[shape, bits]

    def _measured(self, shape: Shape, bits: Choice) -> float:
        draw = np.random.default_rng(0)
        x = draw.standard_normal(shape[1], np.float32)
        matrix: BitSerialMatrix | FloatMatrix
        if bits is None:
            matrix = FloatMatrix(draw.standard_normal(shape, np.float32))
        else:
            # Products take the same time whatever the weights are.
            integers = draw.choice(np.array(levels(bits[0]), np.int8), shape)
            weights = from_integers(integers, bits[0])
            matrix = BitSerialMatrix(weights, bits[1], threads=self._threads)
        return _median_seconds(lambda: matrix(x), self._seconds)


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


def search_model(
    model: object,
    quality: Callable[[object], float],
    *,
    layers: Iterable[str] = ("*",),
    weight_bits: Iterable[int] = WEIGHT_BITS,
    activation_bits: Iterable[int] = ACTIVATION_BITS,
    floats: bool = False,
    cost: Cost | None = None,
    per_row: bool = False,
    method: Method = "auto",
    evaluations: int = DEFAULT_EVALUATIONS,
    seed: int = 0,
) -> Found:
    """Searches bits for the layers of a model, of PyTorch modules or of NumPy layers.

    `quality` gets the quantised model. `layers` are names with wildcards; `floats` allows a layer
    to stay as it is. `cost` is measured on this machine by default. `Variants` of one's own may
    stand in the place of the model.

    Raises ArgumentError for names that fit nothing, and what `search` raises.
    """
    variants = variants_of(model, per_row=per_row)
    shapes = chosen_layers(variants, layers)
    kept: list[Choice] = [None] if floats else []
    activations = tuple(activation_bits)
    choices: list[Choice] = [(w, a) for w in weight_bits for a in activations]
    return search(
        dict.fromkeys(shapes, choices + kept),
        lambda plan: variants.quality(plan, quality),
        cost or MeasuredCost(shapes),
        method=method,
        evaluations=evaluations,
        seed=seed,
    )


def variants_of(model: object, *, per_row: bool = False) -> Variants:
    """The variants of a model. Raises ArgumentError if it is none."""
    if isinstance(model, Variants):
        return model
    if isinstance(model, Layer):
        return LayerVariants(model, per_row=per_row)
    try:
        from .torch.models import ModuleVariants  # noqa: PLC0415 - needs PyTorch
    except ModuleNotFoundError as error:
        raise ArgumentError(
            f"model: found {type(model).__name__}, expected a Layer (or a PyTorch module, but "
            "PyTorch is not installed)"
        ) from error
    return ModuleVariants(model, per_row=per_row)


def chosen_layers(variants: Variants, patterns: Iterable[str]) -> dict[str, list[Shape]]:
    """The layers that names with wildcards stand for. Raises ArgumentError if that is none."""
    shapes = variants.shapes
    chosen: set[str] = set()
    for pattern in patterns:
        fitting = {name for name in shapes if name == pattern or fnmatchcase(name, pattern)}
        if not fitting:
            known = listed(shapes) if shapes else "none in this model"
            raise ArgumentError(f"layers: found {shown(pattern)}, expected one or more of {known}")
        chosen |= fitting
    return {name: own for name, own in shapes.items() if name in chosen}


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


def _median_seconds(work: Callable[[], object], seconds: float) -> float:
    work()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < _FEWEST_RUNS or time.perf_counter() < end:
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)
