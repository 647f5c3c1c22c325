"""`nescio bench`: measures this machine and its limits."""

from .. import _core
from ..bench.infer.options import INFER
from ..bench.registry import (
    JSON,
    LINKS,
    PARTY_THREADS,
    Benchmark,
    Option,
    add_benchmarks,
    list_of,
    one_of,
    seconds,
)
from ..bench.service.options import service_benchmarks
from ..dpf import OUTPUTS
from ..pir._device_table import STRATEGIES
from . import Subparsers, count, devices, generator

# The sizes in the README of GPU-DPF; its entries have 64 bytes.
_ROWS = [1 << 14, 1 << 16, 1 << 18, 1 << 20]
_ROW_BYTES = 64

_TIERS = _core.supported_tiers()
_LISTS = "Options take comma-separated lists; every combination is measured."

_OUTPUT = Option(
    "--output",
    type=list_of(one_of(OUTPUTS)),
    default=["bit"],
    help=f"outputs of the keys: {', '.join(OUTPUTS)} (default: bit)",
)
_GENERATOR = Option(
    "--generator",
    type=list_of(generator),
    default=["aes128", "chacha20"],
    help="pseudorandom generators of the keys (default: aes128,chacha20)",
)
_TIER = Option(
    "--tier",
    type=list_of(one_of(_TIERS)),
    help=f"instruction-set tiers of the CPU: {', '.join(_TIERS)} (default: the widest)",
)
_THREADS = Option(
    "--threads",
    type=list_of(int),
    default=[1],
    help="numbers of threads; 0 is every processor (default: 1)",
)
_ONE_THREADS = Option(
    "--threads", type=int, default=1, help="number of threads; 0 is every processor (default: 1)"
)
_DEVICES = "cpu, cuda, cuda:1, ..."

