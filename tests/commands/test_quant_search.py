"""`nescio quant search`."""

import json
import sys
import textwrap

import pytest

from commands.conftest import assert_one_sentence, nescio, nescio_here
from nescio import quant

pytest.importorskip("safetensors")

CODE = """
    import numpy as np
    from nescio import quant

    draw = np.random.default_rng(0)
    x = draw.standard_normal((16, 40)).astype(np.float32)

    def linear(inputs, outputs):
        return quant.Linear(quant.FloatMatrix(draw.standard_normal((outputs, inputs))))

    def make():
        return quant.Sequential(linear(40, 30), linear(30, 20))

    reference = make()

    def error(model):
        return float(np.mean(np.abs(model(x) - expected)))

    expected = reference(x)

    def fit(model):
        return -error(model)

    def nan(model):
        return float("nan")

    def text(model):
        return "good"

    def infinite(model):
        return float("-inf") if model["0"].matrix.weights.bits < 8 else 1

    def fails(model):
        raise KeyError("of mine")

    def lost():
        raise OSError("no model today")

    def misuses(model):
        return model(x[:, :3])

    number = 3
    quant.save(reference, "model.safetensors")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    (folder / "mine.py").write_text(textwrap.dedent(CODE))
    (folder / "broken.py").write_text("def fit(model) -> 1 +")
    done = nescio("quant", "search", "mine:make", "--quality=mine:fit", "--weight-bits=8",
                  "--activation-bits=8", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def run(folder, *options):
    return nescio("quant", "search", *options, cwd=folder)


@pytest.fixture
def run_here(folder, monkeypatch):
    """Runs the command in this process, in the folder, for what only refuses its arguments."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    yield lambda *options: nescio_here("quant", "search", *options)
    for name in ("mine", "broken"):
        sys.modules.pop(name, None)


def test_a_table_of_the_best(folder):
    options = ["--weight-bits=1,4,8", "--activation-bits=8", "--method=exhaustive"]
    done = run(folder, "model.safetensors", "--quality=mine:fit", *options)
    assert done.returncode == 0, done.stderr
    head, titles, *lines, last, threads = done.stdout.splitlines()
    assert "one vector, --threads 1. x fp32: speedup over NumPy's float32 products" in threads
    assert head == "layers: '0', '1'"
    assert titles.split() == ["quality", "us", "x", "fp32", "(weight,", "activation)", "bits"]
    assert last == f"{len(lines)} of 9 evaluated plans"
    qualities = [float(line.split()[0]) for line in lines]
    assert qualities == sorted(qualities)
    assert lines[-1].split()[-2:] == ["(8,8)", "(8,8)"]


def test_json_a_plot_and_the_model_itself(folder):
    out, plot = folder / "small.safetensors", folder / "plot.png"
    pytest.importorskip("matplotlib")
    options = ["--lower-is-better", "--floats", "--layers=1", "--json", f"--plot={plot}"]
    done = run(
        folder, "model.safetensors", "--quality=mine:error", *options, f"--save={out}", "--least=1"
    )
    cases = json.loads(done.stdout)
    assert len(cases) == 13
    assert set(cases[0]) == {"plan", "quality", "microseconds", "speedup_fp32", "pareto"}
    best = min((c for c in cases if c["quality"] <= 1), key=lambda c: c["microseconds"])
    assert best["pareto"]
    loaded = quant.load(out)
    assert isinstance(loaded[0].matrix, quant.FloatMatrix)
    bits = best["plan"]["1"]
    if bits is None:
        assert isinstance(loaded[1].matrix, quant.FloatMatrix)
    else:
        matrix = loaded[1].matrix
        assert [matrix.weights.bits, matrix.activation_bits] == bits
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nothing.safetensors", "--quality=mine:fit"], "it does not exist"),
        (["mine.py", "--quality=mine:fit"], "is not a valid nescio.quant model"),
        (["mine:make", "--quality=mine"], "expected module:function"),
        (["mine:make", "--quality=none:fit"], "found no module 'none'"),
        (["mine:make", "--quality=mine:number"], "found no function 'number' in module mine"),
        (["mine:number", "--quality=mine:fit"], "found no function 'number'"),
        (["mine:fit", "--quality=mine:fit"], "fit() missing 1 required"),
        (["mine:make", "--quality=mine:nan"], "found NaN"),
        (
            ["mine:make", "--quality=mine:fails"],
            "mine:fails raised KeyError: 'of mine' (set NESCIO_",
        ),
        (["mine:make", "--quality=mine:misuses"], "mine:misuses raised ArgumentError: x: found"),
        (["mine:lost", "--quality=mine:fit"], "mine:lost raised OSError: no model today"),
        (["mine:make", "--quality=broken:fit"], "broken:fit raised SyntaxError: "),
        (["mine:make", "--quality=..mine:fit"], "..mine:fit raised TypeError: "),
        (["mine:make", "--quality=mine:fit", "--save=a", "--least=nan"], "--least: found nan"),
        (["mine:make", "--quality=mine:text"], "quality: found str, expected a number"),
        (["mine:make", "--quality=mine:fit", "--layers=fc"], "layers: found 'fc'"),
        (["mine:make", "--quality=mine:fit", "--weight-bits=9"], "weight bits: found 9"),
        (["mine:make", "--quality=mine:fit", "--activation-bits=4"], "activation bits: found 4"),
        (["mine:make", "--quality=mine:fit", "--method=exhaustive", "--evaluations=2"], "144"),
        (["mine:make", "--quality=mine:fit", "--save=small"], "--save and --least"),
        (["mine:make", "--quality=mine:fit", "--plot=none/plot.png"], "cannot be written"),
        (["mine:make", "--quality=mine:fit", "--threads=-1"], "threads"),
    ],
)
def test_what_cannot_be_searched_is_a_sentence(run_here, options, said):
    done = run_here(*options)
    assert_one_sentence(done)
    assert said in done.stderr


def test_an_infinite_quality_is_null_in_json(folder):
    options = ["--weight-bits=4,8", "--activation-bits=8", "--layers=0", "--json"]
    done = run(folder, "mine:make", "--quality=mine:infinite", *options)
    assert done.returncode == 0, done.stderr
    cases = json.loads(done.stdout, parse_constant=pytest.fail)
    assert {c["plan"]["0"][0]: c["quality"] for c in cases} == {4: None, 8: 1}


@pytest.mark.parametrize("value", ["", "1,", "a", "1;2", "1.5"])
def test_lists_are_numbers_with_commas(run_here, value):
    done = run_here("mine:make", "--quality=mine:fit", f"--weight-bits={value}")
    assert done.returncode == 2
    assert "expected integers separated by commas" in done.stderr
