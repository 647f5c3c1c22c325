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
_MAX_PLANS = 1 << 14

Bits = tuple[int, int]


class PrefixQuality:
    """The accuracy of a sequence of layers under any plan.

    The output of a layer depends only on the bits of the layers up to it, so outputs are kept for
    plans with the same first layers. With plans in lexical order, most products are of the last
    layer.
    """

    def __init__(self, variants: ModuleVariants, images: Images, labels: Labels) -> None:
        self._variants = variants
        self._labels = labels
        self._kept: list[tuple[Choice, torch.Tensor]] = []
        self._images = torch.from_numpy(images)

    def __call__(self, plan: Mapping[str, Choice]) -> float:
        """Returns the fraction of images that are classified correctly."""
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
    """Searches all plans; returns the quality of each and the time of its products."""
    variants = ModuleVariants(network)
    shapes = variants.shapes
    # An exhaustive search visits the choices in lexical order, by cost.
    return search(
        dict.fromkeys(shapes, tuple(choices)),
        PrefixQuality(variants, images, labels),
        MeasuredCost(shapes, seconds=seconds),
        method="exhaustive",
        evaluations=_MAX_PLANS,
    )


def best_within(
    found: SearchResult, base: float, margins: Sequence[float] = MARGINS
) -> dict[float, Point]:
    """Returns Table 3.3: the fastest plan within each margin of error, where one exists."""
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
    """Yields the times of whole networks for one vector, timed in turns.

    `plans` are those of our networks, by name, which run without PyTorch. All use one thread.
    PyTorch's are float32 and int8 by dynamic quantization. With `also`, another network that
    computes the same, the faster of the two counts.
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
    """Returns a copy with PyTorch's dynamic int8 quantization."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of its move to another package
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
    """Yields Figure 3.4 for a language model: its LSTM's time per word, and its quality.

    PyTorch's float32 and int8 come first, then each pair of bits. Times are also taken of an LSTM
    of `units` units with random weights.
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
    """Yields the times of one step; PyTorch's is the faster of an LSTM and a cell."""
    alone = torch.nn.Sequential(OrderedDict(lstm=lstm))
    cell = torch.nn.LSTMCell(lstm.input_size, lstm.hidden_size)
    cell.load_state_dict({name: getattr(lstm, f"{name}_l0") for name in cell.state_dict()})
    x = torch.randn(1, 1, lstm.input_size).numpy()
    step = torch.nn.Sequential(torch.nn.Flatten(0, 1), cell)
    return end_to_end(alone, x, plans, seconds, also=step)
