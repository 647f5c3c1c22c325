"""Quantization-aware training: the forward pass rounds, the gradient ignores the rounding.

    trained = prepare(model, {"fc*": (1, None)})       # 1-bit weights, float activations
    ...                                                # train it as any other model
    small = convert(trained)                           # bit-serial modules

Uses the straight-through estimator (Bengio, Leonard and Courville, 2013) with the quantizer of
`quantize_weights`, from scratch or from a trained model. In training, the step is searched again
every `refresh` forward passes, because a search costs more than a pass. In evaluation, the step is
searched in the first pass after `eval()` and after each change to the weights that PyTorch's
version counter records. Changes through `weight.data` are not recorded: call `eval()` again after
them. `convert` always searches. Activations are rounded per vector, as in the engine. Source:
thesis, 3.5.4.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn import functional

from ..._arrays import as_count, shown
from ...errors import ArgumentError
from .._plan import check_bits
from .._steps import levels
from .._weights import MAX_WEIGHT_BITS, as_weights, steps_of
from ._linear import floats
from ._models import Model, planned_modules, quantize_module, replace_modules
from ._recurrent import State

TrainingBits = tuple[int, int | None]
TrainingPlan = Mapping[str, TrainingBits | None]

_FULL_PRECISION = 32  # 32-bit integers keep all bits of float32
_MAX_REFRESH = 1 << 20


def prepare(model: Model, plan: TrainingPlan, *, per_row: bool = False, refresh: int = 32) -> Model:
    """Returns a copy of a model whose planned modules round weights and activations in training.

    The plan is that of `quantize` with more activation bits: None and 32 leave activations
    unrounded; 1 to 8 and 16 round them. The engine does not support fewer than 8; they allow
    comparisons. Raises as `quantize` does.
    """
    refresh = as_count(refresh, "refresh", 1, _MAX_REFRESH)
    chosen = planned_modules(plan, model, _check_training_bits)
    copied = replace_modules(model, {})
    made: dict[str, torch.nn.Module] = {}
    for name, bits in chosen.items():
        module = copied.get_submodule(name)
        kind = (
            StraightThroughLinear if type(module) is torch.nn.Linear else StraightThroughRecurrent
        )
        made[name] = kind(module, bits, per_row=per_row, refresh=refresh)
    return replace_modules(copied, made, share=True)


def convert(model: Model, *, activation_bits: int | None = None) -> Model:
    """Returns a copy of a prepared model with bit-serial modules in place of the trained ones.

    Each module keeps the bits that it was trained for. `activation_bits` overrides the activation
    bits; activations that were not rounded get 32 bits by default. Raises ArgumentError for
    activation bits other than 8, 16 and 32, a model without prepared modules, NaN and infinite
    weights.
    """
    made: dict[str, torch.nn.Module] = {}
    for name, module in model.named_modules():
        if isinstance(module, _StraightThrough):
            bits = check_bits(
                (module.weight_bits, activation_bits or module.activation_bits or 32), repr(name)
            )
            made[name] = quantize_module(name, module.layer, bits, per_row=module.per_row)
    if not made:
        raise ArgumentError("model: found no module to convert, expected a model from prepare()")
    return replace_modules(model, made)


class WeightRounding(torch.nn.Module):
    """Rounds weights to few bits; passes the gradient of the rounded weights through."""

    def __init__(self, bits: int, *, per_row: bool, refresh: int) -> None:
        super().__init__()
        self.bits, self.per_row, self.refresh = bits, per_row, refresh
        self._steps: torch.Tensor | None = None
        self._of: tuple[int, int] | None = None  # address and version of the weights of _steps
        self._passes = 0

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """Returns the rounded weights. Raises ArgumentError for NaN and infinite weights."""
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
        """Sets the mode; after `eval()` the next pass searches for the steps again."""
        if not mode:
            self._of = None
        super().train(mode)
        return self

    def _current(self, weight: torch.Tensor) -> torch.Tensor:
        """Returns the steps (rows, 1); searches for them again when due."""
        of = (weight.data_ptr(), weight._version)
        due = self._passes % self.refresh == 0 if self.training else of != self._of
        self._passes += self.training
        if self._steps is None or due or self._steps.device != weight.device:
            steps = steps_of(as_weights(floats(weight)), self.bits, per_row=self.per_row)
            self._steps = torch.from_numpy(steps)[:, None].to(weight)
            self._of = of
        return self._steps


class _StraightThrough(torch.nn.Module):
    """Base of modules that run a float layer with rounded weights."""

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
        """Returns the layer's parameters with rounded weights."""
        return {
            name: self.rounding[name](parameter) if name in self.rounding else parameter
            for name, parameter in self.layer.named_parameters()
        }

    def rounded(self, x: torch.Tensor) -> torch.Tensor:
        """Rounds activations if their bits are given."""
        return round_activations(x, self.activation_bits)

    def extra_repr(self) -> str:
        """Returns the text in parentheses of the module's `repr`."""
        return f"weight_bits={self.weight_bits}, activation_bits={self.activation_bits}"


