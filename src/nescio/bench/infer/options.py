"""The options of `nescio bench infer`."""

from ..registry import JSON, LINKS, PARTY_THREADS, Benchmark, Option, list_of, one_of
from .names import DEFAULT_SHAPES, LAYERS

__all__ = ["INFER"]

INFER = Benchmark(
    "infer",
    "nescio.bench.infer.run",
    "one layer of private inference between two processes, both phases",
    "Runs both parties in two processes, prepares a layer offline and runs it online, checks the "
    "result, and prints bytes and times beside their floors, which are computed or measured in "
    "the same run, and beside other programs. Options take comma-separated lists; every "
    "combination is measured.",
    (
        Option(
            "--layer",
            type=list_of(one_of(LAYERS)),
            default=list(LAYERS),
            help="layers: relu, conv, linear (default: all)",
        ),
        Option(
            "--elements",
            type=list_of(int),
            default=[1 << 16],
            help="numbers of ReLUs (default: 65536)",
        ),
        Option(
            "--table-bits",
            type=list_of(int),
            default=[8],
            help="bits of a ReLU's table, 4 to 12 (default: 8)",
        ),
        Option(
            "--shape",
            type=list_of(str),
            default=list(DEFAULT_SHAPES),
            help="shapes: CHANNELS-OUTPUTSxSIZE of a convolution of 3 x 3, INPUTS-OUTPUTS of a "
            f"matrix (default: {','.join(DEFAULT_SHAPES)})",
        ),
        PARTY_THREADS,
        LINKS,
        Option(
            "--repeat",
            type=int,
            default=5,
            help="inferences of a case after the first, cold one (default: %(default)s)",
        ),
        Option(
            "--peers",
            action="store_true",
            help="measure SPU's Cheetah too, if it is installed (pip install spu, Python 3.11)",
        ),
        Option(
            "--peer",
            action="append",
            default=[],
            metavar="NAME=COMMAND",
            help="measure ReLUs of another program too: COMMAND ELEMENTS BITS prints a JSON "
            "object with the fields of a case; may be given more than once",
        ),
        JSON,
    ),
)
