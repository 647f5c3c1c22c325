"""The chart of the bytes that each party of OTs sends, from the JSON of `nescio bench ot`.

Needs matplotlib: pip install 'nescio[bench]'.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from matplotlib.figure import Figure

from nescio._report import Case
from nescio.errors import FileError

KINDS = {
    "PARM": "parameters",
    "DRAW": "number of OTs",
    "OTBS": "base OT, its sender",
    "OTBR": "base OT, its receiver",
    "OTSU": "columns of the seeds",
    "OTSC": "the seeds' challenge",
    "OTSP": "the seeds' proof",
    "TREE": "sums of the trees' levels",
    "CHAL": "the trees' challenge",
    "PROF": "the trees' proof",
    "PASS": "the trees' verdict",
}

_ROLES = ("sender", "receiver")


def run(arguments: argparse.Namespace) -> int:
    """Draws the chart. Raises FileError for a file without cases of `nescio bench ot`."""
    plot_bytes(Path(arguments.out), _cases(Path(arguments.results)))
    return 0


def _cases(path: Path) -> list[Case]:
    try:
        cases = json.loads(path.read_text())
        return [case for case in cases if case["cold_sender_bytes_by_kind"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(
            f"{path} is not JSON that `nescio bench ot --json` has written: {error!r}"
        ) from error


def plot_bytes(path: Path, cases: Sequence[Case]) -> None:
    """Plots a bar for each party of each case, divided by message. Raises FileError."""
    rows = [(_name(case, role), _by_kind(case, role)) for case in cases for role in _ROLES]
    canvas = Figure(figsize=(9, 1.6 + 0.4 * len(rows)), layout="constrained")
    axes = canvas.add_subplot()
    left = [0.0] * len(rows)
    for kind in dict.fromkeys([*KINDS, *(kind for _, sent in rows for kind in sent)]):
        widths = [sent.get(kind, 0) / 1e3 for _, sent in rows]
        if any(widths):
            axes.barh([name for name, _ in rows], widths, left=left, label=KINDS.get(kind, kind))
        left = [a + b for a, b in zip(left, widths, strict=True)]
    for place, total in enumerate(left):
        axes.annotate(f" {total:,.1f}", (total, place), va="center", fontsize=8)
    axes.invert_yaxis()
    axes.set(xlabel="kilobytes sent at the first call, the headers of frames among them")
    axes.margins(x=0.08)
    canvas.legend(fontsize="x-small", loc="outside right center")
    try:
        canvas.savefig(path)
    except (OSError, ValueError) as error:
        raise FileError(f"the plot cannot be written: {error}") from error


def _by_kind(case: Case, role: str) -> Mapping[str, int]:
    return cast(Mapping[str, int], case[f"cold_{role}_bytes_by_kind"])


def _name(case: Case, role: str) -> str:
    checked = ", malicious" if case["malicious"] else ""
    return f"{case['family']} {case['parameters']}{checked}, {case['n']:,}: {role}"
