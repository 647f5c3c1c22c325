"""Table 3.1 of the thesis on a GPU, with every kernel that is named.

Every product is checked against the CPU engine first, bit for bit.
"""

from nescio.bench.quant_gpu import run

__all__ = ["run"]
