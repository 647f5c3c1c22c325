"""Models as files: safetensors, whose metadata say how the layers are put together.

    "nescio.quant": {"version": 1, "model": {"kind": "Sequential", "options": {},
        "children": {"0": {"kind": "Linear", "options": {"in": 784, ...}, "children": {}}}}}

An array is named by its layer: `0.planes`, `0.scale`, `0.bias`. Who reads a file checks it here: a
header and a description of bounded length, every number in its range, and every array's dtype and
shape before it is read, so that what is allocated is what the file really holds.
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
from ._functions import (
    Flatten,
    Identity,
    LayerNorm,
    LeakyReLU,
    ReLU,
    Sigmoid,
    Softmax,
    Tanh,
)
from ._layers import Embedding, Group, Layer, Linear, Sequential, named_layers
from ._recurrent import GRU, LSTM, GRUCell, LSTMCell

try:
    import safetensors
    import safetensors.numpy
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "nescio.quant needs safetensors to save and load: pip install 'nescio[quant]'",
        name=error.name,
    ) from error

_KEY = "nescio.quant"
_METADATA = "__metadata__"  # of safetensors: no array has this name
_VERSION = 1
_MOST_HEADER_BYTES = 1 << 22
_MOST_DESCRIPTION_BYTES = 1 << 20
_MOST_DEPTH = 32
_MOST_LAYERS = 1 << 14
_MOST_AXES = 32  # NumPy 1 has no more
_MOST_ELEMENTS = 1 << 48  # of an array, its axes of no length left out
_DTYPES = {"int64": "I64", "float32": "F32"}
_NUMPY_DTYPES = frozenset(
    {"BOOL", "U8", "U16", "U32", "U64", "I8", "I16", "I32", "I64", "F16", "F32", "F64", "C64"}
)
_KINDS: dict[str, type[Layer]] = {
    kind.KIND: kind
    for kind in (
        *(Linear, LSTM, GRU, LSTMCell, GRUCell, Embedding, Sequential, Group),
        *(ReLU, LeakyReLU, Tanh, Sigmoid, Softmax, LayerNorm, Flatten, Identity),
    )
}


def save_layers(model: Layer, path: str | os.PathLike[str]) -> None:
    """Writes a model of NumPy layers. Raises ArgumentError if it cannot be written or read again.

    The file is complete under its name or not there at all.
    """
    target = Path(path)
    text = _text_of(model, target)
    arrays = _arrays_of(model, target)
    beside = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
    try:
        try:
            safetensors.numpy.save_file(arrays, beside, {_KEY: text})
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except (OSError, safetensors.SafetensorError) as error:
        raise _not_written(target, str(error)) from error


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
        found_dtype, found_shape = seen.get_dtype(), tuple(seen.get_shape())
        found = _named(found_dtype, found_shape)
        expected = found if dtype is None or shape is None else _named(_DTYPES[dtype], shape)
        if found != expected:
            raise MismatchError(
                f"{self._path}, {_cut(name)}: found {found}, expected {expected} as the file says "
                "itself",
                found=found,
                expected=expected,
            )
        elements = math.prod(max(length, 1) for length in found_shape)
        if (
            found_dtype not in _NUMPY_DTYPES
            or len(found_shape) > _MOST_AXES
            or elements > _MOST_ELEMENTS
        ):
            raise _not_ours(self._path, f"{shown(name)} is {found}, which NumPy has not")
        array: Array = self._file.get_tensor(name)
        return array.view(np.uint8) != 0 if found_dtype == "BOOL" else array  # any byte but 0

    def finish(self) -> None:
        """Raises ArgumentError for arrays that belong to no layer."""
        if self._left:
            raise _not_ours(self._path, f"{shown(min(self._left))} belongs to no layer")


class _Node:
    """A layer of the description: `nescio.quant._layers.Stored`."""

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
            found = shown(sorted(self._options))
            raise self._error(f"found options {found}, expected {sorted(expected)}")
        try:
            layer = kind.restore(self)
        except MismatchError:
            raise
        except ArgumentError as error:
            raise error if str(self._path) in str(error) else self._error(str(error)) from error
        if layer.children().keys() != self.children.keys():
            found = shown(sorted(self.children))
            raise self._error(f"found children {found} of a {self._kind}, which has none")
        return layer

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


def _text_of(model: Layer, target: Path) -> str:
    """A model's description. Raises ArgumentError for one that `load_layers` would refuse."""
    try:
        described = _described(model)
        too_large = _too_large(described)
        text = json.dumps({"version": _VERSION, "model": described}, allow_nan=False)
    except RecursionError:
        too_large = f"its layers stand more than {_MOST_DEPTH} deep in each other"
    except (TypeError, ValueError) as error:
        raise _not_written(target, f"an option of a layer is {error}") from error
    if not too_large and len(text) > _MOST_DESCRIPTION_BYTES:
        too_large = f"its description has {len(text)} bytes, more than {_MOST_DESCRIPTION_BYTES}"
    if too_large:
        raise _not_written(target, too_large)
    return text


