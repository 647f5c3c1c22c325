"""The primal LPN encoder in plain Python: a sparse public matrix times short secrets, plus noise.

Yang, Weng, Lan, Zhang, Wang, "Ferret: Fast Extension for Correlated OT with Small Communication"
(CCS 2020), section 5. Each row of the matrix has ten ones, at positions from a public stream.
"""

from .blocks import aes128

ROW_WEIGHT = 10


def word(key: bytes, number: int) -> int:
    """Word `number` of the AES-CTR stream: 32 bits, little-endian, four to a block."""
    return aes128(key, number // 4) >> 32 * (number % 4) & 0xFFFFFFFF


def index(code_seed: bytes, row: int, j: int, k: int) -> int:
    """The position, below k, of the j-th one of a row; two ones at one position cancel."""
    w = word(code_seed, ROW_WEIGHT * row + j)
    return w & (k - 1) if k & (k - 1) == 0 else w * k >> 32


def encode(noise: list[int], seeds: list[int], code_seed: bytes, first_row: int) -> list[int]:
    """noise[i] ^ the ten seeds of row first_row + i."""
    outputs = list(noise)
    for i in range(len(noise)):
        for j in range(ROW_WEIGHT):
            outputs[i] ^= seeds[index(code_seed, first_row + i, j, len(seeds))]
    return outputs
