"""PrecisionBatching in plain Python: the executable specification of `core/bitserial/`.

Thesis of M. Lam, chapter 3: integers of few bits as planes of single bits, so that a product is a
sum of products of bits (section 3.3.1), with the highest plane negated (3.3.2) and, at one bit, no
zero (3.3.3). Activations have one step a vector; all floating-point numbers are IEEE 754 doubles
unless `float32` is said.
"""

import math
import struct

Matrix = list[list[int]]
WORD = 64


# ---- Planes --------------------------------------------------------------------------------------


def levels(bits: int) -> range:
    """The weights that so many bits hold."""
    return range(-1, 2, 2) if bits == 1 else range(-(1 << bits - 1), 1 << bits - 1)


def plane_weights(bits: int) -> list[int]:
    """What a one in each plane is worth, the lowest plane first; see `weight_offset`."""
    if bits == 1:
        return [2]
    return [1 << i for i in range(bits - 1)] + [-(1 << bits - 1)]


def weight_offset(bits: int) -> int:
    """What is added to the planes' sum: with one bit, 0 and 1 stand for -1 and 1."""
    return -1 if bits == 1 else 0


def to_planes(q: Matrix, bits: int) -> list[list[list[int]]]:
    """Planes, rows, words: bit j % 64 of word j // 64 is column j, and bits beyond are zero."""
    codes = [[(v + 1) // 2 if bits == 1 else v % (1 << bits) for v in row] for row in q]
    return [[_words([code >> i & 1 for code in row]) for row in codes] for i in range(bits)]


def from_planes(planes: list[list[list[int]]], columns: int) -> Matrix:
    """The integers whose planes these are."""
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
    """q x, as it is defined."""
    return [sum(weight * value for weight, value in zip(row, x, strict=True)) for row in q]


def multiply_planes(planes: list[list[list[int]]], x: list[int], activation_bits: int) -> list[int]:
    """The same as the chapter computes it (algorithm 2): ANDs and population counts."""
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
    """The integers of one vector, and their step: x ~ step * integers. Halves go to even."""
    if not all(math.isfinite(v) for v in x):
        raise ValueError("NaN or infinite")
    top = (1 << activation_bits - 1) - 1
    a = max((abs(v) for v in x), default=0.0)
    if a == 0:
        return [0] * len(x), 0.0
    return [round(v * top / a) for v in x], a / top


def apply(
    q: Matrix,
    x: list[float],
    activation_bits: int,
    scale: list[float],
    bias: list[float] | None = None,
) -> list[float]:
    """What a layer returns for one vector; x, scale, bias and the result are float32."""
    integers, step = quantize_activations(x, activation_bits)
    y = [
        float32(float(total) * s * step)
        for total, s in zip(multiply(q, integers), scale, strict=True)
    ]
    return y if bias is None else [float32(v + b) for v, b in zip(y, bias, strict=True)]


def float32(value: float) -> float:
    """The nearest float32, halves to even; a double's sum of two float32 may be rounded so."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
