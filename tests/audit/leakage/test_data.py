"""CIFAR-10 from a folder, and invalid files."""

import io

import numpy as np
import pytest

from nescio.errors import ArgumentError

pytest.importorskip("torch")
image = pytest.importorskip("PIL.Image")

from nescio.audit._leakage import data  # noqa: E402


def jpeg(size=(32, 32), colour=(200, 30, 30), kind="JPEG"):
    file = io.BytesIO()
    image.new("RGB", size, colour).save(file, kind)
    return file.getvalue()


def store(folder, pictures, **changes):
    parts = {
        "jpeg": np.frombuffer(b"".join(pictures), np.uint8),
        "offsets": np.cumsum([0, *map(len, pictures)]),
        "labels": np.arange(len(pictures)),
    }
    (folder / "cifar10").mkdir()
    np.savez(folder / "cifar10/cifar10_train_jpeg.npz", **{**parts, **changes})
    return str(folder)


def test_pictures_come_as_they_are(tmp_path):
    folder = store(tmp_path, [jpeg(), jpeg(colour=(0, 0, 255))])
    pictures, labels = data.cifar10(folder, 2)
    assert (pictures.shape, pictures.dtype, labels.tolist()) == ((2, 3, 32, 32), np.float32, [0, 1])
    assert np.abs(pictures[1].mean(axis=(1, 2)) - [0, 0, 1]).max() < 0.02
    assert data.cifar10(folder, 1)[0].shape == (1, 3, 32, 32)


@pytest.mark.parametrize(
    ("pictures", "changes", "words"),
    [
        ([jpeg((16, 32))], {}, "expected 32 x 32"),
        ([jpeg(kind="PNG")], {}, "cannot identify"),
        ([b"no picture"], {}, "cannot identify"),
        ([jpeg()], {"offsets": np.array([0, 10**9])}, "is of bytes"),
        ([jpeg()], {"offsets": np.array([5, 2])}, "is of bytes"),
        ([jpeg()], {"labels": np.array([{}], object)}, "cannot be read"),
        ([], {}, "0 pictures"),
    ],
)
def test_files_that_are_none(tmp_path, pictures, changes, words):
    folder = store(tmp_path, pictures, **changes)
    with pytest.raises(ArgumentError, match=words):
        data.cifar10(folder, 1)


def test_a_folder_without_pictures(tmp_path, monkeypatch):
    with pytest.raises(ArgumentError, match="NESCIO_DATA"):
        data.cifar10(str(tmp_path), 1)
    monkeypatch.setenv("NESCIO_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(ArgumentError, match="elsewhere"):
        data.check_cifar10()
    (tmp_path / "cifar10").mkdir()
    (tmp_path / "cifar10/cifar10_train_jpeg.npz").write_bytes(b"PK")
    with pytest.raises(ArgumentError, match="cannot be read"):
        data.cifar10(str(tmp_path), 1)
