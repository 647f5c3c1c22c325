"""Whole models: which modules can be quantised, and a model with some of them replaced."""

import copy
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch

from ...errors import ArgumentError
from .._plan import Bits, Candidate, Chosen, Plan, check_bits, resolve
from .._variants import Variants
from ._linear import BitSerialLinear
from ._recurrent import BitSerialGRU, BitSerialGRUCell, BitSerialLSTM, BitSerialLSTMCell

Make = Callable[..., torch.nn.Module]
Model = TypeVar("Model", bound=torch.nn.Module)

MAKERS: dict[type[torch.nn.Module], Make] = {
    torch.nn.Linear: BitSerialLinear.from_linear,
    torch.nn.LSTM: BitSerialLSTM.from_layer,
    torch.nn.GRU: BitSerialGRU.from_layer,
    torch.nn.LSTMCell: BitSerialLSTMCell.from_cell,
    torch.nn.GRUCell: BitSerialGRUCell.from_cell,
}


def quantize(model: Model, plan: Plan, *, per_row: bool = False, clip: bool = True) -> Model:
    """A copy of a model with the modules that a plan names quantised; see `nescio.quant._plan`.

    Linear, LSTM, GRU and their cells can be; the rest is copied. `per_row` and `clip` are those of
    `quantize_weights`. Raises ArgumentError for a name that fits nothing, a module of another type,
    bits that cannot be, NaN and infinite weights.
    """
    chosen = named_by(plan, model, check_bits)
    made = {
        name: quantize_module(name, model.get_submodule(name), bits, per_row=per_row, clip=clip)
        for name, bits in chosen.items()
    }
    return replaced(model, made)


def quantize_module(
    name: str, module: torch.nn.Module, bits: Bits, *, per_row: bool = False, clip: bool = True
) -> torch.nn.Module:
    """One module quantised. Errors are those of `quantize`, and name it."""
    try:
        return MAKERS[type(module)](module, *bits, per_row=per_row, clip=clip)
    except ArgumentError as error:
        raise ArgumentError(f"{name!r}: {error}") from error


def named_by(
    plan: Mapping[str, Chosen | None],
    model: torch.nn.Module,
    check: Callable[[object, str], Chosen],
) -> dict[str, Chosen]:
    """What a plan says of each module that it names. Raises ArgumentError as `quantize`."""
    if not isinstance(model, torch.nn.Module):
        raise ArgumentError(f"model: found {type(model).__name__}, expected a torch.nn.Module")
    candidates = [candidate(name, module) for name, module in model.named_modules()]
    chosen = resolve(plan, candidates, check)
    for name in chosen:
        check_no_hooks(f"plan, {name!r}", model.get_submodule(name))
    return {name: bits for name, bits in chosen.items() if bits is not None}


def check_no_hooks(what: str, module: torch.nn.Module) -> None:
    """Raises ArgumentError for a module with hooks around its `forward`."""
    if module._forward_pre_hooks or module._forward_hooks:
        raise ArgumentError(
            f"{what}: found hooks on it, which would be lost: remove them first "
            "(torch.nn.utils.remove_weight_norm and the like)"
        )


def candidate(name: str, module: torch.nn.Module) -> Candidate:
    """A module as a plan sees it."""
    own = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
    return Candidate(name, type(module).__name__, type(module) in MAKERS, bool(own))


def replaced(model: Model, modules: Mapping[str, torch.nn.Module], *, share: bool = False) -> Model:
    """A copy of a model with other modules in some places; with `share`, of the same tensors."""
    memo: dict[int, object] = {
        id(model.get_submodule(name)): module for name, module in modules.items()
    }
    if share:
        memo |= {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    copied = copy.deepcopy(model, memo)
    _leave_fast_paths(copied)
    return copied


def _leave_fast_paths(model: torch.nn.Module) -> None:
    """Keeps encoders of Transformers from multiplying with the weights of layers that have none.

    In `eval()` PyTorch takes `linear1.weight` and `linear2.weight` itself, past their modules.
    """
    for module in model.modules():
        if isinstance(module, torch.nn.TransformerEncoderLayer) and _lacks_weights(module):
            module.activation_relu_or_gelu = 0
        if isinstance(module, torch.nn.TransformerEncoder) and any(
            map(_lacks_weights, module.layers)
        ):
            module.use_nested_tensor = False


def _lacks_weights(layer: torch.nn.Module) -> bool:
    """Whether one of an encoder's matrices was replaced by a module without `weight`."""
    parts = (getattr(layer, name, None) for name in ("linear1", "linear2"))
    return any(part is not None and not hasattr(part, "weight") for part in parts)


class ModuleVariants(Variants):
    """A PyTorch model whose modules can be quantised, each in several ways."""

    def __init__(self, model: torch.nn.Module, *, per_row: bool = False, clip: bool = True) -> None:
        if not isinstance(model, torch.nn.Module):
            raise ArgumentError(
                f"model: found {type(model).__name__}, expected a PyTorch module or a Layer"
            )
        self._model, self._per_row, self._clip = model, per_row, clip
        self._modules = {
            name: module for name, module in model.named_modules() if type(module) in MAKERS
        }
        self._made: dict[tuple[str, int], torch.nn.Module] = {}

    @property
    def shapes(self) -> dict[str, list[tuple[int, int]]]:
        """The matrices of each layer that can be quantised, as (rows, columns)."""
        return {
            name: [tuple(tensor.shape) for tensor in module.parameters() if tensor.dim() == 2]
            for name, module in self._modules.items()
        }

    def model(self, plan: Mapping[str, Bits | None]) -> torch.nn.Module:
        """The model under a plan, in which every name is a layer's; it shares tensors."""
        made = {name: self._quantised(name, bits) for name, bits in plan.items() if bits}
        return replaced(self._model, made, share=True)

    def quality(
        self,
        plan: Mapping[str, Bits | None],
        quality: Callable[[Any], Any],
    ) -> Any:  # noqa: ANN401
        """What a function says of the model under a plan, in a pass without gradients."""
        with torch.no_grad():
            return quality(self.model(plan))

    def _quantised(self, name: str, bits: Bits) -> torch.nn.Module:
        key = (name, bits[0])
        if key not in self._made:
            self._made[key] = quantize_module(
                name, self._modules[name], bits, per_row=self._per_row, clip=self._clip
            )
        made = self._made[key]
        if isinstance(made, BitSerialLinear):
            return made.with_activation_bits(bits[1])
        parts = {
            child: part.with_activation_bits(bits[1])
            for child, part in made.named_children()
            if isinstance(part, BitSerialLinear)
        }
        return replaced(made, parts, share=True)
