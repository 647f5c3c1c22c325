"""The JSON file of a benchmark: whole after each case, whatever ends the run."""

import json
import os
import stat
import threading

import pytest

from nescio.bench.results import Results
from nescio.errors import ArgumentError


def test_the_file_is_whole_after_each_case(tmp_path):
    path = tmp_path / "cases.json"
    with Results(path) as results:
        for n in range(3):
            results.add({"n": n})
            assert json.loads(path.read_text()) == [{"n": i} for i in range(n + 1)]
    assert [case["n"] for case in results.cases] == [0, 1, 2]
    assert [entry.name for entry in tmp_path.iterdir()] == ["cases.json"]


def test_a_run_that_is_cut_short_keeps_its_cases(tmp_path):
    path = tmp_path / "cases.json"

    def cut_short():
        with Results(path) as results:
            results.add({"n": 1})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_short()
    assert json.loads(path.read_text()) == [{"n": 1}]


def test_an_error_before_the_first_case_leaves_an_existing_file_alone(tmp_path):
    path = tmp_path / "cases.json"
    path.write_text("[]")
    with pytest.raises(ArgumentError), Results(path):
        raise ArgumentError("sizes")
    assert path.read_text() == "[]"


def test_no_cases_are_an_empty_list(tmp_path):
    with Results(tmp_path / "cases.json"):
        pass
    assert json.loads((tmp_path / "cases.json").read_text()) == []


def test_links_and_permissions_are_kept(tmp_path):
    path, link = tmp_path / "cases.json", tmp_path / "link.json"
    path.write_text("[]")
    path.chmod(0o640)
    link.symlink_to(path)
    with Results(link) as results:
        results.add({"n": 1})
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert json.loads(path.read_text()) == [{"n": 1}]


def test_a_pipe_is_written_once(tmp_path, monkeypatch):
    monkeypatch.setattr("nescio.bench.results.check_writable", lambda path: None)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    found = []
    reader = threading.Thread(target=lambda: found.append(json.loads(path.read_text())))
    reader.start()
    with Results(path) as results:
        results.add({"n": 1})
        results.add({"n": 2})
    reader.join(10)
    assert found == [[{"n": 1}, {"n": 2}]]


def test_no_path_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Results(None) as results:
        results.add({"n": 1})
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_an_error_at_once(tmp_path):
    with pytest.raises(ArgumentError, match="cannot be written"):
        Results(tmp_path / "no/such/folder")
