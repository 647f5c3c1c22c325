"""Plans: the number of bits for each layer.

    {"encoder.*": (4, 8), "decoder": (2, 16), "encoder.first": None}

A plan maps layer names, with shell wildcards (`*`, `?`), to (weight bits, activation bits), or to
None for layers that stay as they are. A name without wildcards takes precedence; otherwise the
first matching name applies.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeVar

from .._arrays import as_count, shown
from ..errors import ArgumentError
from ._activations import check_activation_bits
from ._layers import Layer, Linear, named_layers
from ._matrix import BitSerialMatrix, FloatMatrix
from ._recurrent import GRU, LSTM, GRUCell, LSTMCell
from ._weights import MAX_WEIGHT_BITS, quantize_weights

Bits = tuple[int, int]
Choice = Bits | None
Plan = Mapping[str, Choice]

Chosen = TypeVar("Chosen")

QUANTIZABLE = (Linear, LSTM, GRU, LSTMCell, GRUCell)


class Candidate(NamedTuple):
    """Layer that a plan may name."""

    name: str
    kind: str
    quantizable: bool
    has_weights: bool
    """True if the layer has weights of its own; wildcards skip layers without weights."""


def quantize(
    model: Layer,
    plan: Plan,
    *,
    per_row: bool = False,
    group: int = 0,
    clip: bool = True,
    threads: int = 0,
) -> Layer:
    """Quantizes the NumPy layers that a plan names; the new model shares the other layers.

    Linear, LSTM, GRU, LSTMCell and GRUCell can be quantized. `per_row`, `group` and `clip` are
    passed to `quantize_weights`, `threads` to `BitSerialMatrix`. Raises ArgumentError for a plan
    that does not match the model and for unsupported bits.
    """
    if not isinstance(model, Layer):
        raise ArgumentError(
            f"model: found {type(model).__name__}, expected a Layer (quant.torch.quantize takes "
            "PyTorch modules)"
        )
    candidates = [
        _candidate(name, layer)
        for name, layer in named_layers(model)
        if not _is_inside_recurrent(name, model)
    ]
    chosen = resolve(plan, candidates, check_bits)

    def walk(name: str, layer: Layer) -> Layer:
        bits = chosen.get(name)
        if bits is not None:
            return quantize_layer(
                layer, bits, per_row=per_row, group=group, clip=clip, threads=threads
            )
        children = layer.children()
        if not children:
            return layer
        return layer.with_children(
            {child: walk(_joined(name, child), part) for child, part in children.items()}
        )

    return walk("", model)


def quantize_layer(
    layer: Layer,
    bits: Bits,
    *,
    per_row: bool = False,
    group: int = 0,
    clip: bool = True,
    threads: int = 0,
) -> Layer:
    """Quantizes one layer: its matrix, or all of its matrices. Raises as `quantize` does."""
    weight_bits, activation_bits = check_bits(bits)
    if isinstance(layer, Linear):
        if not isinstance(layer.matrix, FloatMatrix):
            raise ArgumentError("layer: found quantized weights, expected float weights")
        weights = quantize_weights(
            layer.matrix.weight, weight_bits, per_row=per_row, group=group, clip=clip
        )
        bias = layer.matrix.bias
        return Linear(BitSerialMatrix(weights, activation_bits, bias=bias, threads=threads))
    if not isinstance(layer, QUANTIZABLE):
        raise ArgumentError(_other_type(layer.KIND))
    parts = layer.children().items()
    return layer.with_children(
        {
            name: quantize_layer(
                part, bits, per_row=per_row, group=group, clip=clip, threads=threads
            )
            for name, part in parts
        }
    )


def quantizable_layers(model: Layer) -> dict[str, Layer]:
    """Returns the layers of a model that can be quantized, by name."""
    return {
        name: layer
        for name, layer in named_layers(model)
        if not _is_inside_recurrent(name, model) and _candidate(name, layer).quantizable
    }


def resolve(
    plan: Mapping[str, Chosen | None],
    candidates: Sequence[Candidate],
    check: Callable[[object, str], Chosen],
) -> dict[str, Chosen | None]:
    """Maps each layer that a plan names to its bits; `check` validates the bits.

    Raises ArgumentError for a name that matches no layer, a layer of another type, and unsupported
    bits.
    """
    if not isinstance(plan, Mapping):
        raise ArgumentError(f"plan: found {shown(plan)}, expected a mapping of names to bits")
    checked = {
        name: None if bits is None else check(bits, f"plan, {name!r}")
        for name, bits in plan.items()
    }
    chosen: dict[str, Chosen | None] = {}
    for pattern in sorted(checked, key=_has_wildcards):  # a stable sort
        for candidate in _matching(pattern, candidates):
            chosen.setdefault(candidate.name, checked[pattern])
    return chosen


def check_bits(bits: object, what: str = "bits") -> Bits:
    """Checks (weight bits, activation bits). Raises ArgumentError for unsupported values."""
    if not isinstance(bits, tuple | list) or len(bits) != 2:
        raise ArgumentError(
            f"{what}: found {shown(bits)}, expected (weight bits, activation bits), such as (4, 8)"
        )
    try:
        return as_count(bits[0], "weight bits", 1, MAX_WEIGHT_BITS), check_activation_bits(bits[1])
    except ArgumentError as error:
        raise ArgumentError(f"{what}: {error}") from error


def _matching(pattern: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Returns the layers that match one name of a plan."""
    if not isinstance(pattern, str):
        raise ArgumentError(f"plan: found {shown(pattern)}, expected a layer name")
    wild = _has_wildcards(pattern)
    found = [c for c in candidates if c.name == pattern or (wild and fnmatchcase(c.name, pattern))]
    weighted = [c for c in found if c.has_weights or not wild]
    for candidate in weighted:
        if not candidate.quantizable:
            raise ArgumentError(
                f"plan, {pattern!r}: {candidate.name!r}, {_other_type(candidate.kind)}"
            )
    if not weighted:
        suggestion = _suggestion(pattern, candidates)
        raise ArgumentError(f"plan, {pattern!r}: found no such layer, {suggestion}")
    return weighted


