"""Training for few bits: the forward pass rounds, the gradient passes as if it did not.

    trained = prepare(model, {"fc*": (1, None)})       # weights of 1 bit, activations as they are
    ...                                                # train it as any other model
    small = convert(trained)                           # bit-serial modules

Straight-through estimation (Bengio, Leonard and Courville, 2013), with the quantiser of
`quantize_weights`; from scratch or from a trained model. Its step is searched for again every
`refresh` forward passes while training, because a search costs more than a pass. After `eval()` it
is searched for in the first pass, and whenever PyTorch has counted a change to the weights, which
it does not for `weight.data`: call `eval()` again after such a one. `convert` always searches.
Activations are rounded vector by vector, as the engine does. Source: thesis, 3.5.4.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn import functional

from ..._arrays import as_count, shown
from ...errors import ArgumentError
from .._plan import check_bits
from .._steps import levels
from .._weights import MOST_WEIGHT_BITS, as_weights, steps_of
from ._linear import floats
from ._models import Model, named_by, quantize_module, replaced
from ._recurrent import State

TrainingBits = tuple[int, int | None]
TrainingPlan = Mapping[str, TrainingBits | None]

_FULL_PRECISION = 32  # float32 itself has no more bits than a vector's elements then keep
_MOST_REFRESH = 1 << 20


def prepare(model: Model, plan: TrainingPlan, *, per_row: bool = False, refresh: int = 32) -> Model:
    """A copy of a model whose planned modules round their weights and activations in training.

    The plan is that of `quantize`, but for activation bits: None and 32 leave activations as they
    are, and 1 to 8 and 16 round them, so that what the engine does not have (fewer than 8) can be
    compared. Raises ArgumentError as `quantize`.
    """
    refresh = as_count(refresh, "refresh", 1, _MOST_REFRESH)
    chosen = named_by(plan, model, _check_training_bits)
    copied = replaced(model, {})
    made: dict[str, torch.nn.Module] = {}
    for name, bits in chosen.items():
        module = copied.get_submodule(name)
        kind = (
            StraightThroughLinear if type(module) is torch.nn.Linear else StraightThroughRecurrent
        )
        made[name] = kind(module, bits, per_row=per_row, refresh=refresh)
    return replaced(copied, made, share=True)


def convert(model: Model, *, activation_bits: int | None = None) -> Model:
    """A copy of a prepared model with bit-serial modules in the place of those that were trained.

    Each has the bits that it was trained for; `activation_bits` replaces those of activations, and
    is 32 for activations that were not rounded. Raises ArgumentError for activation bits that the
    engine does not have, a model without prepared modules, NaN and infinite weights.
    """
    made: dict[str, torch.nn.Module] = {}
    for name, module in model.named_modules():
        if isinstance(module, _StraightThrough):
            bits = check_bits(
                (module.weight_bits, activation_bits or module.activation_bits or 32), repr(name)
            )
            made[name] = quantize_module(name, module.layer, bits, per_row=module.per_row)
    if not made:
        raise ArgumentError("model: found no module to convert, expected one that prepare() made")
    return replaced(model, made)


class WeightRounding(torch.nn.Module):
    """Weights rounded to few bits; their gradient is that of the rounded ones."""

    def __init__(self, bits: int, *, per_row: bool, refresh: int) -> None:
        super().__init__()
        self.bits, self.per_row, self.refresh = bits, per_row, refresh
        self._steps: torch.Tensor | None = None
        self._of: tuple[int, int] | None = None  # which weights the steps belong to
        self._passes = 0

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """The rounded weights. Raises ArgumentError for NaN and infinite weights."""
        steps = self._current(weight)
        low, high = levels(self.bits)
        with torch.no_grad():
            if self.bits == 1:
                integers = torch.where(weight >= 0, 1.0, -1.0)
            else:
                quotients = weight / torch.where(steps == 0, 1.0, steps)
                integers = torch.clamp(torch.round(quotients), low, high)
            change = integers * steps - weight
        return weight + change

    def train(self, mode: bool = True) -> "WeightRounding":
        """As every module's; the next pass searches for the steps again."""
        if not mode:
            self._of = None
        super().train(mode)
        return self

    def _current(self, weight: torch.Tensor) -> torch.Tensor:
        """The steps, (rows, 1): searched for if it is time."""
        of = (weight.data_ptr(), weight._version)
        due = self._passes % self.refresh == 0 if self.training else of != self._of
        self._passes += self.training
        if self._steps is None or due or self._steps.device != weight.device:
            steps = steps_of(as_weights(floats(weight)), self.bits, per_row=self.per_row)
            self._steps = torch.from_numpy(steps)[:, None].to(weight)
            self._of = of
        return self._steps