def _arrays_of(model: Layer, target: Path) -> dict[str, Array]:
    """A model's arrays by their names in a file. Raises ArgumentError for what it cannot hold."""
    arrays: dict[str, Array] = {}
    for name, layer in named_layers(model):
        for array_name, array in layer.arrays().items():
            joined = _joined(name, array_name)
            if joined in arrays or joined == _METADATA:
                raise _not_written(target, f"two arrays would be called {shown(joined)}")
            if array.dtype.kind not in "biufc" or array.ndim > _MOST_AXES:
                found = _named(str(array.dtype), array.shape)
                raise _not_written(target, f"{shown(joined)} is {found}, expected numbers")
            arrays[joined] = np.asarray(array, order="C")  # which leaves numbers without axes
    return arrays


def _description(path: Path, metadata: Mapping[str, str] | None) -> object:
    """The description of the root. Raises ArgumentError without one, or for another version."""
    text = (metadata or {}).get(_KEY)
    if text is None:
        raise _not_ours(path, f"its metadata have no {_KEY!r}")
    if len(text) > _MOST_DESCRIPTION_BYTES:
        raise _not_ours(
            path, f"its description has {len(text)} bytes, the most is {_MOST_DESCRIPTION_BYTES}"
        )
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_ours(path, "its description is not JSON") from error
    version = fields.get("version") if isinstance(fields, dict) else None
    if not isinstance(fields, dict) or type(version) is not int or version != _VERSION:
        raise _not_ours(path, f"found version {shown(version)}, this release reads {_VERSION}")
    too_large = _too_large(fields.get("model"))
    if too_large:
        raise _not_ours(path, too_large)
    return fields.get("model")


def _too_large(root: object) -> str:
    """What is said of a description of more layers, or deeper, than models have; else nothing."""
    level, seen = [root], 0
    for _ in range(_MOST_DEPTH):
        seen += len(level)
        if seen > _MOST_LAYERS:
            return f"it describes more than {_MOST_LAYERS} layers"
        children = [node.get("children") for node in level if isinstance(node, dict)]
        level = [part for parts in children if isinstance(parts, dict) for part in parts.values()]
        if not level:
            return ""
    return f"its layers stand more than {_MOST_DEPTH} deep in each other"


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
        raise _not_ours(
            path,
            f"its header would have {header} bytes, the file has {size}, and the most is "
            f"{_MOST_HEADER_BYTES}",
        )


def _described(layer: Layer) -> dict[str, object]:
    children = {name: _described(child) for name, child in layer.children().items()}
    return {"kind": layer.KIND, "options": layer.options(), "children": children}


def _named(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype} of shape {shown(shape)}"


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _joined(name: str, child: str) -> str:
    return f"{name}.{child}" if name else child


def _cut(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:297]}..."


def _not_written(target: Path, why: str) -> ArgumentError:
    return ArgumentError(f"{target} cannot be written: {_cut(why)}")


def _not_ours(path: Path, why: str) -> ArgumentError:
    return ArgumentError(f"{path} is not a model that nescio.quant saved: {_cut(why)}")
