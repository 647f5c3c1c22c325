"""Model files: safetensors, with a description of the layers in the metadata.

    "nescio.quant": {"version": 1, "model": {"kind": "Sequential", "options": {},
        "children": {"0": {"kind": "Linear", "options": {"in": 784, ...}, "children": {}}}}}

Arrays are named after their layer: `0.planes`, `0.scale`, `0.bias`. `load_layers` checks a file
before it reads the arrays: the length of the header and of the description, the range of each
number, and the dtype and shape of each array. So it never allocates more than the file holds.
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
from ..errors import ArgumentError, FileError
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
_METADATA = "__metadata__"  # reserved by safetensors
_VERSION = 1
_MAX_HEADER_BYTES = 1 << 22
_MAX_DESCRIPTION_BYTES = 1 << 20
_MAX_DEPTH = 32
_MAX_LAYERS = 1 << 14
_MAX_AXES = 32  # limit of NumPy 1
_MAX_ELEMENTS = 1 << 48  # per array, counting axes of length 0 as 1
_DTYPES = {"int64": "I64", "float32": "F32", "float16": "F16"}
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
    """Writes a model of NumPy layers. The file appears under its name only when complete.

    Raises ArgumentError for a model that `load_layers` would reject, FileError if the file cannot
    be written.
    """
    target = Path(path)
    text = _description_text(model, target)
    arrays = _named_arrays(model, target)
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
    try:
        try:
            safetensors.numpy.save_file(arrays, temporary, {_KEY: text})
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, safetensors.SafetensorError) as error:
        raise FileError(f"{target}: cannot write the file: {_shortened(str(error))}") from error


def load_layers(path: str | os.PathLike[str], *, threads: int = 0) -> Layer:
    """Reads a model as NumPy layers.

    `threads` is the number of threads per product; 0 means one per processor. Raises FileError if
    the file cannot be read or is invalid.
    """
    threads = as_threads(threads)
    source = Path(path)
    _check_header(source)
    try:
        with safetensors.safe_open(str(source), framework="numpy") as file:
            arrays = _Arrays(source, file)
            description = _description(source, file.metadata())
            model = _StoredLayer(source, arrays, threads, "", description).layer()
            arrays.finish()
            return model
    except (OSError, safetensors.SafetensorError) as error:
        raise _invalid_file(source, str(error)) from error


class _Arrays:
    """Reads each array of a file once."""

    def __init__(self, path: Path, file: Any) -> None:  # noqa: ANN401 - safetensors has no types
        self._path, self._file = path, file
        self._unread = set(file.keys())

    def read(self, name: str, dtype: str | None, shape: tuple[int, ...] | None) -> Array:
        """Reads an array and checks its dtype and shape, unless these are None."""
        if name not in self._unread:
            raise _invalid_file(self._path, f"it has no array {shown(name)}")
        self._unread.remove(name)
        header = self._file.get_slice(name)
        found_dtype, found_shape = header.get_dtype(), tuple(header.get_shape())
        found = _dtype_and_shape(found_dtype, found_shape)
        expected = (
            found if dtype is None or shape is None else _dtype_and_shape(_DTYPES[dtype], shape)
        )
        if found != expected:
            raise _invalid_file(
                self._path,
                f"array {shown(name)}: found {found}, expected {expected} by the description",
            )
        elements = math.prod(max(length, 1) for length in found_shape)
        if (
            found_dtype not in _NUMPY_DTYPES
            or len(found_shape) > _MAX_AXES
            or elements > _MAX_ELEMENTS
        ):
            raise _invalid_file(
                self._path, f"{shown(name)} is {found}, which NumPy does not support"
            )
        array: Array = self._file.get_tensor(name)
        return (
            array.view(np.uint8) != 0 if found_dtype == "BOOL" else array
        )  # true for any byte but 0

    def finish(self) -> None:
        """Raises FileError if an array belongs to no layer."""
        if self._unread:
            raise _invalid_file(self._path, f"{shown(min(self._unread))} belongs to no layer")


class _StoredLayer:
    """Layer of a description, which it checks; implements `nescio.quant._layers.Stored`."""

    def __init__(
        self, path: Path, arrays: _Arrays, threads: int, name: str, fields: object
    ) -> None:
        self._path, self._arrays, self.threads, self._name = path, arrays, threads, name
        if not isinstance(fields, dict) or set(fields) != {"kind", "options", "children"}:
            raise self._error("its description does not consist of kind, options and children")
        self._kind, self._options, parts = (fields[k] for k in ("kind", "options", "children"))
        if not isinstance(self._options, dict) or not isinstance(parts, dict):
            raise self._error("its options and children are not JSON objects")
        if not isinstance(self._kind, str) or self._kind not in _KINDS:
            raise self._error(f"found a layer of kind {shown(self._kind)}")
        self.children = {
            str(child): _StoredLayer(path, arrays, threads, _joined(name, child), part).layer()
            for child, part in parts.items()
        }

    def layer(self) -> Layer:
        """Reconstructs the layer."""
        kind = _KINDS[self._kind]
        expected = set(kind.OPTIONS)
        self._options = {**kind.ADDED, **self._options}
        if set(self._options) != expected | set(kind.ADDED):
            found = shown(sorted(self._options))
            raise self._error(f"found options {found}, expected {sorted(expected)}")
        try:
            layer = kind.restore(self)
        except FileError:
            raise
        except ArgumentError as error:
            raise self._error(str(error)) from error
        if layer.children().keys() != self.children.keys():
            found = shown(sorted(self.children))
            raise self._error(f"found children {found}, expected none for a {self._kind}")
        return layer

    def count(self, option: str, low: int, high: int) -> int:
        return as_count(self._options[option], option, low, high)

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

    def _error(self, reason: str) -> FileError:
        return _invalid_file(self._path, f"layer {shown(self._name)}: {reason}")


def _description_text(model: Layer, target: Path) -> str:
    """Serializes a model's description. Raises ArgumentError if `load_layers` would reject it."""
    try:
        described = _described(model)
        too_large = _size_error(described)
        text = json.dumps({"version": _VERSION, "model": described}, allow_nan=False)
    except RecursionError:
        too_large = f"its layers are nested more than {_MAX_DEPTH} deep"
    except (TypeError, ValueError) as error:
        raise _unsupported_model(target, f"an option of a layer is not JSON: {error}") from error
    if not too_large and len(text) > _MAX_DESCRIPTION_BYTES:
        too_large = f"its description has {len(text)} bytes, more than {_MAX_DESCRIPTION_BYTES}"
    if too_large:
        raise _unsupported_model(target, too_large)
    return text