class _StraightThrough(torch.nn.Module):
    """A module of floats that is used with rounded weights."""

    def __init__(
        self, layer: torch.nn.Module, bits: TrainingBits, *, per_row: bool, refresh: int
    ) -> None:
        super().__init__()
        self.layer = layer
        self.weight_bits, self.activation_bits = bits
        self.per_row = per_row
        names = [name for name, _ in layer.named_parameters() if name.startswith("weight")]
        self.rounding = torch.nn.ModuleDict(
            {name: WeightRounding(bits[0], per_row=per_row, refresh=refresh) for name in names}
        )

    def rounded_parameters(self) -> dict[str, torch.Tensor]:
        """The layer's parameters, weights rounded."""
        return {
            name: self.rounding[name](parameter) if name in self.rounding else parameter
            for name, parameter in self.layer.named_parameters()
        }

    def rounded(self, x: torch.Tensor) -> torch.Tensor:
        """Activations rounded, or as they are."""
        return round_activations(x, self.activation_bits)

    def extra_repr(self) -> str:
        """What stands in the parentheses when the module is printed."""
        return f"weight_bits={self.weight_bits}, activation_bits={self.activation_bits}"


class StraightThroughLinear(_StraightThrough):
    """A `Linear` with rounded weights and activations."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer's output."""
        parameters = self.rounded_parameters()
        return functional.linear(self.rounded(x), parameters["weight"], parameters.get("bias"))


