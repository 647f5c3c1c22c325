"""`nescio ot`: oblivious transfer, and security estimates of its parameter sets."""

import argparse
import json
import math
from typing import TYPE_CHECKING

from ..errors import ArgumentError
from . import Subparsers, count
from .ot_transfer import add_receive, add_send

_EXAMPLES = ((1 << 20, 1048589), (1 << 24, 16777259))  # outputs, and the next suitable prime
_HEADINGS = {
    "gauss": "Gauss",
    "parity": "parity",
    "isd": "ISD",
    "bjmm": "BJMM",
    "regular_prange": "r-Prange",
    "regular_isd": "r-ISD",
    "regular_bjmm": "r-BJMM",
    "hybrid": "hybrid",
    "agb": "AGB",
    "agb2": "AGB2",
    "linear_test": "linear",
}

if TYPE_CHECKING:
    from ..ot.estimate import Instance
    from ..ot.parameters import Dual, Primal

    Parameters = Primal | Dual | Instance


def add_parser(commands: Subparsers) -> None:
    """Declares the command and its subcommands."""
    parser = commands.add_parser(
        "ot",
        help="make oblivious transfers; estimate the security of their parameter sets",
        description="Makes correlated oblivious transfers (OTs) between two parties by silent OT: "
        "start `nescio ot send` at one party, then `nescio ot receive` at the other. Estimates the "
        "security of the parameter sets.",
    )
    subcommands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_send(subcommands)
    add_receive(subcommands)
    _add_estimate(subcommands)


def _add_estimate(subcommands: Subparsers) -> None:
    parser = subcommands.add_parser(
        "estimate",
        help="print the cost of each known attack on a parameter set",
        description="Prints log2 of the cost of each known attack on LPN parameters, by published "
        "formulas. Without options, it prints all parameter sets of Nescio and the dual codes at "
        "two sizes.",
    )
    add = parser.add_argument
    add("--set", metavar="NAME", help="estimate one primal parameter set, such as b13")
    add("--dual", choices=("ec", "qc"), help="estimate a dual code that makes --n outputs")
    add(
        "--n",
        type=count,
        help="number of samples of regular LPN, or of outputs with --dual, such as 2^20",
    )
    add("--k", type=count, help="number of bits of the LPN secret, with --n and --t")
    add("--t", type=count, help="number of blocks, with one noisy sample each, with --n and --k")
    add("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=_run_estimate)


def _run_estimate(arguments: argparse.Namespace) -> int:
    from .._report import Case, Report  # noqa: PLC0415 - needed only when the command runs
    from ..ot.estimate import estimate  # noqa: PLC0415

    chosen = _chosen(arguments)
    columns = [("set", "set", ">13"), ("N", "N", ">9"), ("k", "k", ">9"), ("t", "t", ">4")]
    columns += [(name, heading, ">6.1f") for name, heading in _HEADINGS.items()]
    columns += [("bits", "least", ">6.1f"), ("best", "by", ">11")]
    report = None if arguments.json else Report(columns)
    cases: list[Case] = []
    for name, parameters in chosen:
        found = estimate(parameters)
        attacks = {attack: cost for attack, cost in found.attacks.items() if math.isfinite(cost)}
        case: Case = {"set": name, **_numbers(parameters), **attacks}
        cases.append({**case, "bits": found.bits, "best": found.best})
        if report is not None:
            report.add(cases[-1])
    if report is None:
        print(json.dumps(cases))
    return 0


def _chosen(arguments: argparse.Namespace) -> "list[tuple[str, Parameters]]":
    """Returns the sets that the options select: one, or all."""
    from ..ot.estimate import Instance  # noqa: PLC0415
    from ..ot.parameters import PRIMAL, dual, primal  # noqa: PLC0415

    given = {
        option
        for option in ("set", "dual", "n", "k", "t")
        if getattr(arguments, option) is not None
    }
    if not given:
        duals = [(code, n, prime) for n, prime in _EXAMPLES for code in ("ec", "qc")]
        return [
            *((one.name, one) for one in PRIMAL),
            *((c, dual(c, n, prime=prime if c == "qc" else None)) for c, n, prime in duals),
        ]
    if given == {"set"}:
        # Estimating a weak set is harmless, so "cuot" selects "insecure_cuot" here.
        names = {one.name.removeprefix("insecure_"): one.name for one in PRIMAL}
        one = primal(names.get(arguments.set, arguments.set))
        return [(one.name, one)]
    if given == {"dual", "n"}:
        return [(arguments.dual, dual(arguments.dual, arguments.n))]
    if given == {"n", "k", "t"}:
        return [("-", Instance(arguments.n, arguments.k, arguments.t))]
    raise ArgumentError(
        f"found {' '.join(f'--{option}' for option in sorted(given))}; expected --set, or --dual "
        "and --n, or --n, --k and --t, or none of these options for all sets"
    )


def _numbers(parameters: "Parameters") -> dict[str, int]:
    """Returns N, k and t of the instance that the attacks solve."""
    from ..ot.estimate import instance_of  # noqa: PLC0415

    it = instance_of(parameters)
    return {"N": it.n, "k": it.k, "t": it.t}
