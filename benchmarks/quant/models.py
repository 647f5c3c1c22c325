"""`python -m benchmarks.quant models`: experiments with networks of few bits (thesis, chapter 3).

PyTorch trains the networks on the user's own copies of the data; a cache keeps them. Two
experiments of the chapter are left out: natural language inference (the training set of SNLI is not
available here) and reinforcement learning (nor are its control tasks).
"""

import argparse
import datetime
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from benchmarks._main import chosen, make_folder
from nescio import __version__
from nescio._arrays import as_threads
from nescio._report import Case, Column, Report
from nescio.bench.results import Results
from nescio.bench.timing import check_duration
from nescio.errors import ArgumentError
from nescio.quant.search import Choice
from nescio.quant.torch._models import ModuleVariants

from . import few_bits, speed
from .networks import accuracy
from .setup import THESIS_UNITS, Setup

_LEFT_OUT = (
    "left out: natural language inference (no training set of SNLI), reinforcement learning (no "
    "control tasks)"
)
_SEARCH_IMAGES = 2000  # of the test set; a search evaluates thousands of plans
_WEIGHT_BITS, _ACTIVATION_BITS = (1, 2, 4, 8), (8, 16, 32)


class Experiment(NamedTuple):
    """One table or figure: its cases and its columns."""

    name: str
    title: str
    measure: Callable[[Setup], Iterator[Case]]
    columns: list[Column]
    draw: str | None = None
    """The function of plot.py that plots it."""


def run(arguments: argparse.Namespace) -> int:
    """Runs the chosen experiments and writes each as text, a plot and JSON into a folder."""
    experiments = chosen(EXPERIMENTS, arguments.only, "experiment")
    check_duration(arguments.seconds)
    if arguments.quick and arguments.full:
        raise ArgumentError("--quick and --full: found both, expected at most one")
    into = make_folder(arguments.out)
    before = torch.get_num_threads()
    with Results(into / "quant-models.json") as results:
        setup = Setup(arguments)
        torch.set_num_threads(as_threads(arguments.threads) or before)
        try:
            for experiment in experiments:
                begin = len(results.cases)
                _write(experiment, setup, into, results)
                if experiment.draw:
                    own = results.cases[begin:]
                    _draw(experiment.draw, into / f"{experiment.name}.png", own)
        finally:
            torch.set_num_threads(before)
    print(_LEFT_OUT)
    return 0


def _write(experiment: Experiment, setup: Setup, into: Path, results: Results) -> None:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    about = f"{setup.about}; {today}, nescio {__version__}, PyTorch {torch.__version__}"
    if setup.quick:
        about += ", tiny sizes of a test: do not quote"
    with (into / f"{experiment.name}.txt").open("w", encoding="utf-8") as text:
        for line in (experiment.title, about):
            print(line)
            print(line, file=text)
        report = Report(experiment.columns, text)
        for case in experiment.measure(setup):
            if case.get("shown", True):
                report.add(case)
            results.add({"experiment": experiment.name, **case})


def _draw(function: str, path: Path, cases: Sequence[Case]) -> None:
    try:
        from . import plot  # noqa: PLC0415 - matplotlib is needed only here
    except ImportError as error:
        print(f"no plot, only its data: matplotlib cannot be imported ({error})")
        return
    getattr(plot, function)(path, cases)


def _digit_qualities(setup: Setup) -> Iterator[Case]:
    def quality(model: object) -> float:
        assert callable(model)
        return accuracy(model, *setup.digits.test)

    yield from few_bits.qualities(setup.digit_network, "*", quality, few_bits.ENGINE_BITS)


def _text_qualities(setup: Setup) -> Iterator[Case]:
    yield from few_bits.qualities(
        setup.language_model, "lstm", setup.perplexity, few_bits.ENGINE_BITS
    )


def _retraining(setup: Setup) -> Iterator[Case]:
    yield from few_bits.retrained(setup.small_digit_network, setup.digits, setup.retraining)


def _histograms(setup: Setup) -> Iterator[Case]:
    yield from few_bits.histograms(setup.digit_network, setup.digits)


