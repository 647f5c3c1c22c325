"""The sizes of quasi-cyclic codes, compared with their definition."""

from math import isqrt

import pytest

from nescio.ot._primes import is_suitable, next_suitable

# Every prime below 200 with 2 as a primitive root: OEIS A001122.
SUITABLE = [3, 5, 11, 13, 19, 29, 37, 53, 59, 61, 67, 83, 101, 107, 131, 139, 149, 163, 173, 179]
SUITABLE += [181, 197]


def order_of_two(p):
    """The smallest e > 0 with 2^e = 1 mod p."""
    power, exponent = 2 % p, 1
    while power != 1:
        power, exponent = 2 * power % p, exponent + 1
    return exponent


def order_by_divisors(p):
    """The same if 2^(p - 1) = 1 mod p: the order is then a divisor of p - 1."""
    assert pow(2, p - 1, p) == 1
    small = [d for d in range(1, isqrt(p - 1) + 1) if (p - 1) % d == 0]
    divisors = sorted({*small, *((p - 1) // d for d in small)})
    return next(d for d in divisors if pow(2, d, p) == 1)


def test_small_ones_are_those_that_are_known():
    assert [p for p in range(-3, 200) if is_suitable(p)] == SUITABLE


def test_they_are_the_numbers_modulo_which_two_has_order_p_less_one():
    # Order p - 1 makes p a prime: no other number has so many units.
    assert all(is_suitable(p) == (order_of_two(p) == p - 1) for p in range(3, 3000, 2))


@pytest.mark.parametrize("p", [1048589, 4194371, 8388619, 16777259])
def test_those_of_the_parameter_sets_are_suitable_and_the_next_above_a_power_of_two(p):
    assert order_by_divisors(p) == p - 1
    assert next_suitable(1 << (p.bit_length() - 1)) == p


@pytest.mark.parametrize(
    "n",
    [
        2,
        17,  # 2 is a square
        43,  # a prime, 3 mod 8, but 2^14 = 1
        561,  # Carmichael
        3215031751,  # passes to bases 2, 3, 5 and 7
        1048589 * 1048589,
        2**61 - 1,
        2**40 + 141,  # suitable, but too large
    ],
)
def test_others_are_not(n):
    assert not is_suitable(n)


def test_the_next_is_itself_if_suitable():
    assert next_suitable(11) == 11
    assert next_suitable(12) == 13
    assert next_suitable(0) == 3
