"""The walk over a model's graph, from its input to its output."""

from collections.abc import Sequence
from typing import Any

import torch

from ...errors import ArgumentError
from .._maps import Shape
from ._call import Call
from ._checks import check_call
from ._endings import without_ending
from ._functions import FUNCTIONS, NUMERIC, function_of, numeric, secrets, substituted
from ._graph import Graph, Node, as_constant, graph_of, name_of, place_of
from ._layers import Layers, Model
from ._linear import mapped
from ._operators import OPERATORS
from ._refused import ATTENTION, ATTENTION_MODULES, RANDOM, REFUSED, UNKNOWN
from ._values import Expression, Pointwise, Value, natural_shape, plain

ALIASES = {
    *("alias", "clone", "contiguous", "detach", "lift_fresh_copy", "dropout", "feature_dropout"),
    *("alpha_dropout", "feature_alpha_dropout", "to", "_to_copy", "type_as", "native_dropout"),
}
_CHECKS = {"_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range"}
_KNOWN = OPERATORS.keys() | FUNCTIONS | NUMERIC | ALIASES | {"getitem"}


def read(model: torch.nn.Module, example: torch.Tensor, *, as_class: bool = False) -> Model:
    """Reads a model, as `read_model` says."""
    graph, is_class = without_ending(graph_of(model, example), as_class=as_class)
    _check_operators(graph)
    with torch.no_grad():
        return _Walk(graph, tuple(example.shape[1:])).model()._replace(is_class=is_class)


def _check_operators(graph: Graph) -> None:
    """Raises ArgumentError for operators on secrets that are refused by name."""
    secret = {graph.input}
    for node in graph.nodes:
        if node.op != "call_function" or not secret.intersection(node.all_input_nodes):
            continue
        secret.add(node)
        name = name_of(node)
        if name in REFUSED or (name not in _KNOWN and name not in _CHECKS):
            raise refused(node, name)


def refused(node: Node, name: str) -> ArgumentError:
    """Returns the error for an operator that has no private form."""
    found, remedy = REFUSED.get(name, UNKNOWN)
    modules = (node.meta.get("nn_module_stack") or {}).values()
    if any(str(kind).endswith(ATTENTION_MODULES) for _, kind in modules):
        found, remedy = ATTENTION
    return ArgumentError(
        f"{place_of(node)}: found {found} ({name}), expected convolutions, "
        f"linear layers, pooling and functions of one number; {remedy}"
    )


