"""Models as plans: calibration, the widths of tables, and a report before anything runs."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..._arrays import Array, as_count, shown
from ...errors import ArgumentError
from .._classes import Classes, check_count, layer_names
from .._maps import Floats
from .._tables import MAX_BITS, MIN_BITS
from .costs import LayerCost, costs, table_bytes
from .floats import FloatLayer, run, windows_of
from .plan import Plan, Shapes
from .quantize import Quantized, quantize
from .report import LayerReport, Report

if TYPE_CHECKING:
    import torch

_MAX_CALIBRATION = 1024
_MAX_HELD = 256
_SEARCH_INPUTS = 32
_SEARCH_BITS = 8  # of all layers but one, which has 2 fewer
_AT_ONCE = 32

Outputs = Literal["logits", "class"]


class _Data(NamedTuple):
    """Inputs for the windows, inputs that are held out for the report, and their labels."""

    fit: Floats
    held: Floats
    labels: Array | None


def compile(  # noqa: A001 - the field's word
    model: "torch.nn.Module",
    example: "torch.Tensor",
    *,
    calibration: Iterable[Any],
    table_bits: int | Sequence[int] | None = None,
    offline_bytes: int | None = None,
    margin: float = 0.25,
    weight_bits: int = 11,
    outputs: Outputs = "logits",
) -> Plan:
    """Turns a PyTorch model into a plan of two parties. The model is not changed.

    `example` is one input (1, *shape); the plan takes and gives arrays of the model's shapes.
    `calibration` has inputs, or pairs of inputs and labels, in
    batches: a DataLoader, a list, or one tensor. Up to 1,024 inputs are used. Three quarters of
    them decide the windows of the tables, which get `margin` more on both sides; the others are
    held out for `plan.report`. Tables have 2^`table_bits` entries (default 8; or a number for each
    layer with a function). With `offline_bytes` instead, the widths are chosen for the least error
    within so many bytes of the offline phase. Weights have up to `weight_bits` bits and a sign.

    With `outputs="class"` the client learns the class, the place of the largest output (n, C), and
    no output. So it does if the model ends with torch.argmax(..., dim=1) or max(dim=1).indices.

    Raises ArgumentError for a model with an operation that is not supported: the error names it and
    its line. Also raised for calibration without inputs, of another shape, or with numbers that are
    not finite, and for classes of outputs of another shape than (n, C).
    """
    from .._compile import read_model  # noqa: PLC0415 - needs PyTorch

    if outputs not in ("logits", "class"):
        raise ArgumentError(f"outputs: found {shown(outputs)}, expected 'logits' or 'class'")
    found = read_model(model, example, as_class=outputs == "class")
    if found.is_class:
        check_count(found.outputs)
    data = _gathered(calibration, tuple(example.shape[1:]))
    return plan_of(
        found.layers,
        data.fit.reshape(-1, *found.inputs),
        held=data.held.reshape(-1, *found.inputs),
        labels=data.labels,
        notes=tuple(found.notes),
        table_bits=table_bits,
        offline_bytes=offline_bytes,
        margin=margin,
        weight_bits=weight_bits,
        shapes=Shapes(tuple(example.shape[1:]), () if found.is_class else found.outputs),
        as_class=found.is_class,
    )


def plan_of(
    layers: Sequence[FloatLayer],
    fit: Floats,
    *,
    held: Floats,
    labels: Array | None = None,
    notes: tuple[str, ...] = (),
    table_bits: int | Sequence[int] | None = None,
    offline_bytes: int | None = None,
    shapes: Shapes | None = None,
    **options: Any,  # noqa: ANN401 - those of quantize
) -> Plan:
    """Returns the plan of layers of floats: `compile` without PyTorch."""
    if table_bits is not None and offline_bytes is not None:
        raise ArgumentError("found table_bits and offline_bytes, expected one of them")
    widths = _widths(8 if table_bits is None else table_bits, len(layers) - 1)
    options["windows"] = windows_of(layers, fit)
    if offline_bytes is not None:
        widths = _searched(layers, fit, offline_bytes, options)
    quantized = quantize(layers, fit, bits=widths, **options)
    return Plan(quantized, _report(layers, quantized, held, labels, notes), shapes)


def _widths(table_bits: Any, count: int) -> list[int]:  # noqa: ANN401 - anything a caller has
    """Returns the width of each layer's tables. Raises ArgumentError."""
    if not isinstance(table_bits, list | tuple | np.ndarray):
        table_bits = [table_bits] * count
    if len(table_bits) != count:
        raise ArgumentError(
            f"table_bits: found {len(table_bits)} numbers, expected one, or {count}: one for each "
            "layer with a function"
        )
    return [as_count(one, "table_bits", MIN_BITS, MAX_BITS) for one in table_bits]