def _has_wildcards(pattern: object) -> bool:
    return isinstance(pattern, str) and any(mark in pattern for mark in "*?[")


def _suggestion(pattern: str, candidates: Sequence[Candidate]) -> str:
    """Lists similar layer names for an error message."""
    names = [candidate.name for candidate in candidates if candidate.quantizable]
    if not names:
        return "and the model has no layer that can be quantized"
    near = difflib.get_close_matches(pattern, names, 3, 0.5) or names[:3]
    more = f" and {len(names) - len(near)} more" if len(names) > len(near) else ""
    return f"expected a name such as {', '.join(map(repr, near))}{more}"


def _other_type(kind: str) -> str:
    return f"found a {kind}, expected a Linear, LSTM, GRU, LSTMCell or GRUCell"


def _candidate(name: str, layer: Layer) -> Candidate:
    floats = isinstance(layer, QUANTIZABLE) and _is_float(layer)
    kind = layer.KIND if floats or not isinstance(layer, QUANTIZABLE) else f"quantized {layer.KIND}"
    return Candidate(name, kind, floats, floats or bool(layer.arrays()))


def _is_float(layer: Layer) -> bool:
    if isinstance(layer, Linear):
        return isinstance(layer.matrix, FloatMatrix)
    return all(_is_float(part) for part in layer.children().values())


def _is_inside_recurrent(name: str, model: Layer) -> bool:
    """Returns whether a layer is a matrix of a recurrent layer; plans name the whole layer."""
    parent: Layer = model
    for part in name.split(".") if name else []:
        if isinstance(parent, QUANTIZABLE):
            return True
        parent = parent.children()[part]
    return False


def _joined(name: str, child: str) -> str:
    return f"{name}.{child}" if name else child
