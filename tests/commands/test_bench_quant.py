"""`nescio bench quant`, on sizes that mean nothing: its cases, its checks, what it refuses."""

import json
import sys

import numpy as np
import pytest

from commands.conftest import assert_one_sentence, nescio
from nescio import _core, cli
from nescio.bench import quant, quant_gpu
from nescio.bench.quant_limits import Limit, intensity, standard_intensity
from nescio.bench.timing import Run, WrongResultError, interleaved, typical_seconds
from nescio.errors import ArgumentError
from spec import bitserial

FIELDS = {
    *("size", "weight_bits", "activation_bits", "kernel", "device", "threads", "microseconds"),
    *("speedup_fp32", "speedup_int8", "weight_gb_per_second", "exact", "batch", "tier"),
    *("memory_microseconds", "arithmetic_microseconds", "times_limit", "operations_per_byte"),
}


def test_every_combination_is_a_case(tmp_path):
    found = nescio(
        *(
            "bench",
            "quant",
            "--size",
            "100,65",
            "--weight-bits",
            "1,3",
            "--activation-bits",
            "8,32",
        ),
        *("--batch", "1,17", "--threads", "1,2", "--seconds", 0.01),
        *("--json", tmp_path / "cases.json", "--plot", tmp_path / "plot.png"),
    )
    assert found.returncode == 0, found.stderr
    cases = json.loads((tmp_path / "cases.json").read_text())
    keys = ("size", "batch", "threads", "weight_bits", "activation_bits")
    assert [tuple(case[key] for key in keys) for case in cases] == [
        (size, batch, threads, w, a)
        for size in (100, 65)
        for batch in (1, 17)
        for threads in (1, 2)
        for w in (1, 3)
        for a in (8, 32)
    ]
    for case in cases:
        assert set(case) >= FIELDS
        assert (case["exact"], case["device"], case["tier"]) == (True, "cpu", _core.active_tier())
        fp32 = case["speedup_fp32"] * case["microseconds"]
        assert case["fp32_microseconds"] == pytest.approx(fp32)
        rate = case["packed_bytes"] / case["microseconds"] / 1e3
        assert case["weight_gb_per_second"] == pytest.approx(rate)
        limit = max(case["memory_microseconds"], case["arithmetic_microseconds"])
        assert case["times_limit"] == pytest.approx(case["microseconds"] / limit)
    lines = found.stdout.splitlines()
    int8 = cases[0]["int8_microseconds"] is not None
    assert len(lines) == 1 + len(cases) + 5 + (1 + 4 + int8 + 1) + 2
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_every_tier(tmp_path):
    tiers = _core.supported_tiers()
    path = tmp_path / "cases.json"
    options = [
        "--size",
        "64",
        "--weight-bits",
        "8",
        "--activation-bits",
        "16",
        "--seconds",
        "0.001",
    ]
    tiers_asked = ["--tier", ",".join(tiers)]
    assert cli.main(["bench", "quant", *options, *tiers_asked, "--json", str(path)]) == 0
    cases = json.loads(path.read_text())
    assert [case["tier"] for case in cases] == list(tiers)
    kernels = {kernel for case in cases for kernel in case["kernel"].split("+")}
    assert kernels <= {name for tier in tiers for name in _core.bitserial_kernels(tier)}


