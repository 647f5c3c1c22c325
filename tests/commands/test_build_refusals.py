"""`nescio build`: inputs and options that are refused, and builds that end early."""

import json
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from commands.builds import (
    FIRST,
    SECOND,
    build,
    fsspec,
    pa,
    pq,
    write_lists,
    write_npy,
    write_only_tensor,
    write_tensor,
)
from commands.conftest import assert_one_sentence, nescio_here


def refused(folder, *arguments, shards=2):
    """Runs a build that fails, and leaves nothing; returns its sentence."""
    finished = nescio_here("build", *arguments, "--out", folder / "t", "--shards", shards)
    assert_one_sentence(finished)
    assert not (folder / "t").exists()
    return finished.stderr


def test_files_that_do_not_fit_each_other(tmp_path):
    write_npy(tmp_path / "a.npy", FIRST)
    for other in (SECOND[:, :5], SECOND.astype("f8")):
        write_npy(tmp_path / "b.npy", other)
        said = refused(tmp_path, tmp_path / "a.npy", tmp_path / "b.npy")
        assert "b.npy: found rows of shape" in said
        assert "expected those of" in said


def test_columns_that_do_not_exist_or_are_not_clear(tmp_path):
    write_npy(tmp_path / "a.npy", FIRST)
    write_lists(tmp_path / "a.parquet", FIRST)
    write_tensor(tmp_path / "a.safetensors", FIRST)
    assert "a.npy has no columns" in refused(tmp_path, tmp_path / "a.npy", "--column", "x")
    for ending, named in (("parquet", "id, vector"), ("safetensors", "bias, weight")):
        path = tmp_path / f"a.{ending}"
        for more in ([], ["--column", "x"]):
            assert f"expected some of '{named}'" in refused(tmp_path, path, *more).replace(
                "expected one of", "expected some of"
            )
    assert "found columns of" in refused(
        tmp_path, tmp_path / "a.parquet", "--column", "id", "--column", "vector"
    )


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([[1.0], [2.0, 3.0]] * 700), "lists of 1 and of 2 numbers"),
        (pa.array([[1.0]] * 3_000 + [[2.0, 3.0]]), "lists of"),
        (pa.array([[1.0], None] * 700), "found nulls"),
        (pa.array([[1.0], [None]] * 700), "found nulls"),
        (pa.array([1.0] * 3_000 + [None]), "found nulls"),
        (pa.array(["a", "b"] * 700), "has the type string"),
        (pa.array([], pa.float32()), "found no rows"),
    ],
)
def test_parquet_columns_that_are_not_rows_of_numbers(tmp_path, column, said):
    pq.write_table(pa.table({"x": column}), tmp_path / "a.parquet", row_group_size=1_000)
    assert said in refused(tmp_path, tmp_path / "a.parquet")


@pytest.mark.parametrize("ending", ["npy", "parquet", "safetensors"])
def test_files_that_are_damaged_or_missing(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    assert "does not exist" in refused(tmp_path, path)
    path.write_bytes(b"")
    assert f"a.{ending}" in refused(tmp_path, path)
    path.write_bytes(bytes(range(256)) * 50)
    assert f"a.{ending}" in refused(tmp_path, path)
    writers = {"npy": write_npy, "parquet": write_lists, "safetensors": write_only_tensor}
    writers[ending](path, FIRST)
    path.write_bytes(path.read_bytes()[:-100])
    assert f"a.{ending}" in refused(tmp_path, path)
    assert "found the ending '.txt'" in refused(tmp_path, tmp_path / "a.txt")


@pytest.mark.parametrize(
    "header",
    [
        {"x": {"dtype": "BF16", "shape": [4, 2], "data_offsets": [0, 16]}},
        {"x": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}},
        {"x": {"dtype": "F32", "shape": [4, 2], "data_offsets": [0, 16]}},
        {"x": {"dtype": "F32", "shape": [-4, -2], "data_offsets": [0, 32]}},
        {"x": {"dtype": "F32", "shape": [4, 2], "data_offsets": [1000, 1032]}},
        {"x": {"dtype": "F32", "shape": ["a"], "data_offsets": [0, 4]}},
        {"x": {"dtype": [1], "shape": [1], "data_offsets": [0, 4]}},
        {"x": 7},
        [],
    ],
)
def test_damaged_descriptions_of_tensors(tmp_path, header):
    text = json.dumps(header).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(64))
    assert "a.safetensors" in refused(tmp_path, path)


