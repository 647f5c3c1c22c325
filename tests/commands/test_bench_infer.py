"""`python -m benchmarks.infer linear`."""

import json

from benchmarks.infer.__main__ import main


def test_a_layer(tmp_path, capsys):
    path = tmp_path / "cases.json"
    assert main(["linear", "--layer", "fc64-10", "--repeat", "1", "--json", str(path)]) == 0
    (case,) = json.loads(path.read_text())
    assert (case["bytes_in"], case["bytes_out"]) == (30752, 20520)
    assert case["limit_ms"] > 0
    assert "fc64-10" in capsys.readouterr().out


def test_names_and_numbers_that_are_refused(capsys):
    assert main(["linear", "--layer", "nothing"]) == 1
    assert "--layer: found 'nothing', expected one of 3-16x32, 16-16x32" in capsys.readouterr().err
    assert main(["linear", "--repeat", "0"]) == 1
    assert "--repeat: found 0, expected at least 1" in capsys.readouterr().err
