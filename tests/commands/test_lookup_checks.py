"""Tests what `nescio lookup` checks: rows, the digest, known tables."""

from dataclasses import replace

import numpy as np
import pytest

import nescio as package
from commands.conftest import assert_one_sentence, nescio, serving

VALUES = np.arange(15_000, dtype="f4").reshape(5000, 3)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table, and one with other rows that claims to be the same."""
    folder = tmp_path_factory.mktemp("checks")
    table, other = package.Table(VALUES), package.Table(VALUES + 1)
    other._state = replace(other._state, params=table.params)
    other._state = replace(other._state, tree=replace(other._state.tree, tops=table.tops))
    table.save(folder / "words.nescio")
    other.save(folder / "lies.nescio")
    return folder / "words.nescio", folder / "lies.nescio", table.params.digest


@pytest.fixture(scope="module")
def pair(files):
    with (
        serving(files[0], "--party", 0, "--port", 0) as (_, first, _),
        serving(files[0], "--party", 1, "--port", 0) as (_, second, _),
    ):
        yield first, second


def test_a_server_that_lies(files):
    options = ["--name", "words", "--port", 0]
    with (
        serving(files[0], "--party", 0, *options) as (_, first, _),
        serving(files[1], "--party", 1, *options) as (_, second, _),
    ):
        lookup = ["lookup", "--servers", first, second, "--table", "words", 17]
        found = nescio(*lookup)
        assert_one_sentence(found)
        assert "one of the two servers answered wrongly" in found.stderr
        assert not found.stdout
        assert nescio(*lookup, "--no-verify").returncode == 0


def test_the_digest_that_the_user_knows(pair, files):
    lookup = ["lookup", "--servers", *pair, "--table", "words", 17]
    assert nescio(*lookup, "--digest", files[2]).stdout == "17 51.0 52.0 53.0\n"
    for digest, words in (("0" * 64, "which was given"), ("abc", "expected 64 hexadecimal")):
        found = nescio(*lookup, "--digest", digest)
        assert_one_sentence(found)
        assert words in found.stderr
    found = nescio(*lookup, "--digest", files[2], "--no-verify")
    assert_one_sentence(found)


def test_known_tables(pair, files, tmp_path):
    known = tmp_path / "known"
    lookup = ["lookup", "--servers", *pair, "--table", "words", 17, "--known-tables", known]
    for _ in range(2):
        assert nescio(*lookup).stdout == "17 51.0 52.0 53.0\n"
    assert known.read_text().startswith(f"{files[2]} words http://")
    known.write_text(known.read_text().replace(files[2], "f" * 64))
    found = nescio(*lookup)
    assert_one_sentence(found)
    assert "delete its line there" in found.stderr


def test_a_lookup_with_a_hedge(pair, files):
    """The servers are two of party 0, and one of party 1."""
    with serving(files[0], "--party", 0, "--port", 0) as (_, again, _):
        servers = ["--servers", f"{pair[0]},{again}", pair[1]]
        for hedge in ("0.001", "p95"):
            found = nescio("lookup", *servers, "--table", "words", "--hedge", hedge, 3, "--json")
            assert found.stdout.strip() == "[[9.0, 10.0, 11.0]]", found.stderr
        refused = nescio("lookup", *servers, "--table", "words", "--hedge", "p3", 3)
    assert_one_sentence(refused)
    assert "hedge: found 'p3', expected seconds, or a quantile" in refused.stderr
