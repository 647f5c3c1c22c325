"""`python -m benchmarks.lookup embedding`, at tiny sizes, where its times mean nothing."""

import json

import pytest

from benchmarks.lookup.__main__ import main

pytest.importorskip("torch")
SIZES = ["--rows", "300", "--columns", "5", "--seconds", "0.01"]


def test_cases(tmp_path, capsys):
    path = tmp_path / "cases.json"
    assert main(["embedding", *SIZES, "--indices", "1,3", "--json", str(path)]) == 0
    first, second = json.loads(path.read_text())
    assert (first["rows"], first["columns"], first["indices"]) == (300, 5, 1)
    assert second["indices"] == 3
    assert second["query_bytes"] > first["query_bytes"] > 0
    assert all(value > 0 for value in first.values())
    assert "private us" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", "0"], "--rows: found 0, expected 1 to"),
        (["--columns", "0"], "--columns: found 0"),
        (["--indices", "0"], "--indices: found 0, expected 1 to 65536"),
        (["--seconds", "0"], "seconds: found 0.0, expected more than 0"),
        (["--threads", "-1"], "threads: found -1, expected 0 to"),
    ],
)
def test_invalid_options(options, message, capsys):
    assert main(["embedding", *SIZES, *options]) == 1
    assert message in capsys.readouterr().err
