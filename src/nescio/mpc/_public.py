"""The public part of a network: shapes, windows and tables, and no weights."""

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .._arrays import as_count, shown
from ..errors import ArgumentError, MalformedMessageError
from ._activation import Activation
from ._maps import Convolution, Dense, Shape, places
from ._tables import MAX_OUTPUTS, MAX_TABLES

if TYPE_CHECKING:
    from ._network import Layer, Network, Term

_TAG = b"Nescio network 1\n"
_RING_BITS = 32
_MAX_SPAN = 1 << 16
MAX_LAYERS = 4096
MAX_TERMS = 64
MAX_BYTES = 1 << 24

Pair = tuple[int, int]
_T = TypeVar("_T")


@dataclass(frozen=True)
class PublicTerm:
    """The shape of a linear map of result `source`; a matrix product has no kernel."""

    source: int
    inputs: Shape
    outputs: Shape
    kernel: Pair | None = None
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1

    @classmethod
    def of(cls, term: "Term") -> "PublicTerm":
        """Leaves the weights out."""
        source, own = _plain(term.source), term.map
        if isinstance(own, Dense):
            return cls(source, tuple(own.inputs), own.outputs)
        if not isinstance(own, Convolution):
            raise ArgumentError(f"found a map {shown(own)}, expected Dense or Convolution")
        rows, columns = own.weights.shape[2:]
        kernel = rows, columns
        sizes = (own.stride, own.padding, own.dilation, own.groups)
        return cls(source, tuple(own.inputs), own.outputs, kernel, *sizes)

    def check(self, what: str, shapes: Sequence[Shape]) -> None:
        """Raises ArgumentError for a map that does not fit the results before it."""
        as_count(self.source, f"{what}: a source", 0, len(shapes) - 1)
        if self.inputs != shapes[self.source]:
            raise ArgumentError(
                f"{what}: found a map of {self.inputs}, expected {shapes[self.source]}, the shape "
                f"of result {self.source}"
            )
        _check_shape(self.outputs, what)
        if self.kernel is None:
            expected: Shape = self.outputs[:1]
        else:
            expected = (self.outputs[0], *self._spots(what))
        if self.outputs != expected or min(expected) < 1:
            raise ArgumentError(
                f"{what}: found a map to {self.outputs}, expected {expected} for its sizes"
            )

    def _spots(self, what: str) -> Shape:
        """Returns the height and the width of a convolution's outputs."""
        assert self.kernel is not None
        own = (self.kernel, self.stride, self.padding, self.dilation)
        for name, pair in zip(("kernel", "stride", "padding", "dilation"), own, strict=True):
            for number in pair:
                as_count(number, f"{what}: {name}", int(name != "padding"), _MAX_SPAN)
        channels, outputs = self.inputs[0], self.outputs[0]
        as_count(self.groups, f"{what}: groups", 1, channels)
        if len(self.inputs) != 3 or channels % self.groups or outputs % self.groups:
            raise ArgumentError(
                f"{what}: found a convolution of {self.inputs} to {outputs} channels in "
                f"{self.groups} groups, expected (channels, height, width), and as many channels "
                "in each group"
            )
        return places(self.inputs, *own)


@dataclass(frozen=True, eq=False)
class PublicLayer:
    """The part of a layer that both parties know."""

    outputs: Shape
    terms: tuple[PublicTerm, ...]
    activation: Activation | None
    shift: int

    @classmethod
    def of(cls, layer: "Layer") -> "PublicLayer":
        """Leaves weights and biases out."""
        if not layer.terms:
            raise ArgumentError("a layer: found no map, expected one or more")
        terms = tuple(map(PublicTerm.of, layer.terms))
        return cls(terms[0].outputs, terms, layer.activation, _plain(layer.shift))

    @property
    def size(self) -> int:
        """The number of values, each of which takes one table."""
        size = 1
        for length in self.outputs:
            size *= length
        return size

    def check(self, what: str, shapes: Sequence[Shape]) -> None:
        """Raises ArgumentError for a layer that does not fit the results before it."""
        as_count(len(self.terms), f"{what}: maps", 1, MAX_TERMS)
        for term in self.terms:
            term.check(what, shapes)
            if term.outputs != self.outputs:
                raise ArgumentError(
                    f"{what}: found maps to {term.outputs} and {self.outputs}, expected one shape"
                )
        most = 0 if self.activation is None else _RING_BITS - self.activation.bits
        as_count(self.shift, f"{what}: shift", 0, most)


