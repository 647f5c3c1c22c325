"""`nescio quant`: models with low-bit weights."""

import argparse
import importlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ArgumentError
from . import Subparsers, count
from .functions import load_function

if TYPE_CHECKING:
    from ..quant.search import Choice, Point, SearchResult

_METHODS = ("auto", "exhaustive", "greedy", "evolutionary")
_EVALUATIONS = 400


def add_parser(commands: Subparsers) -> None:
    """Adds the command and its subcommands."""
    parser = commands.add_parser(
        "quant",
        help="search bit widths for models with low-bit weights",
        description="Finds the numbers of bits with which a model with low-bit weights is both "
        "accurate and fast.",
    )
    subcommands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_search(subcommands)


def _add_search(subcommands: Subparsers) -> None:
    parser = subcommands.add_parser(
        "search",
        help="find the bits for each layer of a model, by quality and speed",
        description="Evaluates quantization plans (bits for each layer) of a model and prints the "
        "Pareto front: the plans that no other plan beats in both quality and speed. Speed is the "
        "time of the layers' products with one vector, measured on this machine. Functions given "
        "as module:function or path.py:function are imported, also from the current directory, and "
        "executed.",
    )
    add = parser.add_argument
    add(
        "model",
        metavar="MODEL",
        help="model to quantize: a file of nescio.quant.save, or module:function that returns one",
    )
    add(
        "--quality",
        required=True,
        metavar="MODULE:FUNCTION",
        help="function that rates a model: takes the model, returns a number, larger is better",
    )
    add(
        "--lower-is-better",
        action="store_true",
        help="treat a smaller quality as better, for example for a perplexity",
    )
    add(
        "--layers",
        action="append",
        metavar="NAME",
        help="layer to quantize, wildcards allowed; may be repeated (default: all layers)",
    )
    add(
        "--weight-bits",
        type=_numbers,
        default=[1, 2, 4, 8],
        metavar="LIST",
        help="numbers of weight bits to try, from 1 to 8 (default: 1,2,4,8)",
    )
    add(
        "--activation-bits",
        type=_numbers,
        default=[8, 16, 32],
        metavar="LIST",
        help="numbers of activation bits to try (default: 8,16,32)",
    )
    add("--floats", action="store_true", help="also try layers in float32, not quantized")
    add(
        "--per-row",
        action="store_true",
        help="use one quantization step per matrix row instead of one per matrix",
    )
    add(
        "--group",
        type=int,
        choices=(32, 64, 128),
        default=0,
        help="use one step for so many columns of a row",
    )
    add(
        "--method",
        choices=_METHODS,
        default="auto",
        help="search method; auto: exhaustive if --evaluations allows it, else greedy followed by "
        "evolutionary (default: auto)",
    )
    add(
        "--evaluations",
        type=count,
        default=_EVALUATIONS,
        help="maximum number of plans to evaluate (default: 400)",
    )
    add("--seed", type=count, default=0, help="random seed of the evolutionary search (default: 0)")
    add(
        "--threads",
        type=int,
        default=1,
        help="threads of the timed products; 0 means one per processor (default: 1)",
    )
    add("--json", action="store_true", help="print all evaluated plans as JSON")
    add(
        "--plot",
        metavar="FILE",
        help="write a plot of quality against speed to this PNG file (needs matplotlib)",
    )
    add(
        "--save",
        metavar="FILE",
        help="write the fastest model whose quality is at least --least to this file",
    )
    add(
        "--least",
        type=float,
        metavar="QUALITY",
        help="minimum quality of the model written by --save; maximum with --lower-is-better",
    )
    parser.set_defaults(run=_run_search)


def _run_search(arguments: argparse.Namespace) -> int:
    from .._report import check_writable  # noqa: PLC0415 - needed only when the command runs
    from ..quant.search import MeasuredCost, matching_layers, model_variants, search  # noqa: PLC0415

    for path in (arguments.plot, arguments.save):
        check_writable(path)
    if (arguments.save is None) != (arguments.least is None):
        raise ArgumentError("--save and --least: found only one of them, expected both or neither")
    if arguments.least is not None and math.isnan(arguments.least):
        raise ArgumentError("--least: found nan, expected a number")
    if arguments.plot:
        importlib.import_module("matplotlib")  # fails before the search, not after it
    if arguments.group and arguments.per_row:
        raise ArgumentError("--group and --per-row: found both, expected one of them")
    variants = model_variants(
        _model(arguments.model), per_row=arguments.per_row, group=arguments.group
    )
    quality = load_function(arguments.quality)
    shapes = matching_layers(variants, arguments.layers or ["*"])
    cost = MeasuredCost(shapes, threads=arguments.threads, group=arguments.group)
    choices: list[Choice] = [
        (w, a) for w in arguments.weight_bits for a in arguments.activation_bits
    ]
    sign = -1.0 if arguments.lower_is_better else 1.0
    found = search(
        dict.fromkeys(shapes, [*choices, None] if arguments.floats else choices),
        lambda plan: sign * _number(variants.quality(plan, quality)),
        cost,
        method=arguments.method,
        evaluations=arguments.evaluations,
        seed=arguments.seed,
    )
    fp32 = sum(cost(name, None) for name in shapes)
    _print(found, fp32, sign, threads=arguments.threads, as_json=arguments.json)
    if arguments.plot:
        from ..quant._plot import plot_search  # noqa: PLC0415 - needs matplotlib

        plot_search(Path(arguments.plot), found, fp32, sign=sign)
    if arguments.save:
        from .. import quant  # noqa: PLC0415

        quant.save(variants.model(found.cheapest(sign * arguments.least).plan), arguments.save)
    return 0


def _print(found: "SearchResult", fp32: float, sign: float, *, threads: int, as_json: bool) -> None:
    from .._report import Case, Report  # noqa: PLC0415

    best = {id(point) for point in found.pareto}

    def case(point: "Point") -> Case:
        return {
            "plan": point.plan,
            "quality": sign * point.quality
            if math.isfinite(point.quality) or not as_json
            else None,
            "microseconds": point.cost * 1e6,
            "speedup_fp32": fp32 / point.cost if point.cost else None,
            "pareto": id(point) in best,
        }

    if as_json:
        print(json.dumps([case(point) for point in found.points], allow_nan=False))
        return
    print("layers:", ", ".join(repr(name) for name in found.points[0].plan))
    columns = [
        ("quality", "quality", ">12.6g"),
        ("microseconds", "us", ">10.1f"),
        ("speedup_fp32", "x fp32", ">8.2f"),
        ("bits", "(weight, activation) bits", ""),
    ]
    report = Report(columns)
    for point in found.pareto:
        report.add({**case(point), "bits": " ".join(map(_shown, point.plan.values()))})
    print(f"{len(found.pareto)} of {len(found.points)} evaluated plans")
    print(
        f"us: time of the products with one vector, --threads {threads}. x fp32: speedup over "
        "NumPy's float32 products with the default number of BLAS threads"
    )


def _shown(bits: "Choice") -> str:
    return "fp32" if bits is None else f"({bits[0]},{bits[1]})"


def _model(name: str) -> object:
    """Loads a model from a file, or calls the function that returns it."""
    path = Path(name)
    if path.exists() or path.suffix == ".safetensors":
        from ..quant import load  # noqa: PLC0415

        return load(path)
    return load_function(name)()


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"quality: found {type(value).__name__}, expected a number") from error


def _numbers(text: str) -> list[int]:
    """Parses comma-separated integers, for argparse."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected integers separated by commas, such as 1,2,4"
        ) from error
