"""The estimate of ring-LWE's security, against published figures."""

import math
from pathlib import Path

import pytest

from nescio import _core
from nescio.mpc import _estimate
from nescio.mpc._estimate import Instance, estimate
from spec import rlwe

PAGE = (Path(__file__).parents[2] / "docs" / "rlwe-parameters.md").read_text()
KYBER_Q = math.log2(3329)


# Block sizes that the lattice estimator prints: its README; a talk of M. Albrecht, FHE.org 2024.
@pytest.mark.parametrize(
    ("instance", "block_size"),
    [
        (Instance(512, KYBER_Q, math.sqrt(1.5), math.sqrt(1.5), 512), 406),
        (Instance(768, KYBER_Q, 1, 1, 768), 624),
    ],
)
def test_block_sizes_of_the_lattice_estimator(instance, block_size):
    assert estimate(instance).block_size == block_size
    assert estimate(instance).core_svp == pytest.approx(0.292 * block_size)


# Table 1 of the Homomorphic Encryption Security Standard (2018): ternary secrets, error 3.19.
@pytest.mark.parametrize(
    ("degree", "modulus_bits", "security"),
    [
        (1024, 27, 128), (2048, 54, 128), (4096, 109, 128), (8192, 218, 128),
        (2048, 37, 192), (4096, 75, 192), (8192, 152, 192),
        (4096, 58, 256), (8192, 118, 256),
    ],
)  # fmt: skip
def test_moduli_of_the_homomorphic_encryption_standard(degree, modulus_bits, security):
    instance = Instance(degree, modulus_bits, math.sqrt(2 / 3), 3.19, 2 * degree)
    assert estimate(instance).standard == pytest.approx(security, abs=6)


def test_the_parameters_of_the_engine():
    used = _estimate.RLWE
    assert used.dimension == _core.RLWE_DEGREE == rlwe.N
    assert used.modulus_bits == pytest.approx(math.log2(rlwe.Q), abs=0.001)
    assert used.error**2 == rlwe.ERROR_BITS / 4
    assert estimate(used).core_svp > 128
    assert estimate(used).quantum_core_svp > 128


def test_the_page_has_the_estimate():
    found = estimate(_estimate.RLWE)
    for value in (
        f"| BKZ block size | {found.block_size} |",
        f"| classical core-SVP | {found.core_svp:.0f} |",
        f"| quantum core-SVP | {found.quantum_core_svp:.0f} |",
        f"| the standard's model | {found.standard:.0f} |",
    ):
        assert value in PAGE


def test_a_larger_modulus_and_a_smaller_error_are_weaker():
    base = estimate(_estimate.RLWE).block_size
    assert estimate(Instance(4096, 109, math.sqrt(2 / 3), 3.24, 4096)).block_size < base
    assert estimate(Instance(4096, 60, math.sqrt(2 / 3), 1.0, 4096)).block_size < base
    assert estimate(Instance(2048, 60, math.sqrt(2 / 3), 3.24, 2048)).block_size < base
