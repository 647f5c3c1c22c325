"""`nescio bench quant`: bit-serial products compared with float32 and int8 (thesis, Table 3.1)."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from .._arrays import as_count, as_threads
from .._device import parse_device_list
from .._report import Case, Column, Report, check_writable
from ..errors import ArgumentError
from ..quant import QuantizedWeights
from ..quant._activations import check_activation_bits
from . import quant_gpu
from .quant_baselines import Baselines
from .quant_limits import (
    Limit,
    Reading,
    arithmetic_seconds,
    intensity,
    random_activations,
    standard_intensity,
)
from .results import Results
from .timing import WrongResultError, check_duration, interleaved

_MAX_SIZE = 1 << 15
_MAX_BATCH = 1 << 10
_ROWS_CHECKED = 512  # at a time: 64-bit integers take eight times the memory of the weights

_COLUMNS: list[Column] = [
    ("size", "size", "5,d"),
    ("weight_bits", "w", "2d"),
    ("activation_bits", "a", "2d"),
    ("batch", "batch", "d"),
    ("threads", "threads", "d"),
    ("tier", "tier", "6"),
    ("kernel", "kernel", "6"),
    ("microseconds", "us", "9,.1f"),
    ("weight_gb_per_second", "GB/s", "6,.1f"),
    ("speedup_fp32", "x fp32", "6,.1f"),
    ("speedup_int8", "x int8", "6,.2f"),
    ("memory_microseconds", "read us", "9,.1f"),
    ("arithmetic_microseconds", "compute us", "9,.1f"),
    ("times_limit", "x limit", "5.2f"),
]
_NOTES = """\
us: median time of a product, including quantization of activations and scaling; weights are in the
cache as far as they fit; interrupted runs are left out. GB/s: packed weights over the time. x fp32,
x int8: speedup over {about}, timed in turns with the products. read us: reading as
many bytes and nothing else. compute us: the inner loops on data in the first-level cache. x limit:
us divided by the larger of the two."""


class Way(NamedTuple):
    """The parameters of a product to time."""

    bits: int
    activation_bits: int
    tier: str


def run(arguments: argparse.Namespace) -> int:
    """Checks and measures every combination, prints each, and writes JSON if requested."""
    _check(arguments)
    if parse_device_list(arguments.device):
        return _run_on_device(arguments)
    if arguments.plot:
        from . import quant_plot  # noqa: F401, PLC0415 - fails now, not at the end, if missing
    about = ""
    with Results(arguments.json) as results:
        report = Report(_COLUMNS)
        for size, batch, threads in product(arguments.size, arguments.batch, arguments.threads):
            group = _Group(size, batch, as_threads(threads), arguments)
            for case in group.cases():
                report.add(case)
                results.add(case)
            about = group.about
    print(_NOTES.format(about=about))
    _print_tables(results.cases)
    if arguments.plot:
        from .quant_plot import plot_products  # noqa: PLC0415

        plot_products(Path(arguments.plot), results.cases)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    check_duration(arguments.seconds)
    for size in arguments.size:
        as_count(size, "size", 1, _MAX_SIZE)
    for bits in arguments.weight_bits:
        as_count(bits, "weight bits", 1, 8)
    for bits in arguments.activation_bits:
        check_activation_bits(bits)
    for batch in arguments.batch:
        as_count(batch, "batch", 1, _MAX_BATCH)
    check_writable(arguments.plot)


def _run_on_device(arguments: argparse.Namespace) -> int:
    """Measures the same on a GPU, with the benchmark for GPUs."""
    if len(arguments.batch) > 1 or arguments.plot:
        raise ArgumentError("on a GPU: expected one batch size, and no plot")
    own = {**vars(arguments), "batch": arguments.batch[0]}
    return quant_gpu.run(argparse.Namespace(**own, kernel=(None,), count=quant_gpu.COUNT))


class _Group:
    """The products of one size, batch and number of threads, and their baselines."""

    def __init__(self, size: int, batch: int, threads: int, arguments: argparse.Namespace) -> None:
        self._size, self._batch, self._threads = size, batch, threads
        self._duration = arguments.seconds
        self._pool = _core.ThreadPool(threads)
        self._x = random_activations(batch, size)
        tiers = arguments.tier or [_core.active_tier()]
        self._ways = [
            Way(bits, activation_bits, tier)
            for bits in arguments.weight_bits
            for activation_bits in arguments.activation_bits
            for tier in tiers
        ]
        self._weights = {
            bits: quant_gpu.random_weights(np.random.default_rng(bits), size, bits)
            for bits in arguments.weight_bits
        }
        self._matrices = {
            (bits, tier): _core.BitMatrix(weights.planes, size, tier=tier)
            for bits, weights in self._weights.items()
            for tier in tiers
        }
        Baselines.set_threads(self._pool.threads)
        self._baselines = Baselines(size, batch)
        self.about = self._baselines.about

    def cases(self) -> Iterator[Case]:
        """Yields a case for each product. Raises WrongResultError if a product is not exact."""
        for way in self._ways:
            self._verify(way)
        readings: dict[object, Reading] = {
            matrix.packed_bytes: Reading(matrix.packed_bytes, self._pool)
            for matrix in self._matrices.values()
        }
        works: dict[object, Callable[[], object]] = self._baselines.ways()
        works |= readings
        works |= {way: self._product(way) for way in self._ways}
        seconds = interleaved(works, self._duration)
        for way in self._ways:
            packed = self._matrices[way.bits, way.tier].packed_bytes
            limit = Limit(
                readings[packed].seconds(seconds[packed]),
                arithmetic_seconds(
                    self._size,
                    (way.bits, way.activation_bits),
                    batch=self._batch,
                    threads=self._pool.threads,
                    tier=way.tier,
                ),
            )
            yield self._case(way, packed, seconds, limit)

    def _product(self, way: Way) -> Callable[[], object]:
        matrix, scale = self._matrices[way.bits, way.tier], self._weights[way.bits].scale
        out = np.empty((self._batch, self._size), np.float32)
        return lambda: matrix.apply(self._x, way.activation_bits, scale, None, self._pool, out)

    def _verify(self, way: Way) -> None:
        """Raises WrongResultError unless integers and floats equal NumPy's."""
        matrix, weights = self._matrices[way.bits, way.tier], self._weights[way.bits]
        integers, steps = quantized(self._x, way.activation_bits)
        exact = exact_products(weights, integers)
        found = matrix.multiply(integers, way.activation_bits, self._pool)
        scaled = exact * weights.scale.astype(np.float64) * steps[:, np.newaxis]
        floats = matrix.apply(self._x, way.activation_bits, weights.scale, None, self._pool)
        if not np.array_equal(found, exact) or not np.array_equal(floats, scaled.astype("f4")):
            raise WrongResultError(
                f"{matrix.kernel(way.activation_bits, self._batch)} ({way.tier}), {way.bits} and "
                f"{way.activation_bits} bits, {self._size} x {self._size}"
            )

    def _case(self, way: Way, packed: int, seconds: Mapping[object, float], limit: Limit) -> Case:
        own, fp32, int8 = seconds[way], seconds["fp32"], seconds.get("int8")
        matrix = self._matrices[way.bits, way.tier]
        return {
            "size": self._size,
            "weight_bits": way.bits,
            "activation_bits": way.activation_bits,
            "batch": self._batch,
            "threads": self._threads,
            "device": "cpu",
            "tier": way.tier,
            "kernel": matrix.kernel(way.activation_bits, self._batch),
            "microseconds": own * 1e6,
            "speedup_fp32": fp32 / own,
            "speedup_int8": None if int8 is None else int8 / own,
            "weight_gb_per_second": packed / own / 1e9,
            "exact": True,
            "packed_bytes": packed,
            "baseline": self.about,
            "fp32_microseconds": fp32 * 1e6,
            "int8_microseconds": None if int8 is None else int8 * 1e6,
            "memory_microseconds": limit.memory * 1e6,
            "arithmetic_microseconds": limit.arithmetic * 1e6,
            "times_limit": own / limit.longest,
            "operations_per_byte": intensity(
                self._size, way.bits, way.activation_bits, self._batch
            ),
        }


