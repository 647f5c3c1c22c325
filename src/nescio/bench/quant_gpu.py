"""Low-bit products on a GPU, compared with cuBLAS through PyTorch (thesis, Table 3.1).

Products run in a CUDA graph. Each is first checked against the CPU engine, bit for bit.
"""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core
from .._device import Device, describe
from .._report import Case, Column, Report
from ..errors import ArgumentError
from ..quant import QuantizedWeights
from ..quant.device import DeviceMatrix
from .results import Results
from .timing import WrongResultError

COUNT = 200
_MIN_INT8_BATCH = 32  # torch._int_mm on a GPU refuses 16 rows and fewer

_COLUMNS: list[Column] = [
    ("size", "size", "5,d"),
    ("weight_bits", "w", "2d"),
    ("activation_bits", "a", "2d"),
    ("batch", "batch", "3d"),
    ("kernel", "kernel", "12"),
    ("microseconds", "us", "8,.2f"),
    ("weight_gb_per_second", "GB/s", "7,.0f"),
    ("speedup_fp32", "x fp32", "6,.1f"),
    ("speedup_fp16", "x fp16", "6,.1f"),
    ("speedup_int8", "x int8", "6,.1f"),
]
_NOTES = """\
us: one product, including quantization and scaling, in a graph of {count} dependent products, the
fastest of some replays. Weights that fit in the second-level cache are read from there. fp32, fp16,
int8: speedup over PyTorch (cuBLAS) in such a graph; its int8 excludes quantization and has a batch
of at least 32. A product of 1 x 1 takes {overhead:.2f} us: the cost of a kernel in a graph."""


class Baselines:
    """Products of one size by PyTorch; none if it is missing or has no GPU."""

    def __init__(self, device: Device, batch: int, count: int) -> None:
        self._torch: Any = None
        self._name = str(device)
        self._batch, self._count = batch, count
        with contextlib.suppress(ImportError):
            import torch  # noqa: PLC0415 - not a dependency

            if device.kind == "cuda" and torch.cuda.is_available():
                self._torch = torch

    def microseconds(self, size: int) -> dict[str, float]:
        """Returns the microseconds of each type that this PyTorch supports, by name."""
        if self._torch is None:
            return {}
        ways = {"fp32": self._floats, "fp16": self._halves, "int8": self._bytes}
        found = {}
        for name, make in ways.items():
            with contextlib.suppress(RuntimeError):  # its int8 supports some shapes only
                found[name] = 1e6 * self._seconds(make(size))
        return found

    def _floats(self, size: int) -> Callable[[], object]:
        return self._linear(size, self._torch.float32)

    def _halves(self, size: int) -> Callable[[], object]:
        return self._linear(size, self._torch.float16)

    def _linear(self, size: int, dtype: object) -> Callable[[], object]:
        torch = self._torch
        w = torch.randn((size, size), device=self._name, dtype=dtype)
        x = torch.randn((self._batch, size), device=self._name, dtype=dtype)
        return lambda: torch.nn.functional.linear(x, w)

    def _bytes(self, size: int) -> Callable[[], object]:
        torch = self._torch
        batch = max(self._batch, _MIN_INT8_BATCH)
        w = torch.randint(-128, 128, (size, size), device=self._name, dtype=torch.int8)
        x = torch.randint(-128, 128, (batch, size), device=self._name, dtype=torch.int8)
        return lambda: torch._int_mm(x, w.t())

    def _seconds(self, work: Callable[[], object]) -> float:
        torch = self._torch
        with torch.cuda.device(self._name):
            work()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(self._count):
                    work()
            return min(self._replayed(graph) for _ in range(7)) / self._count

    def _replayed(self, graph: Any) -> float:  # noqa: ANN401 - a CUDAGraph
        events = [self._torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        graph.replay()
        events[1].record()
        events[1].synchronize()
        return float(events[0].elapsed_time(events[1])) * 1e-3


def random_weights(rng: np.random.Generator, size: int, bits: int) -> QuantizedWeights:
    """Returns random weights with scale 1/16."""
    words = -(-size // 64)
    planes = rng.integers(0, 1 << 64, (bits, size, words), dtype=np.uint64)
    planes[:, :, -1] &= np.uint64((1 << 64) - 1 >> words * 64 - size)
    return QuantizedWeights(planes, size, np.full(size, 1 / 16, np.float32))


def check(matrix: DeviceMatrix, batch: int, rng: np.random.Generator) -> None:
    """Raises WrongResultError unless products equal those of the CPU engine, bit for bit."""
    x = rng.standard_normal((batch, matrix.columns)).astype(np.float32)
    weights = matrix.weights
    expected = _core.BitMatrix(weights.planes, weights.columns).apply(
        x, matrix.activation_bits, weights.scale, None, _core.ThreadPool(0)
    )
    if matrix(x).tobytes() != expected.tobytes():
        raise WrongResultError(
            f"{matrix.kernel(batch)}, {weights.bits} and {matrix.activation_bits} bits, "
            f"{matrix.rows} x {matrix.columns}"
        )


def measure(device: Device, arguments: argparse.Namespace) -> Iterator[Case]:
    """Yields a case for each combination. Raises what `check` and DeviceMatrix raise."""
    rng = np.random.default_rng(0)  # random weights for timing
    name = describe([device])
    baselines = Baselines(device, arguments.batch, arguments.count)
    for size in arguments.size:
        others = baselines.microseconds(size)
        for bits in arguments.weight_bits:
            weights = random_weights(rng, size, bits)
            for activation_bits in arguments.activation_bits:
                for kernel in arguments.kernel:
                    try:
                        matrix = DeviceMatrix(
                            weights, activation_bits, device=str(device), kernel=kernel
                        )
                        check(matrix, arguments.batch, rng)
                    except ArgumentError as error:  # a kernel this GPU lacks, or not enough memory
                        print(f"left out: {error}", file=sys.stderr)
                        continue
                    yield _case(matrix, arguments, name, others)


def _case(
    matrix: DeviceMatrix, arguments: argparse.Namespace, device: str, others: dict[str, float]
) -> Case:
    microseconds = 1e6 * matrix.seconds_each(arguments.batch, arguments.count)
    case: Case = {
        "size": matrix.rows,
        "weight_bits": matrix.weights.bits,
        "activation_bits": matrix.activation_bits,
        "batch": arguments.batch,
        "kernel": matrix.kernel(arguments.batch),
        "device": device,
        "threads": None,
        "microseconds": microseconds,
        "weight_gb_per_second": matrix.packed_bytes / microseconds * 1e-3,
        "exact": True,
    }
    for name in ("fp32", "fp16", "int8"):
        there = name in others
        case[f"{name}_microseconds"] = others[name] if there else None
        case[f"speedup_{name}"] = others[name] / microseconds if there else None
    return case


def run(arguments: argparse.Namespace) -> int:
    """Measures every combination, prints each, and writes JSON if requested."""
    device = Device.parse(arguments.device)
    print(describe([device]))
    one = DeviceMatrix(
        QuantizedWeights(np.ones((1, 1, 1), np.uint64), 1, np.ones(1, np.float32)),
        device=str(device),
    )
    with Results(arguments.json) as results:
        report = Report(_COLUMNS)
        for case in measure(device, arguments):
            report.add(case)
            results.add(case)
    overhead = 1e6 * one.seconds_each(1, arguments.count)
    print(_NOTES.format(count=arguments.count, overhead=overhead))
    return 0
