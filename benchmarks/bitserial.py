"""Times the bit-serial kernels of the CPU, and the reading of their weights.

    python benchmarks/bitserial.py                        the table of docs/quant-kernels.md
    python benchmarks/bitserial.py --rows 64,128,256      finds where tables begin to pay

Uses one thread. All contestants of a size take turns, each with its weights in the cache as far as
they fit. Prints the fastest and the median turn in microseconds. With PyTorch installed, its
float32 and its dynamically quantized int8 take part.
"""

import argparse
import itertools
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

from nescio import _core

POOL = _core.ThreadPool(1)
ACTIVATION_BITS = (8, 16, 32)
WARM = 4  # runs before each timed one

Contestants = dict[str, Callable[[], object]]


def random_planes(bits: int, rows: int, columns: int) -> np.ndarray:
    """Returns the bit planes of random weights."""
    generator = np.random.default_rng(bits)
    planes = generator.integers(0, 2, (bits, rows, -(-columns // 64) * 64), dtype=np.uint8)
    planes[:, :, columns:] = 0
    return np.packbits(planes, axis=-1, bitorder="little").view(np.uint64)


def kernels(bits: int, rows: int, columns: int, names: list[str]) -> Contestants:
    """Returns whole layers, from float32 to float32, and the reading of their bytes."""
    x = np.random.default_rng(0).standard_normal((1, columns)).astype(np.float32)
    scale, out = np.ones(rows, np.float32), np.empty((1, rows), np.float32)
    planes = random_planes(bits, rows, columns)
    contestants: Contestants = {}
    for name, activation_bits in itertools.product(names, ACTIVATION_BITS):
        matrix = _core.BitMatrix(planes, columns, kernel=name or None)
        used = matrix.kernel(activation_bits, 1)
        contestants[f"{bits} bits, {activation_bits}-bit activations: {used}"] = partial(
            matrix.apply, x, activation_bits, scale, None, POOL, out
        )
    table = _core.Table(matrix.packed_bytes // 64, 64, "u8")
    contestants[f"{bits} bits: reading {matrix.packed_bytes} bytes"] = lambda: table.read_all(POOL)
    return contestants


def pytorch(rows: int, columns: int) -> Contestants:
    """Returns PyTorch's layers, or nothing if it is not installed."""
    try:
        import torch  # noqa: PLC0415
    except ModuleNotFoundError:
        return {}
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    layer, x = torch.nn.Linear(columns, rows, bias=False), torch.randn(1, columns)
    quantized = torch.ao.quantization.quantize_dynamic(
        torch.nn.Sequential(layer), {torch.nn.Linear}, torch.qint8
    )
    return {
        "PyTorch float32": lambda: torch.nn.functional.linear(x, layer.weight),
        "PyTorch int8": lambda: quantized(x),
    }


def measure(contestants: Contestants, turns: int) -> None:
    """Prints the fastest and the median turn of each."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(turns):
        for name, run in contestants.items():
            for _ in range(WARM):
                run()
            start = time.perf_counter()
            run()
            times[name].append(1e6 * (time.perf_counter() - start))
    for name, found in times.items():
        print(f"  {name:48} {min(found):9.2f} {statistics.median(found):9.2f}")


def main() -> None:
    """Measures what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--sizes", default="512,1024,2048,4096", help="columns (and rows without --rows)"
    )
    parser.add_argument("--rows", default="", help="rows; compares all kernels")
    parser.add_argument("--weight-bits", default="1,2,4,8")
    parser.add_argument("--turns", type=int, default=25)
    given = parser.parse_args()
    bits = [int(b) for b in given.weight_bits.split(",")]
    for columns in (int(n) for n in given.sizes.split(",")):
        for rows in (int(m) for m in given.rows.split(",")) if given.rows else (columns,):
            print(f"{rows} x {columns}: microseconds, fastest and median")
            names = _core.bitserial_kernels(_core.active_tier()) if given.rows else [""]
            contestants = {} if given.rows else pytorch(rows, columns)
            for b in bits:
                contestants |= kernels(b, rows, columns, names)
            measure(contestants, given.turns)


if __name__ == "__main__":
    main()
