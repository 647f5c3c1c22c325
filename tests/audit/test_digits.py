"""From a recorded FedAvg run on the digits to the planted matrix, end to end."""

import json

import pytest

from audit.digits import run
from nescio.audit import Log
from nescio.cli import main


@pytest.mark.parametrize(
    ("moves", "batch"),
    [(0.0, 64), (0.0, 16), (0.1, 16)],
    ids=["same model, exact", "same model, SGD", "model that learns"],
)
def test_the_planted_matrix_is_found(moves, batch, tmp_path, capsys):
    recorder, _ = run(20, 100, server_rate=moves, batch=batch, share=0.15)
    path = tmp_path / "digits.npz"
    recorder.log().save(path)

    from nescio.audit import solve

    result = solve(Log.load(path), time_limit=10, updates=False)
    right = (result.participation == recorder.participation()).all(axis=0)
    assert right.all()

    code = main(["audit", "run", str(path), "--time-limit", "5"])
    found = json.loads((tmp_path / "digits.audit.json").read_text())
    assert code == found["verdict"]["exit_code"] == 2
    assert "broken" in capsys.readouterr().out


def test_the_model_learns():
    """So that the run above is one of learning, not of noise."""
    _, accuracy = run(20, 100, share=0.15, rate=0.1)
    assert accuracy > 0.6
