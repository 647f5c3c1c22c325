"""Quantization of weights in plain Python: the specification of `nescio.quant._weights`.

Thesis, section 3.3.3: linear levels step * q; one-bit weights have the levels -step and +step.
Planes are defined in `spec.bitserial`.
"""

import math

from spec.bitserial import levels


def rounded(weight: float, step: float, bits: int) -> int:
    """Return the integer of a weight: the nearest level, half to even; with one bit, the sign."""
    if bits == 1:
        return 1 if weight >= 0 else -1
    if step == 0:
        return 0
    return min(max(round(weight / step), levels(bits)[0]), levels(bits)[-1])


def squared_error(weights: list[float], step: float, bits: int) -> float:
    """Return the sum of squared differences from the levels."""
    return math.fsum((w - step * rounded(w, step, bits)) ** 2 for w in weights)


def least_error(weights: list[float], bits: int, tries: int) -> float:
    """Return the smallest error over evenly spaced steps, from 0 to the largest unclipped one."""
    high = max(1, levels(bits)[-1])
    largest = max(abs(w) for w in weights) / high
    return min(squared_error(weights, largest * k / tries, bits) for k in range(tries + 1))
