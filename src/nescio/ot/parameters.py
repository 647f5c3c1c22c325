"""The parameter sets of silent OT: one table, each set with its source and what it is worth.

`nescio ot estimate` computes the bits anew (`nescio.ot.estimate`); a test holds the table to it.
A set of less than 128 bits has a name that begins with `insecure_`.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from ..errors import ArgumentError

__all__ = [
    "CODES",
    "LEAST_BITS",
    "LEAST_SIZE",
    "MOST_OUTPUTS",
    "PRIMAL",
    "Code",
    "Dual",
    "Primal",
    "dual",
    "primal",
]

Code = Literal["ec", "qc"]
CODES: tuple[Code, ...] = get_args(Code)

LEAST_BITS = 128
LEAST_SIZE = 1 << 12
"""Of a dual code: blocks of noise in a shorter one are too short for 128 bits."""
MOST_OUTPUTS = 1 << 32
"""Of one expansion of a dual code. Ask for more in several."""

_CONSISTENCY_CHECK = 128
_INSECURE = "insecure_"
_LEAST_WEIGHT = 128  # 128 / -log2(1 - 2 * 0.25): see `Dual`


@dataclass(frozen=True)
class Primal:
    """Primal LPN with regular noise, as Ferret iterates it (Yang, Weng, Lan, Zhang, Wang 2020).

    `k` secret bits, `t` trees of 2^depth leaves, one leaf of each noisy; every sample is the XOR of
    `row_weight` bits of the secret and a leaf. `bits` is the least estimate over all attacks of
    `nescio.ot.estimate`, which treats the sparse rows as random ones: no better attack is known.
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
        """Samples of an iteration, N."""
        return self.t << self.depth

    @property
    def inputs(self) -> int:
        """Correlated OTs that an iteration starts from: secret, trees, consistency check."""
        return self.k + self.t * self.depth + _CONSISTENCY_CHECK

    @property
    def outputs(self) -> int:
        """What is left of an iteration after the next one's inputs."""
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
    """The primal set of a name.

    Raises ArgumentError for a name that is none, and for an insecure set's without `insecure_`.
    """
    sets = {one.name: one for one in PRIMAL}
    if name in sets:
        return sets[name]
    weak = sets.get(_INSECURE + name)
    if weak is not None:
        raise ArgumentError(
            f"primal set {name!r}: found {weak.bits:.1f} bits by estimate, expected {LEAST_BITS}; "
            f"take {PRIMAL[0].name!r} or larger, or {weak.name!r} where security does not matter"
        )
    raise ArgumentError(f"primal set: found {name!r}, expected one of {', '.join(sets)}")


@dataclass(frozen=True)
class Dual:
    """Dual LPN with regular noise: a code's product with 2 * size positions of noise.

    `outputs` of the code's `size` rows are used. The noise is `t` trees of 2^depth leaves, one leaf
    of each noisy; leaves beyond the last position are dropped, so the last tree's noise may be, and
    `weight` counts the trees that are there as a whole, never under 128.

    `bits` is a floor. Linear tests cost weight * -log2(1 - 2 d) bits, with d = 0.25 if words
    lighter than a quarter of the code's length are too hard to find. That d is an assumption:
    libOTe states it, as a pseudo-distance, for both codes (ConfigureCode at a0871f6); neither
    libOTe nor Nescio proves it. Decoding costs more than 128 bits at every size from LEAST_SIZE,
    by `nescio.ot.estimate`.
    """

    code: Code
    outputs: int
    size: int
    t: int
    depth: int
    source: str
    bits: float = float(LEAST_BITS)

    @property
    def n(self) -> int:
        """Positions of noise, N."""
        return 2 * self.size

    @property
    def weight(self) -> int:
        """Trees whose leaves are all used."""
        return self.n >> self.depth


_SOURCES: dict[Code, str] = {
    "ec": "expand-convolute 7 x 24 (Raghuraman, Rindal, Tanguy 2023); d = 0.25 stated by libOTe, "
    "not re-derived",
    "qc": "quasi-cyclic (Boyle et al. 2019; Aguilar et al. 2018); d = 0.25 stated by libOTe, "
    "not re-derived",
}


def dual(code: str, n: int, *, prime: int | None = None) -> Dual:
    """The dual set for n outputs: 128 to 255 whole trees of noise whatever n is.

    For "ec" the code has n rows, for "qc" `prime` rows (by default the next suitable prime), and
    LEAST_SIZE at least for either. Raises ArgumentError for an unknown code, for n below 1 or above
    MOST_OUTPUTS, and for a prime that is too small, or one where none belongs.
    """
    if code not in CODES:
        raise ArgumentError(f"code: found {code!r}, expected one of {', '.join(CODES)}")
    if not 1 <= n <= MOST_OUTPUTS:
        raise ArgumentError(f"outputs: found {n}, expected 1 to {MOST_OUTPUTS}; ask several times")
    size = max(n, LEAST_SIZE)
    if code == "qc":
        size = _prime(size, prime)
    elif prime is not None:
        raise ArgumentError(f"prime: found {prime} for the code 'ec', expected it for 'qc' alone")
    positions = 2 * size
    depth = (positions // _LEAST_WEIGHT).bit_length() - 1
    trees = -(-positions >> depth)  # rounded up
    return Dual(code, n, size, trees, depth, _SOURCES[code])


def _prime(least: int, given: int | None) -> int:
    if given is None:
        from ._primes import next_suitable  # noqa: PLC0415

        return int(next_suitable(least))
    if not least <= given <= 2 * MOST_OUTPUTS:
        raise ArgumentError(f"prime: found {given}, expected a suitable one, {least} or more")
    return given
