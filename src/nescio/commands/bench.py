"""`nescio bench`: measures, each figure beside the machine's own limit."""

import argparse
from collections.abc import Callable

from .. import _core
from .._devices import STRATEGIES
from ..dpf import OUTPUTS
from . import Subparsers, count, devices, generator

# Those of the table in the README of GPU-DPF, whose entries have 64 bytes.
_ROWS = [1 << 14, 1 << 16, 1 << 18, 1 << 20]
_ROW_BYTES = 64

# Those to serve a table with; the others are measured when they are named.
_GENERATORS = ("aes128", "chacha20")


def add_parser(commands: Subparsers) -> None:
    """Declares the command and its own commands."""
    parser = commands.add_parser("bench", help="measure, beside the machine's own limits")
    benches = parser.add_subparsers(title="benchmarks", required=True, metavar="WHAT")
    _add_audit(benches)
    _add_dpf(benches)
    _add_lookup(benches)
    _add_figures(benches)
    _add_ot(benches)
    _add_ot_steps(benches)
    _add_quant(benches)
    _add_quant_models(benches)
    _add_service(benches)
    _add_table(benches)


def _add_audit(benches: Subparsers) -> None:
    parser = benches.add_parser(
        "audit",
        help="what the audit recovers, and when it stops",
        description="Repeats Figures 6.2 to 6.6 and 6.9 and Tables 6.1 to 6.3 of the thesis (Lam), "
        "small unless told otherwise, and the attack without counts, and holds columns against the "
        "planted matrix. The tables and Figures 6.6b and 6.9 need PyTorch, Pillow and CIFAR-10.",
    )
    add = parser.add_argument
    add(
        "--only",
        type=_list_of(str),
        metavar="NAMES",
        help="such as targets,figure-6.2a,blind,table-6.1",
    )
    add("--full", action="store_true", help="the chapter's sizes and trials: many hours")
    add("--trials", type=int, default=0, help="of each setting (default: each figure's own)")
    add("--method", choices=("auto", "reflect", "program"), default="auto")
    add("--certify", action="store_true", help="measure the certificates too, as targets always do")
    add("--time-limit", type=float, metavar="SECONDS", help="of a trial (20, with --full 600)")
    add("--data", metavar="FOLDER", help="that has cifar10 (default: NESCIO_DATA, ../shared/data)")
    add("--seed", type=int, default=0)
    add("--plot", metavar="FOLDER", help="draw each figure as SVG; made if it is not there")
    add("--json", metavar="FILE", help="write the cases as JSON")
    parser.set_defaults(run=_run_audit)


def _run_audit(arguments: argparse.Namespace) -> int:
    from ..bench.audit import run  # noqa: PLC0415 - needed only when the command runs

    return run(arguments)


def _add_dpf(benches: Subparsers) -> None:
    parser = benches.add_parser(
        "dpf",
        help="key generation and full evaluation",
        description="Checks that shares add up, then times keys and full evaluation. The limit is "
        "the time of the generator alone, measured in the same run.",
    )
    add = parser.add_argument
    add("--rows", type=_list_of(int), default=_ROWS)
    _add_kinds(parser, generators=list(_GENERATORS))
    add("--threads", type=int, default=1, help="0 is every processor")
    add("--json", metavar="FILE", help="write the cases as JSON")
    parser.set_defaults(run=_run_dpf)


def _run_dpf(arguments: argparse.Namespace) -> int:
    from ..bench.dpf import run  # noqa: PLC0415 - needed only when the command runs

    return run(arguments)


