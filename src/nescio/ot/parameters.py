"""The parameter sets of silent OT, each with its source and its estimated security in bits.

`nescio ot estimate` recomputes the bits (`nescio.ot.estimate`), and a test compares them with this
table. The name of a set with less than 128 bits begins with `insecure_`.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from ..errors import ArgumentError

__all__ = [
    "CODES",
    "MAX_OUTPUTS",
    "MIN_BITS",
    "MIN_SIZE",
    "PRIMAL",
    "Code",
    "Dual",
    "Primal",
    "dual",
    "primal",
]

Code = Literal["ec", "qc"]
CODES: tuple[Code, ...] = get_args(Code)

MIN_BITS = 128
"""The security that every set must reach by estimate, except `insecure_` ones."""
MIN_SIZE = 1 << 12
"""The smallest dual code: shorter codes have noise blocks too short for 128 bits."""
MAX_OUTPUTS = 1 << 32
"""The largest output of one dual code; use several extensions for more."""

_CONSISTENCY_CHECK = 128
_INSECURE = "insecure_"
_MIN_WEIGHT = 128  # 128 / -log2(1 - 2 * 0.25): see `Dual`


@dataclass(frozen=True)
class Primal:
    """Primal LPN with regular noise, as Ferret iterates it (Yang, Weng, Lan, Zhang, Wang 2020).

    The secret has `k` bits. There are `t` trees of 2^depth leaves, with one noisy leaf each. Every
    sample is the XOR of `row_weight` bits of the secret and a leaf. `bits` is the lowest estimate
    over all attacks in `nescio.ot.estimate`. The estimates treat the sparse rows as random rows,
    because no better attack on sparse rows is known.
    """

    name: str
    t: int
    depth: int
    k: int
    bits: float
    source: str
    row_weight: int = 10

    @property
    def n(self) -> int:
        """Samples of one iteration, N."""
        return self.t << self.depth

    @property
    def inputs(self) -> int:
        """Correlated OTs that an iteration spends: secret, trees, consistency check."""
        return self.k + self.t * self.depth + _CONSISTENCY_CHECK

    @property
    def outputs(self) -> int:
        """Correlated OTs of an iteration that remain after the inputs of the next."""
        return self.n - self.inputs


_TUNING = "emp-ot, tuning.h at 94ff0e6; bits computed here"

PRIMAL = (
    Primal("b10", 850, 10, 1 << 16, 128.57, _TUNING),
    Primal("b11", 1170, 11, 1 << 17, 128.19, _TUNING),
    Primal("b12", 1520, 12, 1 << 18, 128.09, _TUNING),
    Primal("b13", 1900, 13, 1 << 19, 128.17, _TUNING),
    Primal(
        "insecure_cuot",
        1280,
        13,
        452_000,
        125.28,
        "cuOT; ferret_b13 of emp-ot in 2023 (8167b4d); bits computed here",
    ),
)


def primal(name: str) -> Primal:
    """Returns the primal set with the given name.

    Raises ArgumentError for unknown names, and for insecure sets without the prefix `insecure_`.
    """
    sets = {one.name: one for one in PRIMAL}
    if name in sets:
        return sets[name]
    weak = sets.get(_INSECURE + name)
    if weak is not None:
        raise ArgumentError(
            f"primal set {name!r}: found {weak.bits:.1f} bits by estimate, expected {MIN_BITS}; "
            f"use {PRIMAL[0].name!r} or larger, or {weak.name!r} where security does not matter"
        )
    raise ArgumentError(f"primal set: found {name!r}, expected one of {', '.join(sets)}")


@dataclass(frozen=True)
class Dual:
    """Dual LPN with regular noise: a code's product with 2 * size positions of noise.

    Of the code's `size` rows, `outputs` are used. The noise is `t` trees of 2^depth leaves with one
    noisy leaf each. Leaves beyond the last position are dropped, and the noisy leaf of the last
    tree may be among them; `weight` counts only the complete trees, at least 128.

    `bits` is a lower bound. Linear tests cost weight * -log2(1 - 2 d) bits, with d = 0.25 if
    codewords lighter than a quarter of the code's length are too hard to find. That d is an
    assumption: libOTe states it, as a pseudo-distance, for both codes (ConfigureCode at a0871f6);
    neither libOTe nor Nescio proves it. Decoding costs more than 128 bits at every size from
    MIN_SIZE, by `nescio.ot.estimate`.
    """

    code: Code
    outputs: int
    size: int
    t: int
    depth: int
    source: str
    bits: float = float(MIN_BITS)

    @property
    def n(self) -> int:
        """Positions of noise, N."""
        return 2 * self.size

    @property
    def weight(self) -> int:
        """Trees of which all leaves are used."""
        return self.n >> self.depth


_SOURCES: dict[Code, str] = {
    "ec": "expand-convolute 7 x 24 (Raghuraman, Rindal, Tanguy 2023); d = 0.25 stated by libOTe, "
    "not re-derived",
    "qc": "quasi-cyclic (Boyle et al. 2019; Aguilar et al. 2018); d = 0.25 stated by libOTe, "
    "not re-derived",
}


def dual(code: str, n: int, *, prime: int | None = None) -> Dual:
    """Computes the dual set for n outputs, with 128 to 255 complete trees of noise for any n.

    The code "ec" has n rows, the code "qc" has `prime` rows (default: the next suitable prime), and
    both have at least MIN_SIZE. Raises ArgumentError for an unknown code, for n below 1 or above
    MAX_OUTPUTS, for a prime that is too small, and for a prime with "ec".
    """
    if code not in CODES:
        raise ArgumentError(f"code: found {code!r}, expected one of {', '.join(CODES)}")
    if not 1 <= n <= MAX_OUTPUTS:
        raise ArgumentError(
            f"outputs: found {n}, expected 1 to {MAX_OUTPUTS}; request them in several parts"
        )
    size = max(n, MIN_SIZE)
    if code == "qc":
        size = _prime(size, prime)
    elif prime is not None:
        raise ArgumentError(
            f"prime: found {prime} for the code 'ec', expected a prime only for 'qc'"
        )
    positions = 2 * size
    depth = (positions // _MIN_WEIGHT).bit_length() - 1
    trees = -(-positions >> depth)  # rounded up
    return Dual(code, n, size, trees, depth, _SOURCES[code])


def _prime(smallest: int, given: int | None) -> int:
    if given is None:
        from ._primes import next_suitable  # noqa: PLC0415

        return int(next_suitable(smallest))
    if not smallest <= given <= 2 * MAX_OUTPUTS:
        raise ArgumentError(
            f"prime: found {given}, expected a suitable prime of at least {smallest}"
        )
    return given
