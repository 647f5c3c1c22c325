"""The cost of the primal lattice attack on learning with errors, by published formulas.

An attacker embeds secret and error as an unusually short vector in a lattice and reduces it with
BKZ. The smallest block size that finds the vector is that of Alkim, Ducas, Pöppelmann and Schwabe,
"Post-quantum Key Exchange" (USENIX Security 2016), section 6.3, with the small secret scaled to the
size of the error (Bai and Galbraith, ACISP 2014). The estimate takes ring-LWE for LWE of the same
dimension, as usual. Dual and hybrid attacks are not computed.
"""

import math
from dataclasses import dataclass

__all__ = ["RLWE", "Estimate", "Instance", "estimate"]

_BLOCK_SIZES = range(60, 4096)  # the formula for delta holds from about 50 on


@dataclass(frozen=True)
class Instance:
    """LWE of a dimension and a modulus, with the deviations of its secret and error."""

    dimension: int
    modulus_bits: float
    secret: float
    error: float
    samples: int


RLWE = Instance(4096, 60.0, math.sqrt(2 / 3), math.sqrt(42 / 4), 4096)
"""The parameters of core/rlwe, with the samples of one ternary polynomial."""


@dataclass(frozen=True)
class Estimate:
    """The block size of the cheapest attack, and log2 of its cost in three models."""

    block_size: int
    dimension: int

    @property
    def core_svp(self) -> float:
        """One call of a classical sieve: 0.292 per dimension."""
        return 0.292 * self.block_size

    @property
    def quantum_core_svp(self) -> float:
        """One call of a quantum sieve: 0.265 per dimension."""
        return 0.265 * self.block_size

    @property
    def standard(self) -> float:
        """The model of the homomorphic encryption standard: 8 d calls, and 2^16.4 each."""
        return self.core_svp + 16.4 + math.log2(8 * self.dimension)


def estimate(instance: Instance) -> Estimate:
    """Estimates the primal attack; the block size is below 4,096."""
    low, high = _BLOCK_SIZES.start, _BLOCK_SIZES.stop
    while low < high:
        middle = (low + high) // 2
        if _margin(instance, middle)[0] >= 0:
            high = middle
        else:
            low = middle + 1
    return Estimate(low, _margin(instance, low)[1])


def _margin(instance: Instance, block_size: int) -> tuple[float, int]:
    """Returns ln of the reduced basis vector over the short vector, and the best dimension."""
    root = _log_delta(block_size)
    scale = math.log(instance.error / instance.secret)
    modulus = instance.modulus_bits * math.log(2)
    n = instance.dimension
    best = math.sqrt(n * (modulus - scale) / root)
    dimension = min(max(round(best), n + 2), n + 1 + instance.samples)
    volume = (dimension - n - 1) * modulus + n * scale
    reduced = (2 * block_size - dimension - 1) * root + volume / dimension
    return reduced - math.log(instance.error * math.sqrt(block_size)), dimension


def _log_delta(b: int) -> float:
    """Returns ln of the root Hermite factor of BKZ (Chen's thesis, 2013)."""
    return math.log((math.pi * b) ** (1 / b) * b / (2 * math.pi * math.e)) / (2 * (b - 1))
