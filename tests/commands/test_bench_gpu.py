"""`nescio bench` on devices: the emulated one in place of a card, with meaningless sizes."""

import io
import json
import re
import sys

import pytest

from benchmarks.lookup import run as figure_run
from benchmarks.lookup.__main__ import main as figures_main
from benchmarks.lookup.figures import FIGURES
from commands.conftest import ROOT, assert_one_sentence, benchmark, nescio
from commands.test_bench import LOOKUP_FIELDS
from nescio import _device, cli
from nescio.bench import gpu_case, gpu_limits
from nescio.bench.gpu_case import Spec
from nescio.pir._device_table import STRATEGIES

GPU_FIELDS = {
    *("strategy", "nodes", "prf_calls", "peak_device_bytes", "launches", "utilisation"),
    *("memory_milliseconds", "product_milliseconds", "generator_milliseconds"),
    *("floor_milliseconds", "times_limit"),
}


@pytest.fixture
def quick_limits(monkeypatch):
    """The emulated device takes seconds to measure its rate of products; here it is made up."""
    monkeypatch.setattr(gpu_limits.DeviceLimits, "_products", lambda *of: 1e-6)


def run(*arguments):
    """Runs `nescio` in this process."""
    return cli.main([*map(str, arguments)])


def run_figures(*arguments):
    """Runs `python -m benchmarks.lookup figures` in this process."""
    return figures_main(["figures", *map(str, arguments)])


def test_every_strategy_is_a_case(tmp_path):
    found = nescio(
        *("bench", "lookup", "--device", "emulated", "--rows", "1100,1600", "--row-bytes", 9),
        *("--batch", "3,1", "--generator", "aes128", "--strategy", ",".join(STRATEGIES)),
        *("--nodes", "64,512", "--seconds", 0.01, "--json", tmp_path / "cases.json"),
        *("--plot", tmp_path / "plot.png"),
    )
    assert found.returncode == 0, found.stderr
    cases = json.loads((tmp_path / "cases.json").read_text())
    kinds = {(c["rows"], c["strategy"], c["nodes"], c["batch"]) for c in cases}
    assert len(kinds) == len(cases) == 2 * 6 * 2
    assert {c["nodes"] for c in cases if c["strategy"] == "bounded"} == {64, 512}
    assert {c["nodes"] for c in cases if c["strategy"] in ("auto", "level", "cooperative")} == {
        None
    }
    for case in cases:
        assert set(case) >= LOOKUP_FIELDS | GPU_FIELDS
        assert case["device"] == "emulated (emulated:0)"
        limits = [case[f"{what}_milliseconds"] for what in ("memory", "product", "generator")]
        assert case["times_limit"] == pytest.approx(case["milliseconds"] / max(limits))
        assert case["utilisation"] == pytest.approx(limits[2] / case["milliseconds"])
        assert 0 < case["floor_milliseconds"] <= max(limits)
        assert case["peak_device_bytes"] > 0
    # 1,100 rows have 3 leaves and 3 nodes above them; branches expand 2 for each leaf, and so does
    # "auto" where there are so few.
    calls = {c["strategy"]: c["prf_calls"] for c in cases if (c["rows"], c["batch"]) == (1100, 3)}
    assert calls == {s: 3 * 9 if s in ("branch", "auto") else 3 * 6 for s in STRATEGIES}
    assert len(found.stdout.splitlines()) == 1 + 1 + len(cases) + 5
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_the_processor_and_devices_together(tmp_path, quick_limits, capsys):
    options = ["--rows", 1100, "--row-bytes", 4, "--batch", 2, "--generator", "chacha20"]
    options += ["--device", "emulated:0+emulated:2,cpu", "--seconds", 0.01]
    assert run("bench", "lookup", *options, "--json", tmp_path / "cases.json") == 0
    processor, split = json.loads((tmp_path / "cases.json").read_text())
    assert processor["device"] == "cpu"
    assert "strategy" not in processor
    assert split["device"] == "emulated (emulated:0) + emulated (emulated:2)"
    assert "emulated:0+emulated:2" in capsys.readouterr().out


