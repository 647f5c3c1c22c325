"""Speed against quality: Figure 3.4 and Table 3.3 of the thesis. Needs PyTorch."""

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from nescio._report import Case
from nescio.bench.timing import interleaved
from nescio.quant._layers import Linear, named_layers
from nescio.quant._matrix import BitSerialMatrix
from nescio.quant.search import Choice, MeasuredCost, Point, SearchResult, search
from nescio.quant.torch import quantize, to_layers
from nescio.quant.torch._models import ModuleVariants

from .data import Images, Labels

MARGINS = (0.01, 0.05, 0.15)
_IMAGES = 500  # at a time
_MOST_PLANS = 1 << 14

Bits = tuple[int, int]


class PrefixQuality:
    """The accuracy of a network of layers, one after the other, under any plan.

    What comes out of a layer depends on the bits of the layers up to it, so that it is kept for the
    plans that begin in the same way: all plans of three layers in lexical order cost few products
    but of the last layer.
    """

    def __init__(self, variants: ModuleVariants, images: Images, labels: Labels) -> None:
        self._variants = variants
        self._labels = labels
        self._kept: list[tuple[Choice, torch.Tensor]] = []
        self._images = torch.from_numpy(images)

    def __call__(self, plan: Mapping[str, Choice]) -> float:
        """The share of images that are told right."""
        whole = self._variants.model(plan)
        x, depth, same = self._images, 0, True
        with torch.inference_mode():
            for name, module in whole.named_children():
                if name not in plan:
                    x = module(x)
                    continue
                if same and depth < len(self._kept) and self._kept[depth][0] == plan[name]:
                    x = self._kept[depth][1]
                else:
                    same = False
                    x = torch.cat([module(part) for part in x.split(_IMAGES)])
                    del self._kept[depth:]
                    self._kept.append((plan[name], x))
                depth += 1
        return float((x.argmax(1).numpy() == self._labels).mean())


def search_digits(
    network: torch.nn.Module,
    images: Images,
    labels: Labels,
    choices: Sequence[Bits],
    seconds: float,
) -> SearchResult:
    """Every plan of the choices for each layer: its quality, and its products' time."""
    variants = ModuleVariants(network)
    shapes = variants.shapes
    # Lexical order of the choices by cost is that in which an exhaustive search goes.
    return search(
        dict.fromkeys(shapes, tuple(choices)),
        PrefixQuality(variants, images, labels),
        MeasuredCost(shapes, seconds=seconds),
        method="exhaustive",
        evaluations=_MOST_PLANS,
    )


def best_within(
    found: SearchResult, base: float, margins: Sequence[float] = MARGINS
) -> dict[float, Point]:
    """Table 3.3: for each margin of error the fastest plan that loses less, where there is one."""
    best = {}
    for margin in margins:
        fitting = [point for point in found.pareto if point.quality > base - margin]
        if fitting:
            best[margin] = fitting[0]
    return best


def end_to_end(
    network: torch.nn.Module,
    x: Images,
    plans: Mapping[str, Mapping[str, Choice]],
    seconds: float,
    *,
    also: torch.nn.Module | None = None,
) -> Iterator[Case]:
    """The time of whole networks for one vector, in turns: PyTorch's, and ours without PyTorch.

    `plans` are ours, by name. One thread. PyTorch's are float32, and int8 by its dynamic
    quantisation; with `also`, another network that does the same, the faster of both.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        variants, vector = ModuleVariants(network), torch.from_numpy(x[:1])
        works: dict[object, Callable[[], object]] = {}
        for name, other in (("", network), ("also ", also)):
            if other is not None:
                works[f"{name}fp32"] = _inference(other, vector)
                works[f"{name}int8"] = _inference(torch_int8(other), vector)
        for name, plan in plans.items():
            works[name] = _without_torch(variants.model(plan), x[:1])
        times = interleaved(works, seconds)
        for name in ("fp32", "int8"):
            times[name] = min(times[name], times.pop(f"also {name}", times[name]))
    finally:
        torch.set_num_threads(before)
    for own_name, own in times.items():
        yield {
            "name": own_name,
            "microseconds": own * 1e6,
            "speedup_fp32": times["fp32"] / own,
            "speedup_int8": times["int8"] / own,
        }


def _without_torch(model: torch.nn.Module, x: Images) -> Callable[[], object]:
    layers = to_layers(model)
    for _, layer in named_layers(layers):
        if isinstance(layer, Linear) and isinstance(layer.matrix, BitSerialMatrix):
            layer.matrix.threads = 1
    return lambda: layers(x)


def torch_int8(network: torch.nn.Module) -> Any:  # noqa: ANN401 - a module
    """A copy with PyTorch's own int8: weights of 8 bits, activations quantised at each product."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it will move to a package of its own
        return torch.ao.quantization.quantize_dynamic(
            network, {torch.nn.Linear, torch.nn.LSTM, torch.nn.LSTMCell}, dtype=torch.qint8
        )


def _inference(network: Any, x: torch.Tensor) -> Callable[[], object]:  # noqa: ANN401
    def work() -> object:
        with torch.inference_mode():
            return network(x)

    return work


def lstm_speeds(
    model: torch.nn.Module,
    quality: Callable[[object], float],
    choices: Sequence[Bits],
    seconds: float,
    *,
    units: int,
) -> Iterator[Case]:
    """Figure 3.4 for a language model: its LSTM's time for one word, and what the model is worth.

    PyTorch's float32 and int8 first, then each pair of bits. Times are taken of an LSTM of `units`
    units, too, whose weights are random.
    """
    plans: dict[str, dict[str, Choice]] = {f"({w},{a})": {"lstm": (w, a)} for w, a in choices}
    larger = {
        case["name"]: {f"thesis_{field}": value for field, value in case.items()}
        for case in _lstm_times(torch.nn.LSTM(units, units), plans, seconds)
    }
    for case in _lstm_times(model.lstm, plans, seconds):
        name = str(case["name"])
        if name in plans:
            worth = quality(quantize(model, plans[name]))
        else:
            worth = quality(model if name == "fp32" else torch_int8(model))
        yield {**case, **larger[name], "quality": worth}


def _lstm_times(
    lstm: torch.nn.LSTM, plans: Mapping[str, Mapping[str, Choice]], seconds: float
) -> Iterator[Case]:
    """Those of one step; PyTorch's as an LSTM, or as a cell, which is mostly faster."""
    alone = torch.nn.Sequential(OrderedDict(lstm=lstm))
    cell = torch.nn.LSTMCell(lstm.input_size, lstm.hidden_size)
    cell.load_state_dict({name: getattr(lstm, f"{name}_l0") for name in cell.state_dict()})
    x = torch.randn(1, 1, lstm.input_size).numpy()
    step = torch.nn.Sequential(torch.nn.Flatten(0, 1), cell)
    return end_to_end(alone, x, plans, seconds, also=step)
