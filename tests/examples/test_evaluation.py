"""`python -m benchmarks.applications` on trained models, with real lookups, at sizes of a test."""

import json
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

import torch

from benchmarks.applications import check
from benchmarks.applications.__main__ import main
from benchmarks.applications.latency import emulated_seconds
from nescio.bench.timing import WrongResultError
from nescio.net import Link
from sets import movielens

_FEW = ("--applications", "movielens", "--size", "small", "--layouts", "18")
_LEVELS = {"full", "eco", "relaxed"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Ratings in the format of ml-20m; the folder of all data sets."""
    folder = tmp_path_factory.mktemp("data")
    movielens.written(folder / "movielens", 19)
    return folder


@pytest.fixture(scope="module")
def sweep(data, tmp_path_factory):
    """Runs the sweep once; returns its cases, and the folder of its plots."""
    out = tmp_path_factory.mktemp("sweep")
    options = ("--seconds", "0.001", "--checks", "3", "--max-bytes", "300000")
    files = ("--json", str(out / "sweep.json"), "--plot", str(out))
    assert main(["sweep", "--data", str(data), *_FEW, *options, *files]) == 0
    return json.loads((out / "sweep.json").read_text()), out


def of(cases, what):
    return [case for case in cases if case["what"] == what]


def test_real_lookups_get_the_rows_that_were_counted(sweep):
    checks = of(sweep[0], "check")
    assert len(checks) == 3
    for case in checks:
        assert case["alike"] == case["inferences"] > 0
        assert case["quality"] == pytest.approx(case["counted_quality"], abs=1e-6)
        assert case["server_milliseconds"] > 0
    assert len({case["layout"] for case in checks}) == 3


def test_picks_have_the_quality_of_their_level(sweep):
    cases = sweep[0]
    (model,) = of(cases, "model")
    picks = of(cases, "pick")
    assert {case["level"] for case in picks} == _LEVELS
    assert {case["generator"] for case in picks} == {"chacha20", "aes128"}
    for case in picks:
        assert case["bytes"] <= 300_000
        least = model["training"] * (1 - model["loss"] * (case["level"] == "relaxed"))
        assert case["training"] >= least - 1e-9
        if case["level"] == "full":
            assert case["family"] in case["families"]
            assert case["training"] == pytest.approx(model["training"])


def test_a_family_is_no_slower_than_those_that_it_has(sweep):
    picks = of(sweep[0], "pick")
    rates = {(c["generator"], c["level"], c["family"]): c["inferences_per_second"] for c in picks}
    for (generator, level, _), rate in rates.items():
        assert rates[generator, level, "co-design"] >= rate
    for case in picks:
        if case["family"] == "partial":
            assert case["times_partial"] == 1


def test_bytes_of_rows_together_are_charged(sweep):
    for case in of(sweep[0], "measured") + of(sweep[0], "tried"):
        assert case["bytes"] >= case["uncharged_bytes"]
        if not case["design"]["together"]:
            assert case["bytes"] == case["uncharged_bytes"]
    assert {case["measure"] for case in of(sweep[0], "saving")} == {
        *("scanned_rows", "microseconds", "bytes", "uncharged_bytes")
    }


def test_a_cache_leaves_fewer_rows(sweep):
    for case in of(sweep[0], "cache"):
        assert 0 < case["fetched"] < 1
        assert case["bytes"] <= 300_000


def test_the_sweep_plots_three_figures(sweep):
    for name in ("throughput", "quality", "costs"):
        content = (sweep[1] / f"applications-{name}.png").read_bytes()
        assert content.startswith(b"\x89PNG")


def test_figures_are_drawn_again(sweep, tmp_path):
    cases = str(sweep[1] / "sweep.json")
    assert main(["figures", "--cases", f"{cases},{cases}", "--out", str(tmp_path / "new")]) == 0
    assert len(list((tmp_path / "new").glob("applications-*.png"))) == 3


@pytest.mark.parametrize("content", [{}, [], [{"application": "movielens", "mode": "plain"}]])
def test_files_of_other_commands_are_not_drawn(content, tmp_path, capsys):
    other = tmp_path / "other.json"
    other.write_text(json.dumps(content))
    assert main(["figures", "--cases", str(other), "--out", str(tmp_path / "new")]) == 1
    assert "is not a file that --json of sweep or latency wrote" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_sweeps_cut_short_or_of_one_application_are_not_drawn(sweep, tmp_path, capsys):
    whole, short = sweep[1] / "sweep.json", tmp_path / "short.json"
    short.write_text(json.dumps(of(sweep[0], "model") + of(sweep[0], "tried")))
    assert main(["figures", "--cases", str(short), "--out", str(tmp_path)]) == 1
    assert "a sweep of movielens that was cut short" in capsys.readouterr().err
    assert main(["figures", "--cases", f"{whole},{short}", "--out", str(tmp_path)]) == 1
    assert "found 2 sweeps of movielens, expected one" in capsys.readouterr().err


def test_latency_adds_the_steps_of_an_inference(data, sweep, tmp_path, capsys):
    path, plot = tmp_path / "latency.json", tmp_path / "latency.png"
    options = ("--timed", "4", "--inferences", "64", "--rate", "6mbit")
    files = ("--json", str(path), "--plot", str(plot))
    assert main(["latency", "--data", str(data), *_FEW, *options, *files]) == 0
    device, *private = json.loads(path.read_text())
    assert (device["way"], device["total"]) == ("device", device["model"])
    assert [(case["way"], case["weights"]) for case in private] == [
        *(("separate", "float"), ("exact", "float"), ("relaxed", "float"), ("exact", "4 bits"))
    ]
    for case in private:
        steps = ("plan", "keys", "servers", "http", "link", "decode", "model")
        assert case["total"] == pytest.approx(sum(case[step] for step in steps))
        assert case["link"] == pytest.approx(case["kilobytes"] * 8 / 6)
        assert case["emulated"] >= case["link"]
    assert private[-1]["quality"] == pytest.approx(device["quality"], abs=0.1)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "emulated" in capsys.readouterr().out


def test_an_emulated_link_takes_the_time_of_both_servers_bytes():
    link = Link.parse(rtt="2ms", rate="10mbit")
    computed = 0.002 + link.transfer_seconds(2 * 3000 + 2 * 5000)
    assert emulated_seconds(link, 3000, 5000) >= computed


def test_rows_that_are_not_those_of_the_table_are_no_check():
    table = torch.nn.Embedding(4, 2).requires_grad_(False)
    rows, missing = torch.tensor([[0, 1], [2, 3]]), torch.tensor([[False, True], [False, False]])
    run = check._Run(SimpleNamespace(weight=table.weight), None, None, None)
    module, output = SimpleNamespace(last_missing=missing), table(rows)
    output[0, 1] = 0  # the row that is missing
    run._note(module, (rows,), output)
    assert run._found.total() == 2
    output[1, 0, 0] += 1
    with pytest.raises(WrongResultError, match="did not get the rows"):
        run._note(module, (rows,), output)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["sweep", "--max-bytes", "300000,0"], "max_bytes: found 0.0, expected more than 0"),
        (["sweep", "--max-ms", "nan"], "max_ms: found nan, expected more than 0"),
        (["sweep", "--layouts", "0"], "layouts: found 0, expected 1 to"),
        (["sweep", "--clients", "0"], "clients: found 0, expected 1 to"),
        (["sweep", "--cache-rows", "-1"], "cache_rows: found -1, expected 0 to"),
        (["sweep", "--inferences", "0"], "inferences: found 0, expected 1 to"),
        (["sweep", "--plot", "/dev/null"], "--plot: the folder cannot be created"),
        (["latency", "--layouts", "0"], "layouts: found 0, expected 1 to"),
        (["latency", "--inferences", "0"], "inferences: found 0, expected 1 to"),
        (["latency", "--plot", "/nowhere/plot.png"], "'/nowhere/plot.png' cannot be written"),
    ],
)
def test_options_that_cannot_be_are_refused_before_the_training(options, message, tmp_path, capsys):
    assert main([*options, "--data", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert "movielens" not in captured.out


@pytest.mark.parametrize("bits", ["9,8", "4", "4,7"])
def test_latency_refuses_bits_that_cannot_be(bits, capsys):
    with pytest.raises(SystemExit):
        main(["latency", "--bits", bits])
    assert "expected the bits of weights" in capsys.readouterr().err


def test_missing_data_is_a_sentence(tmp_path, capsys):
    assert main(["sweep", "--applications", "movielens", "--data", str(tmp_path)]) == 1
    assert "expected" in capsys.readouterr().err