def _add_lookup(benches: Subparsers) -> None:
    parser = benches.add_parser(
        "lookup",
        help="a server's answers",
        description="Checks that the answers are the rows, then times them. The limits, a pass "
        "over the table and the arithmetic alone, are measured in the same run. Options take "
        "comma-separated lists; every combination is measured.",
    )
    add = parser.add_argument
    add("--rows", type=_list_of(int), default=_ROWS)
    add("--row-bytes", type=_list_of(int), default=[_ROW_BYTES])
    add("--batch", type=_list_of(int), default=[1, 256], help="queries answered together")
    add("--threads", type=_list_of(int), default=[1], help="0 is every processor")
    _add_kinds(parser, generators=list(_GENERATORS))
    add(
        "--device",
        type=_list_of(devices),
        default=["cpu"],
        help="cpu, cuda, cuda:1, ...; cuda:0+cuda:1 splits the rows; --threads and --tier are the "
        "processor's (default: cpu)",
    )
    add(
        "--strategy",
        type=_list_of(_one_of(STRATEGIES)),
        default=["auto"],
        help=f"of a GPU: {', '.join(STRATEGIES)} (default: auto)",
    )
    add(
        "--nodes",
        type=_list_of(int),
        help="that a bounded walk expands at a time (default: 128)",
    )
    add("--seconds", type=float, default=0.7, help="for each case (default: %(default)s)")
    add("--json", metavar="FILE", help="write the cases as JSON")
    add("--plot", metavar="FILE.png", help="draw throughput against latency over the batch sizes")
    parser.set_defaults(run=_run_lookup)


def _run_lookup(arguments: argparse.Namespace) -> int:
    from ..bench.lookup import run  # noqa: PLC0415

    return run(arguments)


def _add_figures(benches: Subparsers) -> None:
    parser = benches.add_parser(
        "figures",
        help="the figures and tables of the paper, on a GPU",
        description="Repeats the figures and tables on GPUs of the paper (Lam et al., 2024) with "
        "this engine. Writes each as text and, where matplotlib is installed, as a plot, and all "
        "cases as JSON.",
    )
    add = parser.add_argument
    add("--device", type=devices, default="cuda", help="cuda, cuda:1, ... (default: cuda)")
    add("--out", metavar="FOLDER", required=True, help="made if it is not there")
    add("--json", metavar="FILE", help="the cases (default: figures.json in the folder)")
    add("--quick", action="store_true", help="sizes so small that only the command is tested")
    add("--only", type=_list_of(str), metavar="NAMES", help="such as table-5,figure-13")
    add("--seconds", type=float, default=0.2, help="for each case (default: %(default)s)")
    add("--within", type=float, metavar="SECONDS", help="leave out what is not begun by then")
    parser.set_defaults(run=_run_figures)


def _run_figures(arguments: argparse.Namespace) -> int:
    from ..bench.figures import run  # noqa: PLC0415

    return run(arguments)


def _add_ot(benches: Subparsers) -> None:
    parser = benches.add_parser(
        "ot",
        help="oblivious transfers of two processes",
        description="Runs both parties, a process each, checks every OT, and compares with the "
        "machine's rates of AES and of reads at random, measured in the same run. Options take "
        "comma-separated lists; every combination is measured.",
    )
    add = parser.add_argument
    add("--n", type=_list_of(count), default=[1 << 20, 1 << 24], help="OTs of a call; 2^24 is one")
    add("--output", type=_list_of(_one_of(("cot", "rot"))), default=["cot"], help="or rot: random")
    add("--family", type=_list_of(_one_of(("primal", "dual"))), default=["primal", "dual"])
    add("--set", type=_list_of(str), metavar="NAMES", help="b10 to b13 of primal, ec, qc of dual")
    add("--threads", type=_list_of(int), default=[1], help="of each party; 0 is every processor")
    add("--device", type=_list_of(devices), default=["cpu"], help="cpu, cuda, cuda:0+cuda:1, ...")
    add("--link", type=_list_of(str), default=["local"], help="local, or such as 300mbit/2ms")
    add("--malicious", choices=("no", "yes", "both"), nargs="?", const="yes", default="no")
    add("--repeat", type=int, default=5, help="warm calls of a case (default: %(default)s)")
    add("--plot", metavar="FILE.svg", help="draw what each party sends at its first call")
    add("--json", metavar="FILE", help="write the cases as JSON")
    parser.set_defaults(run=_run_ot)


