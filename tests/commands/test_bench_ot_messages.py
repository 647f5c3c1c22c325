"""The chart of the bytes that each party of OTs sends: `python -m benchmarks.ot messages`."""

import pytest

from benchmarks.ot.__main__ import main
from nescio.cli import main as nescio


def test_a_chart_of_the_first_calls(tmp_path):
    pytest.importorskip("matplotlib")
    results, chart = tmp_path / "ot.json", tmp_path / "chart.svg"
    options = ["--n", "1000", "--family", "dual", "--repeat", "1", "--json", str(results)]
    assert nescio(["bench", "ot", *options]) == 0
    assert main(["messages", str(results), "--out", str(chart)]) == 0
    assert "<svg" in chart.read_text()


@pytest.mark.parametrize("text", [None, "{", "[1]", '[{"n": 1}]'])
def test_files_that_are_not_results(tmp_path, text, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "results.json"
    if text is not None:
        path.write_text(text)
    assert main(["messages", str(path), "--out", str(tmp_path / "chart.svg")]) == 1
    assert "is not JSON that `nescio bench ot --json` has written" in capsys.readouterr().err
