"""Other ways to compute ReLUs, by arithmetic: rows for the table, with bytes and without times.

Half gates take two ciphertexts of 16 bytes an AND gate: Zahur, Rosulek and Evans, "Two Halves Make
a Whole" (Eurocrypt 2015). Additions modulo 2^W and selections take W - 1 AND gates: Kolesnikov,
Sadeghi and Schneider, "Improved Garbled Circuit Building Blocks" (CANS 2009).
"""

from collections.abc import Iterator

from ..._report import Case
from .cases import Task

__all__ = ["baselines", "relu_gates"]

_GATE_BYTES = 32
_LABEL_BYTES = 16
_RING_BITS = 32

# Lam et al., "Tabula" (2022), for ResNet-32 and tables of 8 bits.
_TABULA_BITS = 8
_TABULA_ONLINE, _TABULA_OFFLINE, _TABULA_RELUS = 14_000_000, 4_600_000_000, 303_104


def relu_gates(bits: int, outputs: int = _RING_BITS) -> int:
    """Counts the AND gates of a ReLU: shares of `bits` are added, and a share of `outputs` made."""
    return 2 * (bits - 1) + outputs - 1


def baselines(task: Task) -> Iterator[Case]:
    """Yields rows of other programs for a case of ReLUs, none for other layers."""
    if task.table_bits is None:
        return
    for bits in (task.table_bits, _RING_BITS):
        yield _garbled(task, bits)
    if task.table_bits == _TABULA_BITS:
        yield {
            **_row(task, "Tabula, published", _TABULA_BITS),
            "online_bytes": task.elements * _TABULA_ONLINE // _TABULA_RELUS,
            "offline_bytes": task.elements * _TABULA_OFFLINE // _TABULA_RELUS,
        }


def _garbled(task: Task, bits: int) -> Case:
    """Returns a circuit that was garbled ahead; the labels of the client's share are not counted.

    Online, the server's share needs a label a bit, and the result goes back.
    """
    gates = relu_gates(bits)
    return {
        **_row(task, "half gates, computed", bits),
        "online_bytes": task.elements * (bits * _LABEL_BYTES + _RING_BITS // 8),
        "offline_bytes": task.elements * gates * _GATE_BYTES,
        "rounds": 1,
        "and_gates": gates,
    }


def _row(task: Task, program: str, bits: int) -> Case:
    names = ("online_seconds", "offline_seconds", "cpu_seconds", "rounds", "exact")
    return {
        "layer": task.layer,
        "elements": task.elements,
        "table_bits": bits,
        "online_bytes": None,
        "offline_bytes": None,
        **dict.fromkeys(names),
        "program": program,
        "measured": False,
        "size": task.size,
    }
