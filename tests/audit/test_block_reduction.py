"""Short vectors of a lattice."""

import signal
import subprocess
import time

import numpy as np
import pytest

pytest.importorskip("flint")

from nescio.audit._attack import flint
from nescio.audit._attack.block_reduction import BLOCKS, Blocks, Lattice
from nescio.audit._attack.flint import Reducer, reducer


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
    lll = Reducer()
    assert np.abs(lll.reduced(np.array([[11, 17], [13, 19]]))).tolist() == [[2, 2], [3, 3]]
    reduced = lll.reduced(np.array([[1, 1, 1], [-1, 0, 2], [3, 5, 6]]))
    assert (reduced**2).sum(axis=1).min() == 1


@pytest.mark.parametrize("size", [2, 12, 70])
def test_blocks_find_the_unit_vectors(size):
    rows = hidden(size, 1)
    lattice = Lattice(rows, rows.astype(float))
    lattice.reduce(BLOCKS, lambda rows: np.abs(rows).sum() == size)
    assert np.unique(np.abs(lattice.rows), axis=0).tolist() == np.eye(size).tolist()[::-1]


def test_a_reduction_keeps_the_lattice_and_its_lengths():
    rng = np.random.default_rng(2)
    start = rng.integers(-9, 9, (20, 25))
    lattice = Lattice(start.copy(), start.astype(float))
    lattice.reduce([Blocks(10, 30)], lambda _: False)
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
    lattice = Lattice(rows, rows.astype(float), Reducer(deadline=0.0))
    lattice.reduce(BLOCKS, lambda _: False)
    assert np.allclose(lattice.triangle.T @ lattice.triangle, lattice.rows @ lattice.rows.T)


def test_a_process_of_its_own_reduces_as_this_one():
    rows = hidden(60, 5) * 3
    with reducer(time.monotonic() + 600) as apart:
        assert (apart.reduced(rows) == Reducer().reduced(rows)).all()
        assert (apart.transform(rows) == Reducer().transform(rows)).all()
        child = apart._child
    assert child.returncode is not None  # it ended


def test_a_call_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(flint, "_CHILD", "import time; time.sleep(3600)")
    started = []
    start = subprocess.Popen
    monkeypatch.setattr(
        flint.subprocess, "Popen", lambda *a, **k: started.append(start(*a, **k)) or started[-1]
    )
    with reducer(time.monotonic() + 1) as apart, pytest.raises(TimeoutError, match="time limit"):
        apart.reduced(hidden(60, 5))
    assert [child.returncode for child in started] == [-signal.SIGKILL]


def test_without_a_second_process_this_one_reduces(monkeypatch):
    monkeypatch.setattr(flint, "_CHILD", "raise SystemExit(1)")
    rows = hidden(60, 5)
    with reducer(time.monotonic() + 600) as apart:
        assert (apart.reduced(rows) == Reducer().reduced(rows)).all()
