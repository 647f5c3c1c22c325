"""Plans: a model as a network of integers, with the scales of its inputs and outputs.

The server has the Plan, the client its `public` part. A plan is stored as a safetensors file: the
weights, and as metadata the public part and the report.
"""

import json
import math
import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Array, as_count, shown
from ..._disk import replacing
from ...errors import ArgumentError, FileError, MalformedMessageError
from .._classes import MAX_CLASSES, Classes
from .._maps import Convolution, Dense, Floats, Map, Ring, Shape
from .._network import Layer, Network, Term
from .._public import MAX_BYTES, PublicLayer, PublicNetwork, PublicTerm
from .quantize import INPUT_MAX, Quantized, Scaled
from .report import Report

_KEY = "nescio.mpc"
_VERSION = 2
_NAMES = {
    *("version", "network", "classes", "largest", "input_scale", "output_scale", "inputs"),
    "outputs",
}
_MAX_LENGTHS = 16  # of a shape


class Shapes(NamedTuple):
    """The shapes of an input and of an output of the model, as its users know them."""

    inputs: Shape
    outputs: Shape


@dataclass(frozen=True, eq=False)
class PublicPlan(Scaled):
    """The client's part of a plan: the public network, and the scales of inputs and outputs.

    `classes` is the number of classes if the outputs are classes, and else None. `largest` is the
    largest magnitude of an output in the calibration, and a margin; None for classes. `shapes` are
    those of the model, with as many numbers as the network's; None for the network's own.
    """

    network: PublicNetwork
    input_scale: float
    output_scale: float
    classes: int | None = None
    largest: float | None = None
    shapes: Shapes | None = None

    @property
    def inputs(self) -> Shape:
        """The shape of an input of the model."""
        return self.network.inputs if self.shapes is None else self.shapes.inputs

    @property
    def outputs(self) -> Shape:
        """The shape of an output of the model: () for a class."""
        if self.shapes is not None:
            return self.shapes.outputs
        return self.network.layers[-1].outputs if self.classes is None else ()

    def encode(self, inputs: Floats) -> Ring:
        """Rounds inputs (n, *inputs) to integers of 8 bits; larger ones are cut.

        Raises ArgumentError for another shape, and for numbers that are not finite.
        """
        values = np.asarray(inputs, np.float64)
        if values.shape[1:] != self.inputs or not values.ndim:
            raise ArgumentError(
                f"inputs: found shape {values.shape}, expected {('n', *self.inputs)}, inputs of "
                "the model one after the other"
            )
        if not np.isfinite(values).all():
            raise ArgumentError("inputs: found numbers that are not finite; expected finite ones")
        return super().encode(values.reshape(len(values), *self.network.inputs))

    def decode(self, outputs: Ring) -> Floats | Classes:
        """Returns the outputs (n, *outputs) as floats, or the classes (n,)."""
        return super().decode(outputs).reshape(len(outputs), *self.outputs)

    def count_cut(self, inputs: Floats) -> int:
        """Counts the numbers of inputs that `encode` cuts: larger than those of the calibration."""
        most = (INPUT_MAX + 0.5) * self.input_scale
        return int((np.abs(np.asarray(inputs, np.float64)) > most).sum())

    def has_large(self, outputs: Floats | Classes) -> bool:
        """Tells if an output is larger than those of the calibration and the margin.

        Then a hidden value may have left the window of its table, and the outputs be wrong. It may
        also have done so without this sign.
        """
        return self.largest is not None and bool((np.abs(outputs) > self.largest).any())

    def to_bytes(self) -> bytes:
        """Returns the public part for the client: JSON, which has no weights."""
        scales = {"input_scale": self.input_scale, "output_scale": self.output_scale}
        own = {"version": _VERSION, "classes": self.classes, "largest": self.largest, **scales}
        shapes = {"inputs": self.inputs, "outputs": self.outputs}
        whole = {**own, **shapes, "network": json.loads(self.network.to_bytes())}
        return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "PublicPlan":
        """Reads the bytes of `to_bytes`. Raises MalformedMessageError for any others."""
        try:
            found = json.loads(data) if len(data) <= MAX_BYTES else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or set(found) != _NAMES or found["version"] != _VERSION:
            raise _malformed("bytes of another kind, or of another version")
        scales = [found[name] for name in ("input_scale", "output_scale")]
        largest = found["largest"]
        sizes = scales if largest is None else [*scales, largest]
        if not all(type(one) is float and math.isfinite(one) and one > 0 for one in sizes):
            raise _malformed(f"scales {shown(sizes)}")
        network = PublicNetwork.from_bytes(json.dumps(found["network"]).encode())
        _check_classes(network, found["classes"])
        shapes = _shapes(network, found)
        return cls(network, scales[0], scales[1], found["classes"], largest, shapes)


def _check_classes(network: PublicNetwork, classes: object) -> None:
    """Raises MalformedMessageError for a number of classes that the last layer does not have."""
    if classes is None:
        return
    last = network.layers[-1]
    own = math.prod(last.terms[0].inputs)
    if type(classes) is not int or not 2 <= classes <= MAX_CLASSES:
        raise _malformed(f"{shown(classes)} classes")
    if last.outputs != (1,) or own != classes:
        raise _malformed(f"{classes} classes with a last layer of {own} to {last.outputs} numbers")


