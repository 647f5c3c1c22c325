"""SIGKILL at random instants of two servers with data folders: KILLS times (default 10)."""

import os
import time

import httpx
import numpy as np
import pytest

from benchmarks.faults.party import TABLE, Party
from benchmarks.faults.scene import Scene

pytestmark = pytest.mark.load

KILLS = int(os.environ.get("KILLS", "10"))


def kept_scene(folder, rows=4096, journal=4_000):
    """Two parties with data folders and frequent snapshots, readers and an operator."""
    folder.mkdir()
    table = folder / "table.npy"
    options = ["--max-journal", str(journal), "--data"]
    parties = [Party(n, table, folder, [*options, str(folder / f"data-{n}")]) for n in range(2)]
    return Scene("kill -9", folder, rows=rows, parties=parties)


def wait_for_updates(scene, count):
    """Waits until the operator has made as many updates more: a busy machine takes seconds."""
    wanted, end = scene.model.done + count, time.monotonic() + 60
    while scene.model.done < wanted and time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.timeout(60 + 20 * KILLS)  # each start of a server takes a second, or two here
def test_no_acknowledged_change_is_lost_and_no_row_is_wrong(tmp_path):
    random = np.random.default_rng(KILLS)
    snapshots = 0
    with kept_scene(tmp_path / "scene") as scene:
        for number in range(KILLS):
            scene.wait_for_lookups(1)
            wait_for_updates(scene, 2)
            time.sleep(random.uniform(0, 0.3))
            party = scene.parties[random.integers(2)]
            party.kill()
            done = scene.model.done
            if random.random() < 0.3:  # also in the middle of a start
                party.start(wait=False)
                time.sleep(random.uniform(0, 1))
                party.kill()
            party.restart()
            scene.outcome.lost += max(0, done - scene.version(party))
            names = [
                path.name for path in (party.folder / f"data-{party.number}" / TABLE).iterdir()
            ]
            snapshots += not any(name == "snapshot-1.nescio" for name in names)
            scene.outcome.times = number + 1
    outcome = scene.outcome
    assert outcome.good, outcome
    assert outcome.updates > KILLS
    assert outcome.lookups > KILLS
    assert snapshots
    starts = [seconds for party in scene.parties for seconds in party.starts]
    print(outcome)
    print(f"{outcome.updates} updates, {outcome.lookups} lookups, starts {np.median(starts):.2f} s")
    print(f"(longest {max(starts):.2f} s), longest outage {outcome.outage:.2f} s")


def test_the_command_starts_again_from_its_folder(tmp_path):
    scene = kept_scene(tmp_path / "scene")
    with scene:
        for party in scene.parties:
            party.stop()
            party.restart()
            text = party._output.read_text()
            assert "data of" in text
            assert "changes made again" in text
            assert httpx.get(f"{party.url}/healthz").status_code == 200
    assert scene.outcome.good, scene.outcome
    for party in scene.parties:
        np.save(party.table, np.load(party.table))  # the same rows, another file
        party.restart()
        party.stop()
        rows = np.load(party.table)
        rows[0] ^= 1
        np.save(party.table, rows)
        with pytest.raises(Exception, match="with which .* began"):
            party.start()
        rows[0] ^= 1
        np.save(party.table, rows)
        party.options = [*party.options, "--version", "other"]
        with pytest.raises(Exception, match="--version: found 'other', expected '1'"):
            party.start()