def test_objects_and_arrays_without_rows(tmp_path):
    for values in (np.array(3.0), np.zeros((0, 4))):
        np.save(tmp_path / "a.npy", values)
        assert "a.npy" in refused(tmp_path, tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", np.array([{}]), allow_pickle=True)
    assert "expected rows of numbers" in refused(tmp_path, tmp_path / "a.npy")


def test_options_that_do_not_fit(tmp_path):
    write_npy(tmp_path / "a.npy", FIRST[:100])
    path = tmp_path / "a.npy"
    assert "shards: found 26, expected at most 25" in refused(tmp_path, path, shards=26)
    assert "shards: found 0" in refused(tmp_path, path, shards=0)
    assert "--spare: found 'x'" in refused(tmp_path, path, "--spare", "x")
    assert "threads: found -1" in refused(tmp_path, path, "--threads", "-1")
    assert "version" in refused(tmp_path, path, "--version", "")
    unknown = nescio_here("build", path, "--out", tmp_path / "t", "--shards", 1, "--output", "u7")
    assert unknown.returncode == 2
    assert nescio_here("build", path, "--out", tmp_path / "t").returncode == 2


def test_a_folder_with_files_is_left_as_it_is(tmp_path):
    write_npy(tmp_path / "a.npy", FIRST)
    build(tmp_path / "a.npy", "--out", tmp_path / "t", "--shards", 2)
    before = {path: path.read_bytes() for path in (tmp_path / "t").iterdir()}
    for out, said in ((tmp_path / "t", "is not empty"), (tmp_path / "a.npy", "cannot be written")):
        finished = nescio_here("build", tmp_path / "a.npy", "--out", out, "--shards", 2)
        assert_one_sentence(finished)
        assert said in finished.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "t").iterdir()} == before


def test_a_disk_without_space(tmp_path, monkeypatch):
    write_npy(tmp_path / "a.npy", FIRST)
    usage = type("Usage", (), {"free": 100_000})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    finished = nescio_here("build", tmp_path / "a.npy", "--out", tmp_path / "t", "--shards", 2)
    assert_one_sentence(finished)
    assert "has 100,000 bytes of free space" in finished.stderr
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("existed", [False, True])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), signal.SIGTERM])
def test_a_build_that_ends_early_leaves_nothing(tmp_path, monkeypatch, error, existed):
    write_npy(tmp_path / "a.npy", FIRST)
    from nescio.service._build import _output  # noqa: PLC0415

    put = _output.Folder.put

    def failing(self, name, write):
        if name.endswith("1"):
            (self.path / f"{name}.0123abcd").write_bytes(b"half")
            if isinstance(error, OSError):
                raise error
            signal.raise_signal(error)
        put(self, name, write)

    monkeypatch.setattr(_output.Folder, "put", failing)
    # A signal that is not caught would end the tests.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    out = tmp_path / "t"
    if existed:
        out.mkdir()
    try:
        finished = nescio_here("build", tmp_path / "a.npy", "--out", out, "--shards", 3)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert_one_sentence(finished, 1 if isinstance(error, OSError) else 130)
    assert out.exists() == existed
    assert not existed or list(out.iterdir()) == []


def test_an_input_that_changes_between_the_passes(tmp_path, monkeypatch):
    write_npy(tmp_path / "a.npy", FIRST)
    from nescio.service._build import _output  # noqa: PLC0415

    put = _output.Remote.put

    def changed(self, name, write):
        put(self, name, write)
        write_npy(tmp_path / "a.npy", FIRST + 1)

    monkeypatch.setattr(_output.Remote, "put", changed)
    out = "memory://changing/table"
    finished = nescio_here("build", tmp_path / "a.npy", "--out", out, "--shards", 2)
    assert_one_sentence(finished)
    assert "the input has changed while it was read" in finished.stderr
    assert fsspec.filesystem("memory").find("/changing/table") == []


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("fsspec", ["memory://in/a.npy"]),
        ("pyarrow", ["a.parquet"]),
        ("ray", ["a.npy", "--ray", "local"]),
    ],
)
def test_missing_packages_are_named(tmp_path, monkeypatch, package, arguments):
    monkeypatch.chdir(tmp_path)
    write_npy(Path("a.npy"), FIRST)
    write_lists(Path("a.parquet"), FIRST)
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    finished = nescio_here("build", *arguments, "--out", "t", "--shards", 1)
    assert_one_sentence(finished)
    assert f"'{package}': install nescio[cluster]" in finished.stderr


@pytest.mark.parametrize("url", ["nothing://a/b.npy", "memory://in/none-*.npy"])
def test_urls_that_cannot_be_read(tmp_path, url):
    assert url in refused(tmp_path, url)
