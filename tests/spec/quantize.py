"""Weights of few bits in plain Python: the specification of `nescio.quant.weights`.

Thesis, section 3.3.3: linear levels step * q; one bit has the levels -step and +step and no zero.
"""

import math


def levels(bits: int) -> list[int]:
    """The integers that so many bits stand for."""
    return [-1, 1] if bits == 1 else list(range(-(1 << bits - 1), 1 << bits - 1))


def rounded(weight: float, step: float, bits: int) -> int:
    """The integer of a weight: the nearest level, half to even; with one bit, the sign."""
    if bits == 1:
        return 1 if weight >= 0 else -1
    if step == 0:
        return 0
    return min(max(round(weight / step), levels(bits)[0]), levels(bits)[-1])


def planes(integers: list[int], bits: int) -> list[list[int]]:
    """The bits of integers in two's complement, lowest plane first; of one bit, whether it is 1."""
    if bits == 1:
        return [[int(q > 0) for q in integers]]
    return [[q % (1 << bits) >> i & 1 for q in integers] for i in range(bits)]


def words(plane: list[int]) -> list[int]:
    """A row of a plane as numbers of 64 bits: column j is bit j % 64 of word j // 64."""
    return [
        sum(bit << j for j, bit in enumerate(plane[first : first + 64]))
        for first in range(0, len(plane), 64)
    ]


def squared_error(weights: list[float], step: float, bits: int) -> float:
    """The sum of squared differences from the levels."""
    return math.fsum((w - step * rounded(w, step, bits)) ** 2 for w in weights)


def least_error(weights: list[float], bits: int, tries: int) -> float:
    """The least error over evenly spaced steps, from 0 to the one that clips nothing."""
    high = max(1, levels(bits)[-1])
    widest = max(abs(w) for w in weights) / high
    return min(squared_error(weights, widest * k / tries, bits) for k in range(tries + 1))
