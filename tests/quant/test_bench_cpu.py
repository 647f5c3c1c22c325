"""`python -m benchmarks.quant cpu`, at tiny sizes, where its times mean nothing."""

import json

import pytest

from benchmarks.quant.__main__ import main


def test_cases(tmp_path, capsys):
    path = tmp_path / "cases.json"
    options = ["--sizes", "64,70", "--rows", "3", "--weight-bits", "1", "--turns", "1"]
    assert main(["cpu", *options, "--json", str(path)]) == 0
    cases = json.loads(path.read_text())
    assert {(case["rows"], case["columns"]) for case in cases} == {(3, 64), (3, 70)}
    kernels = {case["kernel"] for case in cases}
    assert "reading" in kernels
    assert len(kernels) > 2
    assert all(0 < case["microseconds"] <= case["median_microseconds"] for case in cases)
    assert "us, fastest" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sizes", "0"], "--sizes: found 0, expected 1 to"),
        (["--weight-bits", "9"], "--weight-bits: found 9, expected 1 to 8"),
        (["--turns", "0"], "--turns: found 0, expected 1 to"),
    ],
)
def test_invalid_options(options, message, capsys):
    assert main(["cpu", *options]) == 1
    assert message in capsys.readouterr().err
