"""The public part of a network: shapes, windows and tables, and no weights."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from ._activation import Activation
from ._maps import Convolution, Dense, Shape
from ._network import Layer, Network, Term

_TAG = b"Nescio network 1\n"


@dataclass(frozen=True)
class PublicTerm:
    """The shape of a linear map of result `source`; a matrix product has no kernel."""

    source: int
    inputs: Shape
    outputs: Shape
    kernel: tuple[int, int] | None = None
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    @classmethod
    def of(cls, term: Term) -> "PublicTerm":
        """Leaves the weights out."""
        source, own = term
        if isinstance(own, Dense):
            return cls(source, tuple(own.inputs), own.outputs)
        assert isinstance(own, Convolution)
        rows, columns = own.weights.shape[2:]
        kernel = rows, columns
        sizes = (own.stride, own.padding, own.dilation, own.groups)
        return cls(source, tuple(own.inputs), own.outputs, kernel, *sizes)


@dataclass(frozen=True, eq=False)
class PublicLayer:
    """The part of a layer that both parties know."""

    outputs: Shape
    terms: tuple[PublicTerm, ...]
    activation: Activation | None
    shift: int

    @classmethod
    def of(cls, layer: Layer) -> "PublicLayer":
        """Leaves weights and biases out."""
        terms = tuple(map(PublicTerm.of, layer.terms))
        return cls(layer.outputs, terms, layer.activation, layer.shift)

    @property
    def size(self) -> int:
        """The number of values."""
        size = 1
        for length in self.outputs:
            size *= length
        return size


@dataclass(frozen=True, eq=False)
class PublicNetwork:
    """The part of a network that both parties know: shapes and activations, and no weights."""

    inputs: Shape
    layers: tuple[PublicLayer, ...]

    @classmethod
    def of(cls, network: Network) -> "PublicNetwork":
        """Leaves weights and biases out."""
        return cls(tuple(network.inputs), tuple(map(PublicLayer.of, network.layers)))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that is public, in hexadecimal: parties compare it."""
        text = json.dumps(_described(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(_TAG + text.encode()).hexdigest()


def _described(network: PublicNetwork) -> object:
    """Converts a network to JSON types."""
    layers = [
        {
            "outputs": layer.outputs,
            "terms": [vars(term) for term in layer.terms],
            "shift": layer.shift,
            "activation": _activation(layer.activation),
        }
        for layer in network.layers
    ]
    return {"inputs": network.inputs, "layers": layers}


def _activation(activation: Activation | None) -> object:
    if activation is None:
        return None
    entries = hashlib.sha256(activation.entries.astype("<u2").tobytes()).hexdigest()
    return [activation.bits, activation.outputs, activation.low, entries]
