"""`python -m benchmarks.quant`."""

import sys
from collections.abc import Sequence

from benchmarks._main import main as run_main
from nescio.bench.registry import JSON, Benchmark, Option, list_of, seconds
from nescio.commands import count, devices

BENCHMARKS = (
    Benchmark(
        "models",
        "benchmarks.quant.models",
        "quality, speed and training of networks with weights of few bits",
        "Reproduces the experiments of chapter 3 of the thesis on MNIST and WikiText-2, with "
        "PyTorch, on this machine: Tables 3.2, 3.3 and 3.4 and Figures 3.3 and 3.4. First trains "
        "networks in float32, and keeps them in a cache if one is named. Writes each table or "
        "figure as text, some as plots, and all cases as JSON.",
        (
            Option("--out", metavar="FOLDER", required=True, help="folder of the results; created"),
            Option("--cache", metavar="FOLDER", help="folder of trained networks; created"),
            Option(
                "--data",
                metavar="FOLDER",
                help="folder that contains mnist and wikitext2 (default: NESCIO_DATA)",
            ),
            Option(
                "--only",
                type=list_of(str),
                metavar="NAMES",
                help="experiments to run, such as table-3.2-mnist,figure-3.3 (default: all)",
            ),
            Option(
                "--hidden", type=count, help="units of the MNIST network's layers (default: 4096)"
            ),
            Option("--units", type=count, help="units of the LSTM for WikiText-2 (default: 256)"),
            Option(
                "--epochs",
                type=count,
                help="epochs of training (default: 4; 3 for the LSTM and for retraining)",
            ),
            Option(
                "--full",
                action="store_true",
                help="use the sizes and epochs of the thesis, which takes hours or days",
            ),
            Option(
                "--quick",
                action="store_true",
                help="use tiny sizes, to test the command; the figures are meaningless",
            ),
            Option(
                "--threads",
                type=int,
                default=0,
                help="threads of PyTorch while training; 0 keeps PyTorch's default",
            ),
            seconds(0.5, "each speed"),
        ),
    ),
    Benchmark(
        "cpu",
        "benchmarks.quant.cpu",
        "layers with weights of few bits on the CPU, and the reading of their weights",
        "Times whole layers on one thread, from float32 to float32, in turns with PyTorch's "
        "float32 and int8 if it is installed, and prints the fastest and the median turn.",
        (
            Option(
                "--sizes",
                type=list_of(int),
                default=[512, 1024, 2048, 4096],
                help="numbers of columns, and of rows without --rows (default: 512,1024,2048,4096)",
            ),
            Option(
                "--rows",
                type=list_of(int),
                help="numbers of rows; compares all kernels and leaves out PyTorch (default: as "
                "many rows as columns, with the kernels that the engine chooses)",
            ),
            Option(
                "--weight-bits",
                type=list_of(int),
                default=[1, 2, 4, 8],
                help="bits of a weight, 1 to 8 (default: 1,2,4,8)",
            ),
            Option(
                "--turns",
                type=int,
                default=25,
                help="rounds in which every candidate is timed once (default: %(default)s)",
            ),
            JSON,
        ),
    ),
    Benchmark(
        "groups",
        "benchmarks.quant.groups",
        "a scale for each group of columns beside one for each row: error and speed",
        "Quantizes normally distributed weights, and times their products with 8-bit vectors in "
        "turns: on one thread, or in a CUDA graph. Every product is checked first.",
        (
            Option(
                "--device", type=devices, default="cpu", help="cpu, cuda, cuda:1 (default: cpu)"
            ),
            Option(
                "--sizes",
                type=list_of(count),
                default=[1024, 4096],
                help="rows and columns of the square matrices (default: 1024,4096)",
            ),
            Option(
                "--weight-bits",
                type=list_of(count),
                default=[1, 2, 4, 8],
                help="bits of a weight (default: 1,2,4,8)",
            ),
            Option(
                "--batches",
                type=list_of(count),
                default=[1, 16],
                help="vectors of a product (default: 1,16)",
            ),
            Option("--turns", type=int, default=40, help="of each candidate (default: 40)"),
            JSON,
        ),
    ),
    Benchmark(
        "gpu",
        "benchmarks.quant.gpu",
        "products with weights of few bits on a GPU, kernel by kernel",
        "Times products in a CUDA graph, and cuBLAS through PyTorch, as Table 3.1 of the thesis. "
        "Every product is checked against the CPU engine first, bit for bit.",
        (
            Option(
                "--device", type=devices, default="cuda", help="GPU: cuda, cuda:1 (default: cuda)"
            ),
            Option(
                "--size",
                type=list_of(int),
                default=(512, 1024, 2048, 4096),
                help="rows and columns of the square matrices (default: 512,1024,2048,4096)",
            ),
            Option(
                "--weight-bits",
                type=list_of(int),
                default=(1, 2, 4, 8),
                metavar="LIST",
                help="bits of a weight, 1 to 8 (default: 1,2,4,8)",
            ),
            Option(
                "--activation-bits",
                type=list_of(int),
                default=(8, 16, 32),
                metavar="LIST",
                help="bits of an activation: 8, 16 or 32 (default: 8,16,32)",
            ),
            Option(
                "--batch",
                type=int,
                default=1,
                help="vectors multiplied together (default: %(default)s)",
            ),
            Option(
                "--kernel",
                type=list_of(str),
                default=(None,),
                metavar="NAMES",
                help="kernels: count, count-fused, matrix, matrix-fused (default: the plan's)",
            ),
            Option(
                "--count",
                type=int,
                default=200,
                help="products in a CUDA graph (default: %(default)s)",
            ),
            JSON,
        ),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one benchmark; returns the exit code."""
    return run_main("quant", "Benchmarks of quantized networks from the thesis.", BENCHMARKS, argv)


if __name__ == "__main__":
    sys.exit(main())
