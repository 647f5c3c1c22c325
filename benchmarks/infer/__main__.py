"""`python -m benchmarks.infer`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks._main import main as run_main
from nescio.bench.registry import JSON, Benchmark, Option, list_of
from nescio.commands import count

_RESNET_FILES = (
    Option(
        "--model",
        required=True,
        metavar="FILE",
        help="resnet32-d509ac18.th of akamaster/pytorch_resnet_cifar10",
    ),
    Option(
        "--images",
        required=True,
        metavar="PATH",
        help="CIFAR-10: the folder cifar-10-batches-bin, or an .npz with train_images, "
        "test_images and test_labels",
    ),
)
_FIGURES = (
    Option(
        "--data",
        metavar="FOLDER",
        help="folder with mnist/, cifar10/cifar10_lossless_head.npz and "
        "models/resnet32-cifar10-d509ac18.th (default: NESCIO_DATA, or ../shared/data); without a "
        "file, weights or images are random",
    ),
    Option("--images", metavar="PATH", help="other images of CIFAR-10, as for resnet"),
    Option("--model", metavar="FILE", help="another copy of resnet32-d509ac18.th"),
    Option("--networks", type=list_of(str), help="comma-separated networks (default: all four)"),
    Option(
        "--steps",
        type=list_of(str),
        default=["parties", "spu", "transfers", "quality"],
        help="comma-separated steps after the compilation (default: parties,spu,transfers,quality)",
    ),
    Option(
        "--inferences", type=int, default=4, help="inferences over each link (default: %(default)s)"
    ),
    Option(
        "--calibration",
        type=int,
        default=256,
        help="images for the calibration; a quarter of them is for the report (default: 256)",
    ),
    Option(
        "--table-bits",
        type=list_of(int),
        default=list(range(4, 13)),
        help="widths of tables for the simulator (default: 4 to 12)",
    ),
    Option(
        "--quality-seconds",
        type=float,
        default=150,
        help="time of the simulator for a network, half of it for tables of 8 bits; it takes as "
        "many images as fit, 32 at least (default: 150)",
    ),
    Option(
        "--threads",
        type=list_of(int),
        default=[1, 2],
        help="CPU threads a party; the first number is that of most rows (default: 1,2)",
    ),
    Option(
        "--spu-python",
        default=sys.executable,
        metavar="FILE",
        help="a Python that has SPU and JAX; without them, SPU is left out (default: this one)",
    ),
    Option("--spu-limit", type=float, default=800, help="seconds for SPU a network (default: 800)"),
    Option(
        "--limit",
        type=float,
        default=3600,
        help="seconds after which no step starts (default: 3600)",
    ),
    Option("--divisor", type=int, default=1, help="divides all widths, for tests (default: 1)"),
    Option(
        "--out",
        default="results/infer",
        metavar="FOLDER",
        help="folder for the tables, the cases as JSON, and plots (default: %(default)s)",
    ),
    Option(
        "--again",
        type=list_of(str),
        metavar="FILES",
        help="print and draw the JSON of earlier runs, of some networks each; comma-separated",
    ),
)

BENCHMARKS = (
    Benchmark(
        "batches",
        "benchmarks.infer.batches",
        "ResNet-32 on CIFAR-10, many inputs together",
        "Runs batches of inputs in two processes over emulated links, by numbers of threads in "
        "turn, and compares the outputs with the simulator's first. The floor of a batch's time is "
        "that of the link alone: round trips and bytes.",
        (
            *_RESNET_FILES,
            Option(
                "--batches",
                type=list_of(int),
                default=[1, 2, 4, 8, 16, 32],
                help="comma-separated numbers of inputs (default: 1,2,4,8,16,32)",
            ),
            Option(
                "--threads",
                type=list_of(int),
                default=[1, 2],
                help="comma-separated CPU threads a party (default: 1,2)",
            ),
            Option("--repeat", type=int, default=3, help="sessions of each (default: 3)"),
            JSON,
        ),
    ),
    Benchmark(
        "figures",
        "benchmarks.infer.figures",
        "the tables and figures of chapter 4 of the thesis",
        "Compiles LeNet, ResNet-32, VGG-16 and ResNet-34, and runs each between two processes over "
        "emulated links, beside the chapter's figures, garbled circuits by count, and SPU where it "
        "is installed. Every outcome is compared with the simulator's, bit for bit. Quality "
        "against the width of tables is the simulator's. A step that fails is a note at the end.",
        _FIGURES,
    ),
    Benchmark(
        "linear",
        "benchmarks.infer.linear",
        "the offline phase of linear layers",
        "Measures the CPU time of both parties and the bytes of both messages, on one thread, for "
        "layers of ResNet-32 and other shapes, and compares the shares with the product. The "
        "limit is the time of the transforms, products and random bytes that a layer needs, each "
        "measured alone in the cache, in the same run.",
        (
            Option(
                "--layer",
                type=list_of(str),
                metavar="NAMES",
                help="comma-separated layers (default: all)",
            ),
            Option("--repeat", type=int, default=15, help="runs of each layer (default: 15)"),
            JSON,
        ),
    ),
    Benchmark(
        "memory",
        "benchmarks.infer.memory",
        "peak memory of both parties that prepare inferences",
        "Prepares inferences of a plan in two processes, for limits on the server's transformed "
        "weights, and prints the peak resident memory of both parties, with Python and the model.",
        (
            Option("plan", type=Path, metavar="PLAN", help="file of Plan.save"),
            Option(
                "--limit",
                type=list_of(count),
                default=[0, 1 << 31],
                metavar="BYTES",
                help="comma-separated limits, such as 0,2^30 (default: 0,2^31)",
            ),
            Option("--count", type=int, default=1, help="inferences (default: %(default)s)"),
            Option("--threads", type=int, default=1, help="CPU threads a party (default: 1)"),
            JSON,
        ),
    ),
    Benchmark(
        "resnet",
        "benchmarks.infer.resnet",
        "ResNet-32 on CIFAR-10, both phases",
        "Quantizes the published ResNet-32, measures its agreement with the float model in the "
        "simulator, prepares inferences in two processes, and runs them over emulated links. Every "
        "outcome is compared with the simulator's, bit for bit. The floor of the time is that of "
        "the link alone: round trips and bytes.",
        (
            *_RESNET_FILES,
            Option(
                "--table-bits",
                type=list_of(int),
                default=[8, 9],
                help="comma-separated widths of tables (default: 8,9)",
            ),
            Option(
                "--inferences",
                type=int,
                default=10,
                help="inferences over each link (default: %(default)s)",
            ),
            Option(
                "--check",
                type=int,
                default=0,
                help="more images whose logits are compared with the simulator's (default: 0)",
            ),
            Option("--threads", type=int, default=1, help="CPU threads a party (default: 1)"),
            JSON,
        ),
    ),
    Benchmark(
        "tables",
        "benchmarks.infer.tables",
        "one-time tables by transfers and by trees",
        "Makes one-time tables with both parties in one process, by random transfers alone and by "
        "trees, in turn. Prints the bytes and the CPU time of a table. The limit is the CPU time "
        "of the correlated transfers that tables need, without hashes, in the same run.",
        (
            Option(
                "--bits",
                type=list_of(int),
                default=list(range(8, 13)),
                metavar="NUMBERS",
                help="comma-separated log2 of the entries (default: 8,9,10,11,12)",
            ),
            Option("--count", type=int, default=1 << 15, help="tables at once (default: 32768)"),
            Option("--repeat", type=int, default=9, help="runs of each (default: 9)"),
            JSON,
        ),
    ),
    Benchmark(
        "transformer",
        "benchmarks.infer.transformer",
        "an encoder block: computed costs, and its feed-forward half",
        "Computes the lookups, bytes, round trips and CPU time of one block of an encoder, softmax "
        "attention included, which is not implemented. --measure also runs the feed-forward half "
        "of the first model, with random weights, in two processes, beside the computed bytes.",
        (
            Option(
                "--model",
                type=list_of(str),
                metavar="NAMES",
                help="comma-separated encoders (default: MiniLM-L6,BERT-base)",
            ),
            Option("--tokens", type=int, default=128, help="tokens of an input (default: 128)"),
            Option(
                "--measure",
                type=list_of(int),
                metavar="TOKENS",
                help="comma-separated numbers of tokens to measure (default: none)",
            ),
            Option("--inferences", type=int, default=3, help="of each measured run (default: 3)"),
            JSON,
        ),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one benchmark; returns the exit code."""
    return run_main("infer", "Benchmarks of private inference.", BENCHMARKS, argv)


if __name__ == "__main__":
    sys.exit(main())
