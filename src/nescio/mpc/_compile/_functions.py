"""Functions of one number: which operators are, and how they are joined to one function."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from ._directions import RISING, direction_of
from ._layers import Layers
from ._linear import added, multiplied, shifted
from ._values import Expression, Op, Pointwise, Value

_OTHERS = {
    *("leaky_relu", "softplus", "elu", "celu", "prelu", "floor_divide", "remainder", "fmod"),
    *("abs", "gelu", "silu", "hardswish", "mish", "square", "pow", "sin", "cos", "rsqrt", "sign"),
    *("reciprocal", "cosh", "hardshrink", "softshrink", "threshold", "where", "gt", "ge", "lt"),
    *("le", "eq", "ne", "trunc", "frac", "exp2", "log2", "log10", "tan", "erfc", "logical_not"),
    *("logical_and", "logical_or", "bitwise_and", "bitwise_or", "bitwise_not"),
}
FUNCTIONS = frozenset(RISING | _OTHERS)
NUMERIC = frozenset({"add", "sub", "rsub", "mul", "div", "neg", "maximum", "minimum"})
"""Linear with constants, and functions of one number if both sides are of the same number."""


def substituted(arguments: Any, known: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - of a graph
    """Returns arguments with every item mapped, also within lists."""
    if isinstance(arguments, list | tuple):
        return [substituted(item, known) for item in arguments]
    if isinstance(arguments, dict):
        return {name: substituted(item, known) for name, item in arguments.items()}
    return known(arguments)


def secrets(arguments: Any) -> list[Value]:  # noqa: ANN401
    """Returns the secret values among arguments."""
    found: list[Value] = []

    def look(item: Any) -> None:  # noqa: ANN401
        if isinstance(item, Expression | Pointwise):
            found.append(item)

    substituted(arguments, look)
    return found


def is_one_number(item: object) -> bool:
    """Tests a constant."""
    return not isinstance(item, torch.Tensor) or item.numel() == 1


def joined(target: Any, name: str, arguments: Sequence[Any], options: Any) -> Pointwise | None:  # noqa: ANN401
    """Returns an operator as a function of one number, if all secrets are functions of it."""
    bases = [dict(_bases(value)) for value in secrets([arguments, options])]
    common = next((base for base in bases[0] if all(base in other for other in bases)), None)
    constants: list[Tensor] = []
    substituted([arguments, options], lambda x: constants.append(x) if _is_tensor(x) else None)
    if common is None or not all(map(is_one_number, constants)):
        return None

    def function(numbers: Tensor) -> Tensor:
        def known(item: Any) -> Any:  # noqa: ANN401
            if isinstance(item, Expression | Pointwise):
                return dict(_bases(item))[common](numbers)
            return item.reshape(()) if _is_tensor(item) else item

        found: Tensor = target(*substituted(arguments, known), **substituted(options, known))
        return found

    own = secrets([arguments, options])
    names = [value.name for value in own if isinstance(value, Pointwise)]
    label = " then ".join([*sorted(names, key=len)[-1:], name])
    direction = 0
    if len(own) == 1:
        inner = own[0].direction if isinstance(own[0], Pointwise) else 1
        direction = inner * direction_of(target, name, arguments, options)
    return Pointwise(common, function, label, direction)


def _is_tensor(item: object) -> bool:
    return isinstance(item, torch.Tensor)


def _bases(value: Value) -> Iterator[tuple[Expression, Op]]:
    """Yields the expressions of which a value is a function of each number, nearest first."""
    function: Op
    if isinstance(value, Pointwise):
        base, function = value.base, value.function
    else:
        base, function = value, lambda x: x
    yield base, function
    while base.root is not None:
        outer, inner = function, base.root.function
        function = _chain(inner, outer)
        base = base.root.base
        yield base, function


def _chain(inner: Op, outer: Op) -> Op:
    return lambda x: outer(inner(x))


def function_of(
    layers: Layers,
    target: Any,  # noqa: ANN401
    name: str,
    arguments: Sequence[Any],
    options: Any,  # noqa: ANN401
) -> Pointwise:
    """Applies a function of one number. Raises ArgumentError for any other operation."""
    found = joined(target, name, arguments, options)
    if found is None:
        raise layers.refusal(
            f"found {name} of several secret numbers, or with constants that are not one number",
            "functions of one number",
            "write it with maximum, sums and functions of one number",
        )
    return found


def numeric(
    layers: Layers,
    target: Any,  # noqa: ANN401
    name: str,
    arguments: Sequence[Any],
    options: Any,  # noqa: ANN401
    *,
    alone: bool,
) -> Value:
    """Adds, multiplies or divides: as a function of one number, or as a linear map.

    A sum or a multiple of a function is a function too, if it `alone` uses the other one.
    """
    own = secrets(arguments)
    constants = [item for item in arguments if not isinstance(item, Expression | Pointwise)]
    is_open = alone and any(isinstance(value, Pointwise) and value.closed is None for value in own)
    is_linear = name in ("add", "sub", "rsub", "neg") or (
        len(own) == 1 and (name == "mul" or (name == "div" and own[0] is arguments[0]))
    )
    is_linear &= options.get("rounding_mode") is None
    found = None
    if is_open or not is_linear:
        found = joined(target, name, arguments, options)
    if found is not None:
        return found
    if name in ("maximum", "minimum"):
        return _extreme(layers, arguments, name)
    if not is_linear:
        raise _product(layers, name, options)
    result = _linear(layers, name, arguments, options)
    if len(own) == 1 and all(map(is_one_number, constants)) and isinstance(own[0], Expression):
        result.root = joined(target, name, arguments, options)
    return result


def _product(layers: Layers, name: str, options: Any) -> Exception:  # noqa: ANN401
    verb = "division by a secret" if name == "div" else "product of two secrets"
    if options.get("rounding_mode") is not None:
        verb = "rounded quotient of several secrets, or by several numbers"
    return layers.refusal(
        f"found a {verb} ({name})",
        "products with constants, and functions of one number",
        "replace attention, gates and squeeze-and-excitation by layers without such products",
    )


def _linear(
    layers: Layers,
    name: str,
    arguments: Sequence[Any],
    options: Any,  # noqa: ANN401
) -> Expression:
    """Computes an operator that is linear in its secrets."""
    rest = {key: value for key, value in options.items() if value is not None}
    factor = float(rest.pop("alpha", 1))
    if rest:
        raise layers.refusal(
            f"found {name} with the options {', '.join(rest)}", "none but alpha", "leave them out"
        )
    if name == "neg":
        return multiplied(layers, arguments[0], _tensor(-1.0))
    first, second = arguments[:2]
    if len(arguments) > 2:
        factor = float(arguments[2])
    if name in ("mul", "div"):
        if not isinstance(first, Expression | Pointwise):
            first, second = second, first
        factors = _tensor(second)
        return multiplied(layers, first, 1 / factors if name == "div" else factors)
    if name == "rsub":
        first, second = second, first
    factor = factor if name == "add" else -factor
    return _sum(layers, first, second, factor)


def _sum(layers: Layers, first: Any, second: Any, factor: float) -> Expression:  # noqa: ANN401
    """Returns first + factor * second, one of which may be a constant."""
    if not isinstance(second, Expression | Pointwise):
        return shifted(layers.expression(first), factor * _tensor(second))
    if not isinstance(first, Expression | Pointwise):
        own = layers.expression(second)
        if factor != 1.0:
            own = multiplied(layers, own, _tensor(factor))
        return shifted(own, _tensor(first))
    return added(layers, first, second, factor)


def _tensor(item: Any) -> Tensor:  # noqa: ANN401
    return torch.as_tensor(item, dtype=torch.float64)


def _extreme(layers: Layers, arguments: Sequence[Any], name: str) -> Expression:
    """Returns the larger or smaller one: b + relu(a - b), a - relu(a - b)."""
    first, second = arguments
    over = relu(_sum(layers, first, second, -1.0))
    if name == "maximum":
        return _sum(layers, over, second, 1.0)
    return _sum(layers, first, over, -1.0)


def relu(expression: Expression) -> Pointwise:
    """Returns relu of an expression."""
    return Pointwise(expression, torch.relu, "relu", direction=1)
