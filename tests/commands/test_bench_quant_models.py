"""`python -m benchmarks.quant models`, on sizes and data that mean nothing. Needs PyTorch."""

import json

import numpy as np
import pytest

from commands.quant_files import write_digits, write_text

torch = pytest.importorskip("torch")

from benchmarks.quant import few_bits, models, networks, speed  # noqa: E402
from benchmarks.quant.__main__ import main  # noqa: E402
from benchmarks.quant.data import read_digits  # noqa: E402
from nescio.quant import BitSerialMatrix  # noqa: E402
from nescio.quant.torch._models import ModuleVariants  # noqa: E402


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data")
    (path / "mnist").mkdir()
    (path / "wikitext2").mkdir()
    write_digits(path / "mnist", 600, 200)
    draw = np.random.default_rng(8)
    words = [[f"w{n}" for n in draw.geometric(0.02, 3000)] for _ in range(3)]
    texts = ["\n".join(" ".join(own[i : i + 9]) for i in range(0, 3000, 9)) for own in words]
    write_text(path / "wikitext2", **dict(zip(("train", "valid", "test"), texts, strict=True)))
    return path


def run(data, out, *arguments):
    options = ["--quick", "--data", str(data), "--out", str(out), "--seconds", "0.01"]
    return main(["models", *options, *map(str, arguments)])


def test_every_experiment(data, tmp_path, capsys):
    """The whole command: each experiment trains and measures a network."""
    assert run(data, tmp_path / "out", "--cache", tmp_path / "cache") == 0
    cases = json.loads((tmp_path / "out" / "quant-models.json").read_text())
    by_name = {}
    for case in cases:
        by_name.setdefault(case["experiment"], []).append(case)
    assert list(by_name) == [experiment.name for experiment in models.EXPERIMENTS]
    for name in ("table-3.2-mnist", "table-3.2-wikitext"):
        ways = [(c["way"], c["weight_bits"], c["activation_bits"]) for c in by_name[name]]
        assert ways == [
            ("float", None, None),
            *(("engine", w, a) for w in (1, 4, 8) for a in (32, 16, 8)),
            *(("floats", 16, a) for a in (32, 16, 8)),
            *(("same", w, None) for w in (1, 4, 8, 16)),
        ]
    assert len(by_name["table-3.4-mnist"]) == 1 + 2 * 2 * 3
    search = by_name["figure-3.4-mnist"]
    assert len([case for case in search if case["way"] == "engine"]) == 2**3
    assert {case["error"] for case in search if case["way"] == "PyTorch"} == {"fp32", "int8"}
    shown = [case["error"] for case in search if case["way"] == "table"]
    assert shown[-2:] == ["all 4", "all 8"]
    names = [case["name"] for case in by_name["figure-3.4-wikitext"]]
    assert names == ["fp32", "int8", "(1,8)", "(4,8)"]
    for name in ("figure-3.3", "figure-3.4-mnist"):
        assert (tmp_path / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert "SNLI" in capsys.readouterr().out

    again = ("--cache", tmp_path / "cache", "--only", "table-3.2-mnist")
    assert run(data, tmp_path / "again", *again) == 0
    assert "training mnist" not in capsys.readouterr().out  # it was in the cache
    repeated = json.loads((tmp_path / "again" / "quant-models.json").read_text())
    assert repeated == by_name["table-3.2-mnist"]

    (cached,) = (tmp_path / "cache").glob("mnist-*")
    cached.write_bytes(cached.read_bytes()[:-4])
    assert run(data, tmp_path / "again", *again) == 1
    assert "move it away" in capsys.readouterr().err


@pytest.fixture(scope="module")
def digits(data):
    return read_digits(data / "mnist")


@pytest.fixture(scope="module")
def network(digits):
    settings = networks.DigitSettings(hidden=48, epochs=4, batch=32, images=600)
    return networks.trained_digits(digits, settings, None)


def test_what_is_learned_survives_eight_bits(digits, network):
    def quality(model):
        return networks.accuracy(model, *digits.test)

    cases = list(few_bits.qualities(network, "*", quality, (8,)))
    base = cases[0]["quality"]
    assert base > 0.9
    assert all(c["quality"] > base - 0.05 for c in cases if (c["weight_bits"] or 0) >= 8)


def test_weights_of_16_bits_in_floats(network):
    x = torch.rand(5, 784)
    rounded = few_bits.rounded_to_16(network, "*", 32)
    difference = (rounded(x) - network(x)).abs().max()
    assert 0 < difference < 1e-3
    coarse = few_bits.rounded_to_16(network, "*", 8)
    assert (coarse(x) - network(x)).abs().max() > difference


def test_prefixes_are_kept_and_right(digits, network):
    """Every plan has the quality that its model has, in whatever order plans come."""
    variants = ModuleVariants(network)
    quality = speed.PrefixQuality(variants, *digits.test)
    bits = [(1, 8), (4, 8), (2, 16)]
    plans = [(a, b, c) for a in bits for b in bits for c in bits[:2]]
    shuffled = [plans[i] for i in np.random.default_rng(2).permutation(len(plans))]
    for chosen in [*plans, *shuffled]:
        plan = dict(zip(("fc1", "fc2", "fc3"), chosen, strict=True))
        expected = networks.accuracy(variants.model(plan), *digits.test)
        assert quality(plan) == pytest.approx(expected)


def test_one_thread_is_timed(network, digits, monkeypatch):
    used = []
    multiply = BitSerialMatrix.__call__

    def called(matrix, x):
        used.append(matrix.threads)
        return multiply(matrix, x)

    monkeypatch.setattr(BitSerialMatrix, "__call__", called)
    plan = dict.fromkeys(("fc1", "fc2", "fc3"), (4, 8))
    cases = list(speed.end_to_end(network, digits.test[0], {"ours": plan}, 0.01))
    assert [case["name"] for case in cases] == ["fp32", "int8", "ours"]
    assert set(used) == {1}


def test_histograms(digits, network):
    cases = list(few_bits.histograms(network, digits, 50))
    assert [(c["layer"], c["what"]) for c in cases] == [
        (f"fc{i}", what) for i in (1, 2, 3) for what in ("weights", "activations")
    ]
    assert sum(cases[0]["counts"]) == 784 * 48
    assert sum(cases[3]["counts"]) == 50 * 48
    assert cases[3]["least"] == 0  # behind a ReLU
    assert 0 < cases[3]["zeros"] < 1


def test_perplexity_of_even_odds():
    """A model that finds all of 7 words as likely has a perplexity of 7."""

    def even(tokens, targets, state):
        return torch.log(torch.tensor(7.0)), state

    words = np.arange(100, dtype=np.int64) % 7
    assert networks.perplexity(even, words, 4, 5) == pytest.approx(7)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "table-9"], "found 'table-9', expected one of"),
        (["--full"], "--quick and --full"),
        (["--data", "/no/such/folder"], "the folder does not exist"),
        (["--out", "/dev/null/x"], "cannot be created"),
    ],
)
def test_what_cannot_be_run(data, tmp_path, capsys, arguments, words):
    assert run(data, tmp_path, *arguments) == 1
    assert words in capsys.readouterr().err
