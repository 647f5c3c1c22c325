"""The cost of each known attack on a parameter set, by published formulas.

`_decoding` and `_algebraic` have the formulas with their sources. These count operations in a model
where memory is free, and their constants differ by a few bits between papers. The lowest cost is
the estimate of a set; it is not a proof of security.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError
from . import _algebraic, _decoding
from ._decoding import Instance, gauss_one_code
from .parameters import Dual, Primal

__all__ = ["ATTACKS", "Estimate", "Instance", "estimate", "gauss_one_code", "instance_of"]

ATTACKS: dict[str, Callable[[Instance], float]] = {
    "gauss": _decoding.gauss,
    "parity": _decoding.parity,
    "isd": _decoding.isd,
    "bjmm": _decoding.bjmm,
    "regular_prange": _decoding.regular_prange,
    "regular_isd": _decoding.regular_isd,
    "regular_bjmm": _decoding.regular_bjmm,
    "hybrid": _algebraic.hybrid,
    "agb": _algebraic.agb,
    "agb2": _algebraic.agb2,
}
"""The attacks on regular LPN over F_2 by name. Each maps an instance to log2 of its cost."""

_PSEUDO_DISTANCE = 0.25
_MAX_SAMPLES = 1 << 40


@dataclass(frozen=True)
class Estimate:
    """log2 of the cost of each attack, infinite if it does not apply, and their minimum."""

    attacks: dict[str, float]

    @property
    def bits(self) -> float:
        """The lowest cost."""
        return min(self.attacks.values())

    @property
    def best(self) -> str:
        """The name of the attack with the lowest cost."""
        return min(self.attacks, key=self.attacks.__getitem__)


def estimate(parameters: Primal | Dual | Instance) -> Estimate:
    """Estimates a set, or any instance of regular LPN over F_2 with n samples, k bits and weight t.

    A dual set becomes the instance with the positions and parity checks of its code; the attacker
    is assumed to know the noise outside of complete blocks. Dual sets have one more attack,
    `linear_test` (see `Dual`). The quasi-cyclic code loses log2(p) / 2 bits in every other attack,
    because each of the p rotations of a syndrome is one more target (Sendrier, "Decoding One Out
    of Many", 2011).

    Raises ArgumentError for an invalid instance: it needs 1 <= t < k, k + t < n and blocks of at
    least two positions.
    """
    instance = instance_of(parameters)
    _check(instance)
    with np.errstate(all="ignore"):  # impossible parameters get an infinite cost
        attacks = {name: max(float(attack(instance)), 0.0) for name, attack in ATTACKS.items()}
    if isinstance(parameters, Dual):
        if parameters.code == "qc":
            loss = math.log2(parameters.size) / 2
            attacks = {name: bits - loss for name, bits in attacks.items()}
        attacks["linear_test"] = -parameters.weight * math.log2(1 - 2 * _PSEUDO_DISTANCE)
    return Estimate(attacks)


def instance_of(parameters: Primal | Dual | Instance) -> Instance:
    """Returns the instance of regular LPN that the attacks on a set solve."""
    if isinstance(parameters, Primal):
        return Instance(parameters.n, parameters.k, parameters.t)
    if isinstance(parameters, Dual):
        positions = parameters.weight << parameters.depth
        return Instance(positions, positions - parameters.size, parameters.weight)
    return parameters


def _check(given: Instance) -> None:
    n, k, t = given.n, given.k, given.t
    if not 1 <= t < k < n - t or n > _MAX_SAMPLES:
        raise ArgumentError(
            f"found N={n}, k={k}, t={t}; expected 1 <= t < k, k + t < N and "
            f"N at most {_MAX_SAMPLES}"
        )
    if given.block < 2 or given.even().k <= t:
        raise ArgumentError(
            f"found N={n}, k={k}, t={t}: too few samples for t blocks of equal size; "
            "use an N that is a multiple of t and at least 2 t"
        )
