"""Operators that compute: convolutions, matrix products, batch norm, averages and max pooling."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as everywhere

from .._maps import Shape
from ._call import Call
from ._linear import (
    Sizes,
    added,
    convolved,
    dense,
    mapped,
    multiplied,
    pooled,
    reshaped,
    shifted,
)
from ._moves import MOVES
from ._pools import Line, max_pooled
from ._values import Expression, Pointwise, Value, natural_shape
from ._windows import Pair


def convolution(call: Call) -> Value:
    """Convolves along one or two axes."""
    weight, bias = call.constant("weight"), call.constant("bias")
    assert weight is not None
    if call.get("transposed", False):
        raise call.layers.refusal(
            "found a transposed convolution", "convolutions", "use another kind of layer"
        )
    flat = weight.ndim == 3
    kernel = weight[:, :, None] if flat else weight
    stride, dilation = call.pair("stride", 1), call.pair("dilation", 1)
    padding = call["padding"]
    if isinstance(padding, str):
        spans = zip(dilation, kernel.shape[2:], strict=True)
        total = [apart * (taps - 1) if padding == "same" else 0 for apart, taps in spans]
        before = total[0] // 2, total[1] // 2
    else:
        before = call.pair("padding")
    sizes = Sizes(stride, before, dilation, call["groups"])
    function = F.conv1d if flat else F.conv2d
    own = (slice(1, None) if flat else slice(None)), padding

    def op(x: Tensor) -> Tensor:
        around = own[1] if isinstance(own[1], str) else before[own[0]]
        return function(x, weight, None, stride[own[0]], around, dilation[own[0]], sizes.groups)

    found = convolved(call.layers, call.x, op, kernel, sizes=sizes, shape=call.shape)
    return found if bias is None else shifted(found, _a_channel(bias, call.shape))


def _a_channel(numbers: Tensor, shape: Shape) -> Tensor:
    return numbers.reshape(1, -1, *(1,) * (len(shape) - 1))


def linear(call: Call) -> Value:
    """Multiplies by a matrix: linear, addmm, matmul, mm with a constant."""
    weight, bias = call.constant("weight"), call.constant("bias")
    assert weight is not None
    return _product(call, call["input"], weight, bias)


def addmm(call: Call) -> Value:
    """Adds a constant to a product with a constant."""
    weight, bias = call.constant("mat2"), call.constant("self")
    assert weight is not None
    beta, alpha = call.get("beta", 1), call.get("alpha", 1)
    return _product(call, call["mat1"], weight.T * alpha, None if bias is None else bias * beta)


def product(call: Call) -> Value:
    """Multiplies a secret by a constant matrix on its right."""
    other = call.get("other", call.get("mat2"))
    if isinstance(other, Expression | Pointwise) or other.ndim != 2:
        raise call.layers.refusal(
            "found a product of two secrets, or one whose left side is constant",
            "a secret times a constant matrix",
            "replace attention by convolutions and linear layers; write x @ weight",
        )
    return _product(call, call.x, other.T, None)


def _product(call: Call, value: Value, weight: Tensor, bias: Tensor | None) -> Value:
    lines = math.prod(value.shape[:-1])
    if lines == 1:
        found = dense(call.layers, value, weight)
        if bias is not None:
            found = shifted(found, bias.reshape(1, -1))
        return reshaped(call.layers, found, call.shape)
    found = mapped(call.layers, value, lambda x: F.linear(x, weight), call.shape)
    return found if bias is None else shifted(found, bias)


def batch_norm(call: Call) -> Value:
    """Folds a batch norm with constant statistics."""
    mean, deviation = call.constant("running_mean"), call.constant("running_var")
    assert mean is not None
    assert deviation is not None
    scale = (deviation + call["eps"]).rsqrt()
    weight, bias = call.constant("weight"), call.constant("bias")
    if weight is not None:
        scale = scale * weight
    moved = -mean * scale if bias is None else bias - mean * scale
    found = multiplied(call.layers, call.x, _a_channel(scale, call.shape))
    return shifted(found, _a_channel(moved, call.shape))


def average(call: Call) -> Value:
    """Averages under a kernel."""
    kernel = call.pair("kernel_size")
    stride, padding = call.pair("stride", 0), call.pair("padding", 0)
    stride = (stride[0] or kernel[0], stride[1] or kernel[1]) if call.get("stride") else kernel
    divisor = call.get("divisor_override")
    counts = divisor is None and not call.get("count_include_pad", True)
    if _beyond(call, kernel, stride, padding) or (any(padding) and counts):
        return _uneven(call)
    divisor = divisor or kernel[0] * kernel[1]
    sizes = Sizes(stride, padding)
    return pooled(call.layers, call.x, kernel, sizes, shape=call.shape, divisor=float(divisor))


def _uneven(call: Call) -> Value:
    """Averages under kernels that have fewer pixels at the borders: no convolution."""
    own = [call[name] for name in ("kernel_size", "stride", "padding", "ceil_mode")]
    own.append(call["count_include_pad"])
    own[1] = own[1] or own[0]
    if len(call.shape) == 2:
        return mapped(call.layers, call.x, lambda x: F.avg_pool1d(x, *own), call.shape)
    own.append(call["divisor_override"])
    return mapped(call.layers, call.x, lambda x: F.avg_pool2d(x, *own), call.shape)


def _beyond(call: Call, kernel: Pair, stride: Pair, padding: Pair) -> bool:
    """Tests if the last window ends behind the padding."""
    inputs, outputs = natural_shape(call.x.shape), natural_shape(call.shape)
    assert inputs is not None
    assert outputs is not None
    return any(
        (outputs[1 + axis] - 1) * stride[axis] + kernel[axis] > inputs[1 + axis] + 2 * padding[axis]
        for axis in (0, 1)
    )


def adaptive_average(call: Call) -> Value:
    """Averages to so many outputs; kernels of several sizes have no window."""
    regular = _regular(call)
    if regular is not None:
        divisor = float(regular[0] * regular[1])
        return pooled(
            call.layers, call.x, regular, Sizes(regular), shape=call.shape, divisor=divisor
        )
    size = call.shape[1:]
    function: Any = F.adaptive_avg_pool1d if len(size) == 1 else F.adaptive_avg_pool2d
    return mapped(call.layers, call.x, lambda x: function(x, size), call.shape)


def _regular(call: Call) -> Pair | None:
    """Returns the kernel of an adaptive pooling if all are of one size."""
    inputs, outputs = natural_shape(call.x.shape), natural_shape(call.shape)
    assert inputs is not None
    assert outputs is not None
    if inputs[1] % outputs[1] or inputs[2] % outputs[2]:
        return None
    return inputs[1] // outputs[1], inputs[2] // outputs[2]


def mean(call: Call) -> Value:
    """Averages over axes."""
    return _reduced(call, is_mean=True)


def total(call: Call) -> Value:
    """Adds over axes."""
    return _reduced(call, is_mean=False)


def _reduced(call: Call, *, is_mean: bool) -> Value:
    shape = call.x.shape
    dims = call.get("dim")
    axes = [call.axis_of(dim) for dim in (dims or [])]
    if not axes:
        raise call.batch()
    count = math.prod(shape[axis] for axis in axes) if is_mean else 1
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    if 0 in axes or len(shape) not in (2, 3):
        every = [axis + 1 for axis in axes]

        def op(x: Tensor) -> Tensor:
            return (x.sum(every) / count).reshape(len(x), *call.shape)

        return mapped(call.layers, call.x, op, call.shape)
    natural, outputs = natural_shape(shape), natural_shape(kept)
    assert natural is not None
    assert outputs is not None
    kernel = natural[1] // outputs[1], natural[2] // outputs[2]
    found = pooled(call.layers, call.x, kernel, Sizes(kernel), shape=kept, divisor=float(count))
    return reshaped(call.layers, found, call.shape)


def max_pool(call: Call) -> Value:
    """Pools by a tournament."""
    kernel, padding = call.pair("kernel_size"), call.pair("padding", 0)
    stride = call.pair("stride") if call.get("stride") else kernel
    return _tournament(call, kernel, stride, padding, call.pair("dilation", 1))


def adaptive_max(call: Call) -> Value:
    """Pools to so many outputs, if all kernels are of one size."""
    regular = _regular(call)
    if regular is None:
        raise call.layers.refusal(
            f"found an adaptive max pooling of {call.x.shape} to {call.shape}",
            "sizes that divide each other",
            "use max_pool2d",
        )
    return _tournament(call, regular, regular, (0, 0), (1, 1))


def _tournament(call: Call, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Value:
    outputs = call.shape
    axes = [(1, 1)] if len(outputs) == 2 else [(2, 1), (1, 0)]
    lines = [
        Line(axis, kernel[own], stride[own], padding[own], dilation[own], outputs[axis])
        for axis, own in axes
    ]
    return max_pooled(call.layers, call.x, lines, alone=call.alone)


def prelu(call: Call) -> Value:
    """Computes slope x + (1 - slope) relu(x), with a slope a channel."""
    weight = call.constant("weight")
    assert weight is not None
    slopes = _a_channel(weight, call.shape)
    own = call.layers.expression(call.x)
    over = Pointwise(own, torch.relu, "relu", direction=1)
    left = multiplied(call.layers, own, slopes)
    return added(call.layers, left, multiplied(call.layers, over, 1 - slopes))


OPERATORS: dict[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("conv1d", "conv2d", "convolution"), convolution),
    "linear": linear,
    "addmm": addmm,
    "mm": product,
    "matmul": product,
    **dict.fromkeys(("batch_norm", "_native_batch_norm_legit_no_training"), batch_norm),
    **dict.fromkeys(("avg_pool2d", "avg_pool1d"), average),
    **dict.fromkeys(
        ("adaptive_avg_pool2d", "adaptive_avg_pool1d", "_adaptive_avg_pool2d"), adaptive_average
    ),
    "mean": mean,
    "sum": total,
    "prelu": prelu,
    **dict.fromkeys(
        ("max_pool2d", "max_pool1d", "max_pool2d_with_indices", "max_pool1d_with_indices"), max_pool
    ),
    **dict.fromkeys(("adaptive_max_pool2d", "adaptive_max_pool1d"), adaptive_max),
    **MOVES,
}
