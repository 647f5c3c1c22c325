"""From a recorded FedAvg run on the digits to the planted matrix, end to end."""

import json

import pytest

from audit.digits import run
from nescio.audit import Log, solve
from nescio.cli import main


@pytest.mark.parametrize(
    ("moves", "batch", "users", "proven"),
    [(0.0, 1000, 30, True), (0.0, 16, 30, False), (0.1, 16, 40, False)],
    ids=["same model, exact", "same model, SGD", "model that learns"],
)
def test_the_planted_matrix_is_found(moves, batch, users, proven, tmp_path, capsys):
    recorder, _ = run(users, 3 * users, server_rate=moves, batch=batch, share=0.15)
    path = tmp_path / "digits.npz"
    recorder.log().save(path)
    truth = recorder.participation()

    result = solve(Log.load(path), updates=False)
    assert (result.participation == truth).all()
    assert result.unique.all() or not proven

    code = main(["audit", "run", str(path)])
    found = json.loads((tmp_path / "digits.audit.json").read_text())
    assert code == found["verdict"]["exit_code"] == 2
    assert found["verdict"]["usable"] >= 3 * users // 4
    assert capsys.readouterr().out.startswith("broken: ")


def test_the_model_learns():
    """Shows that the run above is one of learning, not of noise."""
    _, accuracy = run(20, 100, share=0.15, rate=0.1)
    assert accuracy > 0.6
