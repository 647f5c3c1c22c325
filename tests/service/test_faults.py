"""The fault suite in short: nothing is lost, no row is wrong, and the suite can tell."""

import re
from pathlib import Path

import numpy as np
import pytest

import nescio
from benchmarks.faults import floods, fuzz, kills, stops
from benchmarks.faults.model import Model, rows_of
from benchmarks.faults.mutate import Mutator, Request
from benchmarks.faults.scene import suspicious
from benchmarks.faults.settings import Settings
from benchmarks.faults.soak import slope_of

SHORT = Settings(kills=2, fuzzed=2000, connections=300, seconds=0.6)
FAULTS = [kills.kill, stops.stop, floods.half_open, fuzz.fuzz]


@pytest.mark.load
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_does_no_harm(fault, tmp_path):
    outcome = fault(SHORT, tmp_path)
    assert outcome.good, outcome
    assert outcome.times > 0
    assert outcome.lookups > 0


def two_updates():
    """A model with updates of row 3, then of rows 3 and 5, that are acknowledged."""
    model = Model(10, kept=0)
    for indices in ([3], [3, 5]):
        model.acknowledge(model.begin(np.array(indices)))
    return model


def test_the_model_takes_the_rows_of_one_version():
    model, indices = two_updates(), np.array([3, 5, 7])
    for first, stamps in ((1, [1, 1, 1]), (1, [2, 1, 1]), (1, [3, 3, 1]), (3, [3, 3, 1])):
        assert model.judge(indices, rows_of(np.array(stamps), indices), first).right


def test_the_model_refuses_rows_of_two_versions_of_old_ones_and_of_none():
    model, indices = two_updates(), np.array([3, 5, 7])
    for first, stamps in ((1, [2, 3, 1]), (3, [2, 1, 1]), (1, [3, 3, 2])):
        assert not model.judge(indices, rows_of(np.array(stamps), indices), first).right
    rows = rows_of(np.array([3, 3, 1]), indices)
    rows[1, 7] ^= 1
    assert not model.judge(indices, rows, 1).right


def test_the_model_takes_versions_that_servers_keep():
    model, indices = two_updates(), np.array([3])
    kept = Model(10, kept=1)
    for _ in range(2):
        kept.acknowledge(kept.begin(indices))
    assert not model.judge(indices, rows_of(np.array([2]), indices), 3).right
    seen = kept.judge(indices, rows_of(np.array([2]), indices), 3)
    assert (seen.right, seen.behind) == (True, 1)
    assert not kept.judge(indices, rows_of(np.array([1]), indices), 3).right


def test_a_lost_update_and_a_wrong_row_are_counted():
    model, every = two_updates(), np.arange(10)
    stamps = np.ones(10, int)
    stamps[[3, 5]] = 3, 1
    assert model.missing(every, rows_of(stamps, every)) == ({3}, 0)
    stamps[5] = 3
    rows = rows_of(stamps, every)
    assert model.missing(every, rows) == (set(), 0)
    rows[9, 0] = 2
    assert model.missing(every, rows) == (set(), 1)


def test_a_traceback_in_a_log_is_found(tmp_path):
    log = tmp_path / "log"
    log.write_text("a refused token\n")
    assert suspicious(log) == []
    log.write_text("x\nTraceback (most recent call last):\n  File ...\nKeyError: 3\n")
    assert "KeyError: 3" in suspicious(log)[0]


def test_mutated_requests_stay_framed():
    request = Request(b"POST", b"/v1/tables/words/answer", (), bytes(100))
    mutator = Mutator([request], seed=1)
    made = [mutator.framed() for _ in range(500)]
    assert len(set(made)) > 250
    for one in made:
        head, _, body = one.partition(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}".encode() in head


def test_a_slope_and_its_standard_error():
    random = np.random.default_rng(1)
    seconds = np.arange(400.0)
    slope = slope_of(seconds, 3 * seconds + random.normal(size=400))
    assert abs(slope.value - 3) < 5 * slope.error
    assert slope.error < 0.01


# The operator's journal shows a time, and a file's time is compared with one: both may be wrong.
WALL_CLOCKS = {"service/_operator/journal.py", "pir/_checksums.py"}


def test_timeouts_and_queues_use_no_wall_clock():
    package = Path(nescio.__file__).parent
    sources = [path for part in ("service", "pir") for path in (package / part).rglob("*.py")]
    wall = re.compile(r"\btime\.time(_ns)?\(|\bdatetime\.(now|utcnow|today)\(|\.utctimetuple\(")
    found = {
        path.relative_to(package).as_posix() for path in sources if wall.search(path.read_text())
    }
    assert found == WALL_CLOCKS
