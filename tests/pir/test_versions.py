"""Older versions of a table: which ones are kept, and their answers."""

import numpy as np
import pytest

import nescio
from nescio.dpf import OUTPUTS
from nescio.errors import ArgumentError, MismatchError, VersionGoneError
from nescio.pir import Bins
from pir.test_lookup import assert_same, random_table

ROWS = 9000  # one hash table


class Plain:
    """The versions of a table in the open: their parameters, their tops and their rows."""

    def __init__(self, values, **options):
        self.table = nescio.Table(values, **options)
        self.had = []
        self.note(values)

    def note(self, values):
        self.had.append((self.table.params, self.table.tops.copy(), values))

    @property
    def rows(self):
        return self.had[-1][2]

    def update(self, count, rng):
        where = rng.integers(len(self.rows), size=count)
        new = random_table(rng, (count, *self.rows.shape[1:]), self.rows.dtype)
        values = self.rows.copy()
        values[where] = new
        self.table.update(where, new)
        self.note(values)

    def insert(self, count, rng):
        where = rng.integers(len(self.rows) + 1, size=count)
        new = random_table(rng, (count, *self.rows.shape[1:]), self.rows.dtype)
        self.table.insert(where, new)
        self.note(np.insert(self.rows, where, new, axis=0))

    def delete(self, count, rng):
        where = rng.choice(len(self.rows), count, replace=False)
        self.table.delete(where)
        self.note(np.delete(self.rows, where, axis=0))

    def kept(self):
        """Returns what is known of the versions that the table keeps; all others are gone."""
        assert self.table.versions[0] == self.table.params
        by_id = {params.id: (params, tops, rows) for params, tops, rows in self.had}
        kept = [by_id[params.id] for params in self.table.versions]
        numbers = [next(i for i, h in enumerate(self.had) if h[0] is k[0]) for k in kept]
        assert numbers == list(range(len(self.had) - 1, len(self.had) - 1 - len(kept), -1))
        for params, tops, _ in kept:
            assert_same(self.table.tops_of(params.id), tops)
        for params, _, _ in self.had[: len(self.had) - len(kept)]:
            with pytest.raises(VersionGoneError):
                self.table.tops_of(params.id)
        return kept


def look_up_all(plain, servers, rng, verify=True):
    """Looks up rows in all kept versions, in one batch of each server, in any order."""
    asked = []
    for params, tops, rows in plain.kept() * 2:
        client = nescio.Client(params, tops, verify=verify)
        if params.is_cut:
            sizes = [group.rows for group in params.bins for _ in range(group.slots)]
            places = rng.integers(sizes, size=(3, len(sizes)))
            bins = [Bins(*group) for group in params.bins]
            firsts = np.concatenate(
                [
                    first + group.rows * np.repeat(np.arange(group.bins), group.keys)
                    for first, group in zip(
                        np.cumsum([0, *(g.total_rows for g in bins)])[:-1], bins, strict=True
                    )
                ]
            )
            asked.append((client, client.query(places), rows[places + firsts]))
        else:
            where = rng.integers(params.rows, size=rng.integers(1, 6))
            asked.append((client, client.query(where), rows[where]))
    asked = [asked[i] for i in rng.permutation(len(asked))]
    answers = [
        server.answer_batch([server.check(query.keys[party]) for _, query, _ in asked])
        for party, server in enumerate(servers)
    ]
    for (client, query, expected), *pair in zip(asked, *answers, strict=True):
        assert_same(client.decode(query, *pair), expected)


def two_servers(table, **options):
    return [nescio.Server(table, party=party, threads=2, **options) for party in (0, 1)]


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("bins", [None, [(1, 1000, 1), (40, 200, 2)]], ids=["whole", "in bins"])
def test_older_versions_are_answered(bins, output, verify, rng):
    """Updates of some rows, and of so many that the table is built again."""
    plain = Plain(random_table(rng, (ROWS, 6), "i4"), output=output, bins=bins)
    servers = two_servers(plain.table)
    for count in (1, 30, 0, 200, ROWS, 7, 60):
        plain.update(count, rng)
        look_up_all(plain, servers, rng, verify)


def test_versions_with_other_numbers_of_rows(rng):
    plain = Plain(random_table(rng, (ROWS, 6), "i4"))
    servers = two_servers(plain.table)
    for change in ["update", "insert", "update", "update", "delete", "delete", "update"]:
        getattr(plain, change)(20, rng)
        look_up_all(plain, servers, rng)


