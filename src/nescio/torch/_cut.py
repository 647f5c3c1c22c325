"""The cut of a model: which modules become tables, and which weights they share."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from .._arrays import shown
from ..errors import ArgumentError
from ..quant.torch._models import check_no_hooks
from ._description import ModuleEntry, check_table_name
from ._source import TORCH_DTYPES, dtype_name

Tables = Sequence[str] | Mapping[str, str] | None

_CUT = (torch.nn.Embedding, torch.nn.EmbeddingBag)
_SHOWN = 5  # names in a message


@dataclass(frozen=True)
class Cut:
    """The tables by name, the modules that read them, and the names of all cut weights."""

    tables: dict[str, torch.Tensor]
    modules: dict[str, ModuleEntry]
    weights: frozenset[str]


def cut(model: torch.nn.Module, tables: Tables, tied: str) -> Cut:
    """Chooses the modules to cut from a model. Raises ArgumentError as `export` does."""
    if not isinstance(model, torch.nn.Module):
        raise ArgumentError(f"model: found {type(model).__name__}, expected a torch.nn.Module")
    if tied not in ("refuse", "copy"):
        raise ArgumentError(f"tied: found {shown(tied)}, expected 'refuse' or 'copy'")
    weights: dict[str, torch.Tensor] = {}
    modules: dict[str, ModuleEntry] = {}
    for name, wanted in _chosen(model, tables).items():
        module = model.get_submodule(name)
        _check_module(name, module)
        table = _table_of(module.weight, wanted, weights, named=isinstance(tables, Mapping))
        weights[table] = module.weight
        modules[name] = ModuleEntry(
            kind=type(module).__name__,
            table=table,
            padding_idx=module.padding_idx,
            mode=getattr(module, "mode", None),
            include_last_offset=getattr(module, "include_last_offset", False),
        )
    removed = frozenset(_weight_names(model, modules))
    if tied == "refuse":
        _check_ties(model, weights, removed)
    return Cut(weights, modules, removed)


def _chosen(model: torch.nn.Module, tables: Tables) -> dict[str, str]:
    """Maps the name of each module that is cut to the name of its table."""
    found = {name: module for name, module in model.named_modules() if isinstance(module, _CUT)}
    if tables is None:
        if not found:
            raise ArgumentError("model: found no nn.Embedding or nn.EmbeddingBag, expected one")
        return {name: _default_name(name) for name in found}
    if isinstance(tables, str) or not isinstance(tables, Sequence | Mapping) or not tables:
        raise ArgumentError(f"tables: found {shown(tables)}, expected names of modules")
    for name in tables:
        if name not in found:
            raise ArgumentError(
                f"tables: found {shown(name)}, expected names of modules such as "
                f"{', '.join(map(repr, list(found)[:_SHOWN])) or 'none, as the model has none'}"
            )
    if isinstance(tables, Mapping):
        return dict(tables)
    return {name: _default_name(name) for name in tables}


def _default_name(module: str) -> str:
    return module or "embedding"


def _table_of(
    weight: torch.Tensor, wanted: str, weights: Mapping[str, torch.Tensor], *, named: bool
) -> str:
    """Returns the table of a weight: the one that has it already, or a new one."""
    check_table_name(wanted)
    same = next((name for name, other in weights.items() if _is_same(weight, other)), wanted)
    if same != wanted and named:
        raise ArgumentError(
            f"tables: found {same!r} and {wanted!r} for one weight, expected one name"
        )
    if same in weights and not _is_same(weight, weights[same]):
        raise ArgumentError(f"tables: found {same!r} for two weights, expected different names")
    return same


def _check_module(name: str, module: torch.nn.Module) -> None:
    """Raises ArgumentError for a module that a private one would not replace exactly."""
    what = f"module {name!r}"
    if type(module) not in _CUT:
        raise ArgumentError(
            f"{what}: found {type(module).__name__}, which may compute something else than "
            "nn.Embedding; expected nn.Embedding or nn.EmbeddingBag; to leave it on the device, "
            "name the others in `tables`"
        )
    if module.max_norm is not None:
        raise ArgumentError(
            f"{what}: found max_norm {module.max_norm}, expected None: renormalize its weight, "
            "then set max_norm to None"
        )
    check_no_hooks(what, module)
    if dtype_name(module.weight.dtype) is None or module.weight.is_meta:
        found = f"{module.weight.dtype} on {module.weight.device}"
        raise ArgumentError(f"{what}: found {found}, expected {', '.join(TORCH_DTYPES)} with data")


def _weight_names(model: torch.nn.Module, modules: Mapping[str, ModuleEntry]) -> Iterator[str]:
    """Yields the names of the cut weights in the model's state; a module may have several names."""
    own = {id(model.get_submodule(name)) for name in modules}
    for name, module in model.named_modules(remove_duplicate=False):
        if id(module) in own:
            yield f"{name}.weight" if name else "weight"


def _check_ties(
    model: torch.nn.Module, weights: Mapping[str, torch.Tensor], removed: frozenset[str]
) -> None:
    """Raises ArgumentError if the rest of the model shares memory with a table."""
    for name, tensor in _named_tensors(model):
        table = next((t for t, weight in weights.items() if _share(tensor, weight)), None)
        if table is not None and name not in removed:
            size = tensor.numel() * tensor.element_size()
            raise ArgumentError(
                f"{name!r} shares its weight with the table {table!r}: the device would keep a "
                f"copy of {size} bytes; expected tied='copy' to accept that, a model without the "
                "tie, or `tables` without this module"
            )


def _named_tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)


def _share(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    if tensor is other:
        return True
    if tensor.layout != torch.strided or tensor.is_meta or not tensor.numel():
        return False
    mine: int = tensor.untyped_storage().data_ptr()
    theirs: int = other.untyped_storage().data_ptr()
    return mine == theirs


def _is_same(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Tests if two tensors are the same elements of the same memory."""
    same = tensor.data_ptr() == other.data_ptr() and tensor.shape == other.shape
    return bool(same and tensor.stride() == other.stride() and tensor.dtype == other.dtype)