class _Walk:
    """The values of the nodes so far."""

    def __init__(self, graph: Graph, shape: Shape) -> None:
        natural = shape if len(shape) == 1 else natural_shape(shape)
        assert natural is not None
        self._graph, self._layers = graph, Layers(natural)
        self._values: dict[Node, Any] = {graph.input: plain(0, natural, shape)}

    def model(self) -> Model:
        """Returns the layers of the whole graph."""
        for node in self._graph.nodes:
            if node in self._values or node.op == "output":
                continue
            if node.op == "placeholder":
                self._values[node] = self._graph.constants.get(node.name)
                continue
            self._layers.at = place_of(node)
            self._values[node] = self._value(node)
        return self._finished(self._values[self._graph.output])

    def _finished(self, value: Any) -> Model:  # noqa: ANN401 - a constant is refused
        if not isinstance(value, Expression | Pointwise):
            raise ArgumentError(
                "model: found an output that does not depend on the input, expected one that does"
            )
        last = self._layers.layer(self._layers.expression(value))
        layers = self._layers
        return Model([*layers.layers, last], layers.shapes[0], tuple(value.shape), layers.notes)

    def _value(self, node: Node) -> Any:  # noqa: ANN401 - a constant, a value, or several
        arguments = substituted(node.args, self._known)
        options = substituted(node.kwargs, self._known)
        name = name_of(node)
        if name == "getitem":
            return arguments[0][arguments[1]]
        if name in _CHECKS:
            return None
        if not secrets([arguments, options]):
            return self._constant(node, arguments, options)
        return self._secret(node, name, arguments, options)

    def _known(self, item: Any) -> Any:  # noqa: ANN401
        return self._values[item] if isinstance(item, torch.fx.Node) else item

    def _constant(self, node: Node, arguments: Sequence[Any], options: Any) -> Any:  # noqa: ANN401
        """Computes an operator of constants."""
        tags = getattr(node.target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags:
            found, remedy = RANDOM
            raise self._layers.refusal(f"found {found}", "a model without them", remedy)
        own = {key: value for key, value in options.items() if key != "device"}
        found = node.target(*arguments, **own)
        if isinstance(found, list | tuple):
            return [as_constant(item) for item in found]
        return as_constant(found)

    def _secret(self, node: Node, name: str, arguments: Sequence[Any], options: Any) -> Any:  # noqa: ANN401
        """Computes an operator of secrets."""
        call = self._call(node, arguments, options)
        check_call(call, node, name)
        if name in ALIASES:
            return self._alias(node, name, call)
        if name == "prelu" and call["weight"].numel() > 1:
            return OPERATORS[name](call)
        if name in FUNCTIONS:
            return function_of(self._layers, node.target, name, arguments, options)
        if name in NUMERIC:
            own = [self._broadcast(item, call.shape) for item in arguments]
            alone = all(_is_alone(each) for each in node.all_input_nodes if self._is_open(each))
            return numeric(self._layers, node.target, name, own, options, alone=alone)
        found = OPERATORS[name](call)
        several = isinstance(node.meta["val"], list | tuple)
        return [found] if several and not isinstance(found, list) else found

    def _call(self, node: Node, arguments: Sequence[Any], options: Any) -> Call:  # noqa: ANN401
        """Names the arguments of an operator."""
        own = {}
        for number, argument in enumerate(node.target._schema.arguments):
            given = arguments[number] if number < len(arguments) else argument.default_value
            own[argument.name] = options.get(argument.name, given)
        shape = self._shape(node)
        inputs = node.all_input_nodes
        return Call(self._layers, own, shape, alone=bool(inputs) and _is_alone(inputs[0]))

    def _shape(self, node: Node) -> Shape:
        """Returns the shape of a result without the batch, which must be first."""
        value = node.meta["val"]
        first = value[0] if isinstance(value, list | tuple) else value
        shape = tuple(first.shape)
        if not all(type(size) is int for size in shape):
            raise self._layers.refusal(
                "found a shape that depends on values", "constants", "use fixed sizes"
            )
        if not shape or shape[0] != 1:
            raise Call(self._layers, {}, (), alone=False).batch()
        return shape[1:]

    def _alias(self, node: Node, name: str, call: Call) -> Value:
        """Returns the same value; one of truth values becomes one of floats."""
        found: Value = call.x
        value = node.meta["val"]
        if not value.is_floating_point():
            raise self._layers.refusal(
                f"found a conversion to {value.dtype} ({name})", "floats", "leave it out"
            )
        if call.get("train", False) or call.get("training", False):
            said, remedy = RANDOM
            raise self._layers.refusal(f"found {said}", "a model without them", remedy)
        if isinstance(found, Pointwise) and name in ("to", "_to_copy"):
            inner = found.function
            return Pointwise(found.base, lambda x: inner(x).double(), found.name, found.direction)
        return found

    def _is_open(self, node: Node) -> bool:
        """Tests for a function that no layer computes yet."""
        value = self._values[node]
        return isinstance(value, Pointwise) and value.closed is None

    def _broadcast(self, item: Any, shape: Shape) -> Any:  # noqa: ANN401
        """Repeats a secret that is smaller than a result."""
        if not isinstance(item, Expression | Pointwise) or tuple(item.shape) == shape:
            return item
        more = (1,) * (len(shape) - len(item.shape))

        def op(x: torch.Tensor) -> torch.Tensor:
            return x.reshape(len(x), *more, *x.shape[1:]).expand(len(x), *shape)

        return mapped(self._layers, item, op, shape)


def _is_alone(node: Node) -> bool:
    """Tests if a value has one user, and so had the values of which it is a copy."""
    while sum(name_of(user) not in _CHECKS for user in node.users) == 1:
        if node.op != "call_function" or name_of(node) not in ALIASES | {"view", "squeeze"}:
            return True
        node = node.all_input_nodes[0]
    return False
