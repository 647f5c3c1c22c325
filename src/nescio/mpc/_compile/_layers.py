"""Layers from expressions: what is closed by a function becomes a result."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from ...errors import ArgumentError
from .._layout import N
from .._maps import Convolution, Dense, Floats, Shape
from .._plans.floats import RELU, FloatLayer, FloatTerm, Function
from .._public import MAX_LAYERS, MAX_TERMS
from ._values import Expression, Op, Pointwise, Term, Value, plain
from ._windows import Window

MOST_NUMBERS = 1 << 24
"""Numbers of a matrix that replaces other maps."""

_GRID = 32.0  # functions are finite from -32 to 32


class Model(NamedTuple):
    """A model as layers, the last of which has no function.

    Inputs (n, *shape of the example) have the shape `inputs` for the first layer. The last layer's
    values are the model's outputs up to their shape, `outputs`. `notes` say what costs more than a
    reader of the model would expect. `is_class` says that the model gives the place of the largest
    output in their stead.
    """

    layers: list[FloatLayer]
    inputs: Shape
    outputs: Shape
    notes: list[str]
    is_class: bool = False

    @property
    def tables(self) -> int:
        """The number of tables of an inference: one for each value with a function."""
        return sum(int(np.prod(layer.outputs)) for layer in self.layers[:-1])


class Layers:
    """The layers so far, and their shapes; `at` says where in the model the work is."""

    def __init__(self, inputs: Shape) -> None:
        self.shapes = [inputs]
        self.layers: list[FloatLayer] = []
        self.notes: list[str] = []
        self.at = "the model"

    def expression(self, value: Value) -> Expression:
        """Returns a value as an expression: a function of one number becomes a layer."""
        if isinstance(value, Expression):
            return value
        if value.closed is None:
            value.closed = self.close(value.base, self._function(value))
        return value.closed

    def identity(self, expression: Expression, why: str) -> Expression:
        """Computes an expression by a layer whose function is the identity, and notes it."""
        self.notes.append(f"{self.at}: {expression.size} tables of the identity, because {why}")
        return self.close(expression, Function("identity", np.array, scales=True))

    def close(self, expression: Expression, function: Function) -> Expression:
        """Adds a layer, and returns its result."""
        if expression.origin is not None and expression.windows is None:
            inner, moved = expression.origin
            result = self.close(inner, function)
            terms = tuple(term.then(moved) for term in result.terms)
            return Expression(expression.shape, terms, moved(result.constant), is_plain=True)
        layer = self.layer(expression, function)
        if len(self.layers) + 1 >= MAX_LAYERS:
            raise self.refusal(f"found more than {MAX_LAYERS} layers", "fewer", "use a smaller one")
        self.layers.append(layer)
        self.shapes.append(layer.outputs)
        return plain(len(self.layers), layer.outputs, expression.shape)

    def layer(self, expression: Expression, function: Function = RELU) -> FloatLayer:
        """Returns an expression as a layer."""
        if len(expression.terms) > MAX_TERMS:
            found = f"found a sum of {len(expression.terms)} maps"
            raise self.refusal(found, f"up to {MAX_TERMS}", "join fewer results")
        terms = self._convolutions(expression) or self._matrices(expression)
        natural = terms[0].geometry.outputs
        bias = expression.constant.reshape(natural).numpy()
        flat = bias.reshape(len(bias), -1)
        if (flat == flat[:, :1]).all():
            bias = flat[:, 0]
        return FloatLayer(terms, np.ascontiguousarray(bias), function)

    def _convolutions(self, expression: Expression) -> tuple[FloatTerm, ...] | None:
        windows = expression.windows
        if windows is None or len({window.shape for window in windows}) > 1:
            return None
        sources = [term.source for term in expression.terms]
        pairs: list[tuple[Convolution, Floats]] = [window.geometry() for window in windows]
        for window, (geometry, _) in zip(windows, pairs, strict=True):
            self._check_taps(window, geometry)
        return tuple(FloatTerm(source, *pair) for source, pair in zip(sources, pairs, strict=True))

    def _check_taps(self, window: Window, geometry: Convolution) -> None:
        """Raises ArgumentError for a kernel that does not fit into a polynomial."""
        sizes = zip(geometry.weights.shape[2:], geometry.dilation, geometry.stride, strict=True)
        taps = [-(-(apart * (count - 1) + 1) // step) for count, apart, step in sizes]
        if math.prod(taps) <= N:
            return
        why = f", for a crop that starts at {window.offset}" if max(window.offset) > 0 else ""
        raise self.refusal(
            f"found a kernel of {taps[0]} x {taps[1]} taps in a phase of the stride{why}",
            f"up to {N:,}",
            "crop the inputs before the model, or use a smaller kernel or dilation",
        )

    def _matrices(self, expression: Expression) -> tuple[FloatTerm, ...]:
        return tuple(self._matrix(term, expression.size) for term in expression.terms)

    def _matrix(self, term: Term, size: int) -> FloatTerm:
        matrix = term.matrix
        if matrix is None:
            self.check_matrix(term, size)
            matrix = term.pulled(torch.eye(size, dtype=torch.float64))
        weights: Floats = matrix.numpy()
        geometry = Dense(np.zeros(weights.shape, np.int64), term.inputs)
        return FloatTerm(term.source, geometry, weights)

    def check_matrix(self, term: Term, rows: int, most: int = MOST_NUMBERS) -> None:
        """Raises ArgumentError for a map that is no convolution, and too large for a matrix."""
        if rows * term.size > most:
            raise self.refusal(
                f"found a map from {term.size} to {rows} numbers that is no convolution",
                f"a convolution, or a matrix of up to {most} numbers",
                "move permutations and reshapes behind the next function or linear layer",
            )

    def refusal(self, found: str, expected: str, remedy: str) -> ArgumentError:
        """Returns the error for the place in the model where the work is."""
        return ArgumentError(f"{self.at}: {found}, expected {expected}; {remedy}")

    def _function(self, value: Pointwise) -> Function:
        """Returns the function of a layer, on arrays. Raises ArgumentError if it is not finite."""
        own = value.function
        grid = torch.linspace(-_GRID, _GRID, 1025, dtype=torch.float64)
        if not torch.isfinite(own(grid)).all():
            raise self.refusal(
                f"found {value.name}, which is not finite for all numbers",
                f"a function that is finite from {-_GRID:g} to {_GRID:g}",
                "clamp its input",
            )
        scales = value.scales
        if scales and own(torch.tensor([-1.0, 1.0], dtype=torch.float64)).tolist() == [0.0, 1.0]:
            return RELU
        return Function(value.name, _on_arrays(own), scales)


def _on_arrays(function: Op) -> Callable[[Floats], Floats]:
    """Returns a function of tensors as one of arrays."""

    def of(values: Floats) -> Floats:
        with torch.no_grad():
            found = function(torch.from_numpy(np.ascontiguousarray(values)))
        array: Floats = found.double().numpy()
        return array

    return of


def windows_of(expression: Expression, shape: Shape | None) -> bool:
    """Tests if all terms are windows to one shape of outputs."""
    windows = expression.windows
    return windows is not None and all(window.shape == shape for window in windows)