def _shapes(network: PublicNetwork, found: dict[str, Any]) -> Shapes:
    """Returns the model's shapes. Raises MalformedMessageError if the network has other sizes."""
    sizes = math.prod(network.inputs), math.prod(network.layers[-1].outputs)
    for name, size in zip(("inputs", "outputs"), sizes, strict=True):
        shape = found[name]
        fits = type(shape) is list and len(shape) <= _MAX_LENGTHS
        if not fits or not all(type(one) is int and 1 <= one <= size for one in shape):
            raise _malformed(f"a shape {shown(shape)} of {name}")
        if math.prod(shape) != size:
            raise _malformed(f"a shape {shape} of {name} for {size} numbers")
    if found["classes"] is not None and found["outputs"]:
        raise _malformed(f"a shape {found['outputs']} of classes")
    return Shapes(tuple(found["inputs"]), tuple(found["outputs"]))


def _malformed(found: str) -> MalformedMessageError:
    return MalformedMessageError(
        f"public plan: found {found}, expected the file that the server's owner gives to clients"
    )


class Prediction(NamedTuple):
    """Outputs (n, *outputs) or classes (n,), and the wrong lookups of each layer."""

    outputs: Floats | Classes
    wraps: list[int]


@dataclass(frozen=True, eq=False)
class Plan:
    """A model that two parties can run, with its weights: the server's secret.

    plan = nescio.mpc.compile(model, example, calibration=inputs)
    print(plan.report)
    plan.save("model.plan")
    Path("model.public").write_bytes(plan.public.to_bytes())        # for clients
    """

    quantized: Quantized
    report: Report
    shapes: Shapes | None = None

    @property
    def network(self) -> Network:
        """The network of integers."""
        return self.quantized.network

    @cached_property
    def public(self) -> PublicPlan:
        """The part that clients get: no weights."""
        own = self.quantized
        scales = own.input_scale, own.output_scale
        return PublicPlan(own.network.public, *scales, own.classes, own.largest, self.shapes)

    def simulate(self, inputs: Floats) -> Prediction:
        """Computes the outputs of inputs (n, *inputs) as two parties would, with random dithers.

        Raises ArgumentError for inputs of another shape.
        """
        found = self.network.simulate(self.public.encode(inputs))
        return Prediction(self.public.decode(found.outputs), found.wraps)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan with its weights, readable by its owner alone.

        A file with this name is replaced once the new one is complete on the disk. Raises FileError
        if it cannot be written.
        """
        from safetensors.numpy import save  # noqa: PLC0415 - needed by files alone

        metadata = {_KEY: self.public.to_bytes().decode(), "report": self.report.to_json()}
        data = save(dict(_arrays(self.network)), metadata)
        try:
            with replacing(_plan_file(path)) as file:
                file.write(data)
        except OSError as error:
            raise FileError(f"{path}: the plan cannot be written: {error.strerror}") from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Plan":
        """Reads a file of `save`. Raises FileError for any other file."""
        from safetensors import SafetensorError, safe_open  # noqa: PLC0415

        try:
            with safe_open(path, "np") as file:
                metadata = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            public = PublicPlan.from_bytes(metadata[_KEY].encode())
            network = _network(public.network, arrays)
            report = Report.from_json(metadata["report"])
        except (OSError, SafetensorError, KeyError, ArgumentError, MalformedMessageError) as error:
            raise FileError(f"{path}: found {error}, expected a file of Plan.save") from error
        scales = public.input_scale, public.output_scale
        quantized = Quantized(network, *scales, public.classes, public.largest)
        return cls(quantized, report, public.shapes)


def _plan_file(path: str | os.PathLike[str]) -> Path:
    """Returns the file of a link. Raises FileError for a device, a folder and the like."""
    try:
        target = Path(path).resolve()
        is_file = target.is_file() or not target.exists()
    except (OSError, RuntimeError) as error:  # RuntimeError: links that go round
        raise FileError(f"{path}: the plan cannot be written: {error}") from error
    if not is_file:
        raise FileError(f"{path}: found something else than a file, expected a file or a free name")
    return target


def _arrays(network: Network) -> Any:  # noqa: ANN401 - pairs
    for number, layer in enumerate(network.layers, 1):
        for place, term in enumerate(layer.terms):
            weights: Any = term.map
            yield f"{number}.{place}", np.ascontiguousarray(weights.weights.astype(np.int16))
        yield f"{number}.bias", np.ascontiguousarray(layer.bias)


def _network(public: PublicNetwork, arrays: dict[str, Array]) -> Network:
    """Joins weights with the public part. Raises KeyError, or ArgumentError if they do not fit."""
    layers = []
    for number, own in enumerate(public.layers, 1):
        terms = [
            Term(term.source, _map(term, arrays[f"{number}.{place}"]))
            for place, term in enumerate(own.terms)
        ]
        layers.append(_layer(own, terms, arrays[f"{number}.bias"]))
    network = Network(public.inputs, tuple(layers))
    if network.public.digest != public.digest:
        raise ArgumentError("weights of another network")
    return network


def _map(term: PublicTerm, weights: Array) -> Map:
    if term.kernel is None:
        return Dense(weights, term.inputs)
    sizes = term.stride, term.padding, term.dilation, as_count(term.groups, "groups", 1, 1 << 16)
    return Convolution(weights, term.inputs, *sizes)


def _layer(own: PublicLayer, terms: list[Term], bias: Array) -> Layer:
    return replace(Layer(tuple(terms), bias), activation=own.activation, shift=own.shift)
