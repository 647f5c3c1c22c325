"""Bits for each layer: which plans are worth having, by quality and cost.

    found = search({"fc1": [(1, 8), (4, 8)], "fc2": [(1, 8), (4, 8)]}, quality, cost)
    found.pareto                      # no other plan is both as good and as cheap
    found.cheapest(least=0.97).plan

`quality` says what a plan is worth, larger is better; `cost` what one layer's bits cost, and a
plan costs what its layers cost together. All plans are tried where there are no more than
`evaluations`. Beyond, a greedy descent starts from the most bits and gives up, again and again,
those that lose the least quality for the cost that they save; what it tried is then the first
generation of an evolution (NSGA-II: Deb and others, 2002) until `evaluations` are spent. Everything
is determined by the seed. Source: thesis, section 3.5.3 (exhaustive).
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
from ._strategies import everything, evolution, greedy
from ._trials import Found, Point, Trials
from ._variants import LayerVariants, Shape, Variants

__all__ = ["Choice", "Found", "MeasuredCost", "Point", "Variants", "search", "search_model"]

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
) -> Found:
    """Tries plans over each layer's choices; `quality` is asked at most `evaluations` times.

    Raises ArgumentError without choices, for bits that cannot be, more plans than `evaluations` in
    an exhaustive search, a quality that is NaN, and a cost that is not a number of at least 0.
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
        trials.run(everything(trials))
    if method in ("auto", "greedy") and not trials.done:
        trials.run(greedy(trials))
    if method in ("auto", "evolutionary") and not trials.done:
        trials.run(evolution(trials, random.Random(seed)))  # noqa: S311 - no secrets
    return Found(list(trials.tried.values()))


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
    method: Method = "auto",
    evaluations: int = DEFAULT_EVALUATIONS,
    seed: int = 0,
) -> Found:
    """Searches bits for the layers of a model, of PyTorch modules or of NumPy layers.

    `quality` gets the quantised model. `layers` are names with wildcards; `floats` allows a layer
    to stay as it is. `cost` is measured on this machine by default. `Variants` of one's own may
    stand in the place of the model.

    Raises ArgumentError for names that fit nothing, and what `search` raises.
    """
    variants = variants_of(model, per_row=per_row)
    shapes = chosen_layers(variants, layers)
    kept: list[Choice] = [None] if floats else []
    activations = tuple(activation_bits)
    choices: list[Choice] = [(w, a) for w in weight_bits for a in activations]
    return search(
        dict.fromkeys(shapes, choices + kept),
        lambda plan: variants.quality(plan, quality),
        cost or MeasuredCost(shapes),
        method=method,
        evaluations=evaluations,
        seed=seed,
    )


def variants_of(model: object, *, per_row: bool = False) -> Variants:
    """The variants of a model. Raises ArgumentError if it is none."""
    if isinstance(model, Variants):
        return model
    if isinstance(model, Layer):
        return LayerVariants(model, per_row=per_row)
    try:
        from .torch._models import ModuleVariants  # noqa: PLC0415 - needs PyTorch
    except ModuleNotFoundError as error:
        raise ArgumentError(
            f"model: found {type(model).__name__}, expected a Layer (or a PyTorch module, but "
            "PyTorch is not installed)"
        ) from error
    return ModuleVariants(model, per_row=per_row)


def chosen_layers(variants: Variants, patterns: Iterable[str]) -> dict[str, list[Shape]]:
    """The layers that names with wildcards stand for. Raises ArgumentError if that is none."""
    shapes = variants.shapes
    chosen: set[str] = set()
    for pattern in patterns:
        fitting = {name for name in shapes if name == pattern or fnmatchcase(name, pattern)}
        if not fitting:
            known = listed(shapes) if shapes else "none in this model"
            raise ArgumentError(f"layers: found {shown(pattern)}, expected one or more of {known}")
        chosen |= fitting
    return {name: own for name, own in shapes.items() if name in chosen}
