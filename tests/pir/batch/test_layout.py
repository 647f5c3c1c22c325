"""The bytes of a layout: as specified, the same after a round trip; no others are accepted."""

import base64
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nescio.errors import ArgumentError, FileError, IndexRangeError, MalformedMessageError
from nescio.pir.batch import FullPart, HotPart, Layout, Together, failure_probability
from pir.batch.layouts import as_layout, layouts
from spec import batch as spec

LAYOUT = Layout(
    1000,
    FullPart(8, keys=1, hashes=2, seed=7),
    HotPart(np.arange(0, 600, 6), 4, keys=2),
    Together(np.array([5, 3, 8]), np.array([[4, 900], [-1, 2], [1, 0]])),
    lookups=12,
)


@given(layouts())
def test_the_bytes_are_those_of_the_specification(own):
    layout = as_layout(own)
    assert layout.to_bytes() == spec.to_bytes(own)
    assert Layout.from_bytes(layout.to_bytes()) == layout
    assert [tuple(group) for group in layout.bins] == spec.bins(own)


@given(st.sets(st.integers(0, 2**40 - 1), min_size=1, max_size=50))
def test_hot_rows_of_very_large_tables(rows):
    hot = sorted(rows)
    own = spec.Layout(2**40, spec.Part(1), hot=spec.Part(1), hot_rows=hot)
    layout = as_layout(own)
    assert layout.to_bytes() == spec.to_bytes(own)
    assert Layout.from_bytes(layout.to_bytes()).hot.rows.tolist() == hot


def test_many_neighbors_are_packed_in_parts(rng):
    rows, owners = 200_000, 40_000
    near = rng.integers(1, rows, (owners, 2))
    near[:, 1] = (near[:, 0] + 1) % rows
    together = Together(
        np.arange(owners) * 5, np.where(near == np.arange(owners)[:, None] * 5, -1, near)
    )
    layout = Layout(rows, FullPart(4), together=together)
    again = Layout.from_bytes(layout.to_bytes())
    assert np.array_equal(again.together.neighbors, layout.together.neighbors)
    assert np.array_equal(again.together.rows, together.rows)
    # 18 bits for each neighbor, 4.4 for each row that has some, and a third for base64
    assert layout.client_bytes < owners * (2 * 18 + 4.4) / 8 * 4 / 3 + 500


def test_the_order_of_rows_and_neighbors_does_not_matter():
    other = Layout(
        LAYOUT.rows,
        LAYOUT.full,
        HotPart(LAYOUT.hot.rows[::-1], 4, 2),
        Together(np.array([3, 8, 5]), np.array([[2, -1], [0, 1], [900, 4]])),
        12,
    )
    assert other == LAYOUT
    assert hash(other) == hash(LAYOUT)
    assert Layout(1000, FullPart(8)) != LAYOUT
    assert LAYOUT.together.neighbors.tolist() == [[2, -1], [4, 900], [0, 1]]


def test_a_layout_says_what_it_costs():
    assert (LAYOUT.slots, LAYOUT.slot_rows, LAYOUT.mode, LAYOUT.kind) == (24, 3, "exact", "batch")
    assert LAYOUT.table_rows == sum(count * rows for count, rows, _ in LAYOUT.bins)
    assert str(LAYOUT.client_bytes) in LAYOUT.describe()
    assert LAYOUT.describe() == (
        "1000 rows, exact mode for 12 rows: 100 hot rows in 4 bins with 2 keys each, 2 hashes of "
        "8 bins of 128 rows, up to 2 neighbors of 3 rows "
        f"(layout of {len(LAYOUT.to_bytes())} bytes)"
    )
    assert Layout(10, FullPart(2)).mode == "partial"
    assert (
        Layout(1, FullPart(1), HotPart([0], 1))
        .describe()
        .startswith("1 row, partial mode: 1 hot row in 1 bin, 1 bin of 1 row (")
    )


