"""The primal LPN encoder in plain Python: a sparse public matrix times a short secret, plus noise.

Yang, Weng, Lan, Zhang, Wang, "Ferret: Fast Extension for Correlated OT with Small Communication"
(CCS 2020), section 5. Each row of the matrix has ten ones, in columns taken from a public stream.
"""

from .blocks import aes128

ROW_WEIGHT = 10


def word(key: bytes, number: int) -> int:
    """Return word `number` of the AES-CTR stream: 32 bits, little-endian, four per block."""
    return aes128(key, number // 4) >> 32 * (number % 4) & 0xFFFFFFFF


def index(code_seed: bytes, row: int, j: int, k: int) -> int:
    """Return the column, below k, of one number j of a row; two ones in one column cancel."""
    w = word(code_seed, ROW_WEIGHT * row + j)
    return w & (k - 1) if k & (k - 1) == 0 else w * k >> 32


def encode(noise: list[int], seeds: list[int], code_seed: bytes, first_row: int) -> list[int]:
    """Return noise[i] XOR the ten seeds of row first_row + i."""
    outputs = list(noise)
    for i in range(len(noise)):
        for j in range(ROW_WEIGHT):
            outputs[i] ^= seeds[index(code_seed, first_row + i, j, len(seeds))]
    return outputs