BENCHMARKS = (
    Benchmark(
        "dpf",
        "nescio.bench.dpf",
        "generation and full evaluation of distributed point functions",
        "Checks that the shares add up, then times key generation and full evaluation. The limit "
        f"is the time of the generator alone, measured in the same run. {_LISTS}",
        (
            Option(
                "--rows",
                type=list_of(int),
                default=_ROWS,
                help="sizes of the domain (default: 16384,65536,262144,1048576)",
            ),
            _OUTPUT,
            _GENERATOR,
            _TIER,
            _ONE_THREADS,
            JSON,
        ),
    ),
    Benchmark(
        "lookup",
        "nescio.bench.lookup",
        "the answers of a private-lookup server",
        "Checks that the answers are the rows, then times them. The limits, one pass over the "
        "table, the kernels' inner loops and the machine's instructions alone, are measured in "
        f"the same run. {_LISTS}",
        (
            Option(
                "--rows",
                type=list_of(int),
                default=_ROWS,
                help="rows of the table (default: 16384,65536,262144,1048576)",
            ),
            Option(
                "--row-bytes",
                type=list_of(int),
                default=[_ROW_BYTES],
                help="bytes of a row (default: 64)",
            ),
            Option(
                "--batch",
                type=list_of(int),
                default=[1, 256],
                help="queries answered together (default: 1,256)",
            ),
            Option(
                "--bins",
                type=list_of(int),
                metavar="LIST",
                help="measure inferences in place of queries, on tables cut into so many bins: one "
                "row from each bin, or from 1 bin --lookups rows. --clients takes the place of "
                "--batch",
            ),
            Option(
                "--lookups",
                type=int,
                default=64,
                help="rows of an inference on a table of 1 bin (default: %(default)s)",
            ),
            Option(
                "--clients",
                type=list_of(int),
                default=[1, 16, 64, 256],
                help="inferences answered together (default: 1,16,64,256)",
            ),
            _THREADS,
            _OUTPUT,
            _GENERATOR,
            _TIER,
            Option(
                "--record-rows",
                type=int,
                default=1,
                help="rows that a record joins, on the CPU; 0: as many as fit 256 bytes, as a "
                "served table has them (default: 1)",
            ),
            Option(
                "--verify",
                action="store_true",
                help="measure each CPU case with and without the hash tables against which "
                "clients check rows, in turns (default: without)",
            ),
            Option(
                "--device",
                type=list_of(devices),
                default=["cpu"],
                help=f"devices: {_DEVICES}; cuda:0+cuda:1 splits the rows between two. --threads "
                "and --tier apply to the CPU only (default: cpu)",
            ),
            Option(
                "--strategy",
                type=list_of(one_of(STRATEGIES)),
                default=["auto"],
                help=f"GPU strategies: {', '.join(STRATEGIES)} (default: auto)",
            ),
            Option(
                "--nodes",
                type=list_of(int),
                help="nodes that the GPU strategy 'bounded' expands at a time (default: 128)",
            ),
            seconds(0.7),
            JSON,
            Option(
                "--plot",
                metavar="FILE.png",
                help="plot throughput against latency, one point for each batch size",
            ),
        ),
    ),
    Benchmark(
        "keyed",
        "nescio.bench.keyed",
        "lookups of words, compared with lookups of rows by number",
        "Builds a keyed table, checks lookups of its words and of others, and times a server's "
        "answers in turns with those of a table of the same rows without keys, with and without "
        f"the check of rows. {_LISTS}",
        (
            Option("--rows", type=count, default=1 << 20, help="number of keys (default: 2^20)"),
            Option(
                "--row-bytes", type=int, default=_ROW_BYTES, help="bytes of a value (default: 64)"
            ),
            Option(
                "--batch",
                type=list_of(int),
                default=[256],
                help="keys looked up together (default: 256)",
            ),
            _THREADS,
            _GENERATOR,
            seconds(2.0),
            JSON,
        ),
    ),
    Benchmark(
        "ot",
        "nescio.bench.ot.run",
        "oblivious transfer between two processes",
        "Runs sender and receiver in two processes, checks every OT, and compares the speed with "
        f"the machine's rates of AES and of random reads, measured in the same run. {_LISTS}",
        (
            Option(
                "--n",
                type=list_of(count),
                default=[1 << 20, 1 << 24],
                help="OTs per call, a number or a power such as 2^24 (default: 2^20,2^24)",
            ),
            Option(
                "--output",
                type=list_of(one_of(("cot", "rot"))),
                default=["cot"],
                help="cot (correlated) or rot (random) OTs (default: cot)",
            ),
            Option(
                "--family",
                type=list_of(one_of(("primal", "dual"))),
                default=["primal", "dual"],
                help="families of LPN (default: primal,dual)",
            ),
            Option(
                "--set",
                type=list_of(str),
                metavar="NAMES",
                help="parameter sets: b10 to b13 for primal LPN, ec and qc for dual LPN",
            ),
            PARTY_THREADS,
            Option(
                "--device",
                type=list_of(devices),
                default=["cpu"],
                help="devices of both parties: cpu, cuda, cuda:0+cuda:1, ... (default: cpu)",
            ),
            LINKS,
            Option(
                "--malicious",
                choices=("no", "yes", "both"),
                nargs="?",
                const="yes",
                default="no",
                help="security against malicious parties (default: no; without a value: yes)",
            ),
            Option(
                "--repeat",
                type=int,
                default=5,
                help="calls of a case after the first, cold one (default: %(default)s)",
            ),
            JSON,
        ),
    ),
    INFER,
    Benchmark(
        "quant",
        "nescio.bench.quant",
        "products of matrices with 1- to 8-bit weights",
        "Checks products against exact integers, then times them in turns with float32 and int8 "
        "of PyTorch (float32 of NumPy if PyTorch is not installed). Prints the speedups as in "
        "Table 3.1 of the thesis and the numbers of its Figure 3.2. The limits, reading the "
        f"weights and the inner loops alone, are measured in the same run. {_LISTS}",
        (
            Option(
                "--size",
                type=list_of(int),
                default=[512, 1024, 2048, 4096],
                help="rows and columns of the square matrices (default: 512,1024,2048,4096)",
            ),
            Option(
                "--weight-bits",
                type=list_of(int),
                default=[1, 2, 4, 8],
                metavar="LIST",
                help="bits of a weight, 1 to 8 (default: 1,2,4,8)",
            ),
            Option(
                "--activation-bits",
                type=list_of(int),
                default=[8, 16, 32],
                metavar="LIST",
                help="bits of an activation: 8, 16 or 32 (default: 8,16,32)",
            ),
            _THREADS,
            Option(
                "--batch",
                type=list_of(int),
                default=[1],
                help="vectors multiplied together (default: 1)",
            ),
            _TIER,
            Option(
                "--device", type=devices, default="cpu", help=f"device: {_DEVICES} (default: cpu)"
            ),
            seconds(0.2),
            Option(
                "--plot",
                metavar="FILE.png",
                help="plot speedups by size, and operations per byte",
            ),
            JSON,
        ),
    ),
    *service_benchmarks(generator, devices),
    Benchmark(
        "table",
        "nescio.bench.table",
        "creating, saving, mapping and changing a table",
        "Times each operation on a table, and checks the rows after it. Taking in and updating "
        f"take turns, to compare them. {_LISTS}",
        (
            Option("--rows", type=int, default=1 << 20, help="rows of the table (default: 2^20)"),
            Option(
                "--row-bytes",
                type=list_of(int),
                default=[256],
                help="bytes of a row (default: 256)",
            ),
            _OUTPUT,
            Option(
                "--share",
                type=float,
                default=0.01,
                help="fraction of the rows that changes (default: %(default)s)",
            ),
            Option(
                "--rounds",
                type=int,
                default=5,
                help="times that the table is taken in and updated (default: %(default)s)",
            ),
            Option(
                "--only-updates",
                action="store_true",
                help="measure only taking in and updating",
            ),
            _THREADS,
            JSON,
        ),
    ),
)


def add_parser(commands: Subparsers) -> None:
    """Declares the command and its benchmarks."""
    parser = commands.add_parser(
        "bench",
        help="measure this machine, and compare each figure with the machine's limit",
        description="Checks the results of one part of Nescio, measures it on this machine, and "
        "prints each figure with the machine's limit.",
    )
    benches = parser.add_subparsers(title="benchmarks", required=True, metavar="BENCHMARK")
    add_benchmarks(benches, BENCHMARKS)