def test_a_rebuild_keeps_what_was_before_until_the_next_change(rng):
    plain = Plain(random_table(rng, (ROWS, 6), "i4"))
    plain.update(5, rng)
    plain.insert(3, rng)
    assert len(plain.kept()) == 3
    assert plain.table.kept_bytes > plain.table.bytes / 2
    plain.update(5, rng)
    assert len(plain.kept()) == 2
    plain.delete(3, rng)
    assert len(plain.kept()) == 3
    plain.delete(3, rng)
    assert len(plain.kept()) == 2
    plain.table.release(plain.table.versions[1].id)
    assert plain.table.versions == (plain.table.params,)
    assert plain.table.kept_bytes == 0


@pytest.mark.parametrize("device", ["emulated"])
def test_answers_of_devices_are_patched(device, rng):
    plain = Plain(random_table(rng, (2500, 4), "i4"), output="u32")
    servers = two_servers(plain.table, device=device)
    for count in (3, 40, 2500, 8):
        plain.update(count, rng)
        look_up_all(plain, servers, rng)
    assert servers[0].replica is not None


def test_a_number_of_versions(rng):
    plain = Plain(random_table(rng, (ROWS, 6), "i4"))
    plain.table.keep_versions(3, fraction=1)
    for expected in (2, 3, 3, 3):
        plain.update(1, rng)
        assert len(plain.kept()) == expected
    plain.insert(1, rng)
    assert len(plain.kept()) == 3
    plain.table.keep_versions(1)
    assert len(plain.kept()) == 1
    assert plain.table.kept_bytes == 0
    plain.update(1, rng)
    plain.insert(1, rng)
    assert len(plain.kept()) == 1


def test_patches_take_a_fraction_of_the_memory(rng):
    plain = Plain(random_table(rng, (ROWS, 16), "i4"))
    plain.table.keep_versions(100, fraction=1 / 64)
    most = 0
    for _ in range(40):
        plain.update(4, rng)
        assert plain.table.kept_bytes <= plain.table.bytes / 64
        most = max(most, len(plain.kept()))
    assert 3 < most < 40
    plain.update(ROWS // 50, rng)  # takes more than this fraction, and is kept nevertheless
    assert plain.table.kept_bytes > plain.table.bytes / 64
    assert len(plain.kept()) == 2


def test_a_version_is_released_with_those_before_it(rng):
    plain = Plain(random_table(rng, (ROWS, 6), "i4"))
    for _ in range(4):
        plain.update(1, rng)
    kept = plain.table.versions
    plain.table.release(kept[3].id)
    assert plain.table.versions == kept[:3]
    with pytest.raises(VersionGoneError):
        plain.table.release(kept[4].id)
    with pytest.raises(ArgumentError, match="which is the current one"):
        plain.table.release(kept[0].id)
    look_up_all(plain, two_servers(plain.table), rng)


def test_gone_versions_and_ids_of_other_tables_have_errors_of_their_own(rng):
    plain = Plain(random_table(rng, (ROWS, 6), "i4"))
    plain.table.keep_versions(2)
    server = nescio.Server(plain.table)
    first, tops, _ = plain.had[0]
    query = nescio.Client(first, tops).query([1])
    checked = server.check(query.keys[0])
    plain.update(1, rng)
    assert isinstance(server.answer_batch([checked])[0], bytes)
    plain.update(1, rng)
    with pytest.raises(VersionGoneError, match="a version that is gone") as caught:
        server.check(query.keys[0])
    assert caught.value.found == first.id.hex()
    assert caught.value.expected == plain.table.params.id.hex()
    assert isinstance(server.answer_batch([checked])[0], VersionGoneError)
    other = nescio.Table(random_table(rng, (ROWS, 6), "i4"))
    query = nescio.Client(other.params, other.tops).query([1])
    for act in (server.check, lambda keys: server.table.tops_of(keys[16:32])):
        with pytest.raises(MismatchError, match="another table or version") as caught:
            act(query.keys[0])
        assert not isinstance(caught.value, VersionGoneError)


def test_the_layout_of_an_older_version(rng):
    values = random_table(rng, (40, 4))
    table = nescio.Table(values, bins=[(4, 10)], layout=b"first")
    old = table.params.id
    table.replace(values[:30], bins=[Bins(3, 10)], layout=b"second")
    assert (table.layout, table.layout_of(old)) == (b"second", b"first")


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"count": 0}, "versions to keep: found 0"),
        ({"count": 257}, "found 257"),
        ({"count": True}, "expected an integer"),
        ({"fraction": -0.1}, "fraction: found -0.1"),
        ({"fraction": float("nan")}, "fraction: found nan"),
        ({"fraction": "1"}, "fraction: found '1'"),
    ],
)
def test_invalid_limits(limits, message, rng):
    table = nescio.Table(random_table(rng, (10, 4)))
    with pytest.raises(ArgumentError, match=message):
        table.keep_versions(**limits)