class StraightThroughLinear(_StraightThrough):
    """Runs a `Linear` with rounded weights and activations."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the layer's output."""
        parameters = self.rounded_parameters()
        return functional.linear(self.rounded(x), parameters["weight"], parameters.get("bias"))


class StraightThroughRecurrent(_StraightThrough):
    """Runs an LSTM, GRU or cell with rounded weights, inputs and hidden states.

    If hidden states are rounded, a sequence runs step by step; otherwise in PyTorch's own kernels.
    """

    def forward(self, x: torch.Tensor, state: State = None) -> Any:  # noqa: ANN401 - as the layer
        """Returns the layer's output."""
        parameters = self.rounded_parameters()
        if self.activation_bits in (None, _FULL_PRECISION):
            return torch.func.functional_call(self.layer, parameters, (x, state))
        if isinstance(self.layer, torch.nn.LSTM | torch.nn.GRU):
            return self._step_by_step(parameters, x, state)
        return self._one_step(parameters, x, state)

    def _one_step(self, parameters: dict[str, torch.Tensor], x: torch.Tensor, state: State) -> Any:  # noqa: ANN401
        """Runs a cell."""
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
        """Returns the next state. Products use the rounded hidden state, sums the exact one."""
        rounded = self.rounded(state[0])
        from_input = functional.linear(x, parameters[0], parameters[2])
        from_state = functional.linear(rounded, parameters[1], parameters[3])
        if self._states == 2:
            i, f, g, o = (from_input + from_state).chunk(4, -1)
            c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
            return [torch.sigmoid(o) * torch.tanh(c), c]
        own, others = from_input.chunk(3, -1), from_state.chunk(3, -1)
        r, z = (torch.sigmoid(a + b) for a, b in zip(own[:2], others[:2], strict=True))
        n = torch.tanh(own[2] + r * others[2])
        return [n + z * (state[0] - n)]

    def _step_by_step(
        self, parameters: dict[str, torch.Tensor], x: torch.Tensor, state: State
    ) -> Any:  # noqa: ANN401
        layer = self.layer
        unbatched, transposed = x.dim() == 2, layer.batch_first and x.dim() == 3
        steps = x.unsqueeze(1) if unbatched else x.transpose(0, 1) if transposed else x
        directions = 2 if layer.bidirectional else 1
        states = self._initial_state(state, steps, directions * layer.num_layers)
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
        if unbatched:
            steps, last = steps.squeeze(1), [part.squeeze(1) for part in last]
        shaped = steps.transpose(0, 1) if transposed else steps
        return shaped, (tuple(last) if len(last) == 2 else last[0])

    def _initial_state(
        self, state: State, steps: torch.Tensor, count: int
    ) -> tuple[torch.Tensor, ...]:
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
        """Runs one direction of one layer."""
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
    """Rounds each vector to k-bit integers times its own step, max |x| / (2^(k-1) - 1).

    One bit gives the sign times mean |x|. None and 32 return x unchanged. The gradient ignores the
    rounding.
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
    """Checks the bits of weights and activations in training. Raises ArgumentError."""
    if not isinstance(bits, tuple | list) or len(bits) != 2:
        raise ArgumentError(
            f"{what}: found {shown(bits)}, expected (weight bits, activation bits or None)"
        )
    weights, activations = bits
    try:
        checked = as_count(weights, "weight bits", 1, MAX_WEIGHT_BITS)
        if activations is None:
            return checked, None
        if isinstance(activations, int) and activations in (16, _FULL_PRECISION):
            return checked, activations
        return checked, as_count(activations, "activation bits (or 16, 32, None)", 1, 8)
    except ArgumentError as error:
        raise ArgumentError(f"{what}: {error}") from error
