"""Fronts that open a table on Ray: one that runs with other options, or cannot be opened."""

from dataclasses import replace

import numpy as np
import pytest

from nescio.errors import ArgumentError
from nescio.service._cluster import open_table
from nescio.service._cluster._open import array_sources
from service.cluster.conftest import FIELDS

pytestmark = [pytest.mark.timeout(180), pytest.mark.load]


def test_a_front_of_other_rows_or_without_the_data_folder_is_refused(sharded, tmp_path):
    table = sharded(replicas=1)
    np.save(tmp_path / "other.npy", np.load(tmp_path / "table.npy")[::-1])
    other = array_sources(tmp_path / "other.npy", table.options, spare=lambda _: 0, **FIELDS)
    with pytest.raises(ArgumentError, match=r"found rows of .*table.npy in shard 0 on the cluster"):
        open_table(table.name, other, table.options)
    with pytest.raises(ArgumentError, match="found data folder .* expected no data folder"):
        open_table(table.name, table.sources, replace(table.options, data=None))
    table.check()  # nothing was drained
    said = []
    options = replace(table.options, replicas=2, threads=2)
    second = open_table(table.name, table.sources, options, said.append)
    table.check(second)
    second.stop()
    assert said == [f"table {table.name} runs with --replicas 1, not 2; --max-replicas 1, not 2; "
                    "--threads 1, not 2"]  # fmt: skip