def test_nodes_reach_the_walk(tmp_path, quick_limits):
    options = ["--rows", 3000, "--row-bytes", 4, "--batch", 2, "--generator", "aes128"]
    options += ["--device", "emulated", "--strategy", "bounded", "--output", "u128"]
    options += ["--nodes", "64,512", "--seconds", 0.01, "--json", tmp_path / "cases.json"]
    assert run("bench", "lookup", *options) == 0
    few, many = json.loads((tmp_path / "cases.json").read_text())
    assert many["peak_device_bytes"] > few["peak_device_bytes"]


@pytest.mark.parametrize(
    ("row_bytes", "output", "expected"),
    [(3, "bit", 24), (3, "u8", 3), (3, "u32", 4 * 2.5), (17, "u128", 32 * 8.5)],
)
def test_products_that_count(row_bytes, output, expected):
    assert gpu_limits.products_of(10, row_bytes, output) == 10 * expected


def test_every_figure(tmp_path):
    """The whole command, with its process and all plots: 10 s, most of them emulated products."""
    folder = tmp_path / "deep" / "figures"
    found = benchmark(
        *("lookup", "figures", "--device", "emulated", "--quick", "--seconds", 0.001),
        *("--out", folder),
    )
    assert found.returncode == 0, found.stderr
    cases = json.loads((folder / "figures.json").read_text())
    assert {case["status"] for case in cases} == {"measured"}
    assert [*dict.fromkeys(case["figure"] for case in cases)] == [f.name for f in FIGURES]
    for figure in FIGURES:
        first, about, *rest = (folder / f"{figure.name}.txt").read_text().splitlines()
        assert first == figure.title
        assert about.startswith("emulated (emulated:0), 20")
        own = [case for case in cases if case["figure"] == figure.name]
        assert len(rest) == 1 + len(own) + 5
        assert (folder / f"{figure.name}.png").read_bytes().startswith(b"\x89PNG\r\n")
        assert all(case[field] is not None for case in own for field in figure.y)


