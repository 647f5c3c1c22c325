"""The sizes of quasi-cyclic codes: primes p with 2 as a primitive root.

For these primes and no others, X^p - 1 = (X - 1)(X^(p-1) + ... + 1) has no further factors over
F_2, so an attacker has no smaller ring to work in.
"""

from itertools import count

_BASES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
"""The Miller-Rabin test with these bases is exact below 3.1e23 (Sorenson and Webster 2015)."""

MAX_PRIME = 1 << 40
"""Upper limit of suitable primes: factors of larger numbers take too long to find."""


def is_suitable(p: int) -> bool:
    """Tests if p is a prime below 2^40 with 2 as a primitive root."""
    return 2 < p < MAX_PRIME and _is_prime(p) and _two_is_a_primitive_root(p)


def next_suitable(n: int) -> int:
    """Finds the least suitable p of at least n."""
    return next(p for p in count(max(n, 3)) if is_suitable(p))


def _is_prime(n: int) -> bool:
    if n in _BASES:
        return True
    if n < 2 or any(n % base == 0 for base in _BASES):
        return False
    twos = (n - 1 & 1 - n).bit_length() - 1
    return all(_passes(n, base, twos) for base in _BASES)


def _passes(n: int, base: int, twos: int) -> bool:
    """Tests if n, with n - 1 = 2^twos * odd, is a strong probable prime to this base."""
    x = pow(base, (n - 1) >> twos, n)
    if x in (1, n - 1):
        return True
    for _ in range(twos - 1):
        x = x * x % n
        if x == n - 1:
            return True
    return False


def _two_is_a_primitive_root(p: int) -> bool:
    # For other residues 2 is a square mod p, and therefore not a primitive root.
    if p % 8 not in {3, 5}:
        return False
    return all(pow(2, (p - 1) // factor, p) != 1 for factor in _prime_factors(p - 1))


def _prime_factors(n: int) -> list[int]:
    """Finds the distinct prime factors of n."""
    factors: list[int] = []
    divisor = 2
    while n > 1:
        if _is_prime(n):
            return [*factors, n]
        while n % divisor != 0:
            divisor += 1
        factors.append(divisor)
        while n % divisor == 0:
            n //= divisor
    return factors