def quantized(
    x: npt.NDArray[np.float32], activation_bits: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Returns vectors rounded to k-bit integers, and the step of each vector."""
    top = float((1 << activation_bits - 1) - 1)
    wide = x.astype(np.float64)
    largest = np.abs(wide).max(axis=1, keepdims=True)
    integers = np.rint(wide * top / np.where(largest == 0, 1, largest))
    return integers.astype(np.int32), (largest / top)[:, 0]


def exact_products(
    weights: QuantizedWeights, integers: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """Returns the products of weights with vectors (batch, columns) in 64-bit integers of NumPy."""
    matrix, wide = weights.to_integers(), integers.astype(np.int64)
    parts = [
        wide @ matrix[first : first + _ROWS_CHECKED].T.astype(np.int64)
        for first in range(0, len(matrix), _ROWS_CHECKED)
    ]
    return np.concatenate(parts, axis=1)


def _print_tables(cases: Sequence[Case]) -> None:
    """Prints Table 3.1 for the first batch, threads and tier, and the numbers of Figure 3.2."""
    first = cases[0]
    own = [c for c in cases if all(c[k] == first[k] for k in ("batch", "threads", "tier"))]
    sizes = list(dict.fromkeys(c["size"] for c in own))
    columns: list[Column] = [("method", "speedup over fp32", "17")]
    columns += [(str(size), f"{size} x {size}", "8.1f") for size in sizes]
    report = Report(columns)
    for line in table(own):
        report.add(line)
    print("operations per byte, as in Figure 3.2 (of a bit each, or as wide as the numbers):")
    largest = max(int(str(size)) for size in sizes)
    standard = ", ".join(
        f"{name} {standard_intensity(largest, bits, int(str(first['batch']))):.1f}"
        for name, bits in (("fp32", 32), ("fp16", 16), ("int8", 8), ("int4", 4), ("int1", 1))
    )
    activations = {
        c["activation_bits"]: c["operations_per_byte"] for c in own if c["size"] == largest
    }
    ours = ", ".join(f"{bits}-bit activations {n:.0f}" for bits, n in activations.items())
    print(f"{largest:,} x {largest:,}: {standard}; bit-serial, {ours}")


def table(cases: Sequence[Case]) -> Iterator[Case]:
    """Yields the lines of Table 3.1: a method each, with its speedup over float32 at each size."""
    lines: dict[str, Case] = {}
    for case in cases:
        bits = case["weight_bits"]
        name = f"{bits} {'bit' if bits == 1 else 'bits'} (a={case['activation_bits']})"
        lines.setdefault(name, {"method": name})[str(case["size"])] = case["speedup_fp32"]
    yield from lines.values()
    fp32 = {str(case["size"]): case for case in cases}
    if all(case["int8_microseconds"] for case in fp32.values()):
        ratios = {
            size: float(str(case["fp32_microseconds"])) / float(str(case["int8_microseconds"]))
            for size, case in fp32.items()
        }
        yield {"method": "int8", **ratios}
    yield {"method": "fp32", **dict.fromkeys(fp32, 1.0)}
