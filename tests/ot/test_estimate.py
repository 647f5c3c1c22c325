"""The estimator, compared with published figures and with the public estimator's results."""

import math

import numpy as np
import pytest

from nescio.errors import ArgumentError
from nescio.ot import _algebraic, _decoding
from nescio.ot.estimate import ATTACKS, Instance, estimate, gauss_one_code, instance_of
from nescio.ot.parameters import dual, primal

# The hybrid attack at N = t * 2^13, k = 2^19: message of emp-ot's commit 7a7e8c7. The last line:
# comment at ferret_b10 in its emp-ot/ot_extension/ferret/constants.h at 1d03397.
HYBRID = [
    (1280 << 13, 1 << 19, 1280, 138.5),
    (1500 << 13, 1 << 19, 1500, 134.6),
    (1800 << 13, 1 << 19, 1800, 129.7),
    (1850 << 13, 1 << 19, 1850, 128.9),
    (1900 << 13, 1 << 19, 1900, 128.2),
    (2000 << 13, 1 << 19, 2000, 126.7),
    (2200 << 13, 1 << 19, 2200, 123.8),
    (850 << 10, 1 << 16, 850, 128.7),
]

# Pooled Gauss for noise of exact weight, in bits rounded down. Source: Liu et al. (eprint
# 2022/712), table for fields so large that no other attack is cheaper, as cited in comparisons.
GAUSS = [
    (1 << 10, 652, 57, 111),
    (1 << 12, 1589, 98, 100),
    (1 << 14, 3482, 198, 101),
    (1 << 16, 7391, 389, 103),
    (1 << 18, 15336, 760, 105),
    (1 << 20, 32771, 1419, 107),
    (1 << 22, 67440, 2735, 108),
    (1 << 12, 3072, 44, 117),
    (1 << 14, 12288, 39, 111),
    (1 << 16, 49152, 34, 107),
    (1 << 18, 196608, 32, 108),
    (1 << 20, 786432, 31, 112),
    (1 << 22, 3145728, 30, 116),
    (1 << 24, 12582912, 29, 119),
]

# Output of github.com/1234wangtr/Code_estimators at 41e013c (lpnestimator.com), run once for this
# table: regular noise over F_2.
PUBLIC = [
    (1024, 652, 57, "gauss", 106.57),
    (1024, 652, 57, "parity", 135.89),
    (1024, 652, 57, "isd", 92.35),
    (1024, 652, 57, "bjmm", 90.03),
    (1024, 652, 57, "regular_prange", 94.41),
    (1024, 652, 57, "regular_isd", 77.36),
    (1024, 652, 57, "regular_bjmm", 76.32),
    (1024, 652, 57, "agb", 101.48),
    (1024, 652, 57, "agb2", 96.85),
    (1024, 652, 106, "agb", 144.94),
    (1024, 652, 106, "agb2", 138.34),
    (4096, 1589, 98, "isd", 83.03),
    (4096, 1589, 98, "bjmm", 80.72),
    (4096, 1589, 98, "agb", 101.59),
    (4096, 1589, 98, "agb2", 97.44),
    (16384, 3482, 338, "agb", 138.01),
    (16384, 3482, 338, "agb2", 129.89),
    (870_400, 65_536, 850, "gauss", 139.59),
    (870_400, 65_536, 850, "parity", 205.34),
    (870_400, 65_536, 850, "isd", 131.35),
    (870_400, 65_536, 850, "bjmm", 128.57),
    (870_400, 65_536, 850, "regular_prange", 153.67),
    (870_400, 65_536, 850, "regular_isd", 132.47),
    (870_400, 65_536, 850, "regular_bjmm", 135.34),
    (15_564_800, 1 << 19, 1900, "gauss", 146.78),
    (15_564_800, 1 << 19, 1900, "parity", 206.14),
    (15_564_800, 1 << 19, 1900, "regular_prange", 165.15),
    (15_564_800, 1 << 19, 1900, "regular_isd", 144.79),
    (15_564_800, 1 << 19, 1900, "regular_bjmm", 146.99),
    (1 << 21, 1 << 20, 128, "gauss", 183.99),
    (1 << 21, 1 << 20, 128, "parity", 275.94),
    (1 << 21, 1 << 20, 128, "regular_prange", 188.98),
    (1 << 21, 1 << 20, 128, "regular_isd", 167.03),
    (1 << 21, 1 << 20, 128, "regular_bjmm", 167.03),
]


@pytest.mark.parametrize(("n", "k", "t", "bits"), HYBRID)
def test_hybrid_attack_as_published(n, k, t, bits):
    assert _algebraic.hybrid(Instance(n, k, t)) == pytest.approx(bits, abs=0.05)


@pytest.mark.parametrize(("n", "k", "t", "bits"), GAUSS)
def test_gauss_as_published(n, k, t, bits):
    # A regular instance with t more samples and t more dimensions reduces to this one.
    assert math.floor(_decoding.gauss(Instance(n + t, k + t, t))) == bits