def test_without_pytorch(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it fails
    path = tmp_path / "cases.json"
    options = ["--size", "32", "--weight-bits", "4", "--activation-bits", "8", "--seconds", "0.001"]
    assert cli.main(["bench", "quant", *options, "--json", str(path)]) == 0
    (case,) = json.loads(path.read_text())
    assert (case["speedup_int8"], case["int8_microseconds"]) == (None, None)
    assert case["speedup_fp32"] > 0
    assert case["baseline"] == f"NumPy {np.__version__}"
    printed = capsys.readouterr().out
    assert f"speedup over NumPy {np.__version__}" in printed
    assert not any(line.startswith("int8") for line in printed.splitlines())


def test_a_device(tmp_path, monkeypatch):
    monkeypatch.setattr(quant_gpu, "COUNT", 2)  # products in a graph; 200 take 20 s here
    path = tmp_path / "cases.json"
    options = ["--size", "64", "--weight-bits", "2", "--activation-bits", "8", "--batch", "3"]
    device = ["--device", "emulated", "--json", str(path)]
    assert cli.main(["bench", "quant", *options, *device]) == 0
    (case,) = json.loads(path.read_text())
    assert case["exact"]
    assert case["batch"] == 3
    assert "emulated" in case["device"]


def test_what_is_checked_against_is_the_specification():
    draw = np.random.default_rng(3)
    weights = quant_gpu.random_weights(draw, 70, 3)
    x = draw.standard_normal((2, 70)).astype(np.float32)
    x[1] = 0
    for bits in (8, 16, 32):
        integers, steps = quant.quantized(x, bits)
        for v in range(2):
            expected, step = bitserial.quantize_activations(x[v].tolist(), bits)
            assert integers[v].tolist() == expected
            assert steps[v] == step
        exact = quant.exact_products(weights, integers)
        rows = [[int(q) for q in row] for row in weights.to_integers()]
        assert exact.tolist() == [
            [sum(q * int(x) for q, x in zip(row, vector, strict=True)) for row in rows]
            for vector in integers
        ]


@pytest.mark.parametrize("what", ["multiply", "apply"])
def test_wrong_results_are_not_timed(what, monkeypatch):
    class Spoilt:
        def __init__(self, *given, **named):
            self._true = _core_matrix(*given, **named)

        def __getattr__(self, name):
            if name != what:
                return getattr(self._true, name)

            def spoilt(*given):
                y = getattr(self._true, name)(*given)
                y[-1, -1] += 1
                return y

            return spoilt

    _core_matrix = _core.BitMatrix
    monkeypatch.setattr(_core, "BitMatrix", Spoilt)
    arguments = [
        "--size",
        "64",
        "--weight-bits",
        "2",
        "--activation-bits",
        "8",
        "--seconds",
        "0.01",
    ]
    parsed = cli.build_parser().parse_args(["bench", "quant", *arguments])
    with pytest.raises(WrongResultError, match="2 and 8 bits, 64 x 64"):
        quant.run(parsed)


def test_limits_and_intensities():
    assert Limit(2.0, 3.0).longest == 3.0
    # 2 x 16 operations of numbers; bytes: 16 weights and 4 inputs, and 4 outputs of float32
    assert standard_intensity(4, 8) == pytest.approx(2 * 16 / (16 + 4 + 16))
    assert standard_intensity(4, 32) == pytest.approx(2 * 16 / (4 * (16 + 4 + 4)))
    assert intensity(4, 2, 8, 3) == pytest.approx(2 * 16 * 2 * 8 * 3 / (16 * 2 / 8 + 3 * 32))
    # Figure 3.2: more bits of activations, more operations for a byte
    assert intensity(4096, 1, 32) > intensity(4096, 1, 8) > 8 * standard_intensity(4096, 8)


@pytest.mark.parametrize("tier", _core.supported_tiers())
def test_the_rate_of_inner_loops(tier):
    for bits, activation_bits, rows, batch in ((1, 8, 1, 1), (3, 16, 70, 2), (8, 32, 4096, 40)):
        rate = _core.seconds_per_weight(bits, activation_bits, rows, batch, tier)
        assert 1e-13 < rate < 1e-5
    for wrong in ((0, 8), (9, 8), (4, 12)):
        with pytest.raises(ArgumentError):
            _core.seconds_per_weight(*wrong, 64, 1, tier)


def test_medians_in_turns():
    order = []
    works = {name: lambda name=name: order.append(name) for name in "ab"}
    found = interleaved(works, 1e-9)
    assert set(found) == {"a", "b"}
    assert "".join(order) == "aabb" * (len(order) // 4)  # a run for the cache, one that counts


def test_interrupted_runs_are_left_out():
    whole = [Run(seconds, seconds, False) for seconds in (1.0, 2.0, 3.0)]
    assert typical_seconds([Run(9.0, 4.0, True), *whole]) == 2.0
    # of two threads, whose time is more than what has passed, and of one
    assert typical_seconds([Run(5.0, 8.0, True)]) == 5.0
    assert typical_seconds([Run(9.0, 4.0, True), Run(8.0, 3.0, True), Run(9.0, 5.0, True)]) == 4.0


def test_speedups_as_a_table():
    def case(size, bits, speedup, int8):
        ours = {"size": size, "weight_bits": bits, "activation_bits": 8, "speedup_fp32": speedup}
        return {**ours, "fp32_microseconds": 10.0, "int8_microseconds": int8}

    cases = [case(64, 1, 5.0, 4.0), case(64, 2, 3.0, 4.0), case(128, 1, 9.0, 2.0)]
    assert list(quant.table(cases)) == [
        {"method": "1 bit (a=8)", "64": 5.0, "128": 9.0},
        {"method": "2 bits (a=8)", "64": 3.0},
        {"method": "int8", "64": 2.5, "128": 5.0},
        {"method": "fp32", "64": 1.0, "128": 1.0},
    ]
    without = [case(64, 1, 5.0, None)]
    assert [line["method"] for line in quant.table(without)] == ["1 bit (a=8)", "fp32"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--size", 0], "size: found 0, expected 1 to"),
        (["--weight-bits", 9], "weight bits: found 9, expected 1 to 8"),
        (["--activation-bits", 12], "activation bits: found 12, expected 8, 16 or 32"),
        (["--batch", 0], "batch: found 0"),
        (["--threads", -1], "threads: found -1"),
        (["--seconds", 0], "seconds: found 0"),
        (["--json", "/no/such/folder/x"], "/no/such/folder"),
        (["--plot", "/no/such/folder/x"], "/no/such/folder"),
        (["--device", "emulated", "--batch", "1,2"], "one batch size"),
    ],
)
def test_what_cannot_be_measured(arguments, words):
    found = nescio("bench", "quant", *arguments)
    assert_one_sentence(found)
    assert words in found.stderr
