"""Access logs as files: CSV, Parquet and .npz, and files that are none of them."""

import gzip
import subprocess
import sys

import numpy as np
import pytest

from nescio.errors import ArgumentError, FileError, IndexRangeError
from nescio.pir.batch import AccessLog

SMALL = "inference,row,user,time\na,3,ann,2\na,1,ann,1.5\nb,2,bob,1970-01-02\n"


def csv_file(folder, text):
    path = folder / "log.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def same(log, other):
    pairs = zip(
        (log.offsets, log.rows, log.users, log.times),
        (other.offsets, other.rows, other.users, other.times),
        strict=True,
    )
    return all(np.array_equal(a, b) if a is not None else b is None for a, b in pairs)


SETS = AccessLog([[3, 1], [2]], users=["ann", "bob"], times=[1.5, 86400.0])


# ---- CSV -----------------------------------------------------------------------------------------


def test_a_csv_file_has_a_line_per_access(tmp_path):
    assert same(AccessLog.load(csv_file(tmp_path, SMALL)), SETS)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(SMALL.encode()))
    assert same(AccessLog.load(tmp_path / "log.csv.gz"), SETS)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffrow,inference\n3,a\n1,a\n2,b\n",
        " inference , row\r\na, 3\r\na,1\r\n\r\nb,2\r\n",
        'what,inference,row\n"x\ny",a,3\n,a,1\n"1,2",b,2',
    ],
)
def test_other_orders_columns_and_line_ends(tmp_path, text):
    log = AccessLog.load(csv_file(tmp_path, text))
    assert [rows.tolist() for rows in log] == [[3, 1], [2]]
    assert (log.users, log.times) == (None, None)


def test_a_zone_counts_in_a_date(tmp_path):
    text = "inference,row,time\na,1,2026-11-23T12:00:00+02:00\nb,1,2026-11-23T10:00:00\n"
    log = AccessLog.load(csv_file(tmp_path, text))
    assert log.times[0] == log.times[1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"line 1: found the columns \[\], expected inference, row"),
        ("inference,rows\na,1\n", r"line 1: found the columns \['inference', 'rows'\]"),
        ("inference,row\n", "the log is empty"),
        ("inference,row\na,1\nb\n", "line 3: found 1 fields, expected 2"),
        ("inference,row\na,1\nb,2,3\n", "line 3: found 3 fields, expected 2"),
        ("inference,row\na,1\nb,1.5\n", "line 3: found the row '1.5', expected an integer"),
        ('inference,row,x\na,1,"1\n2"\nb,,\n', "line 4: found the row '', expected an integer"),
        ("inference,row\na,99999999999999999999\n", "line 2: found the row '99999999999999999999'"),
        ("inference,row,time\na,1,noon\n", "line 2: found the time 'noon', expected a number or"),
        ("inference,row,time\na,1,1\na,1,nan\n", "line 3: found the time nan"),
        ("inference,row,user\na,1,x\nb,1,x\na,2,y\n", "line 4: found another user"),
        (b"inference,row\na,\xff\n", "cannot be read as CSV"),
        (
            "inference,row\n" + "a" * 200_000 + ",1\n",
            "near line 2: cannot be read as CSV: field larger",
        ),
    ],
)
def test_bad_csv_files_name_the_line(tmp_path, text, words):
    with pytest.raises(ArgumentError, match=words):
        AccessLog.load(csv_file(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("inference,row\na,1\nb,-2\n", "line 3: found row -2, expected 0 to"),
        ("inference,row\na,8\n\nb,9\n", "line 4: found row 9, expected 0 to 8"),
    ],
)
def test_rows_outside_the_table_name_the_line(tmp_path, text, words):
    with pytest.raises(IndexRangeError, match=words):
        AccessLog.load(csv_file(tmp_path, text), limit=9)


def test_a_damaged_archive(tmp_path):
    whole = gzip.compress(SMALL.encode() * 1000)
    for damaged in (b"", whole[:-20], b"not gzip", whole[:50] + b"\0\0\0" + whole[53:]):
        (tmp_path / "log.csv.gz").write_bytes(damaged)
        with pytest.raises(FileError, match="cannot be read as CSV|found the columns"):
            AccessLog.load(tmp_path / "log.csv.gz")


def test_many_lines(tmp_path, rng):
    """More lines than are converted at a time."""
    inferences, rows = rng.integers(0, 20_000, 150_000), rng.integers(0, 1000, 150_000)
    lines = (f"{i},{r}" for i, r in zip(inferences, rows, strict=True))
    path = csv_file(tmp_path, "inference,row\n" + "\n".join(lines))
    assert same(AccessLog.load(path), AccessLog.from_numpy(inferences, rows))
    with path.open("a") as file:
        file.write("\n7,x\n")
    with pytest.raises(FileError, match="line 150002: found the row 'x'"):
        AccessLog.load(path)


# ---- Parquet -------------------------------------------------------------------------------------


