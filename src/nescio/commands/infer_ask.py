"""`nescio infer ask`: the outputs of a server's model for inputs that stay secret."""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array, shown
from .._report import Report
from ..errors import ResourceError
from . import Subparsers, count
from ._infer_client import add_connection, phases, progress_of, remote_plan
from ._inputs import Input, Scaling, read_inputs, read_labels
from ._progress import Progress

if TYPE_CHECKING:
    from ..mpc import RemoteModel

_LARGEST = 5
_COLUMNS = [
    ("phase", "phase", ">10"),
    ("sent_bytes", "sent bytes", ">12,"),
    ("received_bytes", "received", ">12,"),
    ("round_trips", "round trips", ">11,"),
    ("seconds", "seconds", ">9.3f"),
]


def add_ask(subcommands: Subparsers) -> None:
    """Declares `ask`."""
    parser = subcommands.add_parser(
        "ask",
        help="get a model's outputs for inputs that stay secret",
        description="Gets the outputs of a server's model for inputs, and prints for each the "
        "largest ones, or the class alone if the server gives no more. An input uses up one "
        "prepared inference of the store. Then it prints bytes, round trips and seconds, and how "
        "many prepared inferences are left.",
    )
    add_connection(parser)
    add = parser.add_argument
    add(
        "inputs",
        nargs="+",
        type=Path,
        metavar="INPUT",
        help="file of an input: an array (.npy) of the input's shape or of several inputs, taken "
        "as it is; or an image (PNG, JPEG) of the model's size, scaled to 0..1",
    )
    add(
        "--labels",
        type=Path,
        metavar="FILE",
        help="text file with the name of each output, one on each line",
    )
    add(
        "--mean",
        type=_numbers,
        metavar="R,G,B",
        help="numbers to subtract from the channels of images, as in the model's training",
    )
    add(
        "--deviation",
        type=_numbers,
        metavar="R,G,B",
        help="numbers by which the channels of images are then divided",
    )
    add(
        "--refill",
        type=count,
        default=0,
        metavar="N",
        help="prepare N more inferences in the background when fewer than N are left, in a new "
        "store beside the first: FILE.2, FILE.3 and so on",
    )
    add(
        "--batch",
        type=count,
        default=0,
        metavar="N",
        help="number of inputs that run together, in the round trips of one (default: as many as "
        "256 MiB of prepared inferences hold, up to 64); the server may take fewer",
    )
    add("--json", action="store_true", help="print JSON, with all outputs if the server gives them")
    parser.set_defaults(run=_run)


def _numbers(text: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = [math.nan]
    if not all(math.isfinite(one) for one in found):
        raise argparse.ArgumentTypeError(f"found {shown(text)}, expected numbers such as 0.5,0.4")
    return found


def _run(arguments: argparse.Namespace) -> int:
    remote = remote_plan(arguments)
    public = remote.public
    size = public.classes or math.prod(public.network.layers[-1].outputs)
    labels = read_labels(arguments.labels, size)
    answer = _answer if public.classes is None else _answer_class
    scaling = Scaling(arguments.mean, arguments.deviation)
    inputs = read_inputs(arguments.inputs, public.inputs, scaling)
    facts: list[dict[str, object]] = []
    with Progress() as progress:
        bar = progress_of(progress, max(1, arguments.refill))

        def show(done: int) -> None:
            if len(facts) == len(inputs):  # what is waited for; else lines would mix
                bar(done)

        model = remote.open(arguments.store, refill=arguments.refill, progress=show)
        with _printing_costs(arguments, model, facts), model:
            _check_left(model, inputs, arguments.refill)
            for one in inputs:
                if cut := public.count_cut(one.values[None]):
                    _warn(one.name, cut)
            for one, outputs in zip(inputs, _ask(model, inputs), strict=True):
                if public.has_large(outputs):
                    _warn_of_outputs(one.name)
                fact = answer(one.name, outputs, labels)
                facts.append(fact)
                if not arguments.json:
                    print(_line(fact), flush=True)
    return 0


def _check_left(model: "RemoteModel", inputs: Sequence[Input], refill: int) -> None:
    """Raises ResourceError, before any is used, if fewer inferences are left than inputs."""
    if model.left < len(inputs) and not refill:
        raise ResourceError(
            f"found {len(inputs):,} inputs, expected at most {model.left:,}: so many prepared "
            "inferences are left; prepare more, or use --refill"
        )


def _ask(model: "RemoteModel", inputs: Sequence[Input]) -> Iterator[Array]:
    """Yields the outputs (numbers,) of each input; those that run together come together."""
    for first in range(0, len(inputs), model.batch):
        some = inputs[first : first + model.batch]
        for outputs in model.each(np.stack([one.values for one in some])):
            yield from outputs.reshape(len(outputs), math.prod(outputs.shape[1:]))


def _warn(name: str, cut: int) -> None:
    print(
        f"nescio: {name}: {cut:,} numbers are larger than those of the model's calibration, and "
        "were cut: the outputs may be wrong",
        file=sys.stderr,
    )


def _warn_of_outputs(name: str) -> None:
    print(
        f"nescio: {name}: its outputs are larger than those of the model's calibration: a hidden "
        "value may have left the window of its table, and the outputs be wrong",
        file=sys.stderr,
    )


def _answer(name: str, outputs: Array, labels: list[str] | None) -> dict[str, Any]:
    best = int(np.argmax(outputs))
    label = None if labels is None else labels[best]
    order = np.argsort(-outputs, kind="stable")[:_LARGEST].tolist()
    largest = [[labels[k] if labels else k, float(outputs[k])] for k in order]
    return {
        "input": name,
        "class": best,
        "label": label,
        "largest": largest,
        "outputs": outputs.tolist(),
    }


def _answer_class(name: str, classes: Array, labels: list[str] | None) -> dict[str, Any]:
    best = int(classes[0])
    return {"input": name, "class": best, "label": None if labels is None else labels[best]}


def _line(fact: dict[str, Any]) -> str:
    name = fact["class"] if fact["label"] is None else fact["label"]
    if "largest" not in fact:
        return f"{fact['input']}: {name}"
    largest = ", ".join(f"{name} {value:.4g}" for name, value in fact["largest"])
    return f"{fact['input']}: {name} ({largest})"


@contextmanager
def _printing_costs(
    arguments: argparse.Namespace, model: "RemoteModel", facts: list[dict[str, object]]
) -> Iterator[None]:
    """Prints the costs after the answers; after an error, JSON has the answers that came before."""
    try:
        yield
    except BaseException:
        if arguments.json and facts:
            _print_costs(arguments, model, facts)
        raise
    _print_costs(arguments, model, facts)


def _print_costs(
    arguments: argparse.Namespace, model: "RemoteModel", facts: list[dict[str, object]]
) -> None:
    sums = phases(model.counts)
    if arguments.json:
        steps = [one._asdict() for one in sums]
        print(json.dumps({"answers": facts, "phases": steps, "left": model.left}))
        return
    print()
    report = Report(_COLUMNS)
    for one in sums:
        report.add(dict(one._asdict()))
    names = ("sent_bytes", "received_bytes", "round_trips", "seconds")
    report.add(
        {"phase": "sum", **{name: sum(getattr(one, name) for one in sums) for name in names}}
    )
    print(f"\n{model.left:,} prepared inferences are left")
