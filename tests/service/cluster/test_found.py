"""A table that runs with other arguments than those of a front, without Ray."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nescio.errors import ArgumentError
from nescio.service._cluster import ClusterOptions
from nescio.service._cluster._found import check_found, ignored
from nescio.service._cluster._open import _arguments, array_sources

FIELDS = {"version": "1", "output": "bit", "generator": "chacha20"}


@pytest.fixture
def arguments_of(tmp_path):
    """Returns the arguments of a head, for an array of some shape and for options."""

    def make(rows=900, columns=16, name="table.npy", spare=0, **options):
        np.save(tmp_path / name, np.zeros((rows, columns), np.uint8))
        chosen = ClusterOptions(**{"party": 0, "shards": 2, **options})
        sources = array_sources(tmp_path / name, chosen, spare=lambda _: spare, **FIELDS)
        return _arguments("words", sources, chosen)

    return make


def test_the_same_table_is_taken(arguments_of):
    first, second = arguments_of(data=Path("/data")), arguments_of(data=Path("/data"))
    check_found(first, second)
    assert ignored(first, second) == ""


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"shards": 3}, "found 2 shards on the cluster, expected 3"),
        ({"rows": 901}, "found rows 900 on the cluster, expected 901"),
        ({"columns": 4}, r"found row shape \(16,\) on the cluster, expected \(4,\)"),
        ({"rows": 899, "spare": 1}, "found 900 occupied rows on the cluster, expected 899"),
        ({"name": "other.npy"}, "found rows of .*table.npy in shard 0 on the cluster, .*other.npy"),
        ({"data": Path("/data")}, "found no data folder on .* expected data folder /data/words"),
        ({"keep": 4}, "found --keep-versions 16 on the cluster, expected 4"),
        ({"devices": ("cuda:0",)}, "found --device cpu on the cluster, expected cuda:0"),
    ],
)
def test_another_table_is_refused(arguments_of, options, text):
    found = arguments_of()
    with pytest.raises(ArgumentError, match=f"table 'words': {text}.*: give the same options, or"):
        check_found(found, arguments_of(**options))


def test_a_table_that_was_built_again_or_is_mapped_is_refused(arguments_of):
    found = arguments_of()
    built = found._replace(params=replace(found.params, digest="12" * 32))
    with pytest.raises(ArgumentError, match="found digest 0000.* on the cluster, expected 1212"):
        check_found(found, built)
    mapped = found._replace(shards=[replace(one, mapped=True) for one in found.shards])
    with pytest.raises(ArgumentError, match=r"found rows in memory .* expected rows in files"):
        check_found(found, mapped)


def test_options_that_do_not_count_are_told_in_one_line(arguments_of):
    found = arguments_of(replicas=2, threads=4)
    other = arguments_of(replicas=1, max_replicas=3, max_journal=1 << 20, queue_seconds=0.2)
    check_found(found, other)
    assert ignored(found, other) == (
        "table words runs with --replicas 2, not 1; --max-replicas 2, not 3; --queue-target 100, "
        "not 200; --threads 4, not 0; --max-journal its default, not 1048576"
    )