def _search(setup: Setup) -> Iterator[Case]:
    """Yields Figure 3.4, and Table 3.3 in the cases that are printed.

    The search uses the first images of the test set. Printed cases have the accuracy on all of it.
    """
    network, (images, labels) = setup.digit_network, setup.digits.test
    few = len(images) if setup.full else _SEARCH_IMAGES
    weights, activations = ((1, 4), (8,)) if setup.quick else (_WEIGHT_BITS, _ACTIVATION_BITS)
    choices = [(w, a) for w in weights for a in activations]
    found = speed.search_digits(network, images[:few], labels[:few], choices, setup.seconds / 10)
    best = speed.best_within(found, accuracy(network, images[:few], labels[:few]))
    variants = ModuleVariants(network)
    plans: dict[str, dict[str, Choice]] = {
        f"< {margin:.0%}": point.plan for margin, point in best.items()
    }
    plans |= {f"all {bits}": dict.fromkeys(variants.shapes, (bits, 8)) for bits in (4, 8)}
    times = {case["name"]: case for case in speed.end_to_end(network, images, plans, setup.seconds)}
    fp32 = float(str(times["fp32"]["microseconds"])) * 1e-6
    for point in found.points:
        yield {
            "way": "engine",
            "shown": False,
            "plan": point.plan,
            "searched_quality": point.quality,
            "speedup_fp32": fp32 / point.cost,
            "uniform": len(set(point.plan.values())) == 1,
        }
    small = speed.torch_int8(network)
    for name, model in (("fp32", network), ("int8", small)):
        own = {"way": "PyTorch", "error": name, "quality": accuracy(model, images, labels)}
        searched = accuracy(model, images[:few], labels[:few])
        yield {**own, "searched_quality": searched, **times[name]}
    for name, plan in plans.items():
        quality = accuracy(variants.model(plan), images, labels)
        bits = " ".join(f"({b[0]},{b[1]})" for b in plan.values() if b)
        own = {"way": "table", "error": name, "quality": quality, "bits": bits}
        yield {**own, "plan": plan, **times[name]}


def _text_speeds(setup: Setup) -> Iterator[Case]:
    """Yields Figure 3.4 for the LSTM: time per word and perplexity for each pair of bits.

    Times are measured for an LSTM of the thesis' size, too, which needs no training.
    """
    weights, activations = ((1, 4), (8,)) if setup.quick else (_WEIGHT_BITS, _ACTIVATION_BITS)
    yield from speed.lstm_speeds(
        setup.language_model,
        setup.perplexity,
        [(w, a) for w in weights for a in activations],
        setup.seconds,
        units=64 if setup.quick else THESIS_UNITS,
    )


_QUALITY: list[Column] = [
    ("way", "way", "6"),
    ("weight_bits", "weights", "d"),
    ("activation_bits", "activations", "d"),
]
_SPEED: list[Column] = [
    ("microseconds", "us", "9,.1f"),
    ("speedup_fp32", "x fp32", "6,.1f"),
    ("speedup_int8", "x int8", "6,.2f"),
    ("bits", "(weight, activation) bits", ""),
]

EXPERIMENTS = (
    Experiment(
        "table-3.2-mnist",
        "Table 3.2: accuracy on MNIST by bits of weights and activations",
        _digit_qualities,
        [*_QUALITY, ("quality", "accuracy", ".4f")],
    ),
    Experiment(
        "figure-3.3",
        "Figure 3.3: values of weights, and of what comes into each layer, on MNIST",
        _histograms,
        [
            ("layer", "layer", "5"),
            ("what", "what", "11"),
            ("least", "least", "8.3f"),
            ("most", "most", "8.3f"),
            ("deviation", "deviation", "8.4f"),
            ("spread", "largest / deviation", "6.1f"),
            ("zeros", "zeros", "6.3f"),
        ],
        "plot_histograms",
    ),
    Experiment(
        "figure-3.4-mnist",
        "Figure 3.4 and Table 3.3: whole networks on MNIST, one vector, one thread",
        _search,
        [("error", "error", "6"), ("quality", "accuracy", ".4f"), *_SPEED],
        "plot_search",
    ),
    Experiment(
        "table-3.4-mnist",
        "Table 3.4: accuracy on MNIST with training for few bits",
        _retraining,
        [
            ("training", "training", "8"),
            ("weight_bits", "weights", "d"),
            ("activations", "activations", ""),
            ("quality", "accuracy", ".4f"),
            ("engine_quality", "engine, a=8", ".4f"),
        ],
    ),
    Experiment(
        "table-3.2-wikitext",
        "Table 3.2: perplexity on WikiText-2 by bits of the LSTM's weights and activations",
        _text_qualities,
        [*_QUALITY, ("quality", "perplexity", ".1f")],
    ),
    Experiment(
        "figure-3.4-wikitext",
        "Figure 3.4: the LSTM's time for a word, and the perplexity on WikiText-2",
        _text_speeds,
        [
            ("name", "name", "8"),
            ("quality", "perplexity", ".1f"),
            *_SPEED[:-1],
            ("thesis_microseconds", "us, 2048 units", "8,.1f"),
            ("thesis_speedup_fp32", "x fp32", "6,.1f"),
            ("thesis_speedup_int8", "x int8", "6,.2f"),
        ],
    ),
)
