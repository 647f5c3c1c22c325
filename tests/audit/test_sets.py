"""Windows, and the two sets of the search."""

import itertools

import numpy as np
import pytest

from nescio.audit._attack.sets import AffineSet, BinarySet
from nescio.audit._log.counts import agree, window_sums
from nescio.audit._log.windows import Batch, batches, disjoint, refine
from spec import audit as spec


def batch(windows, least, most=None):
    least = np.atleast_2d(np.asarray(least))
    most = least if most is None else np.atleast_2d(np.asarray(most))
    return Batch(np.arange(len(least)), tuple(windows), least, tuple(windows), least, most)


def test_refined_counts_say_the_same(rng):
    every = list(itertools.combinations(range(7), 2))
    for _ in range(60):
        column = rng.integers(0, 2, (1, 6)).astype(np.uint8)
        windows = tuple(every[i] for i in rng.choice(len(every), 4, replace=False))
        short, counts = refine(windows, window_sums(column, windows))
        assert (window_sums(column, short) == counts).all()
        for other in itertools.product((0, 1), repeat=6):
            same = spec.has_counts(other, list(windows), window_sums(column, windows)[0].tolist())
            assert same == spec.has_counts(other, list(short), counts[0].tolist())


def test_refining_takes_differences():
    short, counts = refine(((0, 20), (0, 10), (30, 40)), np.array([[5, 2, 1]]))
    assert short == ((0, 10), (10, 20), (30, 40))
    assert counts.tolist() == [[2, 3, 1]]


def test_disjoint_is_as_many_as_can_be(rng):
    every = list(itertools.combinations(range(9), 2))
    for _ in range(40):
        windows = tuple(every[i] for i in rng.choice(len(every), 6, replace=False))

        def apart(chosen):
            return all(a[1] <= b[0] for a, b in itertools.pairwise(sorted(chosen)))

        best = max(k for k in range(7) if any(apart(c) for c in itertools.combinations(windows, k)))
        chosen = [windows[j] for j in disjoint(windows)]
        assert apart(chosen)
        assert len(chosen) == best


@pytest.mark.parametrize("trial", range(30))
def test_the_nearest_binary_column(trial):
    rng = np.random.default_rng(trial)
    windows = [(0, 3), (3, 5), (6, 8)]
    least = np.array([[rng.integers(0, b - a + 1) for a, b in windows]])
    most = np.array(
        [[rng.integers(low, b - a + 1) for (a, b), low in zip(windows, least[0], strict=True)]]
    )
    empty = np.zeros(8, np.bool_)
    point = rng.normal(0.5, 1, (1, 8)).astype(np.float32)
    nearest = BinarySet(batch(windows, least, most), empty).project(point, np.array([0]))
    allowed = [
        c
        for c in itertools.product((0, 1), repeat=8)
        if all(
            lo <= sum(c[a:b]) <= hi
            for (a, b), lo, hi in zip(windows, least[0], most[0], strict=True)
        )
    ]
    best = min(allowed, key=lambda c: ((np.array(c) - point[0]) ** 2).sum())
    assert nearest[0].tolist() == list(best)


def test_empty_rounds_stay_empty(rng):
    empty = np.array([False, True, False, False])
    points = rng.normal(5, 1, (20, 4)).astype(np.float32)
    nearest = BinarySet(batch([(0, 3)], np.full((20, 1), 2)), empty).project(points, np.arange(20))
    assert (nearest == [1, 0, 1, 1]).all()


def test_the_affine_projection(rng):
    basis = np.linalg.qr(rng.standard_normal((12, 5)))[0]
    windows = ((0, 4), (4, 8), (0, 8))
    truth = rng.standard_normal((3, 5)) @ basis.T
    sums = np.stack([truth[:, a:b].sum(axis=1) for a, b in windows], axis=1)
    affine = AffineSet.of(basis, batch(windows, sums))
    points = rng.standard_normal((3, 12)).astype(np.float32)
    near = affine.project(points, np.arange(3)).astype(float)
    assert np.allclose(near @ basis @ basis.T, near, atol=1e-5)
    assert np.allclose([near[:, a:b].sum(axis=1) for a, b in windows], sums.T, atol=1e-5)
    assert np.allclose(((points - near) * (truth - near)).sum(axis=1), 0, atol=1e-4)


def test_users_are_batched_by_what_is_known():
    windows = ((0, 2), (2, 4))
    counts = np.array([[1, 1], [1, -1], [0, 2], [2, -1]])
    found = {tuple(b.users.tolist()): b.shared for b in batches(windows, counts, 0, np.arange(4))}
    assert found == {(0, 2): windows, (1, 3): ((0, 2),)}
    (mixed,) = batches(windows, counts, 1, np.arange(4))
    assert mixed.shared == ()
    assert mixed.lower.tolist() == [[0, 0], [0, 0], [0, 1], [1, 0]]
    assert mixed.upper.tolist() == [[2, 2], [2, 2], [1, 2], [2, 2]]


def test_agreeing_with_counts(rng):
    windows = ((0, 3), (2, 6))
    columns = np.array(list(itertools.product((0, 1), repeat=6)), np.uint8)
    counts = rng.integers(-1, 4, (len(columns), 2))
    for error in (0, 1):
        found = agree(columns, windows, counts, error)
        for column, wanted, good in zip(columns, counts, found, strict=True):
            assert good == spec.has_counts(
                tuple(column.tolist()), list(windows), wanted.tolist(), error
            )
