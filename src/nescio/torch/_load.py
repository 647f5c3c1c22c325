"""The device's half of an exported model, put together."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from .._arrays import shown
from ..errors import ArgumentError, FileError
from ..quant.torch._models import Model, replace_modules
from ._bag import PrivateEmbeddingBag
from ._connect import check_names, connect
from ._description import Description, ModuleEntry, TableEntry
from ._embedding import PrivateEmbedding
from ._files import read
from ._module import Missing, PrivateModule
from ._quantized import without_weights
from ._source import TORCH_DTYPES, Source


def load(
    model: Model | Callable[[], Model],
    folder: str | os.PathLike[str],
    lookups: Mapping[str, object] | Sequence[str],
    *,
    missing: Missing | Mapping[str, Missing] = "zeros",
    check_digest: bool = True,
) -> Model:
    """Returns a model whose embedding rows come from two servers, in evaluation mode.

    `model` makes the plain model, or is an instance, which is copied; its weights are not used, so
    its embeddings may be on the meta device. `folder` is the one that `export` wrote, or its
    `device`. `lookups` maps each table to its lookups (a LocalTable, a RemoteTable, a BatchClient)
    or to the addresses of two servers; a pair of addresses serves all tables. `missing` is that of
    PrivateEmbedding, for all tables or by table.

    The servers' tables must have the layouts and digests of the export. `check_digest=False`
    accepts tables whose rows have changed since, and still compares shapes, dtypes and layouts.

    Raises FileError for files that are invalid or belong to another model, MismatchError for
    another table, ArgumentError for lookups that do not fit the tables by name, and the errors of
    a connection.
    """
    description, state = read(Path(folder))
    plain: Any = model if isinstance(model, torch.nn.Module) else _made(model)
    if isinstance(missing, Mapping):
        check_names("missing", missing, description.tables)
    with _same_model(folder):
        replaced = _quantized(plain, description)
        _check_modules(plain, description)
    connected = connect(description.tables, lookups, check_digest=check_digest)
    for name, module in description.modules.items():
        table = description.tables[module.table]
        absent = missing[module.table] if isinstance(missing, Mapping) else missing
        replaced[name] = _private(module, table, connected[module.table], absent)
    private: Model = replace_modules(plain, replaced)
    with _same_model(folder):
        _load_rest(private, state)
    _check_complete(private)
    private.eval()
    return private


@contextmanager
def _same_model(folder: object) -> Iterator[None]:
    """Raises FileError for an ArgumentError: the files belong to another model."""
    try:
        yield
    except ArgumentError as error:
        raise FileError(f"{folder} belongs to another model: {error}") from error


def _made(model: object) -> torch.nn.Module:
    made = model() if callable(model) else model
    if not isinstance(made, torch.nn.Module):
        raise ArgumentError(
            f"model: found {type(made).__name__}, expected a torch.nn.Module, or a function that "
            "makes one"
        )
    return made


def _submodule(model: torch.nn.Module, name: str) -> torch.nn.Module:
    try:
        return model.get_submodule(name)
    except AttributeError:
        raise ArgumentError(f"the model has no module {shown(name)}") from None


def _quantized(model: torch.nn.Module, description: Description) -> dict[str, torch.nn.Module]:
    return {
        name: without_weights(name, _submodule(model, name), bits)
        for name, bits in description.quantized.items()
    }


def _check_modules(model: torch.nn.Module, description: Description) -> None:
    """Raises ArgumentError unless the model has the modules that were exported."""
    for name, entry in description.modules.items():
        module, table = _submodule(model, name), description.tables[entry.table]
        sizes = [getattr(module, size, None) for size in ("num_embeddings", "embedding_dim")]
        options = [getattr(module, option, None) for option in ("padding_idx", "mode")]
        last = getattr(module, "include_last_offset", False)
        found = [type(module).__name__, *sizes, *options, last]
        expected = [entry.kind, table.rows, table.columns]
        expected += [entry.padding_idx, entry.mode, entry.include_last_offset]
        if found != expected:
            raise ArgumentError(f"module {shown(name)} is {shown(found)}, expected {expected}")


def _private(
    module: ModuleEntry, table: TableEntry, source: Source, missing: Missing
) -> PrivateModule:
    options: dict[str, Any] = {
        "padding_idx": module.padding_idx,
        "missing": missing,
        "dtype": TORCH_DTYPES[table.dtype],
        "weight_digest": table.weight,
    }
    if module.mode is None:
        return PrivateEmbedding(source, **options)
    last = module.include_last_offset
    return PrivateEmbeddingBag(source, mode=module.mode, include_last_offset=last, **options)


def _load_rest(model: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> None:
    """Loads all other weights.

    Raises ArgumentError unless names, shapes and dtypes are the model's.
    """
    own = model.state_dict()
    for name in sorted(own.keys() ^ state.keys()):
        side = "file" if name in own else "model"
        raise ArgumentError(f"{shown(name)} is missing in the {side}")
    for name, tensor in own.items():
        found, expected = _described(state[name]), _described(tensor)
        if found != expected:
            raise ArgumentError(f"{shown(name)} is {found} in the file, {expected} in the model")
    assign = any(tensor.is_meta for tensor in own.values())
    if assign:  # in memory that is aligned, on which the bits of a product depend
        state = {name: tensor.clone() for name, tensor in state.items()}
    try:
        model.load_state_dict(state, assign=assign)
    except RuntimeError as error:
        raise ArgumentError(str(error)) from error


def _check_complete(model: torch.nn.Module) -> None:
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_meta:
            raise ArgumentError(
                f"model: found {name!r} on the meta device and not in the file; expected only "
                "embeddings and weights there"
            )


def _described(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"
