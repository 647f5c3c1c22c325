"""PrecisionBatching in plain Python: the executable specification of `core/bitserial/`.

Thesis of M. Lam, chapter 3: integers of few bits are stored as bit planes, and a product is a sum
of products of bits (section 3.3.1). The highest plane is negated (3.3.2). One-bit weights are -1
and 1, never 0 (3.3.3). Activations have one step per vector. All floating-point numbers are IEEE
754 doubles unless they are marked as float32.
"""

import math
import struct
from fractions import Fraction

Matrix = list[list[int]]
WORD = 64


# ---- Planes --------------------------------------------------------------------------------------


def levels(bits: int) -> range:
    """Return the range of weights of `bits` bits."""
    return range(-1, 2, 2) if bits == 1 else range(-(1 << bits - 1), 1 << bits - 1)


def plane_weights(bits: int) -> list[int]:
    """Return the weight of each plane, the lowest plane first; see `weight_offset`."""
    if bits == 1:
        return [2]
    return [1 << i for i in range(bits - 1)] + [-(1 << bits - 1)]


def weight_offset(bits: int) -> int:
    """Return the offset added to the sum of planes: one-bit weights -1 and 1 are stored as 0, 1."""
    return -1 if bits == 1 else 0


def to_planes(q: Matrix, bits: int) -> list[list[list[int]]]:
    """Return [plane][row][word]: bit j % 64 of word j // 64 is column j; unused bits are zero."""
    codes = [[(v + 1) // 2 if bits == 1 else v % (1 << bits) for v in row] for row in q]
    return [[_words([code >> i & 1 for code in row]) for row in codes] for i in range(bits)]


def from_planes(planes: list[list[list[int]]], columns: int) -> Matrix:
    """Return the integers with these planes."""
    bits = len(planes)
    return [
        [
            sum(
                weight * (row[j // WORD] >> j % WORD & 1)
                for weight, row in zip(plane_weights(bits), rows, strict=True)
            )
            + weight_offset(bits)
            for j in range(columns)
        ]
        for rows in zip(*planes, strict=True)
    ]


def _words(row: list[int]) -> list[int]:
    return [
        sum(bit << j for j, bit in enumerate(row[first : first + WORD]))
        for first in range(0, len(row), WORD)
    ]


# ---- The product ---------------------------------------------------------------------------------


def multiply(q: Matrix, x: list[int]) -> list[int]:
    """Return q x by the definition of a product."""
    return [sum(weight * value for weight, value in zip(row, x, strict=True)) for row in q]


def multiply_planes(planes: list[list[list[int]]], x: list[int], activation_bits: int) -> list[int]:
    """Return q x by algorithm 2 of the thesis: ANDs and population counts."""
    bits = len(planes)
    codes = [value % (1 << activation_bits) for value in x]
    x_planes = [_words([code >> j & 1 for code in codes]) for j in range(activation_bits)]
    x_weights = [1 << j for j in range(activation_bits - 1)] + [-(1 << activation_bits - 1)]
    y = []
    for rows in zip(*planes, strict=True):
        total = weight_offset(bits) * sum(x)
        for weight, row in zip(plane_weights(bits), rows, strict=True):
            for x_weight, x_row in zip(x_weights, x_planes, strict=True):
                ones = sum((a & b).bit_count() for a, b in zip(row, x_row, strict=True))
                total += weight * x_weight * ones
        y.append(total)
    return y


# ---- Floating point ------------------------------------------------------------------------------


def quantize_activations(x: list[float], activation_bits: int) -> tuple[list[int], float]:
    """Return the integers of one vector and their step: x ~ step * integers, halves to even."""
    if not all(math.isfinite(v) for v in x):
        raise ValueError("NaN or infinite")
    q_max = (1 << activation_bits - 1) - 1
    a = max((abs(v) for v in x), default=0.0)
    if a == 0:
        return [0] * len(x), 0.0
    return [round(v * q_max / a) for v in x], a / q_max


def apply(
    q: Matrix,
    x: list[float],
    activation_bits: int,
    scale: list[float],
    bias: list[float] | None = None,
) -> list[float]:
    """Compute the output of a layer for one vector; x, scale, bias and the result are float32."""
    integers, step = quantize_activations(x, activation_bits)
    y = [
        float32(float(total) * s * step)
        for total, s in zip(multiply(q, integers), scale, strict=True)
    ]
    return y if bias is None else [float32(v + b) for v, b in zip(y, bias, strict=True)]


def apply_groups(
    q: Matrix,
    x: list[float],
    activation_bits: int,
    scale: list[list[float]],
    group: int,
    bias: list[float] | None = None,
) -> list[float]:
    """Compute the output of a layer with a scale for each `group` columns of a row.

    The products of groups are rounded to float32 and added in their order. Each addition rounds
    once: it is a fused multiply-add in float32. Scales are float16.
    """
    integers, step = quantize_activations(x, activation_bits)
    y = []
    for row, scales in zip(q, scale, strict=True):
        total = 0.0
        for g, s in enumerate(scales):
            own = slice(g * group, (g + 1) * group)
            product = multiply([row[own]], integers[own])[0]
            total = fused_float32(nearest_float32(Fraction(product)), s, total)
        y.append(float32(total * step))
    return y if bias is None else [float32(v + b) for v, b in zip(y, bias, strict=True)]


def fused_float32(a: float, b: float, c: float) -> float:
    """Return a b + c for finite float32, rounded once to float32."""
    if not math.isfinite(c):
        return c
    return nearest_float32(Fraction(a) * Fraction(b) + Fraction(c))


def nearest_float32(value: Fraction) -> float:
    """Return the nearest float32 of a number, halves to even; beyond the largest, infinity."""
    if not value:
        return 0.0
    exponent = max(math.frexp(float(abs(value)))[1], -125) - 24
    scaled = value / Fraction(2) ** exponent
    return float32(math.ldexp(float(round(scaled)), exponent))


def float32(value: float) -> float:
    """Return the nearest float32, halves to even.

    The sum of two float32 in double precision, rounded so, is the correctly rounded sum.
    """
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
