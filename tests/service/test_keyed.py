"""Tests lookups of keys over HTTP."""

import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError, ForgedAnswerError, MalformedMessageError
from nescio.pir import KeyedClient, KeyedTable
from nescio.service import RemoteTable, create_app

from .conftest import running

WORDS = [f"word {i}" for i in range(500)]
VALUES = np.arange(1500, dtype="f4").reshape(500, 3)
TOKEN = "a token of the operator"


def served(party, table, server=nescio.Server):
    app = create_app({"words": server(table, party=party)}, party=party, admin_token=TOKEN)
    return running(app)


@pytest.fixture
def tables():
    return [KeyedTable(WORDS, VALUES) for _ in range(2)]


@pytest.fixture
def urls(tables):
    with served(0, tables[0].table) as first, served(1, tables[1].table) as second:
        yield [first, second]


def test_a_lookup(urls, tables):
    with RemoteTable(urls, "words") as remote:
        found = KeyedClient(remote).lookup(["word 4", "no", "word 499"])
        assert found.found.tolist() == [True, False, True]
        assert np.array_equal(found.values, [VALUES[4], np.zeros(3), VALUES[499]])
        assert KeyedClient(remote).layout == tables[0].layout


def test_a_table_that_grows_between_lookups(urls, tables):
    """The client fetches the layout again, and finds old and new keys."""
    with RemoteTable(urls, "words") as remote:
        client = KeyedClient(remote)
        assert client.lookup(WORDS).found.all()
        rows = client.layout.rows
        for table in tables:
            table.table.keep_versions(1)
            table.insert([f"new {i}" for i in range(100)], VALUES[:100])
        found = client.lookup([*WORDS, *(f"new {i}" for i in range(100)), "no"])
        assert np.array_equal(found.found, np.arange(601) < 600)
        assert np.array_equal(found.values[:600], np.concatenate([VALUES, VALUES[:100]]))
        assert client.layout.rows > rows


class Forger(nescio.Server):
    """Spoils the record of one slot, in every answer."""

    slot = 0

    def answer_batch(self, queries):
        answers = super().answer_batch(queries)
        at = 32 + self.slot * self.params.answer_bytes // 3 + 1
        return [a[:at] + bytes([a[at] ^ 1]) + a[at + 1 :] for a in answers]


@pytest.mark.parametrize("slot", range(3))
def test_a_server_that_spoils_the_rows_of_an_absent_key(tables, slot, monkeypatch):
    monkeypatch.setattr(Forger, "slot", slot)
    with (
        served(0, tables[0].table, Forger) as first,
        served(1, tables[1].table) as second,
        RemoteTable([first, second], "words") as remote,
    ):
        for key in ("no word", "word 7"):
            with pytest.raises(ForgedAnswerError, match="one of the two servers"):
                KeyedClient(remote).lookup(key)


def test_tables_without_keys_and_hostile_layouts(tables):
    rows = tables[0].table[np.arange(len(tables[0].table))]
    bins = tables[0].params.bins
    spoiled = tables[0].table.layout.replace(b'"keys":"text"', b'"keys":"word"')
    for layout, error, message in (
        (b"", ArgumentError, "the table has no keys"),
        (spoiled, MalformedMessageError, "found keys 'word', expected one of text, bytes"),
    ):
        made = [nescio.Table(rows, bins=bins, layout=layout) for _ in range(2)]
        with served(0, made[0]) as first, served(1, made[1]) as second:
            with RemoteTable([first, second], "words") as remote:
                with pytest.raises(error, match=message):
                    KeyedClient(remote)
