"""Positions of rows: as specified, each place of one row, and spread as by random permutations."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nescio.pir.batch import FullPart, Layout
from nescio.pir.batch._permutation import Permutation
from nescio.pir.batch._positions import Positions
from pir.batch.layouts import as_layout, layouts
from spec import batch as spec

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "batch.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["digest"][:6])
def test_vectors(vector):
    layout = Layout.from_bytes(vector["layout"].encode())
    assert layout.digest == vector["digest"]
    assert [list(group) for group in layout.bins] == vector["bins"]
    rows = np.array(vector["rows"], np.uint64)
    positions = Positions(layout)
    for own, *expected in zip(*positions.candidates(rows), vector["places"], strict=True):
        pairs = zip(own.tolist(), expected[0].tolist(), strict=True)
        assert [None if b < 0 else [b, place] for b, place in pairs] == expected[1]
    for line, near in zip(positions.lists(rows), vector["neighbors"], strict=True):
        found = layout.together.neighbors[line].tolist() if line >= 0 else []
        assert [row for row in found if row >= 0] == near


@given(st.integers(1, 2000), st.integers(0, 2**32 - 1), st.integers(0, 16))
def test_a_permutation_is_the_specification_s_and_has_an_inverse(rows, seed, number):
    permutation = Permutation(rows, seed, number)
    points = np.arange(permutation.places, dtype=np.uint64)
    places = permutation(points)
    assert np.array_equal(np.sort(places), points)
    assert np.array_equal(permutation.inverse(places), points)
    assert places[:rows].tolist() == [spec.permute(row, rows, seed, number) for row in range(rows)]


@given(st.integers(1, 2**40), st.data())
def test_permutations_of_large_tables(rows, data):
    own = data.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=5))
    permutation = Permutation(rows, 3, 1)
    places = permutation(np.array(own, np.uint64))
    assert places.tolist() == [spec.permute(row, rows, 3, 1) for row in own]
    assert permutation.inverse(places).tolist() == own
    assert rows <= permutation.places < rows + 2**20 + 1


@given(layouts())
def test_candidates_are_those_of_the_specification(own):
    positions = Positions(as_layout(own))
    bins, places = positions.candidates(np.arange(own.rows, dtype=np.uint64))
    for row in range(own.rows):
        found = [(int(b), int(p)) for b, p in zip(bins[row], places[row], strict=True) if b >= 0]
        assert found == [place for place in spec.places(own, row) if place]
    assert positions.capacity.tolist() == spec.capacities(own)


@given(layouts())
def test_the_rows_at_places_are_those_whose_places_they_are(own):
    layout = as_layout(own)
    rows = Positions(layout).rows_at(0, layout.table_rows)
    firsts = np.cumsum([0, *(size for count, size, _ in spec.bins(own) for _ in range(count))])
    expected = np.full(layout.table_rows, -1)
    for row in range(own.rows):
        for place in filter(None, spec.places(own, row)):
            assert expected[firsts[place[0]] + place[1]] == -1  # no place has two rows
            expected[firsts[place[0]] + place[1]] = row
    assert np.array_equal(rows, expected)
    assert np.array_equal(Positions(layout).rows_at(3, 7), expected[3:10]) or len(expected) < 10


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_rows_are_spread_over_bins_as_by_a_random_permutation(seed):
    """Neighboring rows share a bin, in one hash or in two, as often as random rows do."""
    layout = Layout(40_000, FullPart(16, hashes=3, seed=seed))
    bins, _ = Positions(layout).candidates(np.arange(40_000, dtype=np.uint64))
    for step in (1, 2, 16, 200, 201, 4096):  # 200 is the side of the permuted square
        same = bins[step:] == bins[:-step]
        count = len(same)
        for hash_ in range(3):
            _is_binomial(same[:, hash_].sum(), count, 1 / 16)
        for one, other in ((0, 1), (0, 2), (1, 2)):
            _is_binomial((same[:, one] & same[:, other]).sum(), count, 1 / 256)
    counts = np.histogramdd(bins, bins=[16, 16, 16])[0]
    chi_squared = ((counts - 40_000 / 4096) ** 2 / (40_000 / 4096)).sum()
    assert abs(chi_squared - 4095) < 6 * np.sqrt(2 * 4095)


def _is_binomial(found, count, probability):
    deviation = np.sqrt(count * probability * (1 - probability))
    assert abs(found - count * probability) < 6 * deviation