def test_figures_without_matplotlib(tmp_path, quick_limits, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "benchmarks.lookup.plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    options = ["--device", "emulated", "--quick", "--only", "figure-8", "--seconds", 0.001]
    json_file = tmp_path / "cases.json"
    assert run_figures(*options, "--out", tmp_path / "f", "--json", json_file) == 0
    assert [path.name for path in (tmp_path / "f").iterdir()] == ["figure-8.txt"]
    assert {case["figure"] for case in json.loads(json_file.read_text())} == {"figure-8"}
    assert "matplotlib cannot be imported" in capsys.readouterr().out


def test_a_plot_that_fails_costs_no_measurement(tmp_path, quick_limits, capsys):
    (tmp_path / "figure-8.png").mkdir()
    options = ["--device", "emulated", "--quick", "--only", "figure-8,figure-9a"]
    assert run_figures(*options, "--seconds", 0.001, "--out", tmp_path) == 1
    assert "figure-8.png was not drawn (IsADirectoryError" in capsys.readouterr().out
    cases = json.loads((tmp_path / "figures.json").read_text())
    assert {case["figure"] for case in cases} == {"figure-8", "figure-9a"}
    assert (tmp_path / "figure-9a.png").is_file()


def test_cases_that_come_too_late(tmp_path):
    options = ["--device", "emulated", "--within", 1e-9, "--out", tmp_path]
    options += ["--only", "figure-13,table-5"]
    assert run_figures(*options) == 0
    cases = json.loads((tmp_path / "figures.json").read_text())
    assert {case["status"] for case in cases} == {"out of time"}
    assert (tmp_path / "figure-13.png").exists()


def test_a_case_that_does_not_fit_memory(quick_limits):
    bench = gpu_case.GpuBench(_device.parse_device_list("emulated"))
    large = Spec(80000, 8, "u128", "aes128", "level", None, 1024)  # 1.3 GB of shares
    specs = [large, large._replace(rows=100, batch=1)]
    text = io.StringIO()
    cases = [*figure_run._Measurer(bench, 0.001, None).measure(specs, text)]
    assert [case["status"] for case in cases] == ["out of memory", "measured"]
    assert "out of memory" in text.getvalue()
    assert cases[0]["rows"] == 80000


def test_a_case_that_fails_is_told_at_the_end(tmp_path, quick_limits, monkeypatch):
    def fail(*of, **options):
        raise _device.ResourceError("work on a GPU failed: it was to be expected")

    monkeypatch.setattr(gpu_case, "checked_query", fail)
    options = ["--device", "emulated", "--quick", "--only", "figure-9a", "--out", tmp_path]
    assert run_figures(*options) == 1
    assert "it was to be expected" in (tmp_path / "figure-9a.txt").read_text()


def run_either(arguments, folder):
    """Runs `nescio bench lookup` or the figures in a process, in a folder."""
    if arguments[0] == "figures":
        return benchmark("lookup", *arguments, cwd=folder)
    return nescio("bench", *arguments, cwd=folder)


@pytest.mark.skipif(not _device.gpus()[0].startswith("none"), reason="this machine has a GPU")
@pytest.mark.parametrize(
    "arguments",
    [["lookup", "--device", "cuda"], ["lookup", "--device", "cuda:1"], ["figures", "--out", "."]],
)
def test_no_card(arguments, tmp_path):
    found = run_either(arguments, tmp_path)
    assert_one_sentence(found)
    assert "GPU" in found.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lookup", "--strategy", "auto,bounded"], "strategy 'bounded' applies to GPUs only"),
        (["lookup", "--nodes", "128"], "--nodes applies to GPUs only"),
        (["lookup", "--device", "emulated,cpu", "--strategy", "level"], "'level' applies to GPUs"),
        (
            ["lookup", "--device", "emulated", "--strategy", "bounded", "--nodes", "64,100"],
            "nodes: found 100, expected one of 64, 128, 256, 512",
        ),
        (["lookup", "--device", "emulated", "--nodes", "64"], "the strategy 'bounded' only"),
        (["lookup", "--device", "emulated:7"], "emulated:7 does not exist"),
        (["figures", "--device", "emulated", "--out", ".", "--only", "figure-7"], "'figure-7'"),
        (["figures", "--device", "emulated", "--out", "/dev/null/x"], "cannot be created"),
        (["figures", "--device", "emulated", "--out", ".", "--within", "0"], "--within: found 0.0"),
        (["figures", "--device", "cpu", "--out", "."], "--device: found 'cpu'"),
        (["figures", "--device", "emulated", "--out", ".", "--json", "."], "'.' cannot be written"),
        (["lookup", "--json", ""], "'' cannot be written"),
        (["lookup", "--json", "no/such/folder/x"], "No such file or directory"),
    ],
)
def test_what_cannot_be_measured(arguments, words, tmp_path):
    found = run_either(arguments, tmp_path)
    assert_one_sentence(found)
    assert words in found.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--strategy", "clever"], "'clever' is not one of auto, branch"),
        (["--device", "gpu"], "found 'gpu'"),
        (["--device", "cuda+cpu"], "found 'cpu'"),
        (["--nodes", "many"], "comma-separated list"),
    ],
)
def test_command_lines_that_make_no_sense(arguments, words):
    found = nescio("bench", "lookup", *arguments)
    assert found.returncode == 2
    assert words in found.stderr
    assert "Traceback" not in found.stderr


def test_the_script_selects_tests_that_exist():
    """`pytest -k` with a name that no test has selects nothing, and says nothing."""
    script = (ROOT / "benchmarks/gpu.sh").read_text()
    selections = re.findall(r'-k "([^"$]+)"', script) + re.findall(r'"([^"$]+ and [^"$]+)"', script)
    files = [ROOT / name for name in re.findall(r"tests/\w+(?:/\w+)*\.py", script)]
    tests = {name for file in files for name in re.findall(r"def (test_\w+)", file.read_text())}
    words = {word for text in selections for word in re.findall(r"[a-z]+_[a-z_]+|facts", text)}
    assert len(words) > 8
    assert [word for word in sorted(words) if not any(word in name for name in tests)] == []