def parquet_file(folder, **columns):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet  # noqa: PLC0415

    path = folder / "log.parquet"
    parquet.write_table(pa.table(columns), path)
    return path


def test_a_parquet_file_has_a_record_per_access(tmp_path):
    path = parquet_file(
        tmp_path,
        inference=["a", "a", "b"],
        row=np.array([3, 1, 2], np.uint16),
        user=["ann", "ann", "bob"],
        time=[2, 1.5, 86400],
    )
    assert same(AccessLog.load(path), SETS)
    dates = np.array([2000, 1500, 86400_000], "datetime64[ms]")
    path = parquet_file(
        tmp_path, time=dates, row=[3, 1, 2], inference=[7, 7, 9], user=[1, 1, 0], more=[0, 0, 0]
    )
    assert same(AccessLog.load(path), SETS)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"inference": [1], "rows": [1]}, "found the columns .*'rows'.*, expected inference, row"),
        ({"inference": [1], "row": [1.5]}, "found rows of type double, expected integers"),
        ({"inference": [1, 1], "row": [1, None]}, "record 1: found no row, expected a value"),
        ({"inference": [1], "row": [1], "time": ["x"]}, "found times of type string"),
        ({"inference": [1], "row": [-1]}, "record 0: found row -1"),
        ({"inference": [1], "row": [1], "time": [np.nan]}, "record 0: found the time nan"),
    ],
)
def test_bad_parquet_files(tmp_path, columns, words):
    with pytest.raises(ArgumentError, match=words):
        AccessLog.load(parquet_file(tmp_path, **columns))


def test_a_file_that_is_not_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "log.parquet").write_text(SMALL)
    with pytest.raises(FileError, match="cannot be read as Parquet"):
        AccessLog.load(tmp_path / "log.parquet")


def test_without_pyarrow(tmp_path):
    (tmp_path / "log.parquet").write_text(SMALL)
    code = f"""
import sys
sys.modules["pyarrow"] = None
from nescio.pir.batch import AccessLog
try:
    AccessLog.load({str(tmp_path / "log.parquet")!r})
except ModuleNotFoundError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == (
        "reading Parquet needs pyarrow: pip install 'nescio[tune]', or write the log as CSV\n"
    )


# ---- .npz ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("log", [SETS, AccessLog([[1], [], [5, 2]])])
def test_what_is_saved_is_loaded(tmp_path, log):
    log.save(tmp_path / "log.npz")
    assert same(AccessLog.load(tmp_path / "log.npz"), log)


def test_a_saved_log_is_checked_against_the_table(tmp_path):
    SETS.save(tmp_path / "log.npz")
    with pytest.raises(IndexRangeError, match="inference 0: found row 3, expected 0 to 2"):
        AccessLog.load(tmp_path / "log.npz", limit=3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rows": np.array([3, 1, 2], np.int32)}, "rows has the type int32"),
        ({"rows": np.array([[3, 1, 2]])}, "rows has the type int64 and 2 dimensions"),
        ({"offsets": np.array([0, 2])}, "its offsets do not divide its rows"),
        ({"offsets": np.array([0, 4, 3])}, "its offsets do not divide its rows"),
        ({"offsets": np.zeros(0, np.int64)}, "its offsets do not divide its rows"),
        ({"users": np.array([1])}, "it has 1 users, expected one for each inference"),
        ({"users": np.array([1, -1])}, "a user has a negative number"),
        ({"times": np.array([1, np.nan])}, "inference 1: found the time nan"),
        ({"rows": np.array([3, 3, 2])}, "an inference has a negative or a repeated row"),
        ({"rows": np.array([3, -3, 2])}, "an inference has a negative or a repeated row"),
        ({"more": np.array([1])}, "it contains"),
        ({"offsets": np.array([0]), "rows": np.zeros(0, np.int64)}, "the log is empty"),
    ],
)
def test_bad_npz_files(tmp_path, changes, words):
    fine = {"offsets": SETS.offsets, "rows": SETS.rows}
    np.savez(tmp_path / "log.npz", **fine | changes)
    with pytest.raises(ArgumentError, match=words):
        AccessLog.load(tmp_path / "log.npz")


@pytest.mark.parametrize("name", ["log.npz", "log.csv", "log.parquet", "log.txt"])
def test_missing_files_and_unknown_endings(tmp_path, name):
    with pytest.raises(FileError, match=name):
        AccessLog.load(tmp_path / name)


def test_damage_never_crashes(tmp_path, rng):
    path = tmp_path / "log.npz"
    SETS.save(path)
    whole = path.read_bytes()
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged[: int(rng.integers(len(whole) // 2, len(whole) + 1))]))
        try:
            AccessLog.load(path)
        except ArgumentError:
            continue


def test_saving_where_nothing_can_be_written(tmp_path):
    with pytest.raises(FileError, match="the access log cannot be written"):
        SETS.save(tmp_path / "missing" / "log.npz")
