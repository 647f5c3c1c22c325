"""LSTM and GRU in NumPy, as PyTorch defines them, with low-bit or float matrices.

With W_i x + b_i and W_h h + b_h in gates of `hidden` elements each, and s(x) = 1 / (1 + exp(-x)):

    LSTM  i, f, o = s(.), g = tanh(.);  c' = f c + i g;  h' = o tanh(c')
    GRU   r, z = s(.), n = tanh(W_in x + b_in + r (W_hn h + b_hn));  h' = n + z (h - n)
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self, TypeVar

import numpy as np

from .._arrays import as_array, as_count, shown
from ..errors import ArgumentError
from ._activations import as_vectors
from ._functions import sigmoid
from ._layers import Layer, Linear, Options, Stored, check_names
from ._weights import FloatArray

State = tuple[FloatArray, ...]
MAX_LAYERS = 1024


class _Cell(Layer):
    """One step of a recurrent layer: `ih` multiplies the input, `hh` the hidden state."""

    GATES: ClassVar[int]
    STATES: ClassVar[int]

    def __init__(self, ih: Linear, hh: Linear) -> None:
        check_names({"ih": ih, "hh": hh})
        self.ih, self.hh = ih, hh
        self.hidden = hh.matrix.columns
        if not hh.matrix.rows == ih.matrix.rows == self.GATES * self.hidden:
            raise ArgumentError(
                f"{self.KIND}: found {ih.matrix.rows} and {hh.matrix.rows} rows, expected "
                f"{self.GATES * self.hidden} for {self.hidden} units"
            )

    @property
    def inputs(self) -> int:
        """Length of an input vector."""
        return self.ih.matrix.columns

    def children(self) -> dict[str, Layer]:
        return {"ih": self.ih, "hh": self.hh}

    def with_children(self, children: Mapping[str, Layer]) -> Layer:
        return type(self)(*linear_children(children, ["ih", "hh"]))

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        return cls(*linear_children(stored.children, ["ih", "hh"]))

    def begin(self, batch: int) -> State:
        """Returns the zero state."""
        return tuple(np.zeros((batch, self.hidden), np.float32) for _ in range(self.STATES))

    def run(self, x: FloatArray, state: State, *, backwards: bool) -> tuple[FloatArray, State]:
        """Runs over x (steps, batch, inputs); returns outputs (..., hidden) and the last state."""
        products = self.ih(x)
        outputs = np.empty((*x.shape[:2], self.hidden), np.float32)
        for t in reversed(range(len(x))) if backwards else range(len(x)):
            state = self.step(products[t], state)
            outputs[t] = state[0]
        return outputs, state

    @abstractmethod
    def step(self, products: FloatArray, state: State) -> State:
        """Computes the next state from the input's products (batch, gates * hidden)."""

    def _next(self, x: object, state: object) -> State:
        """Runs one step for x (inputs,) or (batch, inputs)."""
        vectors = as_vectors(x, self.inputs)
        if vectors.ndim > 2:
            raise ArgumentError(f"x: found shape {vectors.shape}, expected (batch, {self.inputs})")
        flat = vectors.reshape(-1, self.inputs)
        shape = (*vectors.shape[:-1], self.hidden)
        states = self.begin(len(flat)) if state is None else _states(state, self.STATES, shape)
        begin = tuple(part.reshape(-1, self.hidden) for part in states)
        return tuple(part.reshape(shape) for part in self.step(self.ih(flat), begin))


