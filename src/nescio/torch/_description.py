"""The description of an exported model: `device/model.json`, beside its weights in safetensors.

    {"format": 1, "weights": "sha256", "quantized": {"head.0": [4, 8]},
     "tables": {"items": {"rows": 9742, "columns": 32, "dtype": "float32", "version": "1",
                          "digest": "...", "layout": "", "weight": "sha256"}},
     "modules": {"items": {"kind": "Embedding", "table": "items", "padding_idx": null,
                           "mode": null, "include_last_offset": false}}}

`digest` and `layout` are those of the parameters that the servers' tables have, `weight` the digest
of the plain weight's bytes, `weights` that of the file of the other weights. `parse` checks all of
it; a description never names a file.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from .._arrays import as_count, shown
from ..errors import ArgumentError, FileError
from ._source import TORCH_DTYPES

FORMAT = 1
KINDS = ("Embedding", "EmbeddingBag")
MODES = ("sum", "mean", "max")
_MAX_BYTES = 4 << 20
_MAX_ROWS = 1 << 40
_MAX_COLUMNS = 1 << 24
_TABLE_NAME = re.compile(r"[A-Za-z0-9._~-]{1,128}")  # as the service has it
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class TableEntry:
    """A table of the servers."""

    rows: int
    columns: int
    dtype: str
    version: str
    digest: str
    layout: str
    weight: str


@dataclass(frozen=True)
class ModuleEntry:
    """A module whose rows the servers have; `mode` is None for an Embedding."""

    kind: str
    table: str
    padding_idx: int | None
    mode: str | None
    include_last_offset: bool


@dataclass(frozen=True)
class Description:
    """An exported model: the tables and modules by name, bits of quantized modules."""

    tables: dict[str, TableEntry]
    modules: dict[str, ModuleEntry]
    quantized: dict[str, tuple[int, int]]
    weights: str

    def to_json(self) -> str:
        """Encodes the description for a file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, sort_keys=True) + "\n"

    @classmethod
    def parse(cls, text: bytes, path: object) -> "Description":
        """Parses `to_json`. Raises FileError, which names `path`, for anything else."""
        try:
            return _description(text)
        except ArgumentError as error:
            raise FileError(
                f"{path} does not describe a model of nescio.torch: {error}; check the path, or "
                "export the model again"
            ) from error


def check_table_name(name: object) -> str:
    """Raises ArgumentError for a name that a service or a file cannot have."""
    if not isinstance(name, str) or not _TABLE_NAME.fullmatch(name) or name in (".", ".."):
        raise ArgumentError(
            f"a table's name: found {shown(name)}, expected 1 to 128 letters, digits, '.', '_', "
            "'~' or '-'; `tables` may map the module's name to another"
        )
    return name


def _description(text: bytes) -> Description:
    if len(text) > _MAX_BYTES:
        raise ArgumentError(f"found {len(text)} bytes, expected at most {_MAX_BYTES}")
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        raise ArgumentError("found no JSON") from None
    names = {field.name for field in fields(Description)}
    values = _object(parsed, names | {"format"}, "it")
    if type(values["format"]) is not int or values["format"] != FORMAT:
        raise ArgumentError(f"found format {shown(values['format'])}, expected {FORMAT}")
    made = Description(
        tables=_entries(values, "tables", _table),
        modules=_entries(values, "modules", _module),
        quantized=_entries(values, "quantized", _bits),
        weights=_text(values["weights"], _DIGEST, "weights"),
    )
    _check_references(made)
    return made


def _check_references(made: Description) -> None:
    for name in made.tables:
        check_table_name(name)
    for name, module in made.modules.items():
        if module.table not in made.tables:
            raise ArgumentError(
                f"{shown(name)}: found table {shown(module.table)}, which is absent"
            )
        rows = made.tables[module.table].rows
        if module.padding_idx is not None:
            as_count(module.padding_idx, f"{shown(name)}: padding_idx", 0, rows - 1)


def _table(value: object, what: str) -> TableEntry:
    entry = _object(value, {field.name for field in fields(TableEntry)}, what)
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in TORCH_DTYPES:
        expected = ", ".join(TORCH_DTYPES)
        raise ArgumentError(f"{what}: found dtype {shown(entry['dtype'])}, expected {expected}")
    return TableEntry(
        rows=_count(entry["rows"], f"{what}: rows", 1, _MAX_ROWS),
        columns=_count(entry["columns"], f"{what}: columns", 1, _MAX_COLUMNS),
        dtype=entry["dtype"],
        version=_text(entry["version"], re.compile(".{1,128}"), f"{what}: version"),
        digest=_text(entry["digest"], _DIGEST, f"{what}: digest"),
        layout=_text(entry["layout"], re.compile("([0-9a-f]{64})?"), f"{what}: layout"),
        weight=_text(entry["weight"], _DIGEST, f"{what}: weight"),
    )


def _module(value: object, what: str) -> ModuleEntry:
    entry = _object(value, {field.name for field in fields(ModuleEntry)}, what)
    kind, mode, last = entry["kind"], entry["mode"], entry["include_last_offset"]
    modes = MODES if kind == "EmbeddingBag" else (None,)
    if kind not in KINDS or mode not in modes or not isinstance(last, bool):
        found = shown([kind, mode, last])
        raise ArgumentError(f"{what}: found {found}, expected a kind, its mode and a flag")
    padding = entry["padding_idx"]
    return ModuleEntry(
        kind=kind,
        table=check_table_name(entry["table"]),
        padding_idx=None
        if padding is None
        else _count(padding, f"{what}: padding_idx", 0, 1 << 62),
        mode=mode,
        include_last_offset=last,
    )


def _bits(value: object, what: str) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise ArgumentError(f"{what}: found {shown(value)}, expected two numbers of bits")
    weight, activation = (_count(bits, what, 1, 32) for bits in value)
    return weight, activation


def _entries(
    values: Mapping[str, Any], name: str, parse: Callable[[object, str], Any]
) -> dict[str, Any]:
    if not isinstance(values[name], dict):
        raise ArgumentError(f"{name}: found {shown(values[name])}, expected a JSON object")
    return {key: parse(value, f"{name}, {shown(key)}") for key, value in values[name].items()}


def _object(value: object, names: set[str], what: str) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != names:
        found = shown(sorted(value)) if isinstance(value, dict) else shown(value)
        raise ArgumentError(
            f"{what}: found {found}, expected the fields {', '.join(sorted(names))}"
        )
    return value


def _count(value: object, what: str, low: int, high: int) -> int:
    if type(value) is not int:  # a number in JSON, not true or 1.0
        raise ArgumentError(f"{what}: found {shown(value)}, expected an integer")
    return as_count(value, what, low, high)


def _text(value: object, pattern: re.Pattern[str], what: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ArgumentError(f"{what}: found {shown(value)}, expected {pattern.pattern}")
    return value