# ---- calibration ---------------------------------------------------------------------------------


def _gathered(calibration: Iterable[Any], shape: tuple[int, ...]) -> _Data:
    """Takes inputs and labels from batches; inputs that are held out are spread over all."""
    inputs, labels, count = [], [], 0
    for batch in _batches(calibration):
        pair = batch if isinstance(batch, list | tuple) and len(batch) else (batch,)
        values = _array(pair[0], "inputs").astype(np.float64)
        if values.shape[1:] != shape or not values.ndim:
            raise ArgumentError(
                f"calibration: found a batch of shape {values.shape}, expected {('n', *shape)} as "
                "in the example"
            )
        inputs.append(values)
        if len(pair) > 1:
            labels.append(_labels(pair[1], len(values)))
        count += len(values)
        if count >= _MAX_CALIBRATION:
            break
    if count < 2:
        raise ArgumentError(f"calibration: found {count} inputs, expected 2 or more; 100s are good")
    if labels and len(labels) != len(inputs):
        raise ArgumentError("calibration: found labels with some batches, expected all or none")
    whole = np.concatenate(inputs)[:_MAX_CALIBRATION]
    if not np.isfinite(whole).all():
        raise ArgumentError("calibration: found numbers that are not finite; expected finite ones")
    known = np.concatenate(labels)[: len(whole)] if labels else None
    held = np.zeros(len(whole), np.bool_)
    most = min(_MAX_HELD, -(-len(whole) // 4))
    held[(np.arange(most) * 2 + 1) * len(whole) // (2 * most)] = True
    return _Data(whole[~held], whole[held], None if known is None else known[held])


def _batches(calibration: Any) -> Iterable[Any]:  # noqa: ANN401 - anything a caller has
    """Returns the batches: one tensor is one batch. Raises ArgumentError."""
    if hasattr(calibration, "shape"):
        return [calibration]
    if isinstance(calibration, str | bytes | dict) or not hasattr(calibration, "__iter__"):
        raise ArgumentError(
            f"calibration: found {type(calibration).__name__}, expected a tensor, or batches of "
            "inputs, or of (inputs, labels), such as a DataLoader"
        )
    batches: Iterable[Any] = calibration
    return batches


def _labels(labels: Any, count: int) -> Array:  # noqa: ANN401 - a tensor, or what NumPy takes
    """Returns the classes of a batch's inputs. Raises ArgumentError."""
    found = _array(labels, "labels")
    if found.shape not in ((count,), (count, 1)) or found.dtype.kind not in "biuf":
        raise ArgumentError(
            f"calibration: found labels of shape {found.shape} for {count} inputs, expected "
            f"{(count,)}: the number of a class for each"
        )
    return found.reshape(-1)


def _array(values: Any, what: str) -> Array:  # noqa: ANN401 - a tensor, or what NumPy takes
    """Returns an array of real numbers. Raises ArgumentError."""
    try:
        if hasattr(values, "detach"):
            values = values.detach().cpu()
            values = values.double().numpy() if values.is_floating_point() else values.numpy()
        found = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):
        found = np.asarray(None)
    if found.dtype.kind not in "biuf":
        raise ArgumentError(
            f"calibration: found {what} of {type(values).__name__}, expected a tensor or an array "
            "of real numbers; batches are inputs, or pairs of inputs and labels"
        )
    return found


# ---- widths of tables ----------------------------------------------------------------------------


def _searched(
    layers: Sequence[FloatLayer], fit: Floats, budget: int, options: dict[str, Any]
) -> list[int]:
    """Chooses widths: bits go where they lower the error most for their bytes.

    The error of a layer is that of the outputs if this layer alone has 2 bits fewer; each bit more
    divides it by 4, as a rounding error does.
    """
    as_count(budget, "offline_bytes", 1, 1 << 50)
    widths = [MIN_BITS] * (len(layers) - 1)
    rows = _rows(layers, fit, widths, options)
    least = sum(row.offline_bytes for row in rows)
    if least > budget:
        raise ArgumentError(
            f"offline_bytes: found {budget:,}, expected at least {least:,}, for tables of "
            f"2^{MIN_BITS} entries"
        )
    errors = _sensitivities(layers, fit, options)
    counts = [row.lookups for row in rows[: len(widths)]]
    order = _upgrades(errors, counts, budget - least)
    for layer in order:
        widths[layer] += 1
    while sum(row.offline_bytes for row in _rows(layers, fit, widths, options)) > budget:
        widths[order.pop()] -= 1
    return widths


def _rows(
    layers: Sequence[FloatLayer], fit: Floats, widths: list[int], options: dict[str, Any]
) -> list[LayerCost]:
    return costs(quantize(layers, fit, bits=widths, **options).network.public)


def _upgrades(errors: Sequence[float], counts: Sequence[int], left: float) -> list[int]:
    """Returns the layers that get a bit more, one after the other, within so many bytes."""
    widths, order = [MIN_BITS] * len(errors), list[int]()
    while True:
        steps = [
            (errors[k] * 4.0 ** -widths[k] / more, k, more)
            for k in range(len(widths))
            if widths[k] < MAX_BITS and (more := counts[k] * _more(widths[k])) <= left
        ]
        if not steps:
            return order
        _, best, more = max(steps)
        widths[best] += 1
        order.append(best)
        left -= more


def _more(bits: int) -> float:
    """Returns the bytes that one more bit costs a table, with the wider linear results."""
    return table_bytes(bits + 1, bits + 1) - table_bytes(bits, bits) + 0.25


def _sensitivities(
    layers: Sequence[FloatLayer], fit: Floats, options: dict[str, Any]
) -> list[float]:
    """Returns the mean squared error of the outputs for each layer with fewer bits."""
    inputs, options = fit[:_SEARCH_INPUTS], {**options, "as_class": False}
    *_, expected = run(layers, inputs)
    found = []
    for number in range(len(layers) - 1):
        widths = [_SEARCH_BITS] * (len(layers) - 1)
        widths[number] -= 2
        quantized = quantize(layers, fit, bits=widths, **options)
        found.append(float(np.square(_outputs(quantized, inputs)[0] - expected).mean()))
    base = quantize(layers, fit, bits=_SEARCH_BITS, **options)
    least = float(np.square(_outputs(base, inputs)[0] - expected).mean())
    return [max(error - least, least / 100) for error in found]


# ---- the report ----------------------------------------------------------------------------------


def _report(
    layers: Sequence[FloatLayer],
    quantized: Quantized,
    held: Floats,
    labels: Array | None,
    notes: tuple[str, ...],
) -> Report:
    *_, expected = run(layers, held)
    outputs, wraps = _outputs(quantized, held)
    classes, own = (_largest(values) for values in (expected, outputs))
    if expected[0].size == 1:
        labels = None  # there is no largest one of one output
    error = None
    if quantized.classes is None:
        error = float(np.abs(outputs - expected).mean()) / (float(expected.std()) or 1.0)
    return Report(
        inputs=len(held),
        agreement=None if expected[0].size == 1 else float((classes == own).mean()),
        accuracy=None if labels is None else float((own == labels).mean()),
        float_accuracy=None if labels is None else float((classes == labels).mean()),
        error=error,
        rounds=len(quantized.network.layers),
        layers=tuple(_layer_reports(layers, quantized, wraps)),
        notes=notes,
    )


def _largest(outputs: Floats | Classes) -> Array:
    """Returns the place of the largest output of each input; classes are those places."""
    return outputs if outputs.ndim == 1 else outputs.reshape(len(outputs), -1).argmax(1)


def _outputs(quantized: Quantized, inputs: Floats) -> tuple[Floats | Classes, list[int]]:
    """Simulates inputs; returns outputs, and the wrong lookups of each layer."""
    found, wraps = list[Array](), [0] * (len(quantized.network.layers) - 1)
    for first in range(0, len(inputs), _AT_ONCE):
        part = quantized.network.simulate(quantized.encode(inputs[first : first + _AT_ONCE]))
        found.append(quantized.decode(part.outputs))
        wraps = [one + more for one, more in zip(wraps, part.wraps, strict=True)]
    return np.concatenate(found), wraps


def _layer_reports(
    layers: Sequence[FloatLayer], quantized: Quantized, wraps: list[int]
) -> Iterable[LayerReport]:
    rows = costs(quantized.network.public)
    names = [layer.function.name for layer in layers[:-1]]
    if quantized.classes is not None:
        names += layer_names(quantized.classes)
    own = zip(quantized.network.layers, [*names, "-"], rows, [*wraps, 0], strict=True)
    for layer, name, row, wrapped in own:
        yield LayerReport(
            row.layer,
            name,
            layer.outputs,
            row.lookups,
            row.table_bits,
            row.online_bytes,
            row.table_bytes,
            row.linear_bytes,
            wrapped,
            row.weight_bytes,
        )