def _run_ot(arguments: argparse.Namespace) -> int:
    from ..bench.ot import run  # noqa: PLC0415

    return run(arguments)


def _add_ot_steps(benches: Subparsers) -> None:
    parser = benches.add_parser(
        "ot-steps",
        help="the steps of silent OT, each alone",
        description="Compares what each step gives with another way to do it, then times it beside "
        "the machine's rates of AES, reads at random and memory, measured in the same run. At the "
        "end, naive beside used, as in the paper (Gan et al., cuOT, its Figure 9 and Table I).",
    )
    add = parser.add_argument
    tiers = _core.supported_tiers()
    add("--n", type=_list_of(count), default=[1 << 20], help="OTs, up to 2^25 (default: 2^20)")
    add("--set", default="b10", help="of primal LPN: b10 to b13, insecure_cuot (default: b10)")
    add("--device", type=_list_of(devices), default=["cpu"], help="cpu, cuda, cuda:1, ...")
    add("--tier", type=_list_of(_one_of(tiers)), help="of the processor (default: all it has)")
    add("--threads", type=int, default=1, help="of the processor; 0 is all it has")
    add("--seconds", type=float, default=0.3, help="for each case (default: %(default)s)")
    add("--plot", metavar="FILE.svg", help="draw the ways of each step")
    add("--json", metavar="FILE", help="write the cases as JSON")
    parser.set_defaults(run=_run_ot_steps)


def _run_ot_steps(arguments: argparse.Namespace) -> int:
    from ..bench.ot_steps import run  # noqa: PLC0415

    return run(arguments)


def _add_quant(benches: Subparsers) -> None:
    parser = benches.add_parser(
        "quant",
        help="products with weights of few bits",
        description="Checks products against exact integers, then times them in turns with float32 "
        "and int8 of PyTorch (float32 of NumPy where it is not installed) and prints the speedups "
        "as Table 3.1 of the thesis and the numbers of its Figure 3.2. The limits, reading the "
        "weights and the inner loops alone, are measured in the same run. Options take "
        "comma-separated lists; every combination is measured.",
    )
    add = parser.add_argument
    tiers = _core.supported_tiers()
    add("--size", type=_list_of(int), default=[512, 1024, 2048, 4096], help="rows and columns")
    add("--weight-bits", type=_list_of(int), default=[1, 2, 4, 8], metavar="LIST", help="1 to 8")
    add("--activation-bits", type=_list_of(int), default=[8, 16, 32], metavar="LIST")
    add("--threads", type=_list_of(int), default=[1], help="0 is every processor (default: 1)")
    add("--batch", type=_list_of(int), default=[1], help="vectors multiplied together")
    add("--tier", type=_list_of(_one_of(tiers)), help="of the processor (default: the widest)")
    add("--device", type=devices, default="cpu", help="cpu, cuda, cuda:1, ... (default: cpu)")
    add("--seconds", type=float, default=0.2, help="for each case (default: %(default)s)")
    add("--plot", metavar="FILE.png", help="draw speedups by size, and operations for a byte")
    add("--json", metavar="FILE", help="write the cases as JSON")
    parser.set_defaults(run=_run_quant)


def _run_quant(arguments: argparse.Namespace) -> int:
    from ..bench.quant import run  # noqa: PLC0415

    return run(arguments)


