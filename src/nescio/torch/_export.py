"""The cut of a trained model into the servers' tables and the device's rest."""

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._arrays import Array, shown
from ..errors import ArgumentError, FileError
from ..pir import Table, TableParams
from ..pir.batch import Layout, build
from ..quant.torch import quantize as quantized_copy
from ..quant.torch._models import replace_modules
from ._cut import Cut, Tables, cut
from ._description import Description, TableEntry
from ._files import DESCRIPTION, DEVICE, SERVERS, WEIGHTS, file_digest, write_weights
from ._quantized import bits_of
from ._source import as_stored, digest_of, dtype_name


def export(
    model: torch.nn.Module,
    folder: str | os.PathLike[str],
    *,
    tables: Tables = None,
    layouts: Mapping[str, Layout] | None = None,
    version: str = "1",
    tied: str = "refuse",
    quantize: Mapping[str, tuple[int, int] | None] | None = None,
) -> dict[str, TableParams]:
    """Cuts a trained model into tables for the servers and the rest for the device.

    Every nn.Embedding and nn.EmbeddingBag becomes a table, or those that `tables` names; as a
    mapping, it names the tables too (default: the module's name). `folder` is created:

        servers/NAME.npy            a table, for both servers: nescio serve NAME.npy --version 1
        servers/NAME.layout         its layout, if `layouts` has one for it by the table's name
        device/model.json           the modules, their options and tables, and digests
        device/model.safetensors    all other weights and buffers

    The model is not changed. Modules that share a weight share a table. A weight that the rest
    shares with a table (a tied output layer) is refused, or with `tied="copy"` kept on the device
    too. `quantize` is a plan of `nescio.quant.torch.quantize` for the rest. Rows of bfloat16 are
    stored as uint16, which the description says.

    Returns the parameters of the tables: a device that knows their digests needs no trust in the
    servers. Raises ArgumentError for a subclass of nn.Embedding, `max_norm`, hooks, dtypes other
    than floats of 16 to 64 bits, and a state that is not tensors; FileError if the folder is not
    empty or cannot be written.
    """
    made = cut(model, tables, tied)
    layouts = _checked_layouts(layouts, made)
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileError(f"{target} exists, expected an empty or new folder: choose another")
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
    try:
        try:
            rest = _rest(model, made, quantize)
            params = _write(rest, made, temporary, str(version), layouts)
            temporary.replace(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise FileError(f"{target}: cannot write the model: {error.strerror}") from error
    return params


def _write(
    rest: torch.nn.Module,
    made: Cut,
    folder: Path,
    version: str,
    layouts: Mapping[str, Layout],
) -> dict[str, TableParams]:
    for name in (SERVERS, DEVICE):
        (folder / name).mkdir(parents=True)
    write_weights(folder / DEVICE / WEIGHTS, _state(rest, made))
    params, entries = {}, {}
    for name, weight in made.tables.items():
        array = as_stored(weight)
        np.save(folder / SERVERS / f"{name}.npy", array, allow_pickle=False)
        params[name] = _served(array, version, layouts.get(name))
        if name in layouts:
            layouts[name].save(folder / SERVERS / f"{name}.layout")
        entries[name] = _entry(array, str(dtype_name(weight.dtype)), params[name])
    description = Description(
        tables=entries,
        modules=made.modules,
        quantized=bits_of(rest),
        weights=file_digest(folder / DEVICE / WEIGHTS),
    )
    (folder / DEVICE / DESCRIPTION).write_text(description.to_json())
    return params


def _checked_layouts(layouts: Mapping[str, Layout] | None, made: Cut) -> Mapping[str, Layout]:
    """Raises ArgumentError for a layout of no table, or of a table of other rows."""
    for name, layout in (layouts or {}).items():
        if name not in made.tables:
            raise ArgumentError(
                f"layouts: found {shown(name)}, expected names of tables such as "
                f"{shown(next(iter(made.tables)))}"
            )
        rows = len(made.tables[name])
        if not isinstance(layout, Layout) or layout.rows != rows:
            found = layout.describe() if isinstance(layout, Layout) else type(layout).__name__
            raise ArgumentError(
                f"layouts, {name!r}: found {found}, expected a Layout of {rows} rows"
            )
    return layouts or {}


def _served(array: Array, version: str, layout: Layout | None) -> TableParams:
    """Returns the parameters that a table of the servers will have."""
    if layout is None:
        return Table(array, version=version).params
    return build(array, layout, version=version).params


def _rest(model: torch.nn.Module, made: Cut, plan: Mapping[str, Any] | None) -> torch.nn.Module:
    """Returns the model, or a quantized copy of it without the tables."""
    if plan is None:
        return model
    emptied = {name: torch.nn.Identity() for name in made.modules}
    return quantized_copy(replace_modules(model, emptied, share=True), plan)


def _state(rest: torch.nn.Module, made: Cut) -> dict[str, torch.Tensor]:
    """Returns the state without the tables. Raises ArgumentError for what a file cannot hold."""
    state = {}
    for name, value in rest.state_dict().items():
        if name in made.weights:
            continue
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.is_meta:
            found = getattr(value, "layout", type(value).__name__)
            raise ArgumentError(f"state of the model, {name!r}: found {found}, expected a tensor")
        state[name] = value.detach().cpu().contiguous().clone()  # without shared memory
    return state


def _entry(array: Array, dtype: str, params: TableParams) -> TableEntry:
    return TableEntry(
        rows=len(array),
        columns=array.shape[1],
        dtype=dtype,
        version=params.version,
        digest=params.digest,
        layout=params.layout,
        weight=digest_of(array),
    )