def test_exact_mode_says_how_often_it_fails():
    exact = Layout(5000, FullPart(12, hashes=4), lookups=24)
    assert "exact mode for 24 rows (fewer than one in 2^41 fail): 4 hashes" in exact.describe()
    assert failure_probability(24, 48) <= 2**-41
    whole = Layout(5000, FullPart(1, keys=3), lookups=3)
    assert "exact mode for 3 rows: 1 bin of" in whole.describe()


def test_a_file_round_trip(tmp_path):
    path = tmp_path / "items.layout"
    LAYOUT.save(path)
    assert Layout.load(path) == LAYOUT
    assert path.read_bytes() == LAYOUT.to_bytes()


def test_files_that_are_not_layouts(tmp_path):
    with pytest.raises(FileError, match="does not exist, expected a layout file"):
        Layout.load(tmp_path / "missing")
    with pytest.raises(FileError, match="cannot be written"):
        LAYOUT.save(tmp_path / "no" / "folder")
    (tmp_path / "other").write_bytes(b"\x93NUMPY")
    with pytest.raises(FileError, match="other is not a layout .*nescio tune"):
        Layout.load(tmp_path / "other")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Layout(0, FullPart(1)), "rows: found 0"),
        (lambda: Layout(10, FullPart(0)), "full part: found 0 bins, expected 1 to 10"),
        (lambda: Layout(10, FullPart(11)), "found 11 bins, expected 1 to 10"),
        (lambda: Layout(10, FullPart(2, keys=0)), "found 0 keys"),
        (lambda: Layout(10, FullPart(2.0)), "found 2.0 bins"),
        (lambda: Layout(10, FullPart(2, hashes=17)), "found 17 hashes, expected 1 to 16"),
        (lambda: Layout(10, FullPart(2, seed=-1)), "found the seed -1"),
        (lambda: Layout(10**6, FullPart(4096, hashes=2)), "8192, expected at most 4096"),
        (lambda: Layout(10, FullPart(2), lookups=1), "one hash of 2 bins in exact mode"),
        (lambda: Layout(10, FullPart(2, hashes=2), lookups=5), "found 5 lookups, .* to the 4 keys"),
        (
            lambda: Layout(10, FullPart(2), HotPart([3], 2)),
            "hot part: found 2 bins, expected 1 to 1",
        ),
        (lambda: Layout(10, FullPart(2), HotPart([], 1)), "hot rows: found 0, 0 of them different"),
        (lambda: Layout(10, FullPart(2), HotPart([3, 3], 1)), "found 2, 1 of them different"),
        (lambda: Layout(10, FullPart(2), HotPart([10], 1)), "found 10, expected 0 to 9"),
        (lambda: together([1], [[1]]), "found a row among its own"),
        (lambda: together([1], [[2, 2]]), "expected different rows"),
        (lambda: together([1], [[-1, -1]]), "at least one for each row"),
        (lambda: together([1], [[10]]), "found 10, expected 0 to 9"),
        (lambda: together([1], [[-2]]), "found -2, expected 0 to 9"),
        (lambda: together([1, 2], [[3]]), r"expected integers \(2, C\)"),
        (lambda: together([1], [[0.5]]), "float64, expected integers"),
        (lambda: together([1], np.zeros((1, 0), int)), "found 0 for each row, expected 1 to 64"),
        (lambda: together([1, 1], [[3], [4]]), "found 2, 1 of them different"),
    ],
)
def test_parts_that_do_not_fit(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def together(rows, neighbors):
    return Layout(10, FullPart(2), together=Together(np.array(rows), np.array(neighbors)))


def test_rows_out_of_range_have_an_error_of_their_own():
    with pytest.raises(IndexRangeError):
        Layout(10, FullPart(2), HotPart([-1], 1))


# ---- Bytes from outside --------------------------------------------------------------------------


def changed(**changes):
    """Returns the bytes of LAYOUT with changed fields; `hot_keys` is keys of the object hot."""
    fields = json.loads(LAYOUT.to_bytes())
    for name, value in changes.items():
        part, _, key = name.rpartition("__")
        (fields[part] if part else fields)[key] = value
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def coded(count):
    return base64.b64encode(bytes(count)).decode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not JSON"),
        (b"[]", "not a batch layout"),
        (b"null", "not a batch layout"),
        (b"[" * 60, "not JSON"),
        (b"[" * 100_000, "found 100000 brackets and commas"),
        (b"[],{}," * 17, "found 68 .* at most 64"),
        (b'{"kind":"keyed"}', "'keyed'"),
        (b"\xff\xfe", "not ASCII"),
        ('{"kind":"bätch"}'.encode(), "not ASCII"),
        (b'{"rows":' + b"9" * 10_000 + b"}", "not JSON"),
        (LAYOUT.to_bytes() + b"\n", "not canonical"),
        (LAYOUT.to_bytes().replace(b":", b": "), "not canonical"),
        (LAYOUT.to_bytes()[:-1], "not JSON"),
        (changed(format=2), "found format 2, this release reads 1"),
        (changed(format=True), "not canonical"),
        (changed(more=1), "missing or unknown fields: 'more'"),
        (changed(hot__more=1), "hot: missing or unknown fields: 'more'"),
        (changed(rows=0), "rows is 0"),
        (changed(rows=2**41), "rows is 2199023255552"),
        (changed(rows=True), "rows is True"),
        (changed(rows=1000.0), "rows is 1000.0"),
        (changed(rows=500), "rows"),
        (changed(lookups=-1), "lookups is -1"),
        (changed(lookups=17), "found 17 lookups"),
        (changed(full=None), "full: found None, expected an object"),
        (changed(full__bins=0), "found 0 bins"),
        (changed(full__bins=2**30), "found 1073741824 bins"),
        (changed(full__seed=2**32), "seed 4294967296"),
        (changed(hot__count=101), "101 of 1000 rows: found"),
        (changed(hot__count=2**39), "count is 549755813888"),
        (changed(hot__rows="!!!!"), "not base64"),
        (changed(hot__rows=7), "not base64"),
        (changed(hot__rows=coded(66)), "found 0 rows, expected 100"),
        (changed(together__count=65), "count is 65"),
        (changed(together__count=1), "bytes of neighbors"),
        (changed(together__owners=2**20), "owners is 1048576"),
        (changed(together__neighbors=coded(8)), "different rows"),
        (changed(together__neighbors="//////////8="), "expected 0 to 999"),
    ],
)
def test_bytes_that_are_not_a_layout(data, message):
    with pytest.raises(MalformedMessageError, match=message):
        Layout.from_bytes(data)


def test_padding_bits_must_be_zero():
    fields = json.loads(LAYOUT.to_bytes())
    raw = bytearray(base64.b64decode(fields["together"]["neighbors"]))
    raw[-1] |= 0x80  # 6 numbers of 10 bits fill 7.5 bytes
    fields["together"]["neighbors"] = base64.b64encode(raw).decode()
    data = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(MalformedMessageError, match="not canonical"):
        Layout.from_bytes(data)


@given(st.data())
def test_changed_bytes_are_refused_or_are_another_layout(data):
    raw = bytearray(LAYOUT.to_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.sampled_from(sorted(set(raw) | {0, 0xFF})))
    try:
        layout = Layout.from_bytes(bytes(raw))
    except MalformedMessageError:
        return
    assert layout.to_bytes() == bytes(raw)


def test_memory_is_bounded_by_the_length_whatever_the_numbers_say():
    claims = [
        changed(rows=2**40),
        changed(rows=2**40, hot__count=2**40),
        changed(rows=2**40, hot=None, together__owners=2**40, together__count=64),
    ]
    tracemalloc.start()
    try:
        for data in claims:
            with pytest.raises(MalformedMessageError):
                Layout.from_bytes(data)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
