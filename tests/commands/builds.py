"""Inputs of `nescio build`, one writer for each kind."""

import numpy as np
import pytest

from commands.conftest import nescio_here

fsspec = pytest.importorskip("fsspec")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
safetensors = pytest.importorskip("safetensors.numpy")

RANDOM = np.random.default_rng(3)
FIRST = RANDOM.random((5_001, 12), np.float32)
SECOND = RANDOM.random((6_104, 12), np.float32)
BOTH = np.concatenate([FIRST, SECOND])


def lists(values, kind=None):
    """Converts rows to a column of lists, of one length by default."""
    flat = pa.array(values.reshape(-1))
    if kind is None:
        return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    ends = np.arange(len(values) + 1, dtype="i4") * values.shape[1]
    return kind.from_arrays(pa.array(ends), flat)


def write_npy(path, values):
    np.save(path, values)


def write_fortran(path, values):
    np.save(path, np.asfortranarray(values))


def write_lists(path, values):
    columns = {"id": pa.array(np.arange(len(values))), "vector": lists(values)}
    pq.write_table(pa.table(columns), path, row_group_size=1_000)


def write_variable_lists(path, values):
    columns = {"vector": lists(values, pa.ListArray)}
    pq.write_table(pa.table(columns), path, row_group_size=7_000)


def write_columns(path, values):
    columns = {f"c{i}": pa.array(values[:, i]) for i in reversed(range(values.shape[1]))}
    pq.write_table(pa.table(columns), path, row_group_size=2_500)


def write_tensor(path, values):
    values = np.ascontiguousarray(values)  # the library writes the memory of other arrays
    safetensors.save_file({"bias": values[0], "weight": values}, path)


def write_only_tensor(path, values):
    safetensors.save_file({"weight": np.ascontiguousarray(values)}, path)


COLUMNS = [word for i in range(12) for word in ("--column", f"c{i}")]
KINDS = [
    (write_npy, "npy", []),
    (write_fortran, "npy", []),
    (write_lists, "parquet", ["--column", "vector"]),
    (write_variable_lists, "pq", []),
    (write_columns, "parquet", COLUMNS),
    (write_tensor, "safetensors", ["--column", "weight"]),
    (write_only_tensor, "safetensors", []),
]


def build(*arguments):
    """Runs the command in this process, without an error; returns what it prints."""
    finished = nescio_here("build", *arguments)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
