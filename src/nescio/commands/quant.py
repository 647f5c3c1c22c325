"""`nescio quant`: models with weights of few bits."""

import argparse
import importlib
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ..errors import ArgumentError
from . import Subparsers, count

if TYPE_CHECKING:
    from ..quant.search import Choice, Found, Point

_METHODS = ("auto", "exhaustive", "greedy", "evolutionary")
_EVALUATIONS = 400


def add_parser(commands: Subparsers) -> None:
    """Declares the command and its own commands."""
    parser = commands.add_parser("quant", help="models with weights of few bits")
    whats = parser.add_subparsers(title="commands", required=True, metavar="WHAT")
    _add_search(whats)


def _add_search(whats: Subparsers) -> None:
    parser = whats.add_parser(
        "search",
        help="bits for each layer, by quality and speed",
        description="Tries bits for each layer of a model and prints the plans that no other beats "
        "in both quality and speed. Speed is the time of the layers' products with one vector, "
        "measured on this machine. Code that is named as module:function is imported from the "
        "current directory too, and run.",
    )
    add = parser.add_argument
    add("model", metavar="MODEL", help="a file of nescio.quant.save, or module:function to make it")
    add("--quality", required=True, metavar="MODULE:FUNCTION", help="what a model is worth")
    add("--lower-is-better", action="store_true", help="of the quality, as with a perplexity")
    add("--layers", action="append", metavar="NAME", help="layers, * for any text; all by default")
    add("--weight-bits", type=_numbers, default=[1, 2, 4, 8], metavar="LIST", help="1,2,4,8")
    add("--activation-bits", type=_numbers, default=[8, 16, 32], metavar="LIST", help="8,16,32")
    add("--floats", action="store_true", help="let layers stay in float32, too")
    add("--per-row", action="store_true", help="a step for each row of a matrix, not one for all")
    add("--method", choices=_METHODS, default="auto", help="auto: exhaustive where it can be")
    add("--evaluations", type=count, default=_EVALUATIONS, help="plans to try at most")
    add("--seed", type=count, default=0, help="of the evolutionary search")
    add("--threads", type=int, default=1, help="of the products that are timed; 0: all processors")
    add("--json", action="store_true", help="print JSON: every plan that was tried")
    add("--plot", metavar="FILE", help="draw quality against speed, PNG (needs matplotlib)")
    add("--save", metavar="FILE", help="write the fastest model of at least --least")
    add("--least", type=float, metavar="QUALITY", help="for --save: no worse than this")
    parser.set_defaults(run=_run_search)


def _run_search(arguments: argparse.Namespace) -> int:
    from .._report import check_writable  # noqa: PLC0415 - needed only when the command runs
    from ..quant.search import MeasuredCost, chosen_layers, search, variants_of  # noqa: PLC0415

    for path in (arguments.plot, arguments.save):
        check_writable(path)
    if (arguments.save is None) != (arguments.least is None):
        raise ArgumentError("--save and --least: found one of them, expected both or none")
    if arguments.least is not None and math.isnan(arguments.least):
        raise ArgumentError("--least: found nan, expected a number")
    if arguments.plot:
        importlib.import_module("matplotlib")  # before the search, not after it
    variants = variants_of(_model(arguments.model), per_row=arguments.per_row)
    quality = _function(arguments.quality)
    shapes = chosen_layers(variants, arguments.layers or ["*"])
    cost = MeasuredCost(shapes, threads=arguments.threads)
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


def _print(found: "Found", fp32: float, sign: float, *, threads: int, as_json: bool) -> None:
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
    print(f"{len(found.pareto)} of {len(found.points)} plans that were tried")
    print(
        "us: products with one vector. x fp32: against NumPy's float32 products, with as many "
        f"threads as its BLAS takes; --threads ({threads}) is for the plans'"
    )


def _shown(bits: "Choice") -> str:
    return "fp32" if bits is None else f"({bits[0]},{bits[1]})"


def _model(name: str) -> object:
    """A model from a file, or from the function that makes it."""
    path = Path(name)
    if path.exists() or path.suffix == ".safetensors":
        from ..quant import load  # noqa: PLC0415

        return load(path)
    return _function(name)()


def _function(name: str) -> Callable[..., object]:
    """The function called module:function, whose errors name it. ArgumentError if there is none."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise ArgumentError(f"found {name!r}, expected module:function")
    function = getattr(_module(module_name, name), attribute, None)
    if not callable(function):
        raise ArgumentError(f"{name}: found no function {attribute!r} in {module_name}")

    def called(*arguments: object) -> object:
        try:
            return function(*arguments)
        except (MemoryError, ModuleNotFoundError):
            raise
        except Exception as error:
            raise _raised(name, error) from error

    return called


def _module(module_name: str, name: str) -> ModuleType:
    """The module, imported. Raises ArgumentError if there is none, or it raises something."""
    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` has it
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise
        raise ArgumentError(f"{name}: found no module {error.name!r} here or installed") from error
    except MemoryError:
        raise
    except Exception as error:
        raise _raised(name, error) from error


def _raised(name: str, error: Exception) -> ArgumentError:
    """What is said of code that is not ours."""
    return ArgumentError(
        f"{name} raised {type(error).__name__}: {error} (NESCIO_DEBUG=1 shows where)"
    )


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"quality: found {type(value).__name__}, expected a number") from error


def _numbers(text: str) -> list[int]:
    """Numbers with commas, for argparse."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: expected numbers such as 1,2,4") from error