@pytest.mark.parametrize(("extensions", "bits"), [(1, 139.6), (2**20, 119.6), (2**28, 112.7)])
def test_one_code_for_many_extensions_costs_security(extensions, bits):
    """Why each extension has a code of its own: figures of docs/ot-parameters.md."""
    b10 = instance_of(primal("b10"))
    assert round(gauss_one_code(b10, extensions), 1) == bits


@pytest.mark.parametrize(("n", "k", "t", "attack", "bits"), PUBLIC)
def test_attacks_as_the_public_estimator_has_them(n, k, t, attack, bits):
    assert ATTACKS[attack](Instance(n, k, t)) == pytest.approx(bits, abs=0.01)


def test_log2_binomial_against_exact_integers():
    for n, m in [(0, 0), (1, 1), (5, 2), (40, 20), (1000, 3), (10**6, 17), (3000, 1500)]:
        assert _decoding.log2_binomial(n, m) == pytest.approx(math.log2(math.comb(n, m)), abs=1e-6)
    assert np.isneginf(_decoding.log2_binomial([3, 3], [4, -1])).all()


def test_search_of_the_hybrid_attack_finds_what_trying_everything_finds():
    it = Instance(1024, 652, 106).even()
    exhaustive = math.inf
    with np.errstate(all="ignore"):
        for enumerated in range(20):
            guesses = np.arange((it.t - enumerated) * (it.block - 1), dtype=float)
            cost = _algebraic._hybrid_cost(it, enumerated)
            exhaustive = min(exhaustive, float(np.min(cost(guesses))))
        assert _algebraic.hybrid(it) == pytest.approx(exhaustive, abs=1e-9)


@pytest.mark.parametrize("attack", ["agb", "agb2"])
def test_grids_of_the_algebraic_attacks_find_what_trying_everything_finds(attack, monkeypatch):
    it = Instance(1024, 652, 57)
    coarse = ATTACKS[attack](it)
    monkeypatch.setattr(_algebraic, "_GRID", 5000)
    assert coarse == pytest.approx(ATTACKS[attack](it), abs=0.02)


def test_degree_of_regularity_of_a_system_without_equations_is_never_reached():
    it = Instance(1000, 998, 10)
    f, mu = np.array([[0.0]]), np.array([[0.0]])
    counts, left = _algebraic._series(it, f, mu)
    assert counts[2][0, 0] == 10 * 99 + 45 * 99**2  # monomials of one and of two blocks
    assert _algebraic._witness(left)[0, 0] == 0


def test_more_blocks_of_noise_cost_an_attacker_more():
    few, many = (estimate(Instance(1 << 20, 1 << 16, t)).attacks for t in (512, 1024))
    assert all(few[name] < many[name] for name in ATTACKS)


def test_a_longer_secret_costs_an_attacker_more():
    short, long = (estimate(Instance(1 << 20, k, 850)).attacks for k in (1 << 15, 1 << 16))
    assert all(short[name] < long[name] for name in ATTACKS)


def test_linear_tests_cost_a_bit_for_each_block():
    found = estimate(dual("ec", 1 << 20))
    assert found.attacks["linear_test"] == 128
    assert found.bits == 128


def test_quasi_cyclic_codes_lose_the_root_of_their_rotations():
    plain = estimate(dual("ec", 1_048_589)).attacks
    cyclic = estimate(dual("qc", 1 << 20, prime=1_048_589)).attacks
    for name in ATTACKS:
        assert plain[name] - cyclic[name] == pytest.approx(math.log2(1_048_589) / 2)
    assert plain["linear_test"] == cyclic["linear_test"]


def test_the_least_is_the_best_attack():
    found = estimate(Instance(1024, 652, 57))
    assert found.bits == found.attacks[found.best] == min(found.attacks.values())


@pytest.mark.parametrize(
    ("n", "k", "t"),
    [
        (0, 0, 0),
        (100, 50, 0),
        (100, 10, 10),
        (100, 90, 10),
        (100, 150, 10),
        (-5, 3, 1),
        (149, 60, 50),
        ((1 << 40) + 1, 1000, 10),
    ],
)
def test_impossible_instances_are_refused(n, k, t):
    with pytest.raises(ArgumentError, match=f"found N={n}, k={k}, t={t}"):
        estimate(Instance(n, k, t))


@pytest.mark.parametrize(
    ("n", "k", "t"),
    [(12, 5, 4), (8, 4, 2), (34_013_559, 2, 1), (1 << 40, 1 << 30, 1 << 15), (16797, 3796, 1578)],
)
def test_odd_instances_have_an_estimate(n, k, t):
    found = estimate(Instance(n, k, t))
    assert 0 <= found.bits < math.inf
    assert not any(math.isnan(bits) for bits in found.attacks.values())
