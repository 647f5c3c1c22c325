"""`python -m benchmarks.quant gpu`, on the emulated device, where its times mean nothing."""

import json

import numpy as np
import pytest

from benchmarks.quant.__main__ import main
from nescio.bench import quant_gpu
from nescio.bench.timing import WrongResultError
from nescio.quant.device import DeviceMatrix

TINY = ["gpu", "--device", "emulated", "--size", "70", "--count", "1", "--activation-bits", "8"]


def test_cases(tmp_path, capsys):
    path = tmp_path / "cases.json"
    assert main([*TINY, "--weight-bits", "1,4", "--json", str(path)]) == 0
    cases = json.loads(path.read_text())
    assert [(c["size"], c["weight_bits"], c["kernel"]) for c in cases] == [
        (70, 1, "matrix-fused"),
        (70, 4, "matrix-fused"),
    ]
    assert all(c["microseconds"] > 0 and c["exact"] and c["speedup_fp32"] is None for c in cases)
    assert "A product of 1 x 1 takes" in capsys.readouterr().out


def test_kernels_that_are_not_there_are_left_out(capsys):
    line = [
        "gpu",
        *TINY[3:],
        "--device",
        "emulated:2",
        "--weight-bits",
        "2",
        "--kernel",
        "count,matrix",
    ]
    assert main(line) == 0
    out, err = capsys.readouterr()
    assert out.count(" count ") == 1
    assert "left out: kernel: found 'matrix', expected one of count, count-fused" in err


def test_no_device(capsys):
    assert main(["gpu", "--device", "emulated:7"]) == 1
    assert "emulated:7 does not exist" in capsys.readouterr().err


def test_wrong_products_are_found(rng, monkeypatch):
    matrix = DeviceMatrix(quant_gpu.random_weights(rng, 20, 3), device="emulated")
    quant_gpu.check(matrix, 2, rng)
    monkeypatch.setattr(DeviceMatrix, "__call__", lambda self, x: np.zeros((2, 20), np.float32))
    with pytest.raises(WrongResultError, match="3 and 8 bits, 20 x 20"):
        quant_gpu.check(matrix, 2, rng)
