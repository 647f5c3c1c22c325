"""The hash that turns correlated into random transfers, in plain Python.

Guo, Katz, Wang, Yu, "Efficient and Secure Multiparty Computation from Fixed-Key Block Ciphers"
(IEEE S&P 2020), section 7.4: tweakable circular correlation robust for a random permutation pi.
"""

from .blocks import pi


def tccr(x: int, index: int, tag: int) -> int:
    """h(x, i) = pi(pi(x) ^ i) ^ pi(x); i has the transfer's index below and the tag above."""
    inner = pi(x)
    return pi(inner ^ (tag << 64 | index)) ^ inner
