"""Search of bits for each layer: the Pareto front of plans by quality and cost.

    found = search_model(model, quality)     # quality(model) is a number, larger is better
    found = search({"fc1": [(1, 8), (4, 8)], "fc2": [(1, 8), (4, 8)]}, quality, cost)
    found.pareto                             # plans that no other plan dominates
    found.cheapest(least=0.97).plan

`quality` rates a plan, larger is better. `cost` rates the bits of one layer; the cost of a plan is
the sum over its layers. If there are at most `evaluations` plans, all are evaluated. Otherwise a
greedy descent starts from the most bits and repeatedly makes the reduction that loses the least
quality per saved cost. The plans it evaluated are the first generation of an evolutionary search
(NSGA-II: Deb and others, 2002), which runs until `evaluations` are used up. The seed determines the
result. Source: thesis, section 3.5.3 (exhaustive).
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal, get_args

from .._arrays import as_count, shown
from ..errors import ArgumentError
from ._activations import ACTIVATION_BITS
from ._cost import Cost, MeasuredCost
from ._layers import Layer, listed
from ._plan import Choice
from ._strategies import evolution, exhaustive, greedy
from ._trials import Point, SearchResult, Trials
from ._variants import LayerVariants, Shape, Variants

__all__ = ["Choice", "MeasuredCost", "Point", "SearchResult", "Variants", "search", "search_model"]

Method = Literal["auto", "exhaustive", "greedy", "evolutionary"]
METHODS: tuple[Method, ...] = get_args(Method)

WEIGHT_BITS = (1, 2, 4, 8)
DEFAULT_EVALUATIONS = 400
MAX_EVALUATIONS = 1 << 20


def search(
    choices: Mapping[str, Sequence[Choice]],
    quality: Callable[[dict[str, Choice]], float],
    cost: Callable[[str, Choice], float],
    *,
    method: Method = "auto",
    evaluations: int = DEFAULT_EVALUATIONS,
    seed: int = 0,
) -> SearchResult:
    """Evaluates plans over each layer's choices; calls `quality` at most `evaluations` times.

    Raises ArgumentError for empty choices, unsupported bits, an exhaustive search of more than
    `evaluations` plans, a quality of NaN, and a cost that is not a number of at least 0.
    """
    if method not in METHODS:
        raise ArgumentError(f"method: found {shown(method)}, expected one of {', '.join(METHODS)}")
    evaluations = as_count(evaluations, "evaluations", 1, MAX_EVALUATIONS)
    trials = Trials(choices, quality, cost, evaluations)
    if method == "exhaustive" and trials.plans > evaluations:
        raise ArgumentError(
            f"evaluations: found {evaluations}, expected {trials.plans} for an exhaustive search"
        )
    if method == "exhaustive" or (method != "greedy" and trials.plans <= evaluations):
        trials.run(exhaustive(trials))
    if method in ("auto", "greedy") and not trials.done:
        trials.run(greedy(trials))
    if method in ("auto", "evolutionary") and not trials.done:
        trials.run(evolution(trials, random.Random(seed)))  # noqa: S311 - no secrets
    return SearchResult(list(trials.tried.values()))


def search_model(
    model: object,
    quality: Callable[[object], float],
    *,
    layers: Iterable[str] = ("*",),
    weight_bits: Iterable[int] = WEIGHT_BITS,
    activation_bits: Iterable[int] = ACTIVATION_BITS,
    floats: bool = False,
    cost: Cost | None = None,
    per_row: bool = False,
    group: int = 0,
    method: Method = "auto",
    evaluations: int = DEFAULT_EVALUATIONS,
    seed: int = 0,
) -> SearchResult:
    """Searches bits for the layers of a model of PyTorch modules or NumPy layers.

    `quality` is called with the quantized model. `layers` are layer names, with wildcards. With
    `floats`, layers may also stay in float32. The default `cost` is the time measured on this
    machine. `model` may also be an instance of `Variants`.

    Raises ArgumentError for a name that matches no layer, and what `search` raises.
    """
    variants = model_variants(model, per_row=per_row, group=group)
    shapes = matching_layers(variants, layers)
    unquantized: list[Choice] = [None] if floats else []
    activations = tuple(activation_bits)
    choices: list[Choice] = [(w, a) for w in weight_bits for a in activations]
    return search(
        dict.fromkeys(shapes, choices + unquantized),
        lambda plan: variants.quality(plan, quality),
        cost or MeasuredCost(shapes, group=group),
        method=method,
        evaluations=evaluations,
        seed=seed,
    )


def model_variants(model: object, *, per_row: bool = False, group: int = 0) -> Variants:
    """Returns the variants of a model. Raises ArgumentError if it is not a model."""
    if isinstance(model, Variants):
        return model
    if isinstance(model, Layer):
        return LayerVariants(model, per_row=per_row, group=group)
    try:
        from .torch._models import ModuleVariants  # noqa: PLC0415 - needs PyTorch
    except ModuleNotFoundError as error:
        raise ArgumentError(
            f"model: found {type(model).__name__}, expected a Layer (or a PyTorch module, but "
            "PyTorch is not installed)"
        ) from error
    return ModuleVariants(model, per_row=per_row, group=group)


def matching_layers(variants: Variants, patterns: Iterable[str]) -> dict[str, list[Shape]]:
    """Returns the layers that match the patterns. Raises ArgumentError if one matches no layer."""
    shapes = variants.shapes
    chosen: set[str] = set()
    for pattern in patterns:
        matches = {name for name in shapes if name == pattern or fnmatchcase(name, pattern)}
        if not matches:
            known = f"one or more of {listed(shapes)}" if shapes else "a model with such layers"
            raise ArgumentError(f"layers: found {shown(pattern)}, expected {known}")
        chosen |= matches
    return {name: own for name, own in shapes.items() if name in chosen}
