"""`nescio build`: shards with the digest of the whole table, from each kind of input."""

import contextlib
from pathlib import Path

import numpy as np
import pytest

import nescio as package
from commands.builds import (
    BOTH,
    FIRST,
    KINDS,
    SECOND,
    build,
    fsspec,
    write_fortran,
    write_lists,
    write_npy,
    write_only_tensor,
    write_variable_lists,
)
from commands.conftest import assert_one_sentence, nescio, nescio_here
from nescio.pir._sharded import read_shard
from nescio.service._cluster._open import ClusterOptions, built_sources


def assert_built(folder, values, *, shards, **options):
    """Checks the files of a table against the table of all rows."""
    params = package.Table(values, **options).params
    found = built_sources(Path(folder), ClusterOptions(0))
    assert found.params == params
    assert found.occupied == len(values)
    assert len(found.shards) == shards
    for source in found.shards:
        assert read_shard(source.path, 1).params == params
    return params


@pytest.mark.parametrize(("write", "ending", "more"), KINDS)
def test_files_of_every_kind_make_the_table_of_their_rows(tmp_path, write, ending, more):
    paths = [tmp_path / f"first.{ending}", tmp_path / f"second.{ending}"]
    for path, values in zip(paths, (FIRST, SECOND), strict=True):
        write(path, values)
    said = build(*paths, "--out", tmp_path / "table", "--shards", 4, *more)
    params = assert_built(tmp_path / "table", BOTH, shards=4)
    assert f"digest: {params.digest}" in said


@pytest.mark.parametrize("output", ["bit", "u32"])
@pytest.mark.parametrize("spare", ["0", "9", "150%"])
@pytest.mark.parametrize("shards", [1, 3, 7])
def test_options_are_those_of_a_table(tmp_path, output, spare, shards):
    np.save(tmp_path / "rows.npy", FIRST)
    more = ["--output", output, "--spare", spare, "--version", "v 7", "--generator", "aes128"]
    build(tmp_path / "rows.npy", "--out", tmp_path / "t", "--shards", shards, *more)
    vacant = {"0": 0, "9": 9, "150%": 7_502}[spare]
    options = {"output": output, "spare": vacant, "version": "v 7", "generator": "aes128"}
    assert_built(tmp_path / "t", FIRST, shards=shards, **options)


@pytest.mark.parametrize("values", [FIRST[:, 0], FIRST.reshape(-1, 3, 4), np.arange(70_001)])
@pytest.mark.parametrize("write", [write_npy, write_fortran, write_only_tensor])
def test_rows_of_any_shape(tmp_path, values, write):
    path = tmp_path / ("rows.safetensors" if write is write_only_tensor else "rows.npy")
    write(path, values)
    build(path, "--out", tmp_path / "t", "--shards", 2)
    assert_built(tmp_path / "t", values, shards=2)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_files_without_rows_among_others(tmp_path, place):
    """Spark writes empty parts."""
    for number, values in enumerate((FIRST, SECOND)):
        write_variable_lists(tmp_path / f"{2 * number}.parquet", values)
    write_variable_lists(tmp_path / f"{2 * place - 1}.parquet", FIRST[:0])
    parts = sorted(tmp_path.glob("*.parquet"), key=lambda path: int(path.stem))
    build(*parts, "--out", tmp_path / "t", "--shards", 3)
    assert_built(tmp_path / "t", BOTH, shards=3)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_files_are_of_their_user_alone(tmp_path, scheme):
    write_npy(tmp_path / "a.npy", FIRST)
    build(tmp_path / "a.npy", "--out", f"{scheme}{tmp_path}/t", "--shards", 2)
    assert_built(tmp_path / "t", FIRST, shards=2)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "t").iterdir()} == {0o600}


def test_links_have_the_ending_of_their_own_name(tmp_path, monkeypatch):
    """Hugging Face's cache names files by their digests; workers get absolute names."""
    from nescio.commands.build import _run  # noqa: PLC0415
    from nescio.service._build import Here  # noqa: PLC0415

    monkeypatch.chdir(tmp_path)
    with Path("0123abcd").open("wb") as file:
        np.save(file, FIRST)
    Path("model.npy").symlink_to("0123abcd")
    runner = contextlib.nullcontext(Here(lambda *_: None))
    monkeypatch.setattr(_run, "_runner", lambda *_: runner)
    build("model.npy", "--out", "t", "--shards", 2, "--ray", "auto")
    assert_built(tmp_path / "t", FIRST, shards=2)


def test_files_of_different_kinds_are_one_table(tmp_path):
    write_only_tensor(tmp_path / "a.safetensors", FIRST)
    write_variable_lists(tmp_path / "b.parquet", SECOND)
    files = [tmp_path / "a.safetensors", tmp_path / "b.parquet"]
    build(*files, "--out", tmp_path / "t", "--shards", 5)
    assert_built(tmp_path / "t", BOTH, shards=5)


@pytest.mark.parametrize(("write", "ending", "more"), KINDS)
def test_urls_make_the_same_table_as_files(tmp_path, write, ending, more):
    files = fsspec.filesystem("memory")
    files.rm("/", recursive=True)
    for name, values in (("part-0", FIRST), ("part-1", SECOND)):
        write(tmp_path / f"{name}.{ending}", values)
        files.put_file(tmp_path / f"{name}.{ending}", f"/in/{name}.{ending}")
    url = f"memory://in/part-*.{ending}"
    build(url, "--out", "memory://out/table", "--shards", 3, *more)
    files.get("/out/table/", f"{tmp_path}/table/", recursive=True)
    assert_built(tmp_path / "table", BOTH, shards=3)
    again = nescio_here("build", url, "--out", "memory://out/table", "--shards", 3, *more)
    assert_one_sentence(again)
    assert "memory://out/table is not empty" in again.stderr


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["", pytest.param("file://", marks=pytest.mark.cluster)])
def test_a_ray_cluster_builds_the_same_table(tmp_path, scheme):
    pytest.importorskip("ray")
    write_lists(tmp_path / "rows.parquet", BOTH)
    out, more = f"{scheme}{tmp_path}/t", ["--shards", 3, "--column", "vector", "--ray", "local"]
    finished = nescio("build", tmp_path / "rows.parquet", "--out", out, *more)
    assert finished.returncode == 0, finished.stderr
    assert_built(tmp_path / "t", BOTH, shards=3)


# ---- Refusals ------------------------------------------------------------------------------------
