"""Plans of inferences: rows arrive where their plan says, and unused slots get random places."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nescio import _core
from nescio.pir.batch import FullPart, HotPart, Layout, Together
from nescio.pir.batch._plan import Planner
from pir.batch.layouts import as_layout, layouts
from spec import batch as spec

POOL = _core.ThreadPool(2)


def plan(layout, sets):
    offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    rows = np.array([row for own in sets for row in own], np.uint64)
    return Planner(layout, POOL).plan(offsets, rows)


@given(layouts(), st.data())
def test_every_access_arrives_where_the_plan_says(own, data):
    row = st.integers(0, own.rows - 1)
    sets = data.draw(st.lists(st.lists(row, unique=True, max_size=20), max_size=4))
    layout = as_layout(own)
    made = plan(layout, sets)
    cells = spec.cut([number.to_bytes(2, "big") for number in range(1, own.rows + 1)], own)
    firsts = np.cumsum([0, *(size for bins, size, _ in spec.bins(own) for _ in range(bins))])
    slots = [b for b, keys in enumerate(spec.capacities(own)) for _ in range(keys)]
    assert made.places.shape == (len(sets), len(slots))
    access = 0
    for number, rows in enumerate(sets):
        for wanted in rows:
            slot, part = int(made.slots[access]), int(made.parts[access])
            access += 1
            if slot >= 0:
                cell = cells[firsts[slots[slot]] + int(made.places[number, slot])]
                assert int.from_bytes(cell[2 * part : 2 * part + 2], "big") == wanted + 1


@given(layouts(), st.data())
def test_plans_are_the_assignments_of_the_specification(own, data):
    row = st.integers(0, own.rows - 1)
    rows = data.draw(st.lists(row, unique=True, max_size=30))
    candidates = [[place[0] if place else -1 for place in spec.places(own, r)] for r in rows]
    near = [own.neighbors.get(r, []) for r in rows]
    together = [[rows.index(n) if n in rows else -1 for n in own] for own in near]
    expected = spec.assign(candidates, spec.capacities(own), together)
    planner = Planner(as_layout(own), POOL)
    offsets = np.array([0, len(rows)], np.int64)
    assert planner.assign(offsets, np.array(rows, np.uint64)).tolist() == expected
    many = np.array(rows * 30, np.uint64)  # more accesses than rows: another way to find bins
    offsets = np.arange(31, dtype=np.int64) * len(rows)
    assert planner.assign(offsets, many).tolist() == expected * 30
    near = planner.positions.together(offsets, many, POOL)
    assert planner.assign(offsets, many, near).tolist() == expected * 30


LAYOUT = Layout(1000, FullPart(5, keys=2, hashes=2), HotPart(np.arange(90), 3, keys=2))


def test_all_slots_of_a_set_have_different_rows():
    made = plan(LAYOUT, [list(range(100, 120))])
    assert (made.slots >= 0).all()
    assert len(set(made.slots.tolist())) == 20


@pytest.mark.parametrize("rows", [[], [5], list(range(0, 1000, 60))])
def test_slots_without_a_row_get_uniformly_random_places(rows):
    planner = Planner(LAYOUT, POOL)
    sets = 20_000
    offsets = np.arange(sets + 1, dtype=np.int64) * len(rows)
    made = planner.plan(offsets, np.array(rows * sets, np.uint64))
    used = set(made.slots.tolist())
    assert used == {-1} or len(used) <= len(rows)
    sizes = np.repeat([group.rows for group in LAYOUT.bins], [group.slots for group in LAYOUT.bins])
    for slot in set(range(LAYOUT.slots)) - used:
        counts = np.bincount(made.places[:, slot].astype(np.int64), minlength=sizes[slot])
        assert len(counts) == sizes[slot]
        expected = sets / sizes[slot]
        chi_squared = ((counts - expected) ** 2 / expected).sum()
        assert abs(chi_squared - sizes[slot] + 1) < 7 * np.sqrt(2 * sizes[slot])
    again = planner.plan(offsets, np.array(rows * sets, np.uint64))
    free = sorted(set(range(LAYOUT.slots)) - used)
    assert (again.places[:, free] != made.places[:, free]).any(axis=1).all()


def test_a_random_place_does_not_come_from_a_generator_with_a_seed(monkeypatch):
    monkeypatch.setattr("os.urandom", bytes)
    assert not plan(LAYOUT, [[]]).places.any()


def test_rows_that_arrive_with_others_need_no_slot():
    near = Together(np.array([7]), np.array([[8, 9]]))
    layout = Layout(100, FullPart(1), together=near)
    made = plan(layout, [[7, 8, 9], [8, 7], [8, 9]])
    assert made.slots.tolist() == [0, 0, 0, 0, 0, 0, -1]
    assert made.parts.tolist() == [0, 1, 2, 1, 0, 0, 0]