class LSTMCell(_Cell):
    """One step of an LSTM: `cell(x, (h, c))` returns the next (h, c)."""

    KIND = "LSTMCell"
    GATES, STATES = 4, 2

    def step(self, products: FloatArray, state: State) -> State:
        h, c = state
        i, f, g, o = np.split(products + self.hh(h), 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    def __call__(self, x: object, state: object = None, /) -> tuple[FloatArray, FloatArray]:
        """Returns the next (h, c) for x (inputs,) or (batch, inputs); the default state is zero.

        Raises ArgumentError for another shape or dtype.
        """
        h, c = self._next(x, state)
        return h, c


class GRUCell(_Cell):
    """One step of a GRU: `cell(x, h)` returns the next h."""

    KIND = "GRUCell"
    GATES, STATES = 3, 1

    def step(self, products: FloatArray, state: State) -> State:
        (h,) = state
        own = self.hh(h)
        r, z = np.split(sigmoid(products[:, : 2 * self.hidden] + own[:, : 2 * self.hidden]), 2, 1)
        n = np.tanh(products[:, 2 * self.hidden :] + r * own[:, 2 * self.hidden :])
        return (n + z * (h - n),)

    def __call__(self, x: object, state: object = None, /) -> FloatArray:
        """Returns the next h for x (inputs,) or (batch, inputs); the default state is zero.

        Raises ArgumentError for another shape or dtype.
        """
        return self._next(x, state)[0]


CellOf = TypeVar("CellOf", LSTMCell, GRUCell)


class _Stack(Layer):
    """Stack of recurrent layers over a sequence, with one cell per layer and direction.

    `matrices` have the suffixes of PyTorch's weights: `ih_l0`, `hh_l0`, `ih_l0_reverse` and so on.
    Raises ArgumentError for other names and for inconsistent shapes.
    """

    OPTIONS = ("layers", "bidirectional", "batch_first")
    CELL: ClassVar[type[_Cell]]

    def __init__(
        self,
        matrices: dict[str, Linear],
        *,
        layers: int = 1,
        bidirectional: bool = False,
        batch_first: bool = False,
    ) -> None:
        self.layers = as_count(layers, "layers", 1, MAX_LAYERS)
        self.bidirectional, self.batch_first = bool(bidirectional), bool(batch_first)
        names = stack_names(self.layers, bidirectional=self.bidirectional)
        ordered = linear_children(matrices, names)
        self._matrices = dict(matrices)
        self._cells = [self.CELL(*ordered[i : i + 2]) for i in range(0, len(ordered), 2)]
        self.hidden, self.inputs = self._cells[0].hidden, self._cells[0].inputs
        self._directions = 2 if bidirectional else 1
        for i, cell in enumerate(self._cells):
            inputs = self.inputs if i < self._directions else self._directions * self.hidden
            if (cell.inputs, cell.hidden) != (inputs, self.hidden):
                raise ArgumentError(
                    f"{self.KIND}, layer {i // self._directions}: found {cell.inputs} inputs and "
                    f"{cell.hidden} units, expected {inputs} and {self.hidden}"
                )

    def children(self) -> dict[str, Layer]:
        return dict(self._matrices)

    def with_children(self, children: Mapping[str, Layer]) -> Layer:
        names = stack_names(self.layers, bidirectional=self.bidirectional)
        return type(self)(
            dict(zip(names, linear_children(children, names), strict=True)),
            layers=self.layers,
            bidirectional=self.bidirectional,
            batch_first=self.batch_first,
        )

    def options(self) -> Options:
        return {
            "layers": self.layers,
            "bidirectional": self.bidirectional,
            "batch_first": self.batch_first,
        }

    @classmethod
    def restore(cls, stored: Stored) -> Self:
        layers, both = stored.count("layers", 1, MAX_LAYERS), stored.flag("bidirectional")
        names = stack_names(layers, bidirectional=both)
        return cls(
            dict(zip(names, linear_children(stored.children, names), strict=True)),
            layers=layers,
            bidirectional=both,
            batch_first=stored.flag("batch_first"),
        )

    def _run(self, x: object, state: object) -> tuple[FloatArray, State]:
        """Returns outputs and the last state for a batch or for one sequence."""
        sequence = as_vectors(x, self.inputs)
        if sequence.ndim not in (2, 3) or not sequence.size:
            raise ArgumentError(
                f"x: found shape {sequence.shape}, expected (steps, {self.inputs}) or "
                f"{'(batch, steps, ' if self.batch_first else '(steps, batch, '}{self.inputs})"
            )
        unbatched = sequence.ndim == 2
        transposed = self.batch_first and not unbatched
        steps = sequence[:, np.newaxis] if unbatched else sequence
        steps = np.ascontiguousarray(steps.swapaxes(0, 1)) if transposed else steps
        batch = () if unbatched else (steps.shape[1],)
        begin = self._begin(state, (len(self._cells), *batch, self.hidden))
        outputs, end = self._run_layers(steps, begin)
        if unbatched:
            return outputs[:, 0], tuple(part[:, 0] for part in end)
        return np.ascontiguousarray(outputs.swapaxes(0, 1)) if transposed else outputs, end

    def _begin(self, state: object, shape: tuple[int, ...]) -> State:
        count = self.CELL.STATES
        if state is None:
            given: State = tuple(np.zeros(shape, np.float32) for _ in range(count))
        else:
            given = _states(state, count, shape)
        return tuple(part.reshape(len(self._cells), -1, self.hidden) for part in given)

    def _run_layers(self, x: FloatArray, begin: State) -> tuple[FloatArray, State]:
        ends: list[State] = []
        for layer in range(self.layers):
            outputs = []
            for direction in range(self._directions):
                at = layer * self._directions + direction
                state = tuple(part[at] for part in begin)
                output, end = self._cells[at].run(x, state, backwards=direction == 1)
                outputs.append(output)
                ends.append(end)
            x = outputs[0] if len(outputs) == 1 else np.concatenate(outputs, axis=2)
        return x, tuple(np.stack(parts) for parts in zip(*ends, strict=True))


class LSTM(_Stack):
    """LSTM over sequences: `lstm(x, (h, c))` returns (outputs, (h, c)) in PyTorch's shapes."""

    KIND = "LSTM"
    CELL = LSTMCell

    def __call__(
        self, x: object, state: object = None, /
    ) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
        """Returns outputs and the last state for x (steps, batch, inputs) or (steps, inputs).

        With `batch_first`, x is (batch, steps, inputs). Raises ArgumentError for another shape or
        dtype.
        """
        outputs, (h, c) = self._run(x, state)
        return outputs, (h, c)


class GRU(_Stack):
    """GRU over sequences: `gru(x, h)` returns (outputs, h) in PyTorch's shapes."""

    KIND = "GRU"
    CELL = GRUCell

    def __call__(self, x: object, state: object = None, /) -> tuple[FloatArray, FloatArray]:
        """Returns outputs and the last state for x (steps, batch, inputs) or (steps, inputs).

        With `batch_first`, x is (batch, steps, inputs). Raises ArgumentError for another shape or
        dtype.
        """
        outputs, (h,) = self._run(x, state)
        return outputs, h


def stack_names(layers: int, *, bidirectional: bool) -> list[str]:
    """Returns the names of a stack's matrices: `ih`, then `hh`, for each layer and direction."""
    directions = ("", "_reverse") if bidirectional else ("",)
    return [
        f"{which}_l{layer}{direction}"
        for layer in range(layers)
        for direction in directions
        for which in ("ih", "hh")
    ]


def linear_children(children: Mapping[str, Layer], names: Sequence[str]) -> list[Linear]:
    """Returns children in the order of `names`.

    Raises ArgumentError for other names and for children that are not Linear.
    """
    if sorted(children) != sorted(names):
        own, expected = shown(sorted(children)), shown(sorted(names))
        raise ArgumentError(f"matrices: found {own}, expected {expected}")
    found = [children[name] for name in names]
    linear = [layer for layer in found if isinstance(layer, Linear)]
    if len(linear) != len(found):
        raise ArgumentError("matrices: found another kind of layer, expected only Linear")
    return linear


def _states(state: object, count: int, shape: tuple[int, ...]) -> State:
    """Checks a caller's state. Raises ArgumentError unless it is `count` arrays of this shape."""
    parts = (state,) if count == 1 else state
    if not isinstance(parts, tuple | list) or len(parts) != count:
        raise ArgumentError(f"state: found {type(state).__name__}, expected {count} arrays")
    arrays = [as_array(part, "state") for part in parts]
    for array in arrays:
        if array.dtype.kind != "f" or array.shape != shape:
            raise ArgumentError(
                f"state: found {array.dtype} of shape {array.shape}, expected floats of shape "
                f"{shape}"
            )
    return tuple(np.ascontiguousarray(array, np.float32) for array in arrays)