class StraightThroughRecurrent(_StraightThrough):
    """An LSTM, a GRU or a cell with rounded weights, inputs and hidden states.

    Where hidden states are rounded, a sequence goes through step by step; else PyTorch's own
    kernels run it.
    """

    def forward(self, x: torch.Tensor, state: State = None) -> Any:  # noqa: ANN401 - as the layer
        """The layer's output."""
        parameters = self.rounded_parameters()
        if self.activation_bits in (None, _FULL_PRECISION):
            return torch.func.functional_call(self.layer, parameters, (x, state))
        if isinstance(self.layer, torch.nn.LSTM | torch.nn.GRU):
            return self._step_by_step(parameters, x, state)
        return self._one_step(parameters, x, state)

    def _one_step(self, parameters: dict[str, torch.Tensor], x: torch.Tensor, state: State) -> Any:  # noqa: ANN401
        """A cell's."""
        if state is None:
            zeros = x.new_zeros((*x.shape[:-1], self.layer.hidden_size))
            state = (zeros, zeros) if self._states == 2 else zeros
        named = [parameters.get(what) for what in _CELL_PARAMETERS]
        given = list(state) if isinstance(state, tuple) else [state]
        end = self._step(self.rounded(x), given, named)
        return tuple(end) if len(end) == 2 else end[0]

    def _step(
        self,
        x: torch.Tensor,
        state: list[torch.Tensor],
        parameters: list[torch.Tensor | None],
    ) -> list[torch.Tensor]:
        """The next state. Products take the rounded hidden state, what is added up its own."""
        rounded = self.rounded(state[0])
        ours = functional.linear(x, parameters[0], parameters[2])
        theirs = functional.linear(rounded, parameters[1], parameters[3])
        if self._states == 2:
            i, f, g, o = (ours + theirs).chunk(4, -1)
            c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
            return [torch.sigmoid(o) * torch.tanh(c), c]
        own, others = ours.chunk(3, -1), theirs.chunk(3, -1)
        r, z = (torch.sigmoid(a + b) for a, b in zip(own[:2], others[:2], strict=True))
        n = torch.tanh(own[2] + r * others[2])
        return [n + z * (state[0] - n)]

    def _step_by_step(
        self, parameters: dict[str, torch.Tensor], x: torch.Tensor, state: State
    ) -> Any:  # noqa: ANN401
        layer = self.layer
        alone, swapped = x.dim() == 2, layer.batch_first and x.dim() == 3
        steps = x.unsqueeze(1) if alone else x.transpose(0, 1) if swapped else x
        directions = 2 if layer.bidirectional else 1
        states = self._begin(state, steps, directions * layer.num_layers)
        ends = []
        for depth in range(layer.num_layers):
            if depth and layer.dropout:
                steps = functional.dropout(steps, layer.dropout, self.training)
            outputs = []
            for direction in range(directions):
                own = [part[depth * directions + direction] for part in states]
                suffix = f"l{depth}{'_reverse' if direction else ''}"
                output, end = self._run(parameters, suffix, steps, own)
                outputs.append(output)
                ends.append(end)
            steps = torch.cat(outputs, dim=-1)
        last = [torch.stack(parts) for parts in zip(*ends, strict=True)]
        if alone:
            steps, last = steps.squeeze(1), [part.squeeze(1) for part in last]
        shaped = steps.transpose(0, 1) if swapped else steps
        return shaped, (tuple(last) if len(last) == 2 else last[0])

    def _begin(self, state: State, steps: torch.Tensor, count: int) -> tuple[torch.Tensor, ...]:
        shape = (count, steps.shape[1], self.layer.hidden_size)
        if state is None:
            return tuple(steps.new_zeros(shape) for _ in range(self._states))
        given = state if isinstance(state, tuple) else (state,)
        return tuple(part.reshape(shape) for part in given)

    @property
    def _states(self) -> int:
        return 2 if isinstance(self.layer, torch.nn.LSTM | torch.nn.LSTMCell) else 1

    def _run(
        self,
        parameters: dict[str, torch.Tensor],
        suffix: str,
        steps: torch.Tensor,
        state: list[torch.Tensor],
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """One direction of one layer."""
        named = [parameters.get(f"{what}_{suffix}") for what in _CELL_PARAMETERS]
        inputs = self.rounded(steps)
        order = range(len(inputs))
        outputs = [inputs] * len(inputs)
        for t in reversed(order) if suffix.endswith("_reverse") else order:
            state = self._step(inputs[t], state, named)
            outputs[t] = state[0]
        return torch.stack(outputs), state


_CELL_PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def round_activations(x: torch.Tensor, bits: int | None) -> torch.Tensor:
    """Each vector rounded to k-bit integers times its own step, max |x| / (2^(k-1) - 1).

    One bit is the sign times mean |x|. None and 32 change nothing. The gradient passes.
    """
    if bits is None or bits == _FULL_PRECISION:
        return x
    with torch.no_grad():
        if bits == 1:
            rounded = torch.where(x >= 0, 1.0, -1.0) * x.abs().mean(-1, keepdim=True)
        else:
            top = float((1 << bits - 1) - 1)
            largest = x.abs().amax(-1, keepdim=True)
            nonzero = torch.where(largest == 0, 1.0, largest)
            rounded = torch.round(x * (top / nonzero)) * (largest / top)
        change = rounded - x
    return x + change


def _check_training_bits(bits: object, what: str) -> TrainingBits:
    """The bits of weights and activations in training. Raises ArgumentError."""
    if not isinstance(bits, tuple | list) or len(bits) != 2:
        raise ArgumentError(
            f"{what}: found {shown(bits)}, expected (weight bits, activation bits or None)"
        )
    weights, activations = bits
    try:
        checked = as_count(weights, "weight bits", 1, MOST_WEIGHT_BITS)
        if activations is None:
            return checked, None
        if isinstance(activations, int) and activations in (16, _FULL_PRECISION):
            return checked, activations
        return checked, as_count(activations, "activation bits (or 16, 32, None)", 1, 8)
    except ArgumentError as error:
        raise ArgumentError(f"{what}: {error}") from error