@dataclass(frozen=True, eq=False)
class PublicNetwork:
    """The part of a network that both parties know: shapes and activations, and no weights.

    The client needs it: `network.public` at the server, whose `to_bytes` go to the client. Raises
    ArgumentError for layers that do not fit each other.
    """

    inputs: Shape
    layers: tuple[PublicLayer, ...]

    def __post_init__(self) -> None:
        _check_shape(self.inputs, "inputs")
        as_count(len(self.layers), "layers", 1, MAX_LAYERS)
        shapes, last = [self.inputs], len(self.layers)
        for number, layer in enumerate(self.layers, 1):
            if (layer.activation is None) != (number == last):
                found = "an" if number == last else "no"
                raise ArgumentError(
                    f"layer {number} of {last}: found {found} activation, expected one for every "
                    "layer but the last"
                )
            layer.check(f"layer {number}", shapes)
            shapes.append(layer.outputs)

    @classmethod
    def of(cls, network: "Network") -> "PublicNetwork":
        """Leaves weights and biases out."""
        return cls(tuple(network.inputs), tuple(map(PublicLayer.of, network.layers)))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that is public, in hexadecimal: parties compare it."""
        return hashlib.sha256(_TAG + _json(_described(self))).hexdigest()

    def to_bytes(self) -> bytes:
        """Returns everything that is public, for the other party: JSON."""
        return _json(_described(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> "PublicNetwork":
        """Reads the bytes of `to_bytes`. Raises MalformedMessageError for any others."""
        try:
            if len(data) > MAX_BYTES:
                raise ValueError(f"{len(data)} bytes, which are more than {MAX_BYTES}")
            return _read(json.loads(data))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise MalformedMessageError(
                f"public network: found {shown(str(error))}, expected the bytes of `to_bytes`: ask "
                "the server for them again"
            ) from error


def _plain(number: Any) -> Any:  # noqa: ANN401 - anything a caller has; it is checked later
    """Converts an integer of NumPy, which JSON does not have."""
    return int(number) if isinstance(number, np.integer) else number


def _check_shape(shape: Shape, what: str) -> None:
    """Raises ArgumentError for a shape that no result may have."""
    as_count(len(shape), f"{what}: dimensions", 1, 4)
    size = 1
    for length in shape:
        size *= as_count(length, f"{what}: a length", 1, MAX_TABLES)
    as_count(size, f"{what}: numbers", 1, MAX_TABLES)


# ---- as JSON -------------------------------------------------------------------------------------


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _described(network: PublicNetwork) -> object:
    """Converts a network to JSON types; layers with one activation share it."""
    numbers: dict[bytes, int] = {}
    tables: list[object] = []
    layers = []
    for layer in network.layers:
        number = None
        if layer.activation is not None:
            table = _activation(layer.activation)
            number = numbers.setdefault(_json(table), len(tables))
            if number == len(tables):
                tables.append(table)
        terms = [vars(term) for term in layer.terms]
        layers.append(
            {"outputs": layer.outputs, "terms": terms, "shift": layer.shift, "activation": number}
        )
    return {"inputs": network.inputs, "layers": layers, "activations": tables}


def _activation(activation: Activation) -> object:
    return {
        "bits": activation.bits,
        "outputs": activation.outputs,
        "low": activation.low,
        "signed": activation.signed,
        "entries": base64.b64encode(activation.entries.astype("<u2").tobytes()).decode(),
    }


def _read(found: Any) -> PublicNetwork:  # noqa: ANN401 - JSON
    """Converts JSON types to a network, whose sizes are then checked."""
    _keys(found, {"inputs", "layers", "activations"})
    activations = _items(found["activations"], _read_activation, MAX_LAYERS)

    def layer(one: Any) -> PublicLayer:  # noqa: ANN401
        _keys(one, {"outputs", "terms", "shift", "activation"})
        number = one["activation"]
        if number is not None:
            as_count(number, "activation", 0, len(activations) - 1)
        own = None if number is None else activations[number]
        terms = tuple(_items(one["terms"], _read_term, MAX_TERMS))
        return PublicLayer(_shape(one["outputs"]), terms, own, one["shift"])

    layers = _items(found["layers"], layer, MAX_LAYERS)
    return PublicNetwork(_shape(found["inputs"]), tuple(layers))


def _read_activation(found: Any) -> Activation:  # noqa: ANN401
    _keys(found, {"bits", "outputs", "low", "signed", "entries"})
    entries = np.frombuffer(base64.b64decode(found["entries"], validate=True), "<u2")
    as_count(found["bits"], "bits", 1, 16)
    as_count(len(entries), "entries", 1 << found["bits"], 1 << found["bits"])
    if type(found["signed"]) is not bool:
        raise ValueError("a sign that is neither true nor false")
    as_count(found["outputs"], "outputs", 1, MAX_OUTPUTS)
    half = 1 << found["outputs"] - 1 if found["signed"] else 0
    return Activation(
        lambda places: (entries[places % len(entries)].astype(np.int64) ^ half) - half,
        bits=found["bits"],
        outputs=found["outputs"],
        low=found["low"],
        signed=found["signed"],
    )


def _read_term(found: Any) -> PublicTerm:  # noqa: ANN401
    _keys(found, set(PublicTerm.__dataclass_fields__))
    pairs = {name: _shape(found[name]) for name in ("stride", "padding", "dilation")}
    kernel = None if found["kernel"] is None else _shape(found["kernel"])
    if any(len(pair) != 2 for pair in (*pairs.values(), kernel or (1, 1))):
        raise ValueError("a kernel, stride, padding or dilation that is no pair")
    shapes = {name: _shape(found[name]) for name in ("inputs", "outputs")}
    return PublicTerm(**{**found, **shapes, **pairs, "kernel": kernel})


def _shape(found: Any) -> Any:  # noqa: ANN401 - its length is checked later
    return tuple(_items(found, lambda one: as_count(one, "a length", 0, MAX_TABLES), 4))


def _items(found: Any, read: Callable[[Any], _T], most: int) -> list[_T]:  # noqa: ANN401
    if not isinstance(found, list) or len(found) > most:
        raise ValueError(f"no list of at most {most}")
    return [read(one) for one in found]


def _keys(found: Any, names: set[str]) -> None:  # noqa: ANN401
    if not isinstance(found, dict) or set(found) != names:
        raise ValueError(f"no object of {', '.join(sorted(names))}")
