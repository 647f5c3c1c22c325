"""Short vectors of a lattice."""

import numpy as np
import pytest

pytest.importorskip("flint")

from nescio.audit._attack.block_reduction import BLOCKS, Blocks, Lattice, lll

NEVER = float("inf")


def hidden(size, seed):
    """A basis of all integer vectors, disguised."""
    rng = np.random.default_rng(seed)
    rows = np.eye(size, dtype=np.int64)
    for _ in range(12 * size):
        i, j = rng.choice(size, 2, replace=False)
        rows[i] += rng.choice([-1, 1]) * rows[j]
    return rows


def test_lll_of_a_known_lattice():
    """FLINT's own example, and Cohen's: the shortest vector of (1, 1, 1), (-1, 0, 2), (3, 5, 6)."""
    assert np.abs(lll(np.array([[11, 17], [13, 19]]))).tolist() == [[2, 2], [3, 3]]
    reduced = lll(np.array([[1, 1, 1], [-1, 0, 2], [3, 5, 6]]))
    assert (reduced**2).sum(axis=1).min() == 1


@pytest.mark.parametrize("size", [2, 12, 70])
def test_blocks_find_the_unit_vectors(size):
    rows = hidden(size, 1)
    lattice = Lattice(rows, rows.astype(float))
    lattice.reduce(BLOCKS, lambda rows: np.abs(rows).sum() == size, NEVER)
    assert np.unique(np.abs(lattice.rows), axis=0).tolist() == np.eye(size).tolist()[::-1]


def test_a_reduction_keeps_the_lattice_and_its_lengths():
    rng = np.random.default_rng(2)
    start = rng.integers(-9, 9, (20, 25))
    lattice = Lattice(start.copy(), start.astype(float))
    lattice.reduce([Blocks(10, 30)], lambda _: False, NEVER)
    turn = np.linalg.lstsq(start.T.astype(float), lattice.rows.T.astype(float), rcond=None)[0]
    assert np.abs(turn - np.rint(turn)).max() < 1e-6
    assert abs(abs(np.linalg.det(turn)) - 1) < 1e-6
    assert np.allclose(lattice.triangle.T @ lattice.triangle, lattice.rows @ lattice.rows.T)
    assert np.allclose(lattice.squares, (lattice.rows**2).sum(axis=1))
    assert lattice.squares.sum() < (start**2).sum()


def test_all_short_vectors_are_found_where_the_search_is_wide_enough():
    """Integer vectors of length at most the square root of 2: 5 and 4 * 5, up to sign."""
    lattice = Lattice(hidden(5, 3), hidden(5, 3).astype(float))
    lattice.lll()
    short = lattice.short(1000, 2.1)
    both = {
        tuple(sign * row) for row in short.tolist() for row in [np.array(row)] for sign in (1, -1)
    }
    assert len(both) == 2 * (5 + 20)


def test_the_clock_ends_a_reduction():
    rows = hidden(30, 4)
    lattice = Lattice(rows, rows.astype(float))
    lattice.reduce(BLOCKS, lambda _: False, 0.0)  # one LLL, and no tour
    assert np.allclose(lattice.triangle.T @ lattice.triangle, lattice.rows @ lattice.rows.T)
