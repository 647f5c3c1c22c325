"""Operators that move numbers: reshapes, permutations, slices, zeros around, and joins."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._call import Call
from ._linear import added, mapped, padded, permuted, reshaped, shifted, sliced
from ._values import Expression, Pointwise, Value


def reshape(call: Call) -> Value:
    """Keeps the numbers in their order."""
    return reshaped(call.layers, call.x, call.shape, alone=call.alone)


def permute(call: Call) -> Value:
    """Moves axes."""
    ndim = len(call.x.shape) + 1
    order = [axis % ndim for axis in call["dims"]]
    if order[0] != 0:
        raise call.batch()
    return permuted(call.layers, call.x, order)


def transpose(call: Call) -> Value:
    """Swaps two axes."""
    order = list(range(len(call.x.shape) + 1))
    first, second = call.axis("dim0") + 1, call.axis("dim1") + 1
    order[first], order[second] = second, first
    return permuted(call.layers, call.x, order)


def cut(call: Call) -> Value:
    """Keeps a slice of an axis."""
    axis, step = call.axis(), call.get("step", 1)
    size = call.x.shape[axis]
    first, _, _ = slice(call.get("start"), call.get("end"), step).indices(size)
    return sliced(call.layers, call.x, axis, first, call.shape[axis], step=step)


def select(call: Call) -> Value:
    """Keeps one place of an axis."""
    axis = call.axis()
    first = call["index"] % call.x.shape[axis]
    found = sliced(call.layers, call.x, axis, first, 1)
    return reshaped(call.layers, found, call.shape)


def split(call: Call) -> list[Value]:
    """Cuts an axis in parts of sizes, or of one size."""
    axis = call.axis()
    size = call.x.shape[axis]
    sizes = call.get("split_sizes", call.get("split_size"))
    if isinstance(sizes, int):
        sizes = [min(sizes, size - first) for first in range(0, size, sizes)]
    firsts = [sum(sizes[:number]) for number in range(len(sizes))]
    own = zip(firsts, sizes, strict=True)
    return [sliced(call.layers, call.x, axis, first, length) for first, length in own]


def concatenate(call: Call) -> Value:
    """Puts values beside each other: each with zeros around it, added."""
    parts: Sequence[Any] = call["tensors"]
    axis = call["dim"] % (len(call.shape) + 1) - 1
    if axis < 0:
        raise call.batch()
    found: Expression | None = None
    first, constant = 0, []
    for part in parts:
        secret = isinstance(part, Expression | Pointwise)
        length = part.shape[axis] if secret else part.shape[axis + 1]
        if secret:
            after = call.shape[axis] - first - length
            own = padded(call.layers, part, axis, first, after)
            found = own if found is None else added(call.layers, found, own)
            constant.append(torch.zeros(1, *part.shape, dtype=torch.float64))
        else:
            constant.append(part.expand(1, *part.shape[1:]))
        first += length
    assert found is not None
    return shifted(found, torch.cat(constant, axis + 1))


def stack(call: Call) -> Value:
    """Puts values beside each other along a new axis."""
    axis = call["dim"] % (len(call.shape) + 1) - 1
    if axis < 0:
        raise call.batch()
    parts: list[Any] = []
    for part in call["tensors"]:
        if isinstance(part, Expression | Pointwise):
            shape = (*part.shape[:axis], 1, *part.shape[axis:])
            parts.append(reshaped(call.layers, part, shape))
        else:
            parts.append(part.unsqueeze(axis + 1))
    return concatenate(call.having(tensors=parts))


def pad(call: Call) -> Value:
    """Adds numbers around."""
    if call.get("mode", "constant") != "constant":
        raise call.layers.refusal(
            f"found a padding of mode {call['mode']}", "constants", "pad with zeros"
        )
    sides, value = call["pad"], float(call.get("value", 0.0))
    found: Value = call.x
    for number in range(0, len(sides), 2):
        axis = len(call.shape) - 1 - number // 2
        if sides[number] or sides[number + 1]:
            if axis < 0:
                raise call.batch()
            found = padded(call.layers, found, axis, sides[number], sides[number + 1], filled=value)
    return found


def expand(call: Call) -> Value:
    """Repeats axes of length 1."""
    if tuple(call.x.shape) == call.shape:
        found: Value = call.x
        return found
    return mapped(call.layers, call.x, lambda x: x.expand(len(x), *call.shape), call.shape)


MOVES: dict[str, Callable[[Call], Any]] = {
    **dict.fromkeys(
        ("view", "reshape", "flatten", "squeeze", "unsqueeze", "_unsafe_view", "unflatten"), reshape
    ),
    "permute": permute,
    "transpose": transpose,
    "slice": cut,
    "select": select,
    **dict.fromkeys(("split", "split_with_sizes"), split),
    "cat": concatenate,
    "stack": stack,
    "pad": pad,
    "constant_pad_nd": pad,
    "expand": expand,
}
