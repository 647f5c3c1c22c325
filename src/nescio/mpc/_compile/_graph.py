"""The graph of a model by torch.export, and the place in the model's source of each operator."""

import io
import logging
import re
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ..._arrays import shown
from ...errors import ArgumentError

Node = Any  # torch.fx.Node, which is Any without PyTorch's types

_FRAME = re.compile(r'File "(?P<file>.*)", line (?P<line>\d+), in .*\n\s*(?P<code>.*)')
_TORCH = str(Path(torch.__file__).parent)
_HERE = str(Path(__file__).parent)


class Graph(NamedTuple):
    """The operators in their order, the constants by placeholder, the input and the output."""

    nodes: list[Node]
    constants: dict[str, torch.Tensor]
    input: Node
    output: Node


def graph_of(model: torch.nn.Module, example: torch.Tensor) -> Graph:
    """Exports a model in evaluation mode. Raises ArgumentError."""
    _check(model, example)
    program = _exported(model, example)
    constants = _constants(program)
    inputs = set(program.graph_signature.user_inputs)
    outputs = [
        spec.arg
        for spec in program.graph_signature.output_specs
        if spec.kind is torch.export.graph_signature.OutputKind.USER_OUTPUT
    ]
    nodes = list(program.graph.nodes)
    names = {node.name: node for node in nodes}
    tensors = [names[own.name] for own in outputs if getattr(own, "name", None) in names]
    if len(outputs) != 1 or len(tensors) != 1:
        raise ArgumentError(
            f"model: found {len(outputs)} outputs, expected one tensor; wrap it in a module that "
            "returns one of them"
        )
    secret = next(node for node in nodes if node.op == "placeholder" and node.name in inputs)
    return Graph(nodes, constants, secret, tensors[0])


def _check(model: torch.nn.Module, example: torch.Tensor) -> None:
    """Raises ArgumentError for what no module and no example is."""
    if not isinstance(model, torch.nn.Module):
        raise ArgumentError(f"model: found {type(model).__name__}, expected a torch.nn.Module")
    expected = "expected one tensor of floats of shape (1, ...), one input of the model"
    if not isinstance(example, torch.Tensor):
        raise ArgumentError(f"example: found {shown(type(example).__name__)}, {expected}")
    found = f"{example.dtype} of shape {tuple(example.shape)}"
    fits = 2 <= example.ndim <= 4 and example.shape[0] == 1 and example.numel()
    if not fits or not example.is_floating_point():
        raise ArgumentError(f"example: found {found}, {expected} with 1 to 3 lengths after the 1")


def _exported(model: torch.nn.Module, example: torch.Tensor) -> Any:  # noqa: ANN401
    """Returns the exported program without operators that change their arguments."""
    with _evaluating(model), _quiet(), torch.no_grad():
        try:
            return torch.export.export(model, (example,)).run_decompositions({})
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ArgumentError(
                f"model{_line_of(error)}: torch.export found: {lines[0].strip().rstrip('.')}; "
                "expected a model whose steps and shapes do not depend on the values of its input"
            ) from error


def _line_of(error: Exception) -> str:
    """Returns the model's line that an exception of torch.export comes from, after a comma."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith((_TORCH, _HERE, "<"))]
    if not own:
        return ""
    return f", {Path(own[-1].filename).name}, line {own[-1].lineno}: {own[-1].line}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps what torch.export prints and logs about a model that it refuses: the error says it."""
    log = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


@contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Puts a model in evaluation mode, and restores the modes of its modules."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _constants(program: Any) -> dict[str, torch.Tensor]:  # noqa: ANN401
    """Returns weights and buffers by placeholder, floats in float64. Raises ArgumentError."""
    signature = program.graph_signature
    names = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    found = {}
    for placeholder, name in names.items():
        tensors = program.state_dict if name in program.state_dict else program.constants
        found[placeholder] = as_constant(tensors[name].detach().cpu())
        if not torch.isfinite(found[placeholder]).all():
            raise ArgumentError(
                f"model: found NaN or infinity in {name!r}, expected finite weights; load a "
                "checkpoint without them"
            )
    return found


def as_constant(item: Any) -> Any:  # noqa: ANN401
    """Returns a tensor of floats in float64, and everything else as it is."""
    if isinstance(item, torch.Tensor) and item.is_floating_point():
        return item.double()
    return item


def name_of(node: Node) -> str:
    """Returns an operator's name without its overload."""
    target = node.target
    packet = getattr(target, "overloadpacket", target)
    return str(getattr(packet, "__name__", packet))


def place_of(node: Node) -> str:
    """Says where in the model an operator comes from: the module, the file and the line."""
    frames = list(_FRAME.finditer(node.meta.get("stack_trace") or ""))
    own = [frame for frame in frames if not frame["file"].startswith(_TORCH)]
    parts = []
    modules = list((node.meta.get("nn_module_stack") or {}).values())
    if modules:
        path, kind = modules[-1]
        kind = kind if isinstance(kind, str) else kind.__name__
        parts.append(f"{path or 'the model'} ({kind.rpartition('.')[2]})")
    if own:
        last = own[-1]
        parts.append(f"{Path(last['file']).name}, line {last['line']}: {last['code'].strip()}")
    return ", ".join(parts) or "the model"
