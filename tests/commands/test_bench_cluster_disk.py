"""`python -m benchmarks.cluster disk`: a small table from its files, and what it is made of."""

import json
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.cluster.__main__ import main
from benchmarks.cluster.processes import Watch, tree
from benchmarks.cluster.rows import GeneratedRows


def test_rows_are_the_same_however_they_are_read():
    rows = GeneratedRows(20_000, 24, 7)
    whole = rows.read(0, 20_000)
    assert whole.shape == (20_000, 24)
    assert len(np.unique(whole, axis=0)) == 20_000
    for first, count in ((0, 1), (4095, 2), (4096, 8192), (19_999, 1), (5, 0)):
        assert np.array_equal(rows.read(first, count), whole[first : first + count])
    assert not np.array_equal(GeneratedRows(20_000, 24, 8).read(0, 20_000), whole)


def test_a_tree_of_processes_has_their_memory_and_their_time():
    program = "x = bytearray(50_000_000); print('made', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        with Watch(process.pid) as watch:
            process.stdout.readline()
            (found,) = tree(process.pid)
        process.stdin.write("\n")
    assert "bytearray" in found.title
    assert 50_000_000 < found.private < 100_000_000
    assert 0 < found.seconds < 10
    assert watch.peak <= found.private
    assert tree(process.pid) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--row-bytes", "12"), "--row-bytes: found 12, expected a multiple of 8"),
        (("--gigabytes", "1e5"), "bytes of free space, expected the table"),
    ],
)
def test_impossible_tables_are_refused_before_a_build(tmp_path, capsys, options, message):
    assert main(["disk", "--out", str(tmp_path), *options]) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.load
def test_a_table_is_looked_up_from_its_files(tmp_path, capsys):
    pytest.importorskip("ray")
    path, out = tmp_path / "cases.json", tmp_path / "out"
    options = ("--gigabytes", "0.02", "--shards", "2", "--row-bytes", "64", "--keys", "1,9")
    assert main(["disk", *options, "--out", str(out), "--json", str(path)]) == 0
    assert "all rows were right: 312,500 of 64 bytes in 2 shards" in capsys.readouterr().out
    cases = json.loads(path.read_text())
    steps = [(case["step"], case.get("party"), case.get("keys")) for case in cases]
    assert steps == [
        ("build", None, None),
        ("disk alone", None, None),
        *(
            (step, party, keys)
            for party in (0, 1)
            for step, keys in (("start", None), ("lookup", 1), ("lookup", 9))
        ),
    ]
    assert all(case["seconds"] > 0 and case["gigabytes"] >= 0.02 for case in cases)
    assert list(out.iterdir()) == []
