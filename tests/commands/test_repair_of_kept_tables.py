"""`nescio admin repair` of two parties that keep a data folder, at their operators' ports."""

import contextlib
import json
import shutil

import numpy as np
import pytest

from commands.conftest import assert_one_sentence, nescio_here, serving, write_words

pytestmark = pytest.mark.timeout(120)


class Operator:
    """Two parties that keep their tables in data folders, and who changes them."""

    def __init__(self, folder):
        self.folder, self.table = folder, write_words(folder)
        for number in (0, 1):
            (folder / f"token{number}").write_text(f"the token of party {number}")

    @contextlib.contextmanager
    def party(self, number):
        """Runs a party; gives the URLs of its clients' port and of its operator's port."""
        options = ["--party", number, "--port", 0, "--admin-port", 0]
        options += ["--data", self.folder / f"data{number}"]
        options += ["--admin-token-file", self.folder / f"token{number}"]
        with serving(self.table, *options) as (_, url, lines):
            (admin,) = (line.split()[-1] for line in lines if line.startswith("operators use "))
            yield url, admin

    def run(self, urls, command, *arguments):
        tokens = [part for i in (0, 1) for part in ("--token-file", self.folder / f"token{i}")]
        fixed = ["--servers", *urls, "--table", "words", "--retries", 0, *tokens]
        journal = ["--journal", self.folder / "words.journal"]
        return nescio_here("admin", command, *fixed, *journal, *arguments)

    def update(self, urls, row, value):
        np.save(self.folder / "rows.npy", np.full((1, 3), value, "f4"))
        rows = ["--rows", self.folder / "rows.npy"]
        found = self.run(urls, "update", "--indices", row, *rows)
        assert (found.returncode, found.stderr) == (0, "")

    def assert_equal(self, urls, admins):
        """Both parties agree, and clients get the rows of all changes."""
        status = self.run(admins, "status")
        assert (status.returncode, status.stdout.splitlines()[-1]) == (0, "both servers agree")
        words = ["--servers", *urls, "--table", "words", "--json"]
        found = json.loads(nescio_here("lookup", *words, 5, 6, 7, 8).stdout)
        assert found == [[50] * 3, [60] * 3, [70] * 3, [24, 25, 26]]


def test_a_party_whose_data_folder_is_an_older_copy_is_repaired(tmp_path):
    operator, data = Operator(tmp_path), tmp_path / "data1"
    with operator.party(0) as first:
        with operator.party(1) as second:
            operator.update([first[1], second[1]], 5, 50)
        shutil.copytree(data, tmp_path / "copy")
        with operator.party(1) as second:
            for row in (6, 7):
                operator.update([first[1], second[1]], row, row * 10)
        shutil.rmtree(data)
        (tmp_path / "copy").rename(data)
        with operator.party(1) as second:
            urls, admins = zip(first, second, strict=True)
            status = json.loads(operator.run(admins, "status", "--json").stdout)
            assert [party["behind"] for party in status["parties"]] == [0, 2]
            refused = operator.run(urls, "repair")
            assert_one_sentence(refused)
            assert "operators use the port of --admin-port" in refused.stderr
            repaired = operator.run(admins, "repair")
            assert repaired.stdout.splitlines() == [
                f"{first[1]}/v1/tables/words lacked nothing",
                f"{second[1]}/v1/tables/words got 2 change(s)",
            ]
            operator.assert_equal(urls, admins)
    with operator.party(0) as first, operator.party(1) as second:  # the repair was kept
        urls, admins = zip(first, second, strict=True)
        operator.assert_equal(urls, admins)
        assert operator.run(admins, "repair").stdout.count(" lacked nothing\n") == 2


def test_a_party_that_starts_an_empty_data_folder_is_repaired(tmp_path):
    operator, data = Operator(tmp_path), tmp_path / "data0"
    with operator.party(1) as second:
        with operator.party(0) as first:
            for row in (5, 6, 7):
                operator.update([first[1], second[1]], row, row * 10)
        data.rename(tmp_path / "lost")
        with operator.party(0) as first:
            urls, admins = zip(first, second, strict=True)
            assert "got 3 change(s)" in operator.run(admins, "repair").stdout
            operator.assert_equal(urls, admins)
