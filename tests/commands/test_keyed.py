"""Tests `nescio serve --keys` and lookups of keys on the command line."""

import contextlib
import json

import numpy as np
import pytest

from commands.conftest import assert_one_sentence, nescio, nescio_here, serving
from nescio import Table
from nescio.commands._tables import keys_by_table, read_keys
from nescio.errors import ArgumentError, FileError
from nescio.pir.batch import FullPart, Layout
from pir.test_lookup import assert_same

WORDS = ["hello", "world", "é \U0001f600", "-x", "17"]


def save(folder, name, keys, values):
    """Writes an array and the file of its keys; returns both paths."""
    file = folder / f"{name}.npy"
    np.save(file, values)
    if isinstance(keys, np.ndarray):
        names = folder / f"{name}_keys.npy"
        np.save(names, keys)
    else:
        names = folder / f"{name}.txt"
        names.write_text("\n".join(keys) + "\n", encoding="utf-8")
    return file, names


@contextlib.contextmanager
def pair(*arguments):
    """Runs both servers; gives the options of a lookup."""
    with (
        serving(*arguments, "--party", 0, "--port", 0) as (_, first, lines),
        serving(*arguments, "--party", 1, "--port", 0) as (_, second, _),
    ):
        yield ["lookup", "--servers", first, second, "--table"], lines


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Servers of four tables: one without keys, and one for each type of keys."""
    folder = tmp_path_factory.mktemp("keyed")
    np.save(folder / "rows.npy", np.arange(10))
    words, names = save(folder, "words", WORDS, np.arange(10, dtype="f4").reshape(5, 2))
    ids, numbers = save(folder, "ids", np.array([7, -5, 2**40]), np.array(["a", "bc", "d"]))
    blobs, raw = save(folder, "blobs", np.array([[255, 0], [97, 98]], "u1"), np.array([1, 2]))
    keys = [f"words={names}", f"ids={numbers}", f"blobs={raw}"]
    options = [part for text in keys for part in ("--keys", text)]
    with pair(folder / "rows.npy", words, ids, blobs, *options) as (lookup, lines):
        yield lookup, lines


@pytest.fixture
def lookup(tables):
    return tables[0]


def test_words(lookup):
    found = nescio(*lookup, "words", "hello", "é \U0001f600", "17")
    assert found.stdout == "hello 0.0 1.0\né \U0001f600 4.0 5.0\n17 8.0 9.0\n"
    assert (found.returncode, found.stderr) == (0, "")


def test_words_that_the_table_does_not_have(lookup):
    found = nescio(*lookup, "words", "world", "word", "Hello")
    assert found.stdout == "world 2.0 3.0\nword is not in the table\nHello is not in the table\n"
    assert (found.returncode, found.stderr) == (3, "")
    found = nescio(*lookup, "words", "--json", "world", "word")
    assert (json.loads(found.stdout), found.returncode) == ([[2.0, 3.0], None], 3)


def test_a_word_that_begins_with_a_dash(lookup):
    assert nescio(*lookup, "words", "--", "-x").stdout == "-x 6.0 7.0\n"


def test_integers(lookup):
    found = nescio(*lookup, "ids", "-5", str(2**40), "7", "8")
    assert found.stdout == f'-5 "bc"\n{2**40} "d"\n7 "a"\n8 is not in the table\n'
    refused = nescio(*lookup, "ids", "7", "seven")
    assert_one_sentence(refused)
    assert "key: found 'seven', expected an integer, as all keys of this table" in refused.stderr
    refused = nescio(*lookup, "ids", 2**64)
    assert_one_sentence(refused)
    assert "expected -2^63 to 2^64 - 1" in refused.stderr


def test_bytes(lookup):
    found = nescio(*lookup, "blobs", "ff00", "6162", "ff")
    assert found.stdout == "ff00 1\n6162 2\nff is not in the table\n"
    refused = nescio(*lookup, "blobs", "ab", "xy")
    assert_one_sentence(refused)
    assert "key: found 'xy', expected hexadecimal digits" in refused.stderr


def test_rows_of_a_table_without_keys(lookup):
    assert nescio(*lookup, "rows", 3, "--json").stdout == "[3]\n"
    refused = nescio(*lookup, "rows", "hello")
    assert_one_sentence(refused)
    assert "row: found 'hello', expected an integer: the table has no keys" in refused.stderr


def test_a_layout_of_a_batch_table(lookup, tmp_path):
    Layout(5, FullPart(2)).save(tmp_path / "items.layout")
    refused = nescio(*lookup, "words", "hello", "--layout", tmp_path / "items.layout")
    assert_one_sentence(refused)
    assert "the table has keys: leave out --layout" in refused.stderr


def test_arguments_that_are_no_keys(lookup):
    refused = nescio(*lookup, "words", "hello", "\udcff")  # the byte ff
    assert_one_sentence(refused)
    assert r"key '\udcff': found text with an unpaired surrogate" in refused.stderr
    refused = nescio(*lookup, "words", "")
    assert_one_sentence(refused)
    assert "key 0: found 0 bytes, expected 1 to 4096" in refused.stderr


def test_the_service_says_what_it_serves(tables):
    assert any(line.startswith("table words: 6 rows of 16 uint8 in 3 bins") for line in tables[1])


def test_one_table_needs_no_name(tmp_path):
    words, names = save(tmp_path, "words", ["a=b", "c"], np.array([1, 2]))
    with pair(words, "--keys", names) as (lookup, _):
        assert nescio(*lookup, "words", "a=b").stdout == "a=b 1\n"


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\nb\r", ["a", "b"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        (b" a\t\nb \n", [" a\t", "b "]),
        ("a\u2028b\x0bc\x85d\n".encode(), ["a\u2028b\x0bc\x85d"]),
        ("é\n".encode(), ["é"]),
    ],
)
def test_files_of_words(content, keys, tmp_path):
    file = tmp_path / "words.txt"
    file.write_bytes(content)
    assert read_keys(file) == keys


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: found no key, expected one each line"),
        (b"\n", "line 1: found no key"),
        (b"a\n\nb\n", "line 2: found no key"),
        (b"a\nb\n\n", "line 3: found no key"),
        (b"a\r\n\r\nb\n", "line 2: found no key"),
        (b"a\nb\xff\n", "line 2: found bytes that are not UTF-8"),
        ("a\nb\n".encode("utf-16"), "line 1: found bytes that are not UTF-8"),
    ],
)
def test_files_that_are_no_words(content, message, tmp_path):
    file = tmp_path / "words.txt"
    file.write_bytes(content)
    with pytest.raises(FileError, match=message):
        read_keys(file)


def test_files_of_arrays(tmp_path):
    file = tmp_path / "keys.npy"
    for keys in (np.array([5, 2**63], "u8"), np.array(["a", "bc"]), np.zeros((2, 3), "u1")):
        np.save(file, keys)
        assert_same(np.asarray(read_keys(file)), keys)
    np.save(file, np.zeros((2, 2), int))
    with pytest.raises(FileError, match=r"found keys of shape \(2, 2\) and int64, expected one"):
        read_keys(file)
    file.write_text("words")
    with pytest.raises(FileError, match="is not a NumPy array file"):
        read_keys(file)


def test_the_option_names_tables():
    names = ["words", "ids"]
    parsed = keys_by_table(["words=a.txt", "ids=b=c.npy"], names)
    assert {name: str(path) for name, path in parsed.items()} == {
        "words": "a.txt",
        "ids": "b=c.npy",
    }
    assert str(keys_by_table(["a=b.txt"], ["words"])["words"]) == "a=b.txt"
    with pytest.raises(ArgumentError, match="found 'a.txt' and 2 tables, expected NAME=FILE"):
        keys_by_table(["a.txt"], names)
    with pytest.raises(ArgumentError, match="found 'w=a.txt' and 2 tables, expected NAME=FILE"):
        keys_by_table(["w=a.txt"], names)
    with pytest.raises(ArgumentError, match="found two files for table 'words'"):
        keys_by_table(["words=a", "words=b"], names)


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        (["a"], np.zeros(2), "words.txt has 1 keys"),
        (["a", "b"], np.zeros(()), "has an array of shape (): expected a key for each row"),
        (["a", "b", "a"], np.zeros(3), "found 'a' twice, as key 0 and as key 2"),
        (["a", "x" * 4097], np.zeros(2), "key 1: found 4097 bytes, expected 1 to 4096"),
        (np.zeros(2), np.zeros(2), "found an array of float64, expected text, bytes or integers"),
        (np.array([b"a", b""]), np.zeros(2), "key 1: found 0 bytes"),
        (np.array([b"ab", b"a\0"]), np.zeros(2), "pass a list of bytes, or a uint8 array"),
    ],
)
def test_keys_that_do_not_fit_the_table(keys, values, message, tmp_path):
    file, names = save(tmp_path, "words", keys, values)
    refused = nescio_here("serve", file, "--keys", names, "--party", 0, "--port", 0)
    assert_one_sentence(refused)
    assert message in refused.stderr


def test_files_that_do_not_exist(tmp_path, table_file):
    refused = nescio_here("serve", table_file, "--keys", tmp_path / "no.txt", "--party", 0)
    assert_one_sentence(refused)
    assert "no.txt does not exist, expected a file of keys" in refused.stderr
    refused = nescio_here("serve", tmp_path / "x.npy", "--keys", "y.txt", "--party", 0)
    assert "expected the file of a table" in refused.stderr


def test_a_stored_table_has_no_keys(tmp_path):
    _, names = save(tmp_path, "words", ["a"], np.zeros(1))
    Table(np.zeros(1)).save(tmp_path / "stored")
    refused = nescio_here("serve", tmp_path / "stored", "--keys", names, "--party", 0, "--port", 0)
    assert_one_sentence(refused)
    assert "is a stored table: expected an array of a value for each key" in refused.stderr
