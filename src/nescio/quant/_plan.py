"""Plans: which layers get how many bits.

    {"encoder.*": (4, 8), "decoder": (2, 16), "encoder.first": None}

A plan maps names of layers, with `*` and `?` as in a shell, to (weight bits, activation bits), or
to None for layers that stay as they are. A name without wildcards goes before those with; else the
first that fits decides.
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
from ._weights import MOST_WEIGHT_BITS, quantize_weights

Bits = tuple[int, int]
Choice = Bits | None
Plan = Mapping[str, Choice]

Chosen = TypeVar("Chosen")

QUANTISABLE = (Linear, LSTM, GRU, LSTMCell, GRUCell)


class Candidate(NamedTuple):
    """A layer as a plan sees it."""

    name: str
    kind: str
    quantisable: bool
    weighty: bool
    """Whether it has weights of its own; a wildcard passes over layers without."""


def quantize(
    model: Layer, plan: Plan, *, per_row: bool = False, clip: bool = True, threads: int = 0
) -> Layer:
    """A model of NumPy layers with those that the plan names quantised; the rest is shared.

    Linear, LSTM, GRU and their cells can be. `per_row` and `clip` are those of `quantize_weights`,
    `threads` those of `BitSerialMatrix`. Raises ArgumentError for a plan that does not fit the
    model, or bits that cannot be.
    """
    if not isinstance(model, Layer):
        raise ArgumentError(
            f"model: found {type(model).__name__}, expected a Layer (quant.torch.quantize takes "
            "PyTorch modules)"
        )
    named = [(name, layer) for name, layer in named_layers(model) if not _is_part(name, model)]
    chosen = resolve(plan, [_candidate(name, layer) for name, layer in named], check_bits)

    def walk(name: str, layer: Layer) -> Layer:
        bits = chosen.get(name)
        if bits is not None:
            return quantize_layer(layer, bits, per_row=per_row, clip=clip, threads=threads)
        children = layer.children()
        if not children:
            return layer
        return layer.with_children(
            {child: walk(_joined(name, child), part) for child, part in children.items()}
        )

    return walk("", model)


def quantize_layer(
    layer: Layer, bits: Bits, *, per_row: bool = False, clip: bool = True, threads: int = 0
) -> Layer:
    """One layer quantised: its matrix, or all its matrices. Errors are those of `quantize`."""
    weight_bits, activation_bits = check_bits(bits)
    if isinstance(layer, Linear):
        if not isinstance(layer.matrix, FloatMatrix):
            raise ArgumentError("the layer is quantised already: expected floats")
        weights = quantize_weights(layer.matrix.weight, weight_bits, per_row=per_row, clip=clip)
        bias = layer.matrix.bias
        return Linear(BitSerialMatrix(weights, activation_bits, bias=bias, threads=threads))
    if not isinstance(layer, QUANTISABLE):
        raise ArgumentError(_other_type(layer.KIND))
    parts = layer.children().items()
    return layer.with_children(
        {
            name: quantize_layer(part, bits, per_row=per_row, clip=clip, threads=threads)
            for name, part in parts
        }
    )


def quantisable_layers(model: Layer) -> dict[str, Layer]:
    """The layers of a model that a plan can name, by name."""
    return {
        name: layer
        for name, layer in named_layers(model)
        if not _is_part(name, model) and _candidate(name, layer).quantisable
    }


def resolve(
    plan: Mapping[str, Chosen | None],
    candidates: Sequence[Candidate],
    check: Callable[[object, str], Chosen],
) -> dict[str, Chosen | None]:
    """What a plan says of each layer that it names; `check` says what it may say.

    Raises ArgumentError for a name that fits nothing, a layer of another type, and bits that
    cannot be.
    """
    if not isinstance(plan, Mapping):
        raise ArgumentError(f"plan: found {shown(plan)}, expected a mapping of names to bits")
    checked = {
        name: None if bits is None else check(bits, f"plan, {name!r}")
        for name, bits in plan.items()
    }
    chosen: dict[str, Chosen | None] = {}
    for pattern in sorted(checked, key=_has_wildcards):  # which keeps the order of each kind
        named = _named(pattern, candidates)
        for candidate in named:
            chosen.setdefault(candidate.name, checked[pattern])
    return chosen


def check_bits(bits: object, what: str = "bits") -> Bits:
    """The bits of weights and activations. Raises ArgumentError for what the engine has not."""
    if not isinstance(bits, tuple | list) or len(bits) != 2:
        raise ArgumentError(
            f"{what}: found {shown(bits)}, expected (weight bits, activation bits), such as (4, 8)"
        )
    try:
        return as_count(bits[0], "weight bits", 1, MOST_WEIGHT_BITS), check_activation_bits(bits[1])
    except ArgumentError as error:
        raise ArgumentError(f"{what}: {error}") from error


def _named(pattern: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The layers that one name of a plan stands for."""
    if not isinstance(pattern, str):
        raise ArgumentError(f"plan: found {shown(pattern)}, expected a layer's name")
    wild = _has_wildcards(pattern)
    found = [c for c in candidates if c.name == pattern or (wild and fnmatchcase(c.name, pattern))]
    weighty = [c for c in found if c.weighty or not wild]
    for candidate in weighty:
        if not candidate.quantisable:
            raise ArgumentError(
                f"plan, {pattern!r}: {candidate.name!r}, {_other_type(candidate.kind)}"
            )
    if not weighty:
        raise ArgumentError(f"plan, {pattern!r}: found no such layer, {_near(pattern, candidates)}")
    return weighty


def _has_wildcards(pattern: object) -> bool:
    return isinstance(pattern, str) and any(mark in pattern for mark in "*?[")


def _near(pattern: str, candidates: Sequence[Candidate]) -> str:
    """What could have been meant."""
    names = [candidate.name for candidate in candidates if candidate.quantisable]
    if not names:
        return "and none in the model that can be quantised"
    near = difflib.get_close_matches(pattern, names, 3, 0.5) or names[:3]
    more = f" and {len(names) - len(near)} more" if len(names) > len(near) else ""
    return f"expected one such as {', '.join(map(repr, near))}{more}"


def _other_type(kind: str) -> str:
    return f"found a {kind}, expected a Linear, LSTM, GRU, LSTMCell or GRUCell"


def _candidate(name: str, layer: Layer) -> Candidate:
    floats = isinstance(layer, QUANTISABLE) and _is_float(layer)
    kind = layer.KIND if floats or not isinstance(layer, QUANTISABLE) else f"quantised {layer.KIND}"
    return Candidate(name, kind, floats, floats or bool(layer.arrays()))


def _is_float(layer: Layer) -> bool:
    if isinstance(layer, Linear):
        return isinstance(layer.matrix, FloatMatrix)
    return all(_is_float(part) for part in layer.children().values())


def _is_part(name: str, model: Layer) -> bool:
    """Whether a layer is a matrix of a recurrent one, which a plan names as a whole."""
    above: Layer = model
    for part in name.split(".") if name else []:
        if isinstance(above, QUANTISABLE):
            return True
        above = above.children()[part]
    return False


def _joined(name: str, child: str) -> str:
    return f"{name}.{child}" if name else child
