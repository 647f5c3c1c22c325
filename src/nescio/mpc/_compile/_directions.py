"""Functions of one number that nowhere fall or nowhere rise: those may come after a maximum."""

from collections.abc import Sequence
from typing import Any

import torch

from ._values import Expression, Pointwise

RISING = frozenset(
    {
        *("relu", "relu6", "sigmoid", "tanh", "hardtanh", "hardsigmoid", "selu", "clamp", "atan"),
        *("clamp_min", "clamp_max", "log_sigmoid", "exp", "erf", "sqrt", "log", "floor", "ceil"),
        *("round", "sinh", "asinh", "expm1", "log1p"),
    }
)
"""Functions of their first argument that nowhere fall, whatever their options are."""

_AFFINE = {"add", "sub", "rsub", "neg", "mul", "div"}


def direction_of(target: Any, name: str, arguments: Sequence[Any], options: Any) -> int:  # noqa: ANN401
    """Returns 1 if an operator of one secret nowhere falls, -1 if it nowhere rises, else 0.

    Of an affine one, two values decide.
    """
    if name in ("maximum", "minimum"):
        return 1
    if not arguments or (name == "div" and not _is_secret(arguments[0])):
        return 0
    if name in _AFFINE and options.get("rounding_mode") is None:
        low, high = (
            float(target(*(_put(item, number) for item in arguments), **options))
            for number in (0.0, 1.0)
        )
        return (high > low) - (high < low)
    return int((name in RISING and _is_secret(arguments[0])) or _rises(name, arguments[1:]))


def _rises(name: str, numbers: Sequence[Any]) -> bool:
    """Tests functions whose parameters decide."""
    if name in ("leaky_relu", "prelu"):
        return all(float(number) >= 0 for number in numbers)
    if name == "softplus":
        beta = float(numbers[0]) if numbers else 1.0
        threshold = float(numbers[1]) if len(numbers) > 1 else 20.0
        return beta > 0 and threshold >= 20  # it falls by exp(-threshold) there
    return name in ("elu", "celu") and all(float(number) > 0 for number in numbers)


def _is_secret(item: object) -> bool:
    return isinstance(item, Expression | Pointwise)


def _put(item: Any, number: float) -> Any:  # noqa: ANN401
    """Returns a number in place of the secret, and one number for a constant."""
    if _is_secret(item):
        return torch.tensor(number, dtype=torch.float64)
    return item.reshape(()) if isinstance(item, torch.Tensor) else item
