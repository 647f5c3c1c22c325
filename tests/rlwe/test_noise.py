"""The error of a product is that of docs/security.md, which the simulation of the client needs."""

import math
import random
from fractions import Fraction

import pytest

from spec import rlwe

DELTA = Fraction(rlwe.Q, rlwe.MODULUS)
KEY, OPEN, SECRET, OTHER_OPEN, SERVER = (bytes([k]) * rlwe.SEED_BYTES for k in range(5))
WIDE = 1 << 120  # all products below are exact modulo this


def centered(x, modulus):
    """Returns the numbers of smallest magnitude that are equal to x modulo `modulus`."""
    return [(value + modulus // 2) % modulus - modulus // 2 for value in x]


def product(a, b):
    """Multiplies integer polynomials modulo X^N + 1."""
    return centered(rlwe.multiply(a, b, WIDE), WIDE)


def nearest(x):
    return math.floor(x + Fraction(1, 2))


class Run:
    """A product of both parties, and everything that its errors depend on."""

    def __init__(self, size, bits):
        generator = random.Random(size)
        self.bits, self.secret = bits, rlwe.ternary(KEY, 0)
        self.message = [generator.randrange(rlwe.MODULUS) for _ in range(rlwe.N)]
        self.weights = [generator.randint(-size, size) for _ in range(rlwe.N)]
        self.key = rlwe.public_key(KEY, OPEN)
        self.sent = rlwe.encrypt(self.secret, [self.message], OTHER_OPEN, SECRET)
        every = [list(range(rlwe.N))]
        self.answer, self.shares = rlwe.evaluate(
            self.key, [[self.weights]], [self.sent], 1, every, bits, SERVER
        )
        self.others = rlwe.decrypt(self.secret, self.answer, every, bits)

    def errors(self):
        """Returns the sums of both shares minus the product."""
        exact = rlwe.multiply(self.weights, self.message, rlwe.MODULUS)
        sums = (a + b - c for a, b, c in zip(self.shares, self.others, exact, strict=True))
        return centered(sums, 1 << self.bits)

    def noise(self):
        """Returns E = sum w (e + d') + u e_pk + e' s, times 2^32."""
        scaled = [
            centered([(rlwe.scale(m, rlwe.MODULUS, rlwe.Q) << 32) - m * rlwe.Q], rlwe.Q << 32)[0]
            for m in self.message
        ]
        own = [(e << 32) + d for e, d in zip(rlwe.error(SECRET, 0), scaled, strict=True)]
        u, e1 = rlwe.ternary(SERVER, 0), rlwe.error(SERVER, 0)
        rest = zip(product(u, rlwe.error(KEY, 0)), product(e1, self.secret), strict=True)
        return [
            a + (b + c << 32) for a, (b, c) in zip(product(self.weights, own), rest, strict=True)
        ]

    def formulas(self):
        """Returns D' and D for each coefficient: without the noise, and with it."""
        bits = self.bits + rlwe.EXTRA_BITS
        c1 = rlwe.split(self.answer[: rlwe.N * bits // 8], bits, rlwe.N)
        for z, whole, noise in zip(
            product(c1, self.secret), self._whole_products(), self.noise(), strict=True
        ):
            part = Fraction(z, 1 << rlwe.EXTRA_BITS)
            rest = whole - part
            rest -= (1 << self.bits) * round(rest / (1 << self.bits))  # d s / 2^8
            known = nearest(part) - part - rest
            yield nearest(known), nearest(known + Fraction(noise, 1 << 32) / DELTA)

    def _whole_products(self):
        """Returns 2^32 c1 s / q, for c1 before its rounding."""
        inputs, zero = rlwe.read_ciphertexts(self.sent, 1)[0], rlwe.read_ciphertexts(self.key, 1)[0]
        parts = (
            rlwe.multiply(self.weights, inputs.c1, rlwe.Q),
            rlwe.multiply(rlwe.ternary(SERVER, 0), zero.c1, rlwe.Q),
            rlwe.error(SERVER, 0),
        )
        c1 = [sum(column) % rlwe.Q for column in zip(*parts, strict=True)]
        return [value / DELTA for value in rlwe.multiply(c1, self.secret, rlwe.Q)]


@pytest.mark.parametrize(("size", "bits"), [(127, 32), (127, 20), (8000, 32)])
def test_errors_are_those_of_the_formula(size, bits):
    """The noise, and so the weights, decide few of them: 1e-8 of the weights' norm."""
    run = Run(size, bits)
    without, found = zip(*run.formulas(), strict=True)
    assert list(found) == run.errors()
    assert 0.03 < sum(map(bool, found)) / rlwe.N < 0.06
    expected = 1e-8 * math.hypot(*run.weights) * rlwe.N  # 0.2, or 12
    changed = sum(a != b for a, b in zip(without, found, strict=True))
    assert abs(changed - expected) < 6 * expected**0.5
