"""`benchmarks.quant.data`: the files of MNIST and WikiText-2, and files that are invalid."""

import gzip

import numpy as np
import pytest

from benchmarks.quant.data import folder, read_digits, read_text
from commands.quant_files import write_digits, write_text
from nescio.errors import ArgumentError


@pytest.mark.parametrize("packed", [True, False])
def test_digits(tmp_path, packed):
    images, labels = write_digits(tmp_path, 30, 10, packed=packed)
    data = read_digits(tmp_path)
    for found, x, y in zip((data.train, data.test), images, labels, strict=True):
        assert found[0].dtype == np.float32
        assert np.array_equal(found[0], x.reshape(-1, 784) / np.float32(255))
        assert np.array_equal(found[1], y)
    assert len(read_digits(tmp_path, 7).train[0]) == 7


def test_text(tmp_path):
    write_text(tmp_path, train="a b b\n c c c <unk>\n", valid="b d\n", test="a\n")
    text = read_text(tmp_path)
    # <unk> and <eos> first, then by frequency
    assert text.words == 5
    assert text.train.tolist() == [4, 3, 3, 1, 2, 2, 2, 0, 1]
    assert text.valid.tolist() == [3, 0, 1]
    assert text.test.tolist() == [4, 1]
    assert read_text(tmp_path, 2).train.tolist() == [2, 3]


def test_where_data_is(tmp_path, monkeypatch):
    (tmp_path / "mnist").mkdir()
    assert folder(str(tmp_path), "mnist") == tmp_path / "mnist"
    monkeypatch.setenv("NESCIO_DATA", str(tmp_path))
    assert folder(None, "mnist") == tmp_path / "mnist"
    with pytest.raises(ArgumentError, match="the folder does not exist"):
        folder(None, "wikitext2")


@pytest.mark.parametrize("spoil", ["missing", "cut", "magic", "packing", "labels"])
def test_files_that_are_not_digits(tmp_path, spoil):
    write_digits(tmp_path, 20, 10)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    content = gzip.decompress(path.read_bytes())
    if spoil == "missing":
        path.unlink()
    elif spoil == "cut":
        path.write_bytes(gzip.compress(content[:-1]))
    elif spoil == "magic":
        path.write_bytes(gzip.compress(b"\1" + content[1:]))
    elif spoil == "packing":
        path.write_bytes(path.read_bytes()[:-20])
    else:
        labels = tmp_path / "train-labels-idx1-ubyte.gz"
        labels.write_bytes(gzip.compress(gzip.decompress(labels.read_bytes())[:-1] + b"\12"))
    with pytest.raises(ArgumentError):
        read_digits(tmp_path)


def test_files_that_are_no_text(tmp_path):
    with pytest.raises(ArgumentError, match=r"train\.txt or"):
        read_text(tmp_path)
    write_text(tmp_path, train="a\n", valid="a\n", test="a\n")
    (tmp_path / "train.txt.gz").write_bytes(gzip.compress(b"\xff\xfe"))
    with pytest.raises(ArgumentError, match="is not text"):
        read_text(tmp_path)
