"""The search for a layout: what it finds, its budgets, its file, and what it refuses."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest

from nescio.errors import ArgumentError, FileError, IndexRangeError
from nescio.pir.batch import AccessLog, Budgets, Layout, tune
from pir.batch.logs import ROWS, sessions


def no_number(sets, retrieved):
    return float("nan")


FAST = {"seconds": 0.002, "threads": 1, "layouts": 60, "min_count": 2}


def tuned(log, rows=ROWS, row_bytes=16, **options):
    return tune(log, rows, row_bytes, **{**FAST, **options})


def test_the_search_finds_what_retrieves_everything(rng):
    found = tuned(sessions(rng))
    assert len(found.trials) == 60
    assert found.chosen.score.retrieved == 1
    assert found.chosen.timing == "measured"
    layout = found.layout()
    assert isinstance(layout, Layout)
    assert layout.rows == ROWS
    assert found.chosen.cost.bytes <= 300_000


def test_the_front_is_ordered_and_no_trial_beats_it(rng):
    found = tuned(sessions(rng))
    front = found.pareto
    for one, other in pairwise(front):
        assert one.cost.seconds <= other.cost.seconds
        assert one.score.quality < other.score.quality
    for trial in found.trials:
        assert any(
            best.cost.seconds <= trial.cost.seconds and best.score.quality >= trial.score.quality
            for best in front
        )


def test_the_fastest_layout_with_enough_rows_is_chosen(rng):
    found = tuned(sessions(rng), budgets=Budgets(min_retrieved=0.5))
    enough = [trial for trial in found.trials if trial.score.retrieved >= 0.5]
    assert found.chosen.cost.seconds == min(trial.cost.seconds for trial in enough)


def test_a_quality_function_decides(rng):
    """The more is retrieved, the worse: one whole lookup is the best."""
    found = tuned(sessions(rng), quality=lambda sets, got: -np.concatenate(got).mean())
    assert found.chosen.score.retrieved == min(t.score.retrieved for t in found.trials)


def test_a_cache_lowers_the_budgets(rng):
    log = sessions(rng, inferences=600)
    plain, cached = (tuned(log, cache_rows=rows) for rows in (0, 60))

    def fewest_bytes(tuning):  # the fastest may have more: its time is measured
        return min(t.cost.bytes for t in tuning.trials if t.score.retrieved >= 0.9)

    assert fewest_bytes(cached) < fewest_bytes(plain)


def test_another_log_to_score_on(rng):
    log = AccessLog([[i, i + 1] for i in range(50)])
    found = tuned(log, held_out=AccessLog([[7], [8], [9]]), layouts=5)
    assert {trial.score.retrieved for trial in found.trials} == {1.0}
    assert found.log.lengths.tolist() == log.lengths.tolist()


@pytest.mark.parametrize("output", ["bit", "u32"])
def test_every_kind_of_table(rng, output):
    found = tuned(sessions(rng), output=output, generator="aes128", verify=False, layouts=4)
    assert len(found.to_dicts()) == 4
    fields = found.to_dicts()[0]
    assert {
        *("inferences_per_second", "bins", "rows", "row_bytes", "lookups", "mode", "key_bytes"),
        *("answer_bytes", "retrieved", "complete", "quality", "pareto", "timing", "design"),
    } <= set(fields)
    json.dumps(found.to_dicts())


def test_a_table_far_larger_than_its_log():
    """A number for each of 2^39 rows would take 4 TB; whole lookups are modelled only."""
    log = AccessLog([[5, 1 << 38], [5, 7]] * 20)
    found = tuned(log, rows=1 << 39, layouts=8, budgets=Budgets(max_ms=1e12))
    assert found.chosen.score.retrieved > 0
    assert found.layout().rows == 1 << 39


def test_progress_is_told(rng):
    texts = []
    tuned(sessions(rng), layouts=4, progress=texts.append)
    assert texts[0] == "reading the log"
    assert any(text.startswith("measuring layout 1 of") for text in texts)


def test_exact_mode_alone(rng):
    found = tuned(sessions(rng), budgets=Budgets(exact=True))
    exact = [trial for trial in found.trials if trial.design.lookups]
    assert found.layout().mode == "exact"
    assert found.chosen.cost.seconds == min(trial.cost.seconds for trial in exact)


# ---- Budgets that nothing meets ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budgets", "words"),
    [
        (Budgets(max_bytes=100), r"max_bytes: found [\d,]+ bytes in the smallest layout, [\d,]+ m"),
        (Budgets(max_ms=1e-6), r"max_ms: found [\d.]+ ms for the fastest layout, [\d.]+ more than"),
        (Budgets(min_quality=1.5), "min_quality: found at most 1 within the other .*, 0.5 less"),
        (
            Budgets(max_bytes=3000, min_retrieved=1.0),
            r"min_retrieved: found at most 0\.\d+ of the rows .*, 0\.\d+ less than 1",
        ),
        (
            Budgets(max_bytes=3000, exact=True),
            "exact: found no layout of exact mode within the other budgets; allow more bytes",
        ),
    ],
)
def test_a_refusal_says_which_budget_and_by_how_much(rng, budgets, words):
    found = tuned(sessions(rng), budgets=budgets)
    with pytest.raises(ArgumentError, match=f"no layout meets the budgets: {words}"):
        found.layout()


def test_budgets_that_are_met_one_by_one(rng):
    log = sessions(rng)
    fastest = tuned(log, clients=1).pareto[0]
    found = tuned(log, budgets=Budgets(max_bytes=1, max_ms=1e-9))
    with pytest.raises(ArgumentError, match="max_bytes"):
        found.layout()
    bytes_of = sorted(trial.cost.bytes for trial in tuned(log).trials)
    assert bytes_of[0] <= fastest.cost.bytes


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"max_bytes": -1}, "max_bytes: found -1"),
        ({"max_ms": float("nan")}, "max_ms: found nan"),
        ({"min_retrieved": 1.5}, "min_retrieved: found 1.5, expected at most 1"),
        ({"min_quality": float("nan")}, "min_quality: found nan"),
    ],
)
def test_budgets_that_cannot_be(fields, words):
    with pytest.raises(ArgumentError, match=words):
        Budgets(**fields)


# ---- Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "options", "words"),
    [
        (AccessLog([[1, 2]]), {}, "the log has one inference, expected at least two"),
        (AccessLog([[1], [2]]), {"cache_rows": 5}, "found a log without users and times"),
        (AccessLog([[1], [2]]), {"rows": 0}, "rows: found 0"),
        (AccessLog([[1], [2]]), {"row_bytes": 1 << 30}, "row_bytes: found"),
        (AccessLog([[1], [2]]), {"clients": 0}, "clients: found 0"),
        (AccessLog([[1], [2]]), {"layouts": 0}, "layouts: found 0"),
        (AccessLog([[1], [2]]), {"min_count": 0}, "min_count: found 0"),
        (AccessLog([[1], [2]]), {"output": "bits"}, "output: found 'bits'"),
        (AccessLog([[1], [2]]), {"generator": "rot13"}, "generator: found 'rot13'"),
        (AccessLog([[1], [2]]), {"min_count": 1, "quality": no_number}, "quality: found nan for"),
        (
            AccessLog([[1], [2]]),
            {"min_count": 1, "quality": lambda *_: -np.inf},
            "quality: found -inf for",
        ),
        (AccessLog([[1], [2]]), {"seconds": -1}, "seconds: found -1, expected a finite number"),
        (
            AccessLog([[1], []], times=[0, 1]),
            {},
            "the held-out part of the log: found inferences without rows only",
        ),
        (
            AccessLog([[], [1]], times=[0, 1]),
            {},
            "the part of the log to make layouts from: found inferences without rows only",
        ),
        (
            AccessLog([[1], [1]], users=[0, 0], times=[0, 1]),
            {"cache_rows": 5},
            "cache_rows: found all 1 rows of the held-out part of the log in the clients' caches",
        ),
        (
            AccessLog([[1], [2]]),
            {"min_count": 5},
            "min_count: found 1 users, or inferences, .* at least 5",
        ),
    ],
)
def test_bad_arguments(log, options, words):
    with pytest.raises(ArgumentError, match=words):
        tuned(log, **{"rows": 10, **options})


def test_rows_outside_the_table():
    with pytest.raises(IndexRangeError, match="inference 1: found row 10, expected 0 to 9"):
        tuned(AccessLog([[1], [10]]), rows=10)
    with pytest.raises(IndexRangeError, match="inference 0: found row 11"):
        tuned(AccessLog([[1], [2]]), rows=10, held_out=AccessLog([[11]]))


# ---- The state file ------------------------------------------------------------------------------


class Counted:
    """A quality function that counts its calls, and may fail at one of them."""

    def __init__(self, fails_at=None):
        self.calls, self.fails_at = 0, fails_at

    def __call__(self, sets, retrieved):
        self.calls += 1
        if self.calls == self.fails_at:
            raise KeyboardInterrupt
        return np.concatenate(retrieved).mean()


def test_an_interrupted_search_goes_on(rng, tmp_path):
    log, path = sessions(rng), tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        tuned(log, state=path, quality=Counted(10), quality_name="mean", layouts=20)
    with path.open("a") as file:
        file.write('{"design": {"bins"')  # cut short while it was written
    rest = Counted()
    found = tuned(log, state=path, quality=rest, quality_name="mean", layouts=20)
    assert len(found.trials) == 20
    assert rest.calls <= 14  # nine are known; which come next depends on measured times
    again = Counted()
    tuned(log, state=path, quality=again, quality_name="mean", layouts=1)
    assert again.calls == 0
    assert all(json.loads(line) for line in path.read_text().splitlines())


@pytest.mark.parametrize(
    "other",
    [
        {"min_count": 3},
        {"quality": len, "quality_name": "other"},
        {"quality_name": "other"},
        {"cache_rows": 3},
        {"rows": ROWS + 1},
        {"log": 1},
    ],
)
def test_a_state_of_another_search_is_refused(rng, tmp_path, other):
    log, path = sessions(rng), tmp_path / "state"
    tuned(log, state=path, layouts=2)
    before = path.read_bytes()
    if "log" in other:
        log, other = sessions(rng), {}
    with pytest.raises(FileError, match="is of a search with another log or other options"):
        tuned(log, state=path, layouts=2, **other)
    assert path.read_bytes() == before


def test_a_state_of_a_quality_function_needs_its_name(rng, tmp_path):
    with pytest.raises(ArgumentError, match="quality_name: found none for a quality function"):
        tuned(sessions(rng), state=tmp_path / "state", quality=Counted(), layouts=2)
    assert not (tmp_path / "state").exists()


def test_a_state_of_another_version_is_refused(rng, tmp_path, monkeypatch):
    log, path = sessions(rng), tmp_path / "state"
    tuned(log, state=path, layouts=2)
    monkeypatch.setattr("nescio.pir.batch._tune.tune.FORMAT", 1)
    with pytest.raises(FileError, match="is of a search with another log or other options"):
        tuned(log, state=path, layouts=2)


@pytest.mark.parametrize(
    ("text", "line"),
    [("hello\n", 1), ("[]\n", 1), ('{"nescio": "tune"}\n', 1), ("{}", 1), ('{"a": ' * 5000, 1)],
)
def test_another_file_is_not_overwritten(rng, tmp_path, text, line):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(FileError, match=f"line {line}: found .*, expected a file that nescio tune"):
        tuned(sessions(rng), state=path, layouts=2)
    assert path.read_text() == text


@pytest.mark.parametrize("line", ['{"design": {"bins": 1}}', '{"design": {"x": 1}, "score": [1]}'])
def test_damaged_lines_are_refused(rng, tmp_path, line):
    log, path = sessions(rng), tmp_path / "state"
    tuned(log, state=path, layouts=2)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(FileError, match="line 4: found"):
        tuned(log, state=path, layouts=2)


# ---- The plot ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plot.svg", "plot.png"])
def test_a_plot_is_drawn(rng, tmp_path, name):
    pytest.importorskip("matplotlib")
    found = tuned(sessions(rng), layouts=12)
    found.plot(tmp_path / name)
    data = (tmp_path / name).read_bytes()
    assert data.startswith(b"\x89PNG") or re.search(rb"<svg", data)


def test_a_plot_of_a_search_without_a_layout(rng, tmp_path):
    pytest.importorskip("matplotlib")
    tuned(sessions(rng), budgets=Budgets(max_bytes=10), layouts=3).plot(tmp_path / "plot.svg")
    with pytest.raises(FileError, match="the plot cannot be written"):
        tuned(sessions(rng), layouts=3).plot(tmp_path / "plot.notaformat")
