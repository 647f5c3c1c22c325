"""`python -m benchmarks.infer resnet`: the published network's layers, and a whole small run."""

import json

import numpy as np
import pytest

from benchmarks.infer.__main__ import main
from benchmarks.infer.resnet_model import load_images, load_layers
from nescio.mpc._plans.floats import run

torch = pytest.importorskip("torch")
nn = torch.nn

from benchmarks.infer.networks import ResNet32  # noqa: E402 - needs PyTorch


@pytest.fixture
def files(tmp_path):
    """A checkpoint with random weights and statistics, and random images."""
    torch.manual_seed(1)
    model = ResNet32()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.1, 0.1)
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
    state = {f"module.{name}": value for name, value in model.state_dict().items()}
    torch.save({"state_dict": state}, tmp_path / "model.th")
    random = np.random.default_rng(1)
    train, test = (random.integers(0, 256, (n, 32, 32, 3), np.uint8) for n in (8, 4))
    labels = random.integers(0, 10, 4)
    np.savez(tmp_path / "i.npz", train_images=train, test_images=test, test_labels=labels)
    return model.eval().double(), tmp_path / "model.th", tmp_path / "i.npz"


def test_the_layers_compute_what_the_pytorch_model_computes(files):
    model, weights, images = files
    inputs = load_images(images, 8).test
    *_, logits = run(load_layers(weights), inputs)
    with torch.no_grad():
        expected = model(torch.from_numpy(inputs)).numpy()
    assert np.allclose(logits, expected, atol=1e-6)


def test_a_whole_run_has_both_phases_and_equal_logits(files, tmp_path, capsys):
    _, weights, images = files
    arguments = ["resnet", "--model", str(weights), "--images", str(images), "--table-bits", "8"]
    arguments += ["--inferences", "1", "--check", "1", "--json", str(tmp_path / "out.json")]
    assert main(arguments) == 0
    cases = json.loads((tmp_path / "out.json").read_text())
    assert cases[0]["lookups"] == 4 * 303_104
    phases = [case["phase"] for case in cases if "phase" in case]
    assert phases == ["agreement", "keys", "products", "tables", "places", "store"]
    links = [case for case in cases if "link" in case]
    assert [case["equal"] for case in links] == [True] * 3
    assert all(7 < case["relu_bytes"] < 7.1 for case in links)
    assert links[-1]["online_seconds"] > links[-1]["floor_seconds"] > 1.2
    assert "1 more images: logits equal to the simulator's" in capsys.readouterr().out


def test_batches_have_equal_logits_and_the_rounds_of_one(files, tmp_path):
    """About 15 s: each link has two new processes."""
    _, weights, images = files
    arguments = ["batches", "--model", str(weights), "--images", str(images), "--batches", "4"]
    arguments += ["--threads", "1", "--repeat", "1", "--json", str(tmp_path / "out.json")]
    assert main(arguments) == 0
    cases = json.loads((tmp_path / "out.json").read_text())
    assert [(case["batch"], case["rounds"]) for case in cases] == [(4, 32)] * 3
    assert all(7 < case["bytes"] / 303_104 < 7.1 for case in cases)
    assert cases[-1]["seconds"] > cases[-1]["floor_seconds"] > 1.2


def test_official_records_are_read(tmp_path):
    records = np.arange(2 * 3073).reshape(2, 3073).astype(np.uint8)
    for name in ("data_batch_1.bin", "test_batch.bin"):
        records.tofile(tmp_path / name)
    images = load_images(tmp_path, 1)
    assert images.labels.tolist() == [records[0, 0], records[1, 0]]
    assert images.calibration.shape == (1, 3, 32, 32)
    pixel = images.test[1, 2, 0, 1] * 0.225 + 0.406  # blue, the second one of the first row
    assert round(pixel * 255) == records[1, 1 + 2 * 1024 + 1]


@pytest.mark.parametrize("option", ["--model", "--images"])
def test_files_of_another_kind_end_with_a_sentence(files, tmp_path, option, capsys):
    _, weights, images = files
    (tmp_path / "other").write_bytes(b"no such thing")
    paths = {"--model": weights, "--images": images} | {option: tmp_path / "other"}
    arguments = [str(part) for pair in paths.items() for part in pair]
    assert main(["resnet", *arguments]) != 0
    assert f"{option}: " in capsys.readouterr().err
