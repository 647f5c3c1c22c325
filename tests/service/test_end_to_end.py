"""A table as users and operators have it, served on one machine, and in shards on a cluster."""

import contextlib
import json

import httpx
import numpy as np
import pytest

from commands.conftest import nescio_here, serving
from nescio.service import RemoteTable

ROWS = np.arange(600, dtype="f4").reshape(200, 3)
CLUSTER = ["--cluster", "local", "--shards", "2", "--replicas", "1", "--threads", "1"]
KINDS = [
    pytest.param([], id="one machine"),
    pytest.param(
        CLUSTER,
        id="cluster",
        marks=[pytest.mark.load, pytest.mark.cluster, pytest.mark.timeout(300)],
    ),
]


class Parties:
    """Both parties, each with its own folder and its own cluster, if it has one."""

    def __init__(self, folder, options):
        self._folder, self._options = folder, options
        np.save(folder / "words.npy", ROWS)
        for number in (0, 1):
            (folder / f"token{number}").write_text(f"the token of party {number}\n")

    @contextlib.contextmanager
    def serving(self):
        with self._party(0) as (_, first, _), self._party(1) as (_, second, _):
            self.urls = first, second
            yield

    def _party(self, number):
        own = ["--party", number, "--port", 0, "--spare", 5]
        own += ["--data", self._folder / f"data{number}"]
        own += ["--admin-token-file", self._folder / f"token{number}"]
        return serving(self._folder / "words.npy", *own, *self._options)

    def admin(self, command, *arguments, rows=None):
        options = ["--servers", *self.urls, "--table", "words"]
        if command != "status":
            for number in (0, 1):
                options += ["--token-file", self._folder / f"token{number}"]
            options += ["--journal", self._folder / "journal"]
        if rows is not None:
            np.save(self._folder / "rows.npy", np.array(rows, "f4"))
            options += ["--rows", self._folder / "rows.npy"]
        found = nescio_here("admin", command, *options, *arguments)
        assert (found.returncode, found.stderr) == (0, "")
        return found.stdout.splitlines()

    def lookup(self, *rows):
        found = nescio_here("lookup", "--servers", *self.urls, "--table", "words", "--json", *rows)
        assert (found.returncode, found.stderr) == (0, "")
        return json.loads(found.stdout)


@pytest.mark.parametrize("options", KINDS)
def test_lookups_changes_older_versions_and_a_restart(options, tmp_path):
    parties = Parties(tmp_path, options)
    changed = [[1, 2, 3], [599, 0, 0], [8, 9, 10], [0, 0, 0]]
    with parties.serving():
        assert parties.lookup(0, 199) == ROWS[[0, 199]].tolist()
        with RemoteTable(parties.urls, "words") as remote:
            every = remote.lookup(np.arange(200))  # in parts, if the keys of a batch are fewer
            before = remote.params.digest
        np.testing.assert_array_equal(every, ROWS)
        parties.admin("update", "--indices", "7,199", rows=changed[:2])
        with RemoteTable(parties.urls, "words", digest=before) as older:
            np.testing.assert_array_equal(older.lookup([7, 199]), ROWS[[7, 199]])
        assert parties.admin("append", rows=changed[2:3]) == ["200"]
        parties.admin("clear", "--indices", "9")
        assert parties.lookup(7, 199, 200, 9, 8) == [*changed, ROWS[8].tolist()]
        assert parties.admin("status")[-1] == "both servers agree"
        for url in parties.urls:
            assert httpx.get(f"{url}/readyz").status_code == 200
    with parties.serving():  # from the data folders
        assert parties.lookup(7, 199, 200, 9, 8) == [*changed, ROWS[8].tolist()]
        parties.admin("update", "--indices", "0", rows=[[4, 4, 4]])
        assert parties.lookup(0, 7) == [[4, 4, 4], changed[0]]
        assert parties.admin("status")[-1] == "both servers agree"
