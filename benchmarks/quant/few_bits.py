"""The quality of networks with few bits: Tables 3.2 and 3.4, Figure 3.3. Needs PyTorch.

Cases have `weight_bits`, `quality`, `way` and `activation_bits`. `way` is "engine" for bit-serial
modules; "floats" and "same" are rounded floats, for widths that the engine does not support. With
"same", activations have the width of the weights and `activation_bits` is None; it is None for
unrounded activations, too.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from nescio._report import Case
from nescio.quant.torch import quantize
from nescio.quant.torch.training import convert, prepare

from .data import Digits
from .networks import DigitSettings, accuracy, digit_network, train_digits

Quality = Callable[[Any], float]
"""The quality of a network: its accuracy, or its perplexity."""

ACTIVATION_BITS = (32, 16, 8)
ENGINE_BITS = (1, 4, 8)
SAME_BITS = (1, 4, 8, 16)
_ROUNDED_BITS = 16  # more than the engine supports
_BINS = 61


def qualities(
    network: torch.nn.Module, layers: str, quality: Quality, weight_bits: Sequence[int]
) -> Iterator[Case]:
    """Yields Table 3.2: the network in float32, and with few bits in the layers of a pattern."""
    yield _case("float", None, None, quality(network))
    for bits in weight_bits:
        for activation_bits in ACTIVATION_BITS:
            small = quantize(network, {layers: (bits, activation_bits)})
            yield _case("engine", bits, activation_bits, quality(small))
    for activation_bits in ACTIVATION_BITS:
        rounded = rounded_to_16(network, layers, activation_bits)
        yield _case("floats", _ROUNDED_BITS, activation_bits, quality(rounded))
    for bits in SAME_BITS:
        if bits == _ROUNDED_BITS:
            rounded = rounded_to_16(network, layers, bits)
        else:
            rounded = prepare(network, {layers: (bits, bits)}).eval()
        yield _case("same", bits, None, quality(rounded))


def rounded_to_16(network: torch.nn.Module, layers: str, activation_bits: int) -> torch.nn.Module:
    """Returns a copy with weights rounded to 16 bits and activations to `activation_bits`."""
    prepared = prepare(network, {layers: (8, activation_bits)}).eval()
    for module in prepared.modules():
        if hasattr(module, "rounding"):
            module.layer = copy.deepcopy(module.layer)
            for name in list(module.rounding):
                module.rounding[name] = torch.nn.Identity()
                weight = module.layer.get_parameter(name)
                step = weight.detach().abs().max() / ((1 << _ROUNDED_BITS - 1) - 1)
                with torch.no_grad():
                    weight.copy_(torch.round(weight / step) * step)
    return prepared


def _case(way: str, bits: int | None, activation_bits: int | None, quality: float) -> Case:
    return {
        "way": way,
        "weight_bits": bits,
        "activation_bits": activation_bits,
        "quality": quality,
    }


def retrained(
    base: torch.nn.Module,
    data: Digits,
    settings: DigitSettings,
    weight_bits: Sequence[int] = (1, 4),
) -> Iterator[Case]:
    """Yields Table 3.4 on MNIST: without training, from scratch, from the trained network.

    Activations have the width of the weights, or are floats. A network trained with float
    activations is also converted to bit-serial layers with 8-bit activations: `engine_quality`.
    """
    yield {"training": "float", "quality": accuracy(base, *data.test)}
    for bits in weight_bits:
        for activation_bits in (bits, None):
            plan = {"*": (bits, activation_bits)}
            for training in ("none", "scratch", "finetune"):
                torch.manual_seed(0)
                begin = digit_network(settings.hidden) if training == "scratch" else base
                prepared = prepare(begin, plan)
                if training != "none":
                    train_digits(prepared, data, settings)
                prepared.eval()
                case: Case = {
                    "training": training,
                    "weight_bits": bits,
                    "activations": "same" if activation_bits else "float",
                    "quality": accuracy(prepared, *data.test),
                }
                if activation_bits is None:
                    small = convert(prepared, activation_bits=8)
                    case["engine_quality"] = accuracy(small, *data.test)
                yield case


def histograms(network: torch.nn.Module, data: Digits, images: int = 1000) -> Iterator[Case]:
    """Yields Figure 3.3: the values of each linear layer's weights and of its inputs."""
    x = torch.from_numpy(data.test[0][:images])
    with torch.inference_mode():
        for name, module in network.named_children():
            if isinstance(module, torch.nn.Linear):
                yield _histogram(name, "weights", module.weight)
                yield _histogram(name, "activations", x)
            x = module(x)


def _histogram(layer: str, what: str, values: torch.Tensor) -> Case:
    array = values.detach().numpy().astype(np.float64).ravel()
    counts, edges = np.histogram(array, _BINS)
    return {
        "layer": layer,
        "what": what,
        "least": float(array.min()),
        "most": float(array.max()),
        "deviation": float(array.std()),
        "spread": float(np.abs(array).max() / array.std()),
        "zeros": float((array == 0).mean()),
        "edges": edges.tolist(),
        "counts": counts.tolist(),
    }
