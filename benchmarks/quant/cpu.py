"""`python -m benchmarks.quant cpu`: whole layers on the CPU, and the reading of their weights.

Uses one thread. All candidates of a size take turns, each with its weights in the cache as far as
they fit. With PyTorch installed, its float32 and its dynamically quantized int8 take part.
"""

import argparse
import itertools
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from nescio import _core
from nescio._arrays import ByteArray, IndexArray, as_count
from nescio._report import Case, Column, Report
from nescio.bench.results import Results

_POOL = _core.ThreadPool(1)
_ACTIVATION_BITS = (8, 16, 32)
_WARM = 4  # runs before each timed one
_MAX_SIZE = 1 << 16

_COLUMNS: list[Column] = [
    ("rows", "rows", "6"),
    ("columns", "columns", "7"),
    ("weight_bits", "weights", "7"),
    ("activation_bits", "activations", "11"),
    ("kernel", "kernel", ">16"),
    ("bytes", "bytes", "12,d"),
    ("microseconds", "us, fastest", "11,.2f"),
    ("median_microseconds", "us, median", "10,.2f"),
]

Candidate = tuple[Case, Callable[[], object]]


def run(arguments: argparse.Namespace) -> int:
    """Times the layers of every size that the arguments name."""
    for name in ("sizes", "rows"):
        for size in getattr(arguments, name) or []:
            as_count(size, f"--{name}", 1, _MAX_SIZE)
    for bits in arguments.weight_bits:
        as_count(bits, "--weight-bits", 1, 8)
    turns = as_count(arguments.turns, "--turns", 1, 1 << 20)
    report = Report(_COLUMNS)
    with Results(arguments.json) as results:
        for columns in arguments.sizes:
            for rows in arguments.rows or [columns]:
                candidates = _candidates(arguments, rows, columns)
                for case in _measure(candidates, turns):
                    report.add(case)
                    results.add(case)
    return 0


def _candidates(arguments: argparse.Namespace, rows: int, columns: int) -> list[Candidate]:
    """Makes the layers of one size: all kernels if rows are named, else the usual and PyTorch."""
    size = {"rows": rows, "columns": columns}
    names: Sequence[str | None] = [None]
    found = []
    if arguments.rows:
        names = _core.bitserial_kernels(_core.active_tier())
    else:
        found += _pytorch(rows, columns)
    for bits in arguments.weight_bits:
        found += _layers(bits, rows, columns, names)
    return [({**size, **case}, work) for case, work in found]


def _layers(bits: int, rows: int, columns: int, names: Sequence[str | None]) -> list[Candidate]:
    """Makes whole layers, from float32 to float32, and the reading of their bytes."""
    x = np.random.default_rng(0).standard_normal((1, columns)).astype(np.float32)
    scale, out = np.ones(rows, np.float32), np.empty((1, rows), np.float32)
    planes = _random_planes(bits, rows, columns)
    found: list[Candidate] = []
    for name, activation_bits in itertools.product(names, _ACTIVATION_BITS):
        matrix = _core.BitMatrix(planes, columns, kernel=name)
        case: Case = {"weight_bits": bits, "activation_bits": activation_bits}
        case |= {"kernel": matrix.kernel(activation_bits, 1), "bytes": matrix.packed_bytes}
        work = partial(matrix.apply, x, activation_bits, scale, None, _POOL, out)
        found.append((case, work))
    table = _core.Table([(1, matrix.packed_bytes // 64, 1)], 64, "u8")
    case = {"weight_bits": bits, "kernel": "reading", "bytes": matrix.packed_bytes}
    return [*found, (case, partial(table.read_all, _POOL))]


def _random_planes(bits: int, rows: int, columns: int) -> IndexArray:
    """Makes the bit planes of random weights."""
    generator = np.random.default_rng(bits)
    planes: ByteArray = generator.integers(
        0, 2, (bits, rows, -(-columns // 64) * 64), dtype=np.uint8
    )
    planes[:, :, columns:] = 0
    return np.packbits(planes, axis=-1, bitorder="little").view(np.uint64)


def _pytorch(rows: int, columns: int) -> list[Candidate]:
    """Makes PyTorch's layers; none if it is not installed."""
    try:
        import torch  # noqa: PLC0415
    except ModuleNotFoundError:
        return []
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    layer, x = torch.nn.Linear(columns, rows, bias=False), torch.randn(1, columns)
    quantized = torch.ao.quantization.quantize_dynamic(
        torch.nn.Sequential(layer), {torch.nn.Linear}, torch.qint8
    )
    return [
        ({"kernel": "PyTorch float32"}, lambda: torch.nn.functional.linear(x, layer.weight)),
        ({"kernel": "PyTorch int8"}, lambda: quantized(x)),
    ]


def _measure(candidates: Sequence[Candidate], turns: int) -> list[Case]:
    """Times the candidates in turns; adds the fastest and the median turn to their cases."""
    times: list[list[float]] = [[] for _ in candidates]
    for _ in range(turns):
        for (_, work), own in zip(candidates, times, strict=True):
            for _ in range(_WARM):
                work()
            start = time.perf_counter()
            work()
            own.append(1e6 * (time.perf_counter() - start))
    return [
        {**case, "microseconds": min(own), "median_microseconds": statistics.median(own)}
        for (case, _), own in zip(candidates, times, strict=True)
    ]
