"""`python -m benchmarks.quant groups`: a scale for each group of columns beside one for each row.

On the processor one thread multiplies float32 vectors, in turns with a scale per row, and each
product is first compared with that of the weights as floats. On a GPU the products of a CUDA graph
are timed; they are first compared with the processor's, bit for bit.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from nescio._arrays import as_count
from nescio._report import Case, Column, Report
from nescio.bench.results import Results
from nescio.bench.timing import WrongResultError
from nescio.quant import BitSerialMatrix, QuantizedWeights, quantize_weights
from nescio.quant.device import DeviceMatrix

_SCALES: dict[str, dict[str, Any]] = {
    "row": {"per_row": True},
    **{f"{group} columns": {"group": group} for group in (128, 64, 32)},
}
_GRAPH = 200  # products of a CUDA graph
_RUNS = 5
_COLUMNS: tuple[Column, ...] = (
    ("size", "size", ">6,d"),
    ("weight_bits", "bits", ">4,d"),
    ("batch", "vectors", ">7,d"),
    ("scale", "scale", "11"),
    ("error", "error", ">6.4f"),
    ("microseconds", "us, fastest", ">11,.2f"),
    ("speed", "x a scale per row", ">17.2f"),
)


def run(arguments: argparse.Namespace) -> int:
    """Prints a line for each size, number of bits, batch and kind of scale; returns 0."""
    turns = as_count(arguments.turns, "--turns", 1, 1 << 20)
    with Results(arguments.json) as results:
        report = Report(_COLUMNS)
        for size in arguments.sizes:
            for bits in arguments.weight_bits:
                for case in _cases(arguments, size, bits, turns):
                    report.add(case)
                    results.add(case)
    print(
        "error: of products with normally distributed weights and vectors, relative to those in "
        "float32. x: the speed relative to a scale per row, medians of the turns on a processor."
    )
    return 0


def _cases(arguments: argparse.Namespace, size: int, bits: int, turns: int) -> Iterator[Case]:
    random = np.random.default_rng(bits)
    weights = random.standard_normal((size, size), np.float32)
    made = {name: quantize_weights(weights, bits, **how) for name, how in _SCALES.items()}
    for batch in arguments.batches:
        x = random.standard_normal((batch, size), np.float32)
        exact = x @ weights.T
        errors = {
            name: _checked_error(one, x, exact, arguments.device) for name, one in made.items()
        }
        times = (
            _on_processor(made, x, turns)
            if arguments.device == "cpu"
            else {name: [_on_device(one, batch, arguments.device)] for name, one in made.items()}
        )
        row = statistics.median(times["row"])
        for name, own in times.items():
            yield {
                "device": arguments.device,
                "size": size,
                "weight_bits": bits,
                "batch": batch,
                "scale": name,
                "error": errors[name],
                "microseconds": 1e6 * min(own),
                "speed": row / statistics.median(own),
            }


def _checked_error(
    weights: QuantizedWeights, x: np.ndarray[Any, Any], exact: np.ndarray[Any, Any], device: str
) -> float:
    """Returns the relative error of products. Raises WrongResultError for wrong ones."""
    found = BitSerialMatrix(weights, threads=1)(x)
    near = x @ weights.to_floats().T
    if np.linalg.norm(found - near) > 0.02 * np.linalg.norm(near):  # of 8-bit vectors: 0.007
        raise WrongResultError("products differ from those of the weights as floats")
    if device != "cpu" and not np.array_equal(DeviceMatrix(weights, device=device)(x), found):
        raise WrongResultError(f"products on {device} differ from the processor's")
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def _on_processor(
    made: dict[str, QuantizedWeights], x: np.ndarray[Any, Any], turns: int
) -> dict[str, list[float]]:
    """Times products in turns; returns the seconds of each turn."""
    matrices = {name: BitSerialMatrix(one, threads=1) for name, one in made.items()}
    times: dict[str, list[float]] = {name: [] for name in made}
    for _ in range(turns):
        for name, matrix in matrices.items():
            matrix(x)  # brings the weights back into the cache
            begin = time.perf_counter()
            matrix(x)
            times[name].append(time.perf_counter() - begin)
    return times


def _on_device(weights: QuantizedWeights, batch: int, device: str) -> float:
    product = DeviceMatrix(weights, device=device)._product(batch)
    return min(product.seconds_each(_GRAPH) for _ in range(_RUNS))
