"""`nescio bench lookup --bins`, on small cases: what it prints, what it writes, what it refuses."""

import json

import numpy as np
import pytest

import nescio
from commands.conftest import assert_one_sentence, nescio_here
from commands.conftest import nescio as run
from nescio import _core
from nescio.bench import answers
from nescio.bench.memory import PeakMemory
from nescio.bench.timing import WrongResultError

FIELDS = {
    *("inferences_per_second", "bins", "rows", "row_bytes", "lookups", "mode", "clients"),
    *("key_bytes", "answer_bytes", "times_plain", "pass_milliseconds", "compute_milliseconds"),
    *("times_limit", "threads", "device", "output", "generator", "verified"),
}


def measured(tmp_path, *options):
    sizes = ["--rows", 2048, "--row-bytes", 24, "--clients", "1,3", "--seconds", 0.01]
    found = run("bench", "lookup", *sizes, *options, "--json", tmp_path / "cases.json")
    assert found.returncode == 0, found.stderr
    return found, json.loads((tmp_path / "cases.json").read_text())


def test_whole_lookups_and_bins(tmp_path):
    options = ["--bins", "1,16", "--lookups", 5, "--generator", "aes128", "--verify"]
    found, cases = measured(tmp_path, *options)
    assert len(cases) == 2 * 2 * 2
    for case in cases:
        assert set(case) >= FIELDS
        rate = case["clients"] / case["milliseconds"] * 1e3
        assert case["inferences_per_second"] == pytest.approx(rate)
        one = case["bins"] == 1
        assert (case["mode"], case["lookups"]) == (("plain", 5) if one else ("partial", 16))
        assert case["answer_bytes"] == case["lookups"] * 24
        rows = 2048 // case["bins"]
        key_bytes = _core.key_bytes(rows, "bit", "aes128")
        assert case["key_bytes"] == case["lookups"] * key_bytes
        (plain,) = [
            c
            for c in cases
            if c["mode"] == "plain"
            and (c["clients"], c["verified"]) == (case["clients"], case["verified"])
        ]
        gain = case["inferences_per_second"] / plain["inferences_per_second"]
        assert case["times_plain"] == pytest.approx(gain)
    lines = found.stdout.splitlines()
    assert len(lines) == 1 + 8 + 6
    assert "inferences/s" in lines[0]


def test_records_and_other_outputs(tmp_path):
    options = ["--bins", "4", "--output", "u32", "--record-rows", 0, "--generator", "chacha20"]
    _, cases = measured(tmp_path, *options)
    assert {(c["mode"], c["record_rows"], c["times_plain"]) for c in cases} == {
        ("partial", 8, None)
    }
    assert {c["answer_bytes"] for c in cases} == {4 * 8 * 24}


def test_on_a_device(tmp_path):
    options = ["--bins", "1,8", "--lookups", 2, "--generator", "chacha20"]
    _, cases = measured(tmp_path, *options, "--device", "emulated", "--strategy", "auto,bounded")
    assert {(c["bins"], c["place"], c["strategy"]) for c in cases} == {
        (bins, "emulated:0", strategy) for bins in (1, 8) for strategy in ("auto", "bounded")
    }
    assert all(case["launches"] > 0 for case in cases)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bins", "0"], "bins: found 0, expected 1 to"),
        (["--bins", "3", "--rows", "100"], "rows: found 100, expected a multiple of the bins, 3"),
        (["--bins", "128", "--rows", "64"], "bins: found 128, expected 1 to 64"),
        (["--bins", "2", "--clients", "0"], "clients: found 0"),
        (["--bins", "2", "--lookups", "0"], "lookups: found 0"),
        (["--bins", "2", "--clients", "9999"], "keys of all clients: found 639936, expected at"),
        (["--bins", "2", "--plot", "x.png"], "--plot does not show bins"),
    ],
)
def test_what_is_refused(options, message):
    found = nescio_here("bench", "lookup", *options)
    assert_one_sentence(found)
    assert message in found.stderr


def test_wrong_rows_are_not_timed(monkeypatch):
    table, _ = answers.random_table(64, 8, "bit", "aes128", bins=4)
    server = nescio.Server(table, threads=1, device="cpu")
    assert answers.checked_query(server, 3, PeakMemory()).seconds > 0

    def the_first_places(params, lookups):
        places = np.zeros((lookups, 4), np.uint64)
        return places, places  # as if every bin had the rows of the first

    monkeypatch.setattr(answers, "_random_indices", the_first_places)
    with pytest.raises(WrongResultError, match="the answers are not the rows"):
        answers.checked_query(server, 3, PeakMemory())


def test_answers_with_several_keys_for_a_bin_are_checked():
    bins = [(2, 8, 3), (4, 16, 1)]  # of 8 rows with three keys each, and of 16 with one
    rows = np.random.default_rng(1).integers(256, size=(80, 8), dtype=np.uint8)
    server = nescio.Server(nescio.Table(rows, bins=bins), threads=1, device="cpu")
    for verify in (False, True):
        assert answers.checked_query(server, 3, PeakMemory(), verify=verify).seconds > 0
