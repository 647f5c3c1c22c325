"""Models as files: safetensors, whose metadata say how the layers are put together.

    "nescio.quant": {"version": 1, "model": {"kind": "Sequential", "options": {},
        "children": {"0": {"kind": "Linear", "options": {"in": 784, ...}, "children": {}}}}}

An array is named by its layer: `0.planes`, `0.scale`, `0.bias`. Who reads a file checks it here: a
header of bounded length, every number in its range, and every array's dtype and shape before it is
read, so that what is allocated is what the file really holds.
"""

import json
import math
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Array, as_count, as_threads, shown
from ..errors import ArgumentError, MismatchError
from .functions import (
    Flatten,
    Identity,
    LayerNorm,
    LeakyReLU,
    ReLU,
    Sigmoid,
    Softmax,
    Tanh,
)
from .layers import Embedding, Group, Layer, Linear, Sequential, named_layers
from .recurrent import GRU, LSTM, GRUCell, LSTMCell

try:
    import safetensors
    import safetensors.numpy
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "nescio.quant needs safetensors to save and load: pip install 'nescio[quant]'",
        name=error.name,
    ) from error

_KEY = "nescio.quant"
_VERSION = 1
_MOST_HEADER_BYTES = 1 << 24
_MOST_DEPTH = 32
_MOST_LAYERS = 1 << 16
_DTYPES = {"int64": "I64", "float32": "F32"}
_KINDS: dict[str, type[Layer]] = {
    kind.KIND: kind
    for kind in (
        *(Linear, LSTM, GRU, LSTMCell, GRUCell, Embedding, Sequential, Group),
        *(ReLU, LeakyReLU, Tanh, Sigmoid, Softmax, LayerNorm, Flatten, Identity),
    )
}


def save_layers(model: Layer, path: str | os.PathLike[str]) -> None:
    """Writes a model of NumPy layers. Raises ArgumentError if it cannot be written.

    The file is complete under its name or not there at all.
    """
    arrays = {
        _joined(name, array_name): np.ascontiguousarray(array)
        for name, layer in named_layers(model)
        for array_name, array in layer.arrays().items()
    }
    text = json.dumps({"version": _VERSION, "model": _described(model)}, allow_nan=False)
    target = Path(path)
    beside = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
    try:
        try:
            safetensors.numpy.save_file(arrays, beside, {_KEY: text})
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except (OSError, safetensors.SafetensorError) as error:
        raise ArgumentError(f"{target} cannot be written: {error}") from error


def load_layers(path: str | os.PathLike[str], *, threads: int = 0) -> Layer:
    """The model of a file, in NumPy layers.

    `threads` share a product, 0 is one for every processor. Raises ArgumentError for what is no
    such file, MismatchError for arrays of other shapes than its description says.
    """
    threads = as_threads(threads)
    source = Path(path)
    _check_header(source)
    try:
        with safetensors.safe_open(str(source), framework="numpy") as file:
            arrays = _Arrays(source, file)
            model = _Node(
                source, arrays, threads, "", _description(source, file.metadata())
            ).layer()
            arrays.finish()
            return model
    except (OSError, safetensors.SafetensorError) as error:
        raise _not_ours(source, str(error)) from error


class _Arrays:
    """The arrays of a file, each read once."""

    def __init__(self, path: Path, file: Any) -> None:  # noqa: ANN401 - safetensors has no types
        self._path, self._file = path, file
        self._left = set(file.keys())

    def read(self, name: str, dtype: str | None, shape: tuple[int, ...] | None) -> Array:
        """An array of this dtype and shape; of any without them."""
        if name not in self._left:
            raise _not_ours(self._path, f"it has no array {shown(name)}")
        self._left.remove(name)
        seen = self._file.get_slice(name)
        found = _named(seen.get_dtype(), tuple(seen.get_shape()))
        expected = found if dtype is None or shape is None else _named(_DTYPES[dtype], shape)
        if found != expected:
            raise MismatchError(
                f"{self._path}, {name}: found {found}, expected {expected} as the file says itself",
                found=found,
                expected=expected,
            )
        try:
            array: Array = self._file.get_tensor(name)
        except TypeError as error:  # what NumPy has not: bfloat16, 8-bit floats
            raise _not_ours(self._path, f"{name} is {found}, which NumPy has not") from error
        return array

    def finish(self) -> None:
        """Raises ArgumentError for arrays that belong to no layer."""
        if self._left:
            raise _not_ours(self._path, f"{shown(min(self._left))} belongs to no layer")


