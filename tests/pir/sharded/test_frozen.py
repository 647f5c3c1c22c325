"""The file of a shard is that of one version, whatever changes are made while it is written."""

import numpy as np
import pytest

from nescio.errors import FileError
from nescio.pir._sharded import read_shard, write_shard

from .test_shards import RANDOM, sharded


@pytest.mark.parametrize(
    ("rows", "row_bytes", "output"), [(90_000, 300, "bit"), (9_000, 5200, "u32"), (700, 16, "bit")]
)
def test_a_file_has_the_version_at_which_it_began(tmp_path, rows, row_bytes, output):
    """Changes are made after each block, to rows that are written and to rows that are not."""
    values = RANDOM.integers(256, size=(rows, row_bytes), dtype=np.uint8)
    head, tables, _ = sharded(values, output, 2 if rows > 1000 else 1)
    table = tables[-1]
    first, end = table.part.rows(table.params)
    write_shard(tmp_path / "before", table)
    before = table.params
    where = [first, *RANDOM.integers(first, end, 3), end - 1]

    def change():
        new = RANDOM.integers(256, size=(len(where), row_bytes), dtype=np.uint8)
        head.update(where, new)
        where[1:4] = RANDOM.integers(first, end, 3)

    write_shard(tmp_path / "meanwhile", table, change)
    assert table.params != before
    assert (tmp_path / "meanwhile").read_bytes() == (tmp_path / "before").read_bytes()
    assert read_shard(tmp_path / "meanwhile", 1).params == before
    write_shard(tmp_path / "after", table)
    assert read_shard(tmp_path / "after", 1).params == table.params


def test_a_file_whose_writing_ends_early_is_not_there(tmp_path):
    values = RANDOM.integers(256, size=(700, 16), dtype=np.uint8)
    head, (table,), _ = sharded(values, "bit", 1)

    def fail():
        raise FileError("enough")

    with pytest.raises(FileError, match="enough"):
        write_shard(tmp_path / "shard", table, fail)
    assert not list(tmp_path.iterdir())
    head.update([3], values[:1])
    assert table._frozen == []  # changes are not noted any longer