def _named_arrays(model: Layer, target: Path) -> dict[str, Array]:
    """Returns a model's arrays by their names in the file.

    Raises ArgumentError for arrays that a file cannot hold.
    """
    arrays: dict[str, Array] = {}
    for name, layer in named_layers(model):
        for array_name, array in layer.arrays().items():
            joined = _joined(name, array_name)
            if joined in arrays or joined == _METADATA:
                raise _unsupported_model(target, f"two arrays have the name {shown(joined)}")
            if array.dtype.kind not in "biufc" or array.ndim > _MAX_AXES:
                found = _dtype_and_shape(str(array.dtype), array.shape)
                raise _unsupported_model(target, f"{shown(joined)} is {found}, expected numbers")
            arrays[joined] = np.asarray(array, order="C")  # keeps arrays without axes
    return arrays


def _description(path: Path, metadata: Mapping[str, str] | None) -> object:
    """Returns the root's description. Raises FileError if it is missing or of another version."""
    text = (metadata or {}).get(_KEY)
    if text is None:
        raise _invalid_file(path, f"its metadata has no {_KEY!r}")
    if len(text) > _MAX_DESCRIPTION_BYTES:
        raise _invalid_file(
            path,
            f"its description has {len(text)} bytes, expected at most {_MAX_DESCRIPTION_BYTES}",
        )
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid_file(path, "its description is not JSON") from error
    version = fields.get("version") if isinstance(fields, dict) else None
    if not isinstance(fields, dict) or type(version) is not int or version != _VERSION:
        raise _invalid_file(path, f"found version {shown(version)}, expected {_VERSION}")
    too_large = _size_error(fields.get("model"))
    if too_large:
        raise _invalid_file(path, too_large)
    return fields.get("model")


def _size_error(root: object) -> str:
    """Returns an error text for a description with too many or too deep layers, else ""."""
    level, seen = [root], 0
    for _ in range(_MAX_DEPTH):
        seen += len(level)
        if seen > _MAX_LAYERS:
            return f"it describes more than {_MAX_LAYERS} layers"
        children = [node.get("children") for node in level if isinstance(node, dict)]
        level = [part for parts in children if isinstance(parts, dict) for part in parts.values()]
        if not level:
            return ""
    return f"its layers are nested more than {_MAX_DEPTH} deep"


def _check_header(path: Path) -> None:
    """Raises FileError unless the header's length fits the file and the limit."""
    try:
        if not path.is_file():
            raise FileError(
                f"{path}: cannot read the file: it does not exist or is not a regular file"
            )
        size = path.stat().st_size
        with path.open("rb") as file:
            header = int.from_bytes(file.read(8), "little")
    except OSError as error:
        raise FileError(f"{path}: cannot read the file: {error.strerror}") from error
    if size < 8 or header > min(size - 8, _MAX_HEADER_BYTES):
        raise _invalid_file(
            path,
            f"its header claims {header} bytes in a file of {size}, expected at most "
            f"{_MAX_HEADER_BYTES}",
        )


def _described(layer: Layer) -> dict[str, object]:
    children = {name: _described(child) for name, child in layer.children().items()}
    return {"kind": layer.KIND, "options": layer.options(), "children": children}


def _dtype_and_shape(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype} of shape {shown(shape)}"


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _joined(name: str, child: str) -> str:
    return f"{name}.{child}" if name else child


def _shortened(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:297]}..."


def _unsupported_model(target: Path, reason: str) -> ArgumentError:
    return ArgumentError(f"{target}: cannot save the model: {_shortened(reason)}")


def _invalid_file(path: Path, reason: str) -> FileError:
    return FileError(
        f"{path} is not a valid nescio.quant model ({_shortened(reason)}); check the path, or save "
        "the model again with nescio.quant.save"
    )
