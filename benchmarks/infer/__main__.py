"""`python -m benchmarks.infer`."""

import sys
from collections.abc import Sequence

from benchmarks._main import main as run_main
from nescio.bench.registry import JSON, Benchmark, Option, list_of

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
