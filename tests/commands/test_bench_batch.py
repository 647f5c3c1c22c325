"""`python -m benchmarks.batch`: figures of batch lookups, at sizes of a test."""

import json

import pytest

from benchmarks.batch.__main__ import main


def test_failures_prints_bins_probability_and_bound(tmp_path, capsys):
    path = tmp_path / "failures.json"
    assert main(["failures", "--lookups", "8,16", "--trials", "5000", "--json", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["8", "67", "21", "32", "20"]
    cases = json.loads(path.read_text())
    usual = next(c for c in cases if (c["lookups"], c["hashes"], c["bins"]) == (8, 3, 12))
    assert usual["tried"] == pytest.approx(2**-10.7, rel=0.9)
    for case in cases:
        assert case["trials"] == 5000
        assert case["failures"] <= 5000 * case["bound"] + 5
    assert {case["kind"] for case in cases} == {"independent", "permutations"}


def test_failures_refuses_numbers_that_cannot_be(capsys):
    assert main(["failures", "--lookups", "0"]) == 1
    assert "lookups: found 0" in capsys.readouterr().err
    assert main(["failures", "--trials", "0"]) == 1
    assert "trials: found 0" in capsys.readouterr().err
