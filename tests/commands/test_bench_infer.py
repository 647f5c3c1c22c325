"""`python -m benchmarks.infer linear`, `memory` and `tables`."""

import json

from benchmarks.infer.__main__ import main
from mpc.plans import small_plan


def test_a_layer(tmp_path, capsys):
    path = tmp_path / "cases.json"
    assert main(["linear", "--layer", "fc64-10", "--repeat", "1", "--json", str(path)]) == 0
    (case,) = json.loads(path.read_text())
    assert (case["bytes_in"], case["bytes_out"]) == (30752, 14361)
    assert case["limit_ms"] > 0
    assert "fc64-10" in capsys.readouterr().out


def test_tables_of_both_ways(tmp_path, capsys):
    path = tmp_path / "cases.json"
    size = ["--bits", "7,10", "--count", "3000", "--repeat", "1"]
    assert main(["tables", *size, "--json", str(path)]) == 0
    cases = json.loads(path.read_text())
    found = [(case["table_bits"], case["way"]) for case in cases]
    assert found == [(7, "transfers"), (10, "transfers"), (10, "trees")]
    small, large, by_trees = (case["bytes"] for case in cases)
    assert small < by_trees < 200 < 290 < large
    assert all(case["cpu_us"] > 0 and case["limit_us"] > 0 for case in cases)
    assert "made by" in capsys.readouterr().out


def test_memory_of_both_parties(tmp_path, capsys):
    plan, _ = small_plan()
    plan.save(tmp_path / "model.plan")
    path = tmp_path / "cases.json"
    limits = ["--limit", "0,2^20", "--json", str(path)]
    assert main(["memory", str(tmp_path / "model.plan"), *limits]) == 0
    integers, kept = json.loads(path.read_text())
    assert integers["weight_bytes"] < kept["weight_bytes"] == plan.report.weight_bytes
    for case in (integers, kept):
        assert 0 < case["server_before"] <= case["server_peak"]
        assert 0 < case["client_before"] <= case["client_peak"]
    assert "server peak B" in capsys.readouterr().out
    assert main(["memory", str(tmp_path / "none.plan")]) == 1


def test_names_and_numbers_that_are_refused(capsys):
    assert main(["tables", "--bits", "13"]) == 1
    assert "--bits: found 13, expected 4 to 12" in capsys.readouterr().err
    assert main(["tables", "--count", "0"]) == 1
    assert "--repeat, --count: found 9 and 0" in capsys.readouterr().err
    assert main(["linear", "--layer", "nothing"]) == 1
    assert "--layer: found 'nothing', expected one of 3-16x32, 16-16x32" in capsys.readouterr().err
    assert main(["linear", "--repeat", "0"]) == 1
    assert "--repeat: found 0, expected at least 1" in capsys.readouterr().err
