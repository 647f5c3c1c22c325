"""Tests lookups of tables in bins: places, checks, changes, files, both servers at once."""

import threading

import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError, ForgedAnswerError, IndexRangeError, MismatchError
from nescio.pir import Bins, LocalTable
from spec import pir as spec

CUTS = [
    [(3, 70)],
    [(1, 300, 3)],
    [(4, 530, 2), (3, 5, 1)],
    [(2, 4100, 1), (5, 17, 3), (1, 1, 1)],
    [(256, 17)],
    [(3, 6000)],  # with hash tables, if its records are single rows
]


def values_of(bins, width=20, seed=5):
    rows = sum(Bins(*group).total_rows for group in bins)
    return np.random.default_rng(seed).integers(0, 256, (rows, width), dtype=np.uint8)


def firsts_of(bins):
    """Returns the number of the first row of each slot's bin."""
    firsts, first = [], 0
    for group in (Bins(*group) for group in bins):
        for _ in range(group.bins):
            firsts += [first] * group.keys
            first += group.rows
    return np.array(firsts, np.uint64)


def places_of(table, shape, seed=6):
    params = table.params
    noise = np.random.default_rng(seed).integers(0, 1 << 62, (*shape, params.slots))
    return noise.astype(np.uint64) % params.slot_rows


@pytest.mark.parametrize("bins", CUTS, ids=str)
@pytest.mark.parametrize("record_rows", [1, 8])
@pytest.mark.parametrize("output", ["bit", "u32"])
def test_a_lookup_gets_a_row_for_each_slot(bins, record_rows, output):
    values = values_of(bins)
    table = nescio.Table(values, bins=bins, record_rows=record_rows, output=output)
    assert np.array_equal(table[np.arange(len(values))], values)
    places = places_of(table, (2, 2))
    for verify in (True, False):
        found = LocalTable(table, verify=verify, threads=2).lookup(places)
        assert np.array_equal(found, values[firsts_of(bins) + places])


@pytest.mark.parametrize("bins", CUTS, ids=str)
@pytest.mark.parametrize("record_rows", [1, 4])
def test_the_specification_has_the_same_parameters_and_tops(bins, record_rows):
    values = values_of(bins, width=3)
    table = nescio.Table(values, bins=bins, record_rows=record_rows, layout=b"a layout")
    groups = [list(Bins(*group)) for group in bins]
    rows = [row.tobytes() for row in values]
    params = spec.params(rows, [3], "|u1", "bit", "chacha20", "1", record_rows, groups, b"a layout")
    assert table.params.to_json() == spec.canonical_json(params)
    assert table.tops.tobytes() == b"".join(spec.hash_tables(rows, params)[1])
    assert nescio.TableParams.from_json(table.params.to_json()) == table.params


@pytest.mark.parametrize("bins", CUTS, ids=str)
@pytest.mark.parametrize("record_rows", [1, 8])
@pytest.mark.parametrize("share", [0.01, 1.0])
def test_an_updated_table_is_the_table_made_of_the_new_rows(bins, record_rows, share, rng):
    values = values_of(bins)
    table = nescio.Table(values, bins=bins, record_rows=record_rows, layout=b"same")
    where = rng.integers(0, len(values), 1 + int(share * len(values)))
    new = rng.integers(0, 256, (len(where), 20), dtype=np.uint8)
    table.update(where, new)
    values[where] = new
    again = nescio.Table(values, bins=bins, record_rows=record_rows, layout=b"same", version="2")
    assert table.params == again.params
    places = places_of(table, (3,))
    assert np.array_equal(LocalTable(table).lookup(places), values[firsts_of(bins) + places])


def test_a_record_from_another_bin_is_a_forgery():
    """The servers exchange two bins: every record is one of the table, in the wrong place."""
    values = values_of([(2, 64)])
    table = nescio.Table(values, bins=[(2, 64)])
    turned = nescio.Table(np.roll(values, 64, axis=0), bins=[(2, 64)])
    client = nescio.Client(table.params, table.tops)
    places = np.array([3, 3], np.uint64)
    query = client.query(places)
    forged = nescio.Client(turned.params, verify=False).query(places)
    answers = [nescio.Server(turned, party=party).answer(forged.keys[party]) for party in (0, 1)]
    answers = [a[:16] + table.params.id + a[32:] for a in answers]
    with pytest.raises(ForgedAnswerError):
        client.decode(query, *answers)
    unchecked = nescio.Client(table.params, verify=False)
    found = unchecked.decode(unchecked.query(places), *answers)
    assert np.array_equal(found, values[[67, 3]])


