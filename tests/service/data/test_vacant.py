"""Vacant rows of a table that starts again from its data folder."""

import numpy as np
import pytest

from nescio.pir._change import make_change
from service.data.tables import begin, change, fresh_rows, new_table, restart, same


@pytest.mark.parametrize("snapshot", [False, True])
def test_vacant_rows_are_those_of_before_a_restart(tmp_path, snapshot):
    kept = begin(tmp_path / "words", new_table(spare=5))
    table = kept.table
    change(table, "append", [600, 602], fresh_rows(1, 2))
    change(table, "clear", [3, 600])
    if snapshot:
        kept.snapshots.start()
        kept.snapshots.wait()
    change(table, "update", [601, 7], fresh_rows(2, 2))
    change(table, "grow", [], count=40)
    change(table, "insert", [1], fresh_rows(3, 1))
    data = change(table, "append", [4, 601], fresh_rows(4, 2))
    found = restart(kept).kept.table
    assert same(found, table)
    assert found.vacant.tolist() == table.vacant.tolist()
    assert len(found.vacant) == 42
    assert found.lowest_vacant(0)[1].appended.tolist() == [4, 601]
    before = found.params
    assert make_change(found, data) == before  # a repetition is recognized
    assert np.array_equal(found[[4, 601]], fresh_rows(4, 2))
