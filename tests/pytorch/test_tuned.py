"""From an access log to private scores by the commands: tune, serve, and the loaded model."""

import subprocess
import sys

import numpy as np
import pytest

from nescio.pir.batch import AccessLog, Layout
from pytorch.movielens import Model, histories, torch, trained

nt = pytest.importorskip("nescio.torch")
spawned = pytest.importorskip("nescio.service._spawn").spawned


def nescio(*arguments):
    command = [sys.executable, "-m", "nescio", *map(str, arguments)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_a_log_becomes_a_layout_that_a_model_runs_on(tmp_path):
    """In exact mode, scores over HTTP have the bits of the plain model's."""
    torch.set_num_threads(1)
    films, history, film = histories()
    model = trained(films, history, film)
    sets = [row[row > 0] for row in history.numpy()]
    AccessLog(sets, users=np.arange(len(sets))).save(tmp_path / "log.npz")
    nt.export(model, tmp_path / "plain")
    table = tmp_path / "plain" / "servers" / "history.npy"
    options = ("--layouts", 40, "--seconds", 0.01, "--threads", 1, "--exact")
    layout = tmp_path / "films.layout"
    told = nescio("tune", tmp_path / "log.npz", "--table", table, *options, "--out", layout)
    assert "chosen: exact for" in told
    assert Layout.load(layout).mode == "exact"

    nt.export(model, tmp_path / "tuned", layouts={"history": Layout.load(layout)})
    arrays = [tmp_path / "tuned" / "servers" / f"{name}.npy" for name in ("film", "history")]
    serve = [*map(str, arrays), "--layout", f"history={layout}", "--threads", "1", "--port", "0"]
    with spawned([*serve, "--party", "0"]) as first, spawned([*serve, "--party", "1"]) as second:
        urls = [first.url(), second.url()]
        private = nt.load(lambda: Model(films), tmp_path / "tuned" / "device", urls)
        with torch.no_grad():
            expected = model(history[:16], film[:16])
            assert torch.equal(private(history[:16], film[:16]), expected)
        assert not private.history.last_missing.any()
        for module in (private.history, private.film):
            module.lookups.close()
