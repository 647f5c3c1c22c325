"""`python -m benchmarks.applications`: figures of the paper's applications, at sizes of a test."""

import json

import pytest

from benchmarks._main import build_parser
from benchmarks.applications import __main__ as commands
from benchmarks.applications import every, table3
from benchmarks.applications.__main__ import BENCHMARKS, main
from benchmarks.applications.modes import modes
from benchmarks.applications.places import Answer, Devices
from benchmarks.applications.published import SIZES, Size
from nescio._device import parse_device_list
from nescio.bench.answers import checked_query
from nescio.bench.gpu_case import GpuBench
from nescio.bench.memory import PeakMemory
from nescio.pir.batch import failure_probability

_QUICK = ("--scale", "0.004", "--seconds", "0.002", "--clients", "1,2")
_KIND = ("application", "rows", "mode", "checked")


def cases_of(path):
    return json.loads(path.read_text())


# ---- Table 3 -------------------------------------------------------------------------------------


def test_table3_measures_each_mode_beside_the_paper(tmp_path, capsys):
    path = tmp_path / "table3.json"
    few = ("--applications", "movielens,taobao", "--generator", "aes128")
    assert main(["table3", *few, *_QUICK, "--json", str(path)]) == 0
    cases = cases_of(path)
    assert {case["application"] for case in cases} == {"movielens", "taobao"}
    for case in cases:
        assert case["within_budgets"]
        assert case["bytes"] == 2 * (case["key_bytes"] + case["answer_bytes"])
        assert (case["retrieved"] == 1) == (case["mode"] != "partial")
    chosen = [case for case in cases if case["chosen"]]
    assert len(chosen) == 2 * (2 * 3 + 3 * 2)  # checked or not; Taobao's 3 rows have no exact mode
    for case in chosen:
        same = [c for c in cases if all(c[k] == case[k] for k in _KIND)]
        assert case["inferences_per_second"] == max(c["inferences_per_second"] for c in same)
    printed = capsys.readouterr().out
    assert "2,821" in printed
    assert "256,000" in printed


def test_limits_of_a_device():
    size = Size("taobao", 64, 16, 3, 2.68, "test")
    place = Devices(GpuBench(parse_device_list("emulated")))
    for verified in (False, True):
        for mode in modes(size):
            server = mode.open(size, "chacha20", place)
            checked = checked_query(server, mode.keys, PeakMemory(), verify=verified)
            answer = Answer(server, mode.keys, verified, checked, checked.seconds)
            assert ("times_limit" in place.limits(answer)) is not verified


def test_table3_holds_the_budgets(tmp_path):
    path = tmp_path / "table3.json"
    few = ("--applications", "movielens", "--generator", "chacha20", "--max-bytes", "56000")
    assert main(["table3", *few, *_QUICK, "--json", str(path)]) == 0
    chosen = [case for case in cases_of(path) if case["chosen"]]
    assert {case["mode"] for case in chosen} == {"plain", "partial"}  # exact mode has 70 KB
    assert all(case["bytes"] <= 56_000 for case in chosen)


def test_table3_takes_numbers_of_clients_in_any_order(tmp_path, monkeypatch):
    monkeypatch.setattr(table3, "MAX_CLIENTS", 100)
    path = tmp_path / "table3.json"
    few = ("--applications", "movielens", "--generator", "chacha20")
    options = ("--clients", "2,1", "--json", str(path))
    assert main(["table3", *few, *_QUICK, *options]) == 0
    plain = [case for case in cases_of(path) if case["mode"] == "plain"]
    assert {case["clients"] for case in plain} == {1}  # two have 144 keys


def test_table3_says_that_nothing_is_within_the_budgets(capsys):
    few = ("--applications", "movielens", "--generator", "chacha20", "--max-bytes", "100")
    assert main(["table3", *few, *_QUICK]) == 0
    assert "108 rows, chacha20: nothing is within 100 bytes and 300 ms" in capsys.readouterr().out


def test_table3_divides_taobao_by_the_mean(tmp_path):
    path = tmp_path / "table3.json"
    few = ("--applications", "taobao", "--generator", "chacha20")
    assert main(["table3", *few, *_QUICK, "--json", str(path)]) == 0
    for case in cases_of(path):
        assert case["lookups"] == 3
        by_mean = case["mean_inferences_per_second"]
        if case["mode"] == "plain":
            assert by_mean == pytest.approx(case["inferences_per_second"] * 3 / 2.68)
        else:
            assert by_mean is None


def test_exact_modes_of_table3_fail_once_in_2_to_the_40():
    for size in SIZES:
        for mode in modes(size):
            if mode.name == "exact":
                bins = mode.design.bins * mode.design.hashes
                hashes = mode.design.hashes
                assert failure_probability(size.lookups, bins, hashes) <= 2**-40


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--scale", "0", "scale: found 0.0, expected more than 0"),
        ("--seconds", "0", "seconds: found 0.0"),
        ("--max-ms", "-1", "max_ms: found -1.0"),
        ("--clients", "8,0", "clients: found 0, expected 1 to 65536"),
    ],
)
def test_table3_refuses_numbers_that_cannot_be(option, value, message, capsys):
    assert main(["table3", option, value]) == 1
    assert message in capsys.readouterr().err


# ---- All benchmarks ------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "ran"), [(130, ["table3"]), (1, ["table3", "latency", "sweep"])])
def test_all_stops_where_it_is_interrupted_and_not_at_an_error(code, ran, tmp_path, monkeypatch):
    names = []

    def stopped(argv):
        names.append(argv[0])
        return code

    options = build_parser("benchmarks.applications", "", BENCHMARKS)
    arguments = options.parse_args(["all", "--out", str(tmp_path)])
    monkeypatch.setattr(commands, "main", stopped)
    assert every.run(arguments) == code
    assert names == ran
