"""The parts of `python -m benchmarks.audit` that need PyTorch, on random images."""

import argparse
import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")
image = pytest.importorskip("PIL.Image")

from benchmarks.audit import leakage, learning  # noqa: E402
from benchmarks.audit.learning import Row  # noqa: E402
from nescio.audit import Setting  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """1,600 images in which each class has a color."""
    rng = np.random.default_rng(0)
    labels = rng.integers(10, size=1600)
    colours = rng.integers(40, 215, size=(10, 3))
    pictures = []
    for label in labels:
        pixels = np.clip(colours[label] + rng.integers(-40, 40, (32, 32, 3)), 0, 255)
        file = io.BytesIO()
        image.fromarray(pixels.astype(np.uint8)).save(file, "JPEG")
        pictures.append(file.getvalue())
    path = tmp_path_factory.mktemp("data")
    (path / "cifar10").mkdir()
    np.savez(
        path / "cifar10/cifar10_train_jpeg.npz",
        jpeg=np.frombuffer(b"".join(pictures), np.uint8),
        offsets=np.cumsum([0, *map(len, pictures)]),
        labels=labels,
    )
    return str(path)


@pytest.fixture
def arguments(folder):
    return argparse.Namespace(full=False, data=folder, seed=0)


def test_recovered_updates_are_those_that_were_sent():
    plan = learning.planted(Setting(12, 60), 3)
    each = torch.randn(12, 40, generator=torch.Generator().manual_seed(1))
    sums = torch.from_numpy(plan.present.astype(np.float32)) @ each
    found = learning.recovered(plan, sums, 0)
    assert found.share == 1
    assert np.abs(found.updates - each.numpy()).max() < 1e-3
    assert found.right.all()


def test_rows_of_table_6_1(arguments, monkeypatch, capsys):
    """The smallest possible row: eight images per user."""
    monkeypatch.setattr(learning, "_SMALL", (Row(8, 8, 0.0, 0.9, (1, 2)),))
    monkeypatch.setattr(learning, "_SIZE", (12, 48))
    cases = list(learning.fedavg_cases(arguments))
    assert [(case["data"], case["epochs"], case["users"]) for case in cases] == [
        (8, 1, 12),
        (8, 2, 12),
    ]
    assert all(case["dimensions"] == 62_006 for case in cases)
    assert all(0 < case["relative_noise"] < 2 for case in cases)
    assert all(case["verified"] for case in cases)
    assert max(case["right"] for case in cases) > 0.5
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_the_whole_table_is_the_chapters():
    rows = learning._FULL
    assert len(rows) == 18
    assert {len(row.epochs) for row in rows} == {7}
    for name in learning._CHAPTERS:
        assert [
            row[0:4] for row in rows if (row.data, row.momentum, row.fraction, row.batch) == name
        ]


def test_table_6_2_from_pictures_of_noise(arguments, monkeypatch):
    """With a third of the steps, which is enough to tell one image from a sum."""
    full = leakage.invert_gradient
    monkeypatch.setattr(
        leakage, "invert_gradient", lambda *found, **named: full(*found, **named | {"steps": 60})
    )
    cases = list(leakage.gradient_cases(arguments))
    alone, recovered = cases[0], cases[-1]
    assert (recovered["users"], recovered["right"]) == (32, 1.0)
    assert recovered["psnr"] > cases[3]["psnr"]  # 32 in a sum
    assert alone["psnr"] > alone["grey"]
    assert (alone["chapter"], recovered["chapter"]) == (36.5, None)


def test_users_with_the_property_have_it(arguments, monkeypatch):
    monkeypatch.setattr(leakage, "_FOR_USERS", 1600)
    users = leakage._Users(arguments, 0)
    ships = users._pictures[users._ships[0]].mean(dim=(1, 2))
    counts = []
    for has in (True, False):
        x, y = users.user(has=has)
        assert (x.shape, y.shape) == ((32, 3, 32, 32), (32,))
        near = (x.mean(dim=(2, 3)) - ships).abs().sum(dim=1) < 0.1
        counts.append(int(near.sum()))
    assert counts[0] >= 16 > counts[1]
