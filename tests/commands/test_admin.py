"""Tests `nescio admin`: changes, the state of both servers, and repairs."""

import contextlib
import json

import numpy as np
import pytest

from commands.conftest import assert_one_sentence, nescio_here, serving
from nescio.commands._row_names import parse_indices
from nescio.errors import ArgumentError

TOKENS = ["the token of party 0", "the token of party 1"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table, a keyed table, and the files of both tokens."""
    folder = tmp_path_factory.mktemp("admin")
    np.save(folder / "words.npy", np.arange(300, dtype="f4").reshape(100, 3))
    np.save(folder / "ids.npy", np.arange(4, dtype="f4").reshape(4, 1))
    (folder / "ids.txt").write_text("a\nb\nc\nd\n")
    for i in (0, 1):
        (folder / f"token{i}").write_text(TOKENS[i] + "\n")
    return folder


def party(files, number, port=0):
    tables = [files / "words.npy", files / "ids.npy", "--keys", f"ids={files / 'ids.txt'}"]
    token = ["--admin-token-file", files / f"token{number}"]
    return serving(*tables, *token, "--party", number, "--port", port)


@contextlib.contextmanager
def both(files):
    with party(files, 0) as (_, first, _), party(files, 1) as (_, second, _):
        yield first, second


def admin(files, urls, command, *arguments, table="words", tokens=(0, 1), journal=True):
    options = [part for i in tokens for part in ("--token-file", files / f"token{i}")]
    if journal:
        options += ["--journal", files / f"{table}.journal"]
    fixed = ["--servers", *urls, "--table", table, "--retries", 0, *options]
    return nescio_here("admin", command, *fixed, *arguments)


def lookup(urls, *keys, table="words"):
    found = nescio_here("lookup", "--servers", *urls, "--table", table, "--json", *keys)
    return json.loads(found.stdout)


def save(folder, *rows):
    np.save(folder / "rows.npy", np.array(rows, "f4"))
    return folder / "rows.npy"


def test_changes_status_and_repair(files, tmp_path):
    one, two = save(tmp_path, [1, 2, 3]), save(files, [1, 2, 3], [4, 5, 6])
    np.save(tmp_path / "where.npy", np.array([7]))
    with party(files, 0) as (_, first, _):
        with party(files, 1) as (_, second, _):
            urls = first, second
            changed = admin(files, urls, "update", "--indices", "5-6", "--rows", two)
            assert (changed.returncode, changed.stderr) == (0, "")
            assert changed.stdout.startswith("both servers have 100 rows of 3 float32")
            assert lookup(urls, 5, 6, 7) == [[1, 2, 3], [4, 5, 6], [21, 22, 23]]
            where = ["--indices", tmp_path / "where.npy"]
            assert admin(files, urls, "insert", *where, "--rows", one).returncode == 0
            assert admin(files, urls, "delete", "--indices", "0,1", "--version", "9").stderr == ""
            assert lookup(urls, 5, 6) == [[1, 2, 3], [21, 22, 23]]
            status = admin(files, urls, "status", tokens=())
            assert (status.returncode, status.stdout.splitlines()[-1]) == (0, "both servers agree")
            assert admin(files, urls, "repair").stdout.count(" lacked nothing\n") == 2
        down = admin(files, urls, "status", tokens=())
        assert (down.returncode, down.stderr) == (1, "")
        assert f"{second}/v1/tables/words cannot be reached" in down.stdout
        assert "state: down; start the party that does not answer" in down.stdout
        with party(files, 1, second.rpartition(":")[2]):  # restarts from its file
            status = admin(files, urls, "status", tokens=())
            assert status.returncode == 1
            head, zero, one, advice = status.stdout.splitlines()
            assert head.split()[:2] == ["party", "version"]
            assert (zero.split()[:2], one.split()[:2]) == (["0", "9"], ["1", "1"])
            assert (zero.split()[-2], one.split()[-2]) == ("0", "3")
            assert advice.startswith("state: behind; nescio admin repair")
            found = json.loads(admin(files, urls, "status", "--json", tokens=()).stdout)
            assert [party["behind"] for party in found["parties"]] == [0, 3]
            assert (found["state"], found["agree"]) == ("behind", False)
            repaired = admin(files, urls, "repair")
            assert repaired.stdout.splitlines() == [
                f"{first}/v1/tables/words lacked nothing",
                f"{second}/v1/tables/words got 3 change(s)",
            ]
            assert admin(files, urls, "status", tokens=()).returncode == 0
            assert lookup(urls, 5, 6) == [[1, 2, 3], [21, 22, 23]]
            assert admin(files, urls, "compact", "--keep", 1).stdout.startswith("removed 2 change")
            refused = admin(files, urls, "drop-last")
            assert_one_sentence(refused)
            assert "nothing to drop" in refused.stderr


def test_keys(files, tmp_path):
    (tmp_path / "keys.txt").write_text("b\nnew\n")
    keys = ["--keys", tmp_path / "keys.txt"]
    with both(files) as urls:
        rows = save(tmp_path, [8], [9])
        changed = admin(files, urls, "insert", *keys, "--rows", rows, table="ids")
        assert (changed.returncode, changed.stderr) == (0, "")
        assert lookup(urls, "a", "b", "new", table="ids") == [[0], [8], [9]]
        assert admin(files, urls, "delete", *keys, table="ids").returncode == 0
        assert lookup(urls, "a", "b", "new", table="ids") == [[0], None, None]
        wrong = admin(files, urls, "update", *keys, "--rows", rows, table="words", journal=False)
        assert_one_sentence(wrong)


def test_refusals_change_nothing(files, tmp_path):
    rows = save(tmp_path, [1, 2, 3])
    with both(files) as urls:
        before = lookup(urls, 5)
        change = ["update", "--indices", 5, "--rows", rows]
        options = {"tokens": (1, 0), "journal": False}
        for refused, reason in [
            (admin(files, urls, *change, **options), "not_admitted"),
            (admin(files, urls, *change, tokens=(0,)), "found it 1 time(s), expected it twice"),
            (admin(files, urls, *change, tokens=()), "NESCIO_ADMIN_TOKEN_0 and NESCIO_ADMIN_TOKEN"),
            (admin(files, urls, "update", "--indices", "5-", "--rows", rows), "--indices: found"),
            (admin(files, urls, "delete", "--indices", 100, journal=False), "out of range"),
            (admin(files, urls, "delete", "--indices", "5", table="none"), "unknown_table"),
            (admin(files, urls, "update", "--indices", 5, "--rows", tmp_path), "is a directory"),
        ]:
            assert_one_sentence(refused)
            assert reason in refused.stderr
        assert lookup(urls, 5) == before
        assert not (files / "none.journal").exists()
    assert_one_sentence(admin(files, urls, *change))  # both are down


def test_tokens_are_never_on_the_command_line(files):
    refused = admin(files, ["http://127.0.0.1:9", "http://127.0.0.1:8"], "repair", "--token", "abc")
    assert_one_sentence(refused)
    assert "every user of this machine" in refused.stderr
    assert "abc" not in refused.stderr


def test_tokens_of_the_environment(files, tmp_path, monkeypatch):
    rows = save(tmp_path, [1, 2, 3])
    for name, token in zip(("NESCIO_ADMIN_TOKEN_0", "NESCIO_ADMIN_TOKEN_1"), TOKENS, strict=True):
        monkeypatch.setenv(name, token)
    change = ["update", "--indices", 5, "--rows", rows]
    with both(files) as urls:
        assert admin(files, urls, *change, tokens=(), journal=False).returncode == 0
        assert lookup(urls, 5) == [[1, 2, 3]]


def test_indices():
    assert parse_indices("1, 2,5-9,3").tolist() == [1, 2, 5, 6, 7, 8, 9, 3]
    for text in ("", "1,", "-1", "9-5", "0x1", "1-2-3", "1.5", "1e3"):
        with pytest.raises(ArgumentError, match="--indices: found"):
            parse_indices(text)
    with pytest.raises(ArgumentError, match="expected at most"):
        parse_indices("0-999999999999999999")


def test_rows_are_appended_and_cleared(files, tmp_path):
    rows = save(tmp_path, [1, 2, 3], [4, 5, 6])
    for start in range(2):  # the second time from the cache
        spared = [
            serving(
                *(files / "words.npy", "--spare", "20%", "--cache", "--port", 0, "--party", number),
                *("--admin-token-file", files / f"token{number}"),
            )
            for number in (0, 1)
        ]
        with spared[0] as (_, first, _), spared[1] as (_, second, _):
            urls = first, second
            added = admin(files, urls, "append", "--rows", rows, journal=False)
            assert (added.stdout, added.stderr) == ("100\n101\n", ""), start
            assert lookup(urls, 101, 102) == [[4, 5, 6], [0, 0, 0]]
            cleared = admin(files, urls, "clear", "--indices", "7,100", journal=False)
            assert cleared.stdout.startswith("both servers have 120 rows")
            assert admin(files, urls, "append", "--rows", rows, journal=False).stdout == "7\n100\n"
            grown = admin(files, urls, "grow", "--count", 5, journal=False)
            assert grown.stdout.startswith("both servers have 125 rows")


@pytest.mark.parametrize(
    ("spare", "arguments", "message"),
    [
        ("-1", [], "--spare: found '-1', expected a number of vacant rows"),
        ("1.5", [], "--spare: found '1.5', expected"),
        ("3", ["--keys", "ids.txt"], "found keys or a layout"),
    ],
)
def test_spare_rows_that_are_refused(files, spare, arguments, message):
    paths = [files / part if part.endswith("txt") else part for part in arguments]
    found = nescio_here("serve", files / "ids.npy", "--party", 0, f"--spare={spare}", *paths)
    assert_one_sentence(found)
    assert message in found.stderr