class _Node:
    """A layer of the description: `nescio.quant.layers.Stored`."""

    def __init__(
        self, path: Path, arrays: _Arrays, threads: int, name: str, fields: object
    ) -> None:
        self._path, self._arrays, self.threads, self._name = path, arrays, threads, name
        if not isinstance(fields, dict) or set(fields) != {"kind", "options", "children"}:
            raise self._error("it is not described by kind, options and children")
        self._kind, self._options, parts = (fields[k] for k in ("kind", "options", "children"))
        if not isinstance(self._options, dict) or not isinstance(parts, dict):
            raise self._error("its options and children are not JSON objects")
        if not isinstance(self._kind, str) or self._kind not in _KINDS:
            raise self._error(f"found a layer of kind {shown(self._kind)}")
        self.children = {
            str(child): _Node(path, arrays, threads, _joined(name, child), part).layer()
            for child, part in parts.items()
        }

    def layer(self) -> Layer:
        """The layer itself."""
        kind = _KINDS[self._kind]
        expected = set(kind.OPTIONS)
        if set(self._options) != expected:
            raise self._error(f"found options {sorted(self._options)}, expected {sorted(expected)}")
        try:
            return kind.restore(self)
        except MismatchError:
            raise
        except ArgumentError as error:
            raise error if str(self._path) in str(error) else self._error(str(error)) from error

    def count(self, option: str, least: int, most: int) -> int:
        return as_count(self._options[option], option, least, most)

    def number(self, option: str) -> float:
        value = self._options[option]
        if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
            raise ArgumentError(f"{option}: found {shown(value)}, expected a number")
        return float(value)

    def flag(self, option: str) -> bool:
        value = self._options[option]
        if not isinstance(value, bool):
            raise ArgumentError(f"{option}: found {shown(value)}, expected true or false")
        return value

    def names(self, option: str) -> list[str]:
        value = self._options[option]
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise ArgumentError(f"{option}: found {shown(value)}, expected a list of names")
        return value

    def array(self, name: str, dtype: str, shape: tuple[int, ...]) -> Array:
        return self._arrays.read(_joined(self._name, name), dtype, shape)

    def any_array(self, name: str) -> Array:
        return self._arrays.read(_joined(self._name, name), None, None)

    def _error(self, why: str) -> ArgumentError:
        return _not_ours(self._path, f"layer {shown(self._name)}: {why}")


def _description(path: Path, metadata: Mapping[str, str] | None) -> object:
    """The description of the root. Raises ArgumentError without one, or for another version."""
    text = (metadata or {}).get(_KEY)
    if text is None:
        raise _not_ours(path, f"its metadata have no {_KEY!r}")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_ours(path, "its description is not JSON") from error
    if not isinstance(fields, dict) or fields.get("version") != _VERSION:
        found = fields.get("version") if isinstance(fields, dict) else None
        raise _not_ours(path, f"found version {shown(found)}, this release reads {_VERSION}")
    _check_size(path, fields.get("model"))
    return fields.get("model")


def _check_size(path: Path, root: object) -> None:
    """Raises ArgumentError for a description of more layers, or deeper, than models have."""
    level, seen = [root], 0
    for _ in range(_MOST_DEPTH):
        seen += len(level)
        if seen > _MOST_LAYERS:
            raise _not_ours(path, f"it describes more than {_MOST_LAYERS} layers")
        children = [node.get("children") for node in level if isinstance(node, dict)]
        level = [part for parts in children if isinstance(parts, dict) for part in parts.values()]
        if not level:
            return
    raise _not_ours(path, f"its layers stand more than {_MOST_DEPTH} deep in each other")


def _check_header(path: Path) -> None:
    """Raises ArgumentError unless the file has the length that it says, within bounds."""
    try:
        if not path.is_file():
            raise ArgumentError(f"{path} cannot be read: there is no such file")
        size = path.stat().st_size
        with path.open("rb") as file:
            header = int.from_bytes(file.read(8), "little")
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from error
    if size < 8 or header > min(size - 8, _MOST_HEADER_BYTES):
        raise _not_ours(path, f"its header would have {header} bytes, the file has {size}")


def _described(layer: Layer) -> dict[str, object]:
    children = {name: _described(child) for name, child in layer.children().items()}
    return {"kind": layer.KIND, "options": layer.options(), "children": children}


def _named(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype} of shape {shape}"


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _joined(name: str, child: str) -> str:
    return f"{name}.{child}" if name else child


def _not_ours(path: Path, why: str) -> ArgumentError:
    return ArgumentError(f"{path} is not a model that nescio.quant saved: {why}")
