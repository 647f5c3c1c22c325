"""Tests `nescio serve --layout` and lookups of batch tables on the command line."""

import argparse
import json
from dataclasses import replace

import numpy as np
import pytest

from commands.conftest import assert_one_sentence, nescio, nescio_here, serving
from commands.test_keyed import pair, save
from nescio.commands._tables import TableFiles, open_table
from nescio.pir._change import row_kind
from nescio.pir.batch import FullPart, HotPart, Layout, build

ROWS = 50
VALUES = np.arange(2 * ROWS, dtype="f4").reshape(ROWS, 2)
LAYOUT = Layout(ROWS, FullPart(1, keys=3), HotPart(np.arange(10), 2))
OTHER = replace(LAYOUT, full=FullPart(1, keys=3, seed=1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("batch")
    np.save(made / "items.npy", VALUES)
    np.save(made / "rows.npy", VALUES)
    LAYOUT.save(made / "items.layout")
    OTHER.save(made / "other.layout")
    build(VALUES, LAYOUT, threads=1).save(made / "stored")
    return made


@pytest.fixture(scope="module")
def served(folder):
    files = [folder / "items.npy", folder / "rows.npy", folder / "stored"]
    with pair(*files, "--layout", f"items={folder / 'items.layout'}") as (lookup, lines):
        yield lookup, lines


def test_one_inference(served):
    for table in ("items", "stored"):
        found = nescio(*served[0], table, 20, 3, 20)
        assert found.stdout == "20 40.0 41.0\n3 6.0 7.0\n20 40.0 41.0\n"
        assert (found.returncode, found.stderr) == (0, "")


def test_rows_that_do_not_fit_are_named(served):
    found = nescio(*served[0], "items", 20, 21, 22, 23)
    assert found.stdout.splitlines()[2:] == [
        "22 44.0 45.0",
        "23 is missing: it does not fit the layout",
    ]
    assert found.returncode == 3
    found = nescio(*served[0], "items", "--json", 20, 21, 22, 23)
    assert json.loads(found.stdout) == [[40.0, 41.0], [42.0, 43.0], [44.0, 45.0], None]


def test_rows_that_are_not_rows(served):
    for row, message in ((ROWS, "found 50, expected 0 to 49"), ("x", "found 'x', expected an")):
        refused = nescio(*served[0], "items", 1, row)
        assert_one_sentence(refused)
        assert message in refused.stderr


def test_the_layout_that_a_client_has(served, folder):
    found = nescio(*served[0], "items", 4, "--layout", folder / "items.layout")
    assert found.stdout == "4 8.0 9.0\n"
    refused = nescio(*served[0], "items", 4, "--layout", folder / "other.layout")
    assert_one_sentence(refused)
    assert "other.layout, but the table has another one, " in refused.stderr
    assert "leave out --layout" in refused.stderr
    refused = nescio(*served[0], "rows", 4, "--layout", folder / "items.layout")
    assert_one_sentence(refused)
    assert "the table has no batch layout: leave out --layout" in refused.stderr


def test_the_service_says_what_clients_keep(served):
    assert f"layout of items: {LAYOUT.describe()}" in served[1]
    assert not any(line.startswith("layout of rows") for line in served[1])


def refused(*arguments):
    found = nescio_here("serve", *arguments, "--party", 0, "--port", 0)
    assert_one_sentence(found)
    return found.stderr


def test_layouts_that_do_not_fit(folder, tmp_path):
    items = folder / "items.npy"
    np.save(tmp_path / "few.npy", VALUES[:9])
    assert "one of 50 rows for a table of 9" in refused(
        tmp_path / "few.npy", "--layout", folder / "items.layout"
    )
    assert "no.layout does not exist, expected a layout file" in refused(
        items, "--layout", tmp_path / "no.layout"
    )
    assert "items.npy is not a layout" in refused(items, "--layout", items)
    assert "expected NAME=FILE" in refused(items, folder / "rows.npy", "--layout", "x.layout")
    stderr = refused(folder / "stored", "--layout", folder / "other.layout")
    assert "is stored with the layout" in stderr
    assert "cannot be served with the layout" in stderr
    words, names = save(tmp_path, "words", ["a"], VALUES[:1])
    stderr = refused(words, "--keys", names, "--layout", folder / "items.layout")
    assert "table 'words': found keys and a layout, expected one of them" in stderr


def test_a_cached_table_notices_another_layout(folder, tmp_path):
    table = tmp_path / "items.npy"
    table.write_bytes((folder / "items.npy").read_bytes())
    cache = tmp_path / "items.npy.nescio"
    options = [table, "--party", 0, "--port", 0, "--cache"]
    seen = []
    for layout in ("items.layout", "items.layout", "other.layout", None):
        own = [] if layout is None else ["--layout", folder / layout]
        with serving(*options, *own) as (_, _, lines):
            seen.append((lines[0], cache.stat().st_mtime_ns))
    (_, first), (_, second), (_, third), (plain, last) = seen
    assert first == second
    assert len({second, third, last}) == 3
    assert "50 rows of 2 float32 (" in plain


def test_changes_of_a_stored_batch_table_are_about_its_rows(folder):
    arguments = argparse.Namespace(
        version=None, output=None, generator=None, threads=1, cache=False, spare="0"
    )
    table = open_table(TableFiles("items", folder / "stored", None, None), arguments, None)
    assert row_kind(table)[:3] == (ROWS, (2,), np.dtype("f4"))
