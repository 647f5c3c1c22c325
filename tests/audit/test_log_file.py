"""Logs as files."""

import zipfile

import numpy as np
import pytest

from audit.records import Run
from nescio.audit import Log
from nescio.errors import ArgumentError


@pytest.fixture
def stored(tmp_path):
    run = Run(5, 20, seed=3)
    record = Log(run.aggregates, 5, run.windows, run.counts, run.participants)
    record.save(tmp_path / "log.npz")
    return record, tmp_path / "log.npz"


def test_what_is_saved_is_loaded(stored):
    record, path = stored
    again = Log.load(path)
    assert (again.aggregates == record.aggregates).all()
    assert again.windows == record.windows
    assert (again.counts == record.counts).all()
    assert (again.participants == record.participants).all()
    assert (again.users, again.count_error) == (5, 0)


def test_counts_are_optional(stored, tmp_path):
    record, _ = stored
    Log(record.aggregates, 5).save(tmp_path / "bare.npz")
    again = Log.load(tmp_path / "bare.npz")
    assert again.counts is None
    assert again.participants is None


def test_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "log.npz", aggregates=np.array([{}], object), users=np.int64(3))
    with pytest.raises(ArgumentError, match="not a log"):
        Log.load(tmp_path / "log.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not an archive" * 9])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "log.npz").write_bytes(content)
    with pytest.raises(ArgumentError, match="log"):
        Log.load(tmp_path / "log.npz")


def test_a_missing_file(tmp_path):
    with pytest.raises(ArgumentError, match="cannot be read"):
        Log.load(tmp_path / "none.npz")


def test_other_names_are_refused(tmp_path):
    np.savez(tmp_path / "log.npz", aggregates=np.ones((3, 3)), users=np.int64(3), more=np.ones(2))
    with pytest.raises(ArgumentError, match="it contains"):
        Log.load(tmp_path / "log.npz")


def test_sizes_are_known_before_anything_is_read(tmp_path):
    """A header that declares more data than the file has."""
    header = np.lib.format.header_data_from_array_1_0(np.ones((2, 2)))
    with zipfile.ZipFile(tmp_path / "log.npz", "w") as archive:
        for name in ("aggregates.npy", "users.npy"):
            with archive.open(name, "w") as file:
                np.lib.format.write_array_header_1_0(file, header | {"shape": (1 << 40, 1 << 20)})
    with pytest.raises(ArgumentError, match="length that its header states"):
        Log.load(tmp_path / "log.npz")


def test_damage_never_crashes(stored, rng):
    _, path = stored
    whole = path.read_bytes()
    for _ in range(150):
        damaged = bytearray(whole)
        damaged[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged[: int(rng.integers(len(whole) // 2, len(whole) + 1))]))
        try:
            Log.load(path)
        except ArgumentError:
            continue
