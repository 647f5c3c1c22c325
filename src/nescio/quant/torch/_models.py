"""Quantization of whole PyTorch models by plan."""

import copy
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch

from ...errors import ArgumentError
from .._plan import Bits, Candidate, Chosen, Plan, check_bits, resolve
from .._variants import Variants
from ._linear import BitSerialLinear
from ._recurrent import BitSerialGRU, BitSerialGRUCell, BitSerialLSTM, BitSerialLSTMCell

Factory = Callable[..., torch.nn.Module]
Model = TypeVar("Model", bound=torch.nn.Module)

FACTORIES: dict[type[torch.nn.Module], Factory] = {
    torch.nn.Linear: BitSerialLinear.from_linear,
    torch.nn.LSTM: BitSerialLSTM.from_layer,
    torch.nn.GRU: BitSerialGRU.from_layer,
    torch.nn.LSTMCell: BitSerialLSTMCell.from_cell,
    torch.nn.GRUCell: BitSerialGRUCell.from_cell,
}


def quantize(
    model: Model, plan: Plan, *, per_row: bool = False, group: int = 0, clip: bool = True
) -> Model:
    """Returns a copy of a model in which the modules that a plan names are quantized.

    A plan maps module names, with shell wildcards, to (weight bits, activation bits) or None.
    Linear, LSTM, GRU, LSTMCell and GRUCell can be quantized; other modules are copied. `per_row`,
    `group` and `clip` are passed to `quantize_weights`. Raises ArgumentError for a name that
    matches no module, a module of another type, unsupported bits, NaN and infinite weights.
    """
    chosen = planned_modules(plan, model, check_bits)
    made = {
        name: quantize_module(
            name, model.get_submodule(name), bits, per_row=per_row, group=group, clip=clip
        )
        for name, bits in chosen.items()
    }
    return replace_modules(model, made)


def quantize_module(
    name: str,
    module: torch.nn.Module,
    bits: Bits,
    *,
    per_row: bool = False,
    group: int = 0,
    clip: bool = True,
) -> torch.nn.Module:
    """Quantizes one module. Raises as `quantize` does; errors name the module."""
    try:
        return FACTORIES[type(module)](module, *bits, per_row=per_row, group=group, clip=clip)
    except ArgumentError as error:
        raise ArgumentError(f"{name!r}: {error}") from error


def planned_modules(
    plan: Mapping[str, Chosen | None],
    model: torch.nn.Module,
    check: Callable[[object, str], Chosen],
) -> dict[str, Chosen]:
    """Maps the name of each planned module to its bits. Raises as `quantize` does."""
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
            f"{what}: found hooks on it, which would be lost; remove them first, for example with "
            "torch.nn.utils.remove_weight_norm"
        )


def candidate(name: str, module: torch.nn.Module) -> Candidate:
    """Describes a module for a plan."""
    own = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
    return Candidate(name, type(module).__name__, type(module) in FACTORIES, bool(own))


def replace_modules(
    model: Model, modules: Mapping[str, torch.nn.Module], *, share: bool = False
) -> Model:
    """Copies a model and replaces some modules; with `share`, the copy shares tensors."""
    memo: dict[int, object] = {
        id(model.get_submodule(name)): module for name, module in modules.items()
    }
    if share:
        memo |= {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    copied = copy.deepcopy(model, memo)
    _disable_fast_paths(copied)
    return copied


def _disable_fast_paths(model: torch.nn.Module) -> None:
    """Disables the fast path of Transformer encoders whose linear layers have no `weight`.

    In `eval()`, PyTorch's fast path reads `linear1.weight` and `linear2.weight` directly.
    """
    for module in model.modules():
        if isinstance(module, torch.nn.TransformerEncoderLayer) and _lacks_weights(module):
            module.activation_relu_or_gelu = 0
        if isinstance(module, torch.nn.TransformerEncoder) and any(
            map(_lacks_weights, module.layers)
        ):
            module.use_nested_tensor = False


def _lacks_weights(layer: torch.nn.Module) -> bool:
    """Returns whether a linear module of an encoder layer has no `weight`."""
    parts = (getattr(layer, name, None) for name in ("linear1", "linear2"))
    return any(part is not None and not hasattr(part, "weight") for part in parts)


class ModuleVariants(Variants):
    """Variants of a PyTorch model."""

    def __init__(
        self, model: torch.nn.Module, *, per_row: bool = False, group: int = 0, clip: bool = True
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise ArgumentError(
                f"model: found {type(model).__name__}, expected a PyTorch module or a Layer"
            )
        self._model, self._per_row, self._group, self._clip = model, per_row, group, clip
        self._modules = {
            name: module for name, module in model.named_modules() if type(module) in FACTORIES
        }
        self._cache: dict[tuple[str, int], torch.nn.Module] = {}

    @property
    def shapes(self) -> dict[str, list[tuple[int, int]]]:
        return {
            name: [tuple(tensor.shape) for tensor in module.parameters() if tensor.dim() == 2]
            for name, module in self._modules.items()
        }

    def model(self, plan: Mapping[str, Bits | None]) -> torch.nn.Module:
        """Returns the model quantized by a plan; the model shares tensors with the original."""
        made = {name: self._quantized(name, bits) for name, bits in plan.items() if bits}
        return replace_modules(self._model, made, share=True)

    def quality(
        self,
        plan: Mapping[str, Bits | None],
        quality: Callable[[Any], Any],
    ) -> Any:  # noqa: ANN401
        """Calls `quality` with the model quantized by a plan, without gradients."""
        with torch.no_grad():
            return quality(self.model(plan))

    def _quantized(self, name: str, bits: Bits) -> torch.nn.Module:
        key = (name, bits[0])
        if key not in self._cache:
            self._cache[key] = quantize_module(
                name,
                self._modules[name],
                bits,
                per_row=self._per_row,
                group=self._group,
                clip=self._clip,
            )
        made = self._cache[key]
        if isinstance(made, BitSerialLinear):
            return made.with_activation_bits(bits[1])
        parts = {
            child: part.with_activation_bits(bits[1])
            for child, part in made.named_children()
            if isinstance(part, BitSerialLinear)
        }
        return replace_modules(made, parts, share=True)
