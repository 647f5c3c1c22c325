"""`python -m benchmarks.infer figures`: a whole small run, its tables, and its parts."""

import json
import sys

import numpy as np
import pytest

from benchmarks.infer.__main__ import main

torch = pytest.importorskip("torch")

from benchmarks.infer import spu_network  # noqa: E402 - need PyTorch
from benchmarks.infer.figures_rows import beside_spu, select, targets  # noqa: E402
from benchmarks.infer.networks import NETWORKS, LeNet, ResNet32, standardize  # noqa: E402
from benchmarks.infer.oblivious import Ours, shares, transfers_of, with_other  # noqa: E402
from benchmarks.infer.party import peak_bytes  # noqa: E402
from benchmarks.infer.protocol import LINKS  # noqa: E402
from benchmarks.infer.published import garbled  # noqa: E402
from benchmarks.infer.spu_peer import _run, has_spu, weights_of  # noqa: E402
from nescio.mpc._compile import read_model  # noqa: E402
from nescio.mpc._plans.quantize import quantize  # noqa: E402
from pytorch.networks import randomized  # noqa: E402

LOOKUPS = {"LeNet": 58_624, "ResNet-32": 303_104, "VGG-16": 276_480, "ResNet-34": 966_656}
LENET_8 = 58_624 // 8
SMALL = ["figures", "--networks", "LeNet", "--divisor", "8", "--calibration", "8"]
SMALL += ["--inferences", "1", "--threads", "1", "--table-bits", "4,8", "--quality-seconds", "1e-6"]


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """No data: weights and images are random."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("NESCIO_DATA", str(tmp_path / "data"))
    return tmp_path


def test_a_whole_run(empty, capsys):
    out = empty / "out"
    assert main([*SMALL, "--steps", "parties,spu,transfers,quality", "--out", str(out)]) == 0
    cases = json.loads((out / "private-inference.json").read_text())
    (made,), (sums,) = select(cases, "networks"), select(cases, "sums")
    assert made["lookups"] == LENET_8
    assert sums["checked"] == len(LINKS)
    assert all(row["equal"] for row in select(cases, "online"))
    assert sums["online_mb"] == pytest.approx(made["report_online_bytes"] / 1e6, abs=0.001)
    assert sums["tables_mb"] > LENET_8 * 93.75 / 1e6
    assert sums["client_stored_mb"] > LENET_8 * 74 / 1e6
    assert 10 < sums["client_infer_mb"] < 1000
    quality = select(cases, "quality")
    assert [(one["table_bits"], one["images"]) for one in quality] == [(4, 32), (8, 32)]
    assert quality[1]["error"] < quality[0]["error"]
    assert sum(one["byte_share"] for one in select(cases, "shares")) == pytest.approx(1)
    notes = [one["note"] for one in select(cases, "notes")]
    assert any("LeNet gets random weights" in note for note in notes)
    text = capsys.readouterr().out
    assert "random weights" in text
    assert {path.name for path in out.iterdir()} >= {"quality.png", "costs.png", "phases.png"}
    markdown = (out / "private-inference.md").read_text()
    assert "| LeNet | 7,328 | 58K |" in markdown

    assert main(["figures", "--again", str(out / "private-inference.json"), "--out", str(out)]) == 0
    assert capsys.readouterr().out in text


def test_no_step_starts_when_the_time_is_over(empty, capsys):
    assert main([*SMALL, "--limit", "0", "--out", str(empty / "out")]) == 0
    assert "LeNet: weights, images, compile: left out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--networks", "AlexNet"], "--networks: found 'AlexNet', expected one of LeNet, ResNet"),
        (["--steps", "party"], "--steps: found 'party', expected some of parties, spu"),
        (["--inferences", "0"], "--inferences: found 0, expected at least 1"),
        (["--data", "/no/such/folder"], "--data: /no/such/folder: the folder does not exist"),
        (["--again", "/no/such/file"], "--again: /no/such/file: found"),
    ],
)
def test_options_that_do_not_fit(empty, options, sentence, capsys):
    assert main(["figures", "--out", str(empty / "out"), *options]) != 0
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("own", NETWORKS, ids=lambda own: own.name)
def test_networks_have_the_counts_of_tables_of_the_chapter(own):
    read = read_model(own.make(16).eval(), torch.zeros(1, *own.inputs))
    assert read.tables == LOOKUPS[own.name] // 16


def test_random_networks_have_many_classes():
    own = NETWORKS[1]
    images = torch.randn(64, *own.inputs, generator=torch.Generator().manual_seed(2))
    model = standardize(own.make(4), own.last, images)
    with torch.no_grad():
        outputs = model(images)
    assert torch.allclose(outputs.mean(0), torch.zeros(10), atol=1e-4)
    assert len(outputs.argmax(1).unique()) > 5


@pytest.mark.parametrize("build", [LeNet, ResNet32])
def test_networks_for_spu_compute_the_same(build, monkeypatch):
    """NumPy and PyTorch stand for JAX, whose functions have the same names."""

    def convolved(x, kernel, bias, *, stride=1, padding=1):
        image, weights = (torch.from_numpy(np.ascontiguousarray(one)) for one in (x, kernel))
        weights, image = weights.permute(3, 2, 0, 1), image.permute(0, 3, 1, 2)
        found = torch.nn.functional.conv2d(image, weights, None, stride, padding)
        return found.permute(0, 2, 3, 1).numpy() + bias

    monkeypatch.setattr(spu_network, "_convolved", convolved)
    monkeypatch.setattr(spu_network, "_numpy", lambda: np)
    torch.manual_seed(5)
    model = randomized(build(4))
    shape = (1, 28, 28) if build is LeNet else (3, 32, 32)
    image = torch.randn(1, *shape)
    with torch.no_grad():
        expected = model(image).numpy()
    name = "LeNet" if build is LeNet else "ResNet-32"
    shown = image.permute(0, 2, 3, 1).numpy()
    found = spu_network.FUNCTIONS[name](shown, *weights_of(model))
    assert expected.std() > 0.01
    assert np.allclose(found, expected, rtol=1e-3, atol=1e-3 * expected.std())


def test_a_program_that_is_not_done_ends_with_a_sentence():
    sleeping = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert _run(sleeping, 0.2) == "it was not done after 0 s"
    failing = [sys.executable, "-c", "raise SystemExit('no such link')"]
    assert _run(failing, 30) == "no such link"
    assert not has_spu("/no/such/python")


def test_rows_beside_spu_and_targets():
    sums = {"table": "sums", "network": "ResNet-32", "tables_mb": 29.5, "linear_mb": 13}
    sums |= {"online_mb": 2.1, "tables_cpu_s": 1, "linear_cpu_s": 1}
    for name, _ in LINKS:
        sums |= {f"offline_s, {name}": 0.9, f"offline_once_s, {name}": 1, f"online_s, {name}": 0.1}
    call = {"seconds": 50, "cpu_seconds": 40, "bytes": 6e7}
    spu = {"table": "spu", "network": "ResNet-32", "program": "SPU", "calls": [call, call]}
    ours, theirs = beside_spu([sums, {**spu, "error": 0.01}])
    assert ours["warm_s"] == pytest.approx(1.0)
    assert (theirs["warm_ratio"], theirs["online_ratio"]) == pytest.approx((50, 500))
    assert theirs["first_ratio"] == pytest.approx(25)
    _, failed = beside_spu([sums, {**spu, "failed": "it was not done after 9 s"}])
    assert failed["program"] == "SPU: it was not done after 9 s"
    found = {row["target"]: row["met"] for row in targets([sums, {**spu, "error": 0}])}
    assert found["ResNet-32: online MB"] == "yes"
    assert found["ResNet-32: table MB offline"] == "no"
    assert found["ResNet-32: times as fast as SPU, both phases"] == "yes"


def test_transfers_by_kind():
    """A table of 2^8 entries takes 23 transfers. Other transfers change their part alone."""
    read = read_model(LeNet(16).eval(), torch.zeros(1, 1, 28, 28))
    images = np.random.default_rng(1).normal(size=(4, 1, 28, 28))
    network = quantize(read.layers, images).network.public
    assert transfers_of(network) == 23 * LOOKUPS["LeNet"] // 16
    fields = ("client_bytes", "server_bytes", "client_cpu_ms", "server_cpu_ms")
    phases = [
        {"phase": "tables", **dict(zip(fields, (2e5, 2e5, 3.0, 3.0), strict=True))},
        {"phase": "products", **dict(zip(fields, (1e5, 1e5, 1.0, 1.0), strict=True))},
    ]
    ours = Ours(random=30.0, correlated=25.0, bytes=0.2, iknp=100.0)
    kinds = shares("LeNet", network, phases, ours)
    assert sum(one["mb"] for one in kinds) == pytest.approx(0.6)
    assert sum(one["cpu_seconds"] for one in kinds) == pytest.approx(0.008)
    rows = {row["transfer"]: row for row in with_other("LeNet", kinds, 10, [None], ours)}
    assert rows["ours"]["cpu_seconds"] == pytest.approx(0.008)
    count = transfers_of(network)
    assert rows["IKNP, ours"]["mb"] == pytest.approx(0.6 + count * 15.8 / 1e6)
    assert rows["transfers for nothing"]["cpu_seconds"] == pytest.approx(0.008 - count * 30e-9)


def test_garbled_circuits_by_count():
    emp, chapter = garbled("ResNet-32", 303_104)
    assert emp["online_mb"] == pytest.approx(246.1, abs=0.1)
    assert chapter["offline_mb"] == pytest.approx(1_358, abs=1)


def test_the_peak_of_memory_is_that_of_this_process():
    before = peak_bytes()
    block = np.ones(before // 8, np.float64)
    assert peak_bytes() > before + block.nbytes // 2