def test_the_bytes_of_a_query_do_not_depend_on_the_places():
    table = nescio.Table(values_of(CUTS[2]), bins=CUTS[2])
    client = nescio.Client(table.params, table.tops)
    lowest, highest = np.zeros(table.params.slots, np.uint64), table.params.slot_rows - 1
    sizes = {tuple(map(len, client.query(p).keys)) for p in (lowest, highest)}
    assert sizes == {(32 + client.query_bytes,) * 2}
    headers = {client.query(p).keys[0][:32] for p in (lowest, highest)}
    assert len(headers) == 1


def test_places_out_of_range():
    table = nescio.Table(values_of(CUTS[2]), bins=CUTS[2])
    client = nescio.Client(table.params, table.tops)
    places = table.params.slot_rows - 1
    assert client.query(places).count == 1
    places[9] += 1
    with pytest.raises(IndexRangeError, match=r"bin of slot 9 is out of range: expected 0 to 4"):
        client.query(places)
    with pytest.raises(IndexRangeError, match=r"found 530, expected 0 to 529"):
        client.query(np.full(11, 530))
    with pytest.raises(ArgumentError, match=r"found shape \(10,\), expected \(\.\.\., 11\)"):
        client.query(np.zeros(10, int))
    with pytest.raises(ArgumentError, match=r"found shape \(\), expected"):
        client.query(3)
    assert client.query(np.zeros((0, 11), int)).count == 0


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        ([], r"found \[\], expected a list of"),
        ([(2, 5)], "they have 10 rows, expected the table's 20"),
        ([(2, 10, 0)], "all at least 1"),
        ([(4097, 1)], "found 4097, expected at most 4096"),
        ([(2, 10, 1 << 20)], "keys a lookup, expected at most 65536"),
        ([2, 10], "expected a list of"),
        ([(2, 10.0)], "expected a list of"),
        ("bins", "expected a list of"),
    ],
)
def test_invalid_bins(bins, message):
    rows = 4097 if bins == [(4097, 1)] else 20
    with pytest.raises(ArgumentError, match=message):
        nescio.Table(np.zeros((rows, 4), "u1"), bins=bins)


@pytest.mark.parametrize("layout", ["text", None, 5])
def test_a_layout_is_bytes(layout):
    with pytest.raises(ArgumentError, match="layout: found"):
        nescio.Table(np.zeros((20, 4), "u1"), layout=layout)


def test_rows_are_not_inserted_or_deleted():
    table = nescio.Table(values_of(CUTS[0]), bins=CUTS[0])
    with pytest.raises(ArgumentError, match="expected an update"):
        table.insert([0], np.zeros((1, 20), "u1"))
    with pytest.raises(ArgumentError, match="expected an update"):
        table.delete([0])


@pytest.mark.parametrize("bins", CUTS[:3], ids=str)
def test_a_stored_table(bins, tmp_path):
    table = nescio.Table(values_of(bins), bins=bins, layout=b"where everything is", output="u8")
    table.save(tmp_path / "t")
    again = nescio.Table.load(tmp_path / "t")
    assert again.params == table.params
    assert again.layout == b"where everything is"
    places = places_of(table, (1,))
    assert np.array_equal(LocalTable(again).lookup(places), LocalTable(table).lookup(places))


def test_the_id_depends_on_the_bins_and_the_layout():
    values = values_of([(4, 10)])
    ids = [
        nescio.Table(values, bins=bins, layout=layout).params.id
        for bins in (None, [(4, 10)], [(2, 20)], [(4, 10, 2)])
        for layout in (b"", b"one", b"two")
    ]
    assert len(set(ids)) == len(ids)


def test_both_copies_must_be_equal():
    first, second = (nescio.Table(values_of([(4, 10)], seed=s), bins=[(4, 10)]) for s in (1, 2))
    with pytest.raises(ArgumentError, match="the two copies differ"):
        LocalTable(first, second)


def test_an_ordinary_table_in_this_process_follows_changes():
    values = values_of([(1, 100)])
    table = nescio.Table(values)
    local, end = LocalTable(table), threading.Event()

    def change():
        while not end.is_set():
            table.update([5], values[5:6])

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(20):
            assert np.array_equal(local.lookup([5, 99]), values[[5, 99]])
    finally:
        end.set()
        thread.join()
    table.update([5], values[6:7])
    assert np.array_equal(local.lookup(5), values[6])
    assert local.params == table.params
    assert local.layout == b""


def test_a_query_for_the_table_in_other_bins_is_refused():
    values = values_of([(4, 10)])
    one, other = (nescio.Table(values, bins=[bins]) for bins in ((4, 10), (2, 20)))
    query = nescio.Client(one.params, verify=False).query(np.zeros(4, int))
    with pytest.raises(MismatchError, match="another table or version"):
        nescio.Server(other).answer(query.keys[0])
