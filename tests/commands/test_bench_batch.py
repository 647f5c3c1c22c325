"""`python -m benchmarks.batch`: figures of batch lookups, at sizes of a test."""

import json
import os
from itertools import cycle
from pathlib import Path

import pytest

from benchmarks.batch import gains
from benchmarks.batch.__main__ import main
from benchmarks.batch.logs import movielens, wikitext2
from nescio.bench.timing import WrongResultError
from nescio.pir import Server
from nescio.pir.batch import AccessLog
from nescio.pir.batch._tune.cost import Setup
from nescio.pir.batch._tune.design import Design, exact


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


# ---- Inferences per second against bytes ---------------------------------------------------------


def test_pareto_measures_three_modes_and_plots_them(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    sizes = ("--rows", "2000", "--row-bytes", "16", "--lookups", "4,8", "--seconds", "0.001")
    files = ("--json", str(tmp_path / "all.json"), "--plot", str(tmp_path / "plot.svg"))
    assert main(["pareto", *sizes, "--clients", "2", *files]) == 0
    cases = json.loads((tmp_path / "all.json").read_text())
    assert [(case["mode"], case["rows_wanted"], case["bins"]) for case in cases] == [
        *(("plain", 4, 1), ("partial", 4, 4)),
        *(("plain", 8, 1), ("partial", 8, 8), ("exact", 8, 32)),
    ]
    assert {
        *("inferences_per_second", "bins", "rows", "row_bytes", "lookups", "mode"),
        *("key_bytes", "answer_bytes"),
    } <= set(cases[0])
    assert all(c["bytes"] == 2 * (c["key_bytes"] + c["answer_bytes"]) for c in cases)
    assert "<svg" in (tmp_path / "plot.svg").read_text()
    assert capsys.readouterr().out.count("\n") >= 6


def test_pareto_refuses_more_rows_than_the_table_has(capsys):
    assert main(["pareto", "--rows", "10", "--lookups", "11"]) == 1
    assert "lookups: found 11, expected 1 to 10" in capsys.readouterr().err


# ---- Real logs -----------------------------------------------------------------------------------


@pytest.fixture
def data():
    folder = Path(os.environ.get("NESCIO_DATA", "../shared/data"))
    if not (folder / "movielens").exists():
        pytest.skip(f"{folder} has no MovieLens; NESCIO_DATA names the folder of the data sets")
    return folder


def test_gains_are_printed_for_each_family(data, tmp_path, capsys):
    path = tmp_path / "gains.json"
    few = ("--layouts", "40", "--seconds", "0.001", "--clients", "4", "--max-bytes", "1e9")
    names = ("--data", str(data), "--logs", "movielens", "--json", str(path))
    assert main(["gains", *names, *few]) == 0
    cases = json.loads(path.read_text())
    assert {case["family"] for case in cases} == {
        *("plain", "bins", "hot", "together", "choices", "exact")
    }
    for case in cases:
        assert case["retrieved"] >= case["target"]
    whole = next(c for c in cases if c["target"] == 1 and c["family"] == "plain")
    assert whole["times_plain"] == 1


def test_logs_of_real_data(data):
    films = movielens(data)
    assert (films.rows, int(films.log.lengths.max())) == (9724, 72)
    assert films.log.people > 600
    words = wikitext2(data, stream=True)
    assert words.rows == 33_278
    assert words.log.lengths.max() <= 35
    assert words.held_out.people == 1


def test_logs_are_written_for_tune(data, tmp_path, capsys):
    out = tmp_path / "logs"
    assert main(["logs", "--data", str(data), "--logs", "movielens", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "--rows 9724 --row-bytes 128" in printed
    assert repr(AccessLog.load(out / "movielens.npz", limit=9724)) in printed


def test_missing_data_is_a_sentence(tmp_path, capsys):
    assert main(["gains", "--data", str(tmp_path)]) == 1
    assert "--data names the folder of the data sets" in capsys.readouterr().err


def test_layouts_with_wrong_answers_are_not_timed(monkeypatch):
    setup = Setup(300, 16, verify=False, clients=2, threads=1)
    designs = (Design(1, 5), Design(4, 2, hot=20, hot_bins=2, hot_keys=3, together=1), exact(8, 3))
    assert set(gains.measured_in_turns(setup, designs, 0.001)) == set(designs)
    right, turns = Server.answer, cycle((0, 1))  # one of two servers is wrong

    def answer(self, query):
        found = right(self, query)
        rows, wrong = len(found) // 2, next(turns)  # the first half has more than the header
        return found[:rows] + bytes(byte ^ wrong for byte in found[rows:])

    monkeypatch.setattr(Server, "answer", answer)
    for design in designs:
        with pytest.raises(WrongResultError, match="the answers are not the rows"):
            gains.measured_in_turns(setup, [design], 0.001)