def _add_quant_models(benches: Subparsers) -> None:
    parser = benches.add_parser(
        "quant-models",
        help="networks with weights of few bits: quality, speed, training",
        description="Repeats the experiments of the thesis' chapter 3 on MNIST and WikiText-2, "
        "with PyTorch, on this machine: Tables 3.2, 3.3 and 3.4 and Figures 3.3 and 3.4. Trains "
        "networks of float32 first, and keeps them in a cache if one is named. Writes each as "
        "text, some as plots, and all cases as JSON.",
    )
    add = parser.add_argument
    add("--out", metavar="FOLDER", required=True, help="for the results; made if it is not there")
    add("--cache", metavar="FOLDER", help="for trained networks; made if it is not there")
    add("--data", metavar="FOLDER", help="has mnist and wikitext2 (default: NESCIO_DATA)")
    add("--only", type=_list_of(str), metavar="NAMES", help="such as table-3.2-mnist,figure-3.3")
    add("--hidden", type=count, help="units of MNIST's layers (default: 4096)")
    add("--units", type=count, help="of WikiText-2's LSTM (default: 256)")
    add("--epochs", type=count, help="of training (default: 4, LSTM and retraining 3)")
    add("--full", action="store_true", help="the thesis' sizes and epochs: hours, or days")
    add("--quick", action="store_true", help="sizes so small that only the command is tested")
    add("--threads", type=int, default=0, help="of training; 0 is PyTorch's own choice")
    add("--seconds", type=float, default=0.5, help="for each timing (default: %(default)s)")
    parser.set_defaults(run=_run_quant_models)


def _run_quant_models(arguments: argparse.Namespace) -> int:
    from ..bench.quant_models import run  # noqa: PLC0415

    return run(arguments)


def _add_service(benches: Subparsers) -> None:
    parser = benches.add_parser(
        "service",
        help="the HTTP service under load",
        description="Starts a server of one party, asks it from several clients at once, checks "
        "every answer, and compares with the engine alone, timed before and after.",
    )
    add = parser.add_argument
    add("--rows", type=int, default=1 << 20)
    add("--row-bytes", type=int, default=256)
    add("--clients", type=int, default=16, help="requests under way at once")
    add("--batch", type=int, default=16, help="rows that a request asks for")
    add("--threads", type=int, default=1, help="of the server; leave a processor to the clients")
    add("--generator", type=generator, default="chacha20")
    add("--seconds", type=float, default=10.0)
    add("--json", metavar="FILE", help="write the case as JSON")
    parser.set_defaults(run=_run_service)


def _run_service(arguments: argparse.Namespace) -> int:
    from ..bench.service import run  # noqa: PLC0415

    return run(arguments)


def _add_table(benches: Subparsers) -> None:
    parser = benches.add_parser(
        "table",
        help="taking a table in, saving, mapping, and changing its rows",
        description="Times each step of a table's life once, and checks the rows after it.",
    )
    add = parser.add_argument
    add("--rows", type=int, default=1 << 20)
    add("--row-bytes", type=int, default=256)
    add("--output", choices=OUTPUTS, default="bit")
    add("--share", type=float, default=0.01, help="of the rows that change (default: %(default)s)")
    add("--threads", type=int, default=1, help="0 is every processor")
    add("--json", metavar="FILE", help="write the steps as JSON")
    parser.set_defaults(run=_run_table)


def _run_table(arguments: argparse.Namespace) -> int:
    from ..bench.table import run  # noqa: PLC0415

    return run(arguments)


def _add_kinds(parser: argparse.ArgumentParser, *, generators: list[str]) -> None:
    add = parser.add_argument
    add("--output", type=_list_of(_one_of(OUTPUTS)), default=["bit"])
    add("--generator", type=_list_of(generator), default=generators)
    add("--tier", type=_list_of(_one_of(_core.supported_tiers())), help="default: the widest")


def _list_of(kind: Callable[[str], object]) -> Callable[[str], list[object]]:
    """A comma-separated list for argparse."""

    def read(text: str) -> list[object]:
        return [*dict.fromkeys(kind(part) for part in text.split(","))]

    read.__name__ = "comma-separated list"
    return read


def _one_of(names: object) -> Callable[[str], str]:
    choices = list(names)  # type: ignore[call-overload]

    def read(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(choices)}")
        return text

    return read
