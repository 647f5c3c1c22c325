"""The hash that turns correlated transfers into random ones, in plain Python.

Guo, Katz, Wang, Yu, "Efficient and Secure Multiparty Computation from Fixed-Key Block Ciphers"
(IEEE S&P 2020), section 7.4: tweakable circular correlation robust for a random permutation pi.
"""

from .blocks import aes128
from .ot_keys import transfer_key


def tccr(x: int, index: int, tag: int, base: bytes) -> int:
    """Return h(x, i) = pi(pi(x) ^ i) ^ pi(x), with i = tag * 2^64 + index."""
    key = transfer_key(base, index)
    inner = aes128(key, x)
    return aes128(key, inner ^ (tag << 64 | index)) ^ inner
