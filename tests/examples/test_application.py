"""The steps that all applications share, with the smallest of applications."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from examples.common.application import Application, Effort, least_quality, plain_quality
from examples.common.compare import Comparison
from examples.common.infer import infer
from examples.common.report import Report
from nescio.pir import LocalTable
from nescio.pir.batch import AccessLog, BatchClient, build, make_layout

ROWS, COLUMNS, PLACES = 4000, 32, 6


class Sum(torch.nn.Module):
    """Adds the rows of an inference."""

    def __init__(self, device=None):
        super().__init__()
        self.words = torch.nn.Embedding(ROWS, COLUMNS, device=device)

    def forward(self, rows):
        return self.words(rows).sum((1, 2))


class Sums:
    """Inferences whose quality is minus the mean error of their sums, as minus a perplexity."""

    def __init__(self, model, rows):
        self._weights, self._rows = model.words.weight.detach(), torch.from_numpy(rows)
        self._sums = self._weights[self._rows].sum((1, 2))

    @property
    def log(self):
        return AccessLog(self._rows.numpy())

    def __len__(self):
        return len(self._rows)

    def run(self, model, at_once, count=None):
        yield from (model(rows) for rows in self._rows[:count].split(at_once))

    def rate(self, outputs):
        found = torch.cat(list(outputs)).detach()
        return -1 - float((found - self._sums[: len(found)]).abs().mean())

    def quality(self, sets, retrieved):
        pairs = zip(sets, retrieved, strict=True)
        found = [self._weights[rows[own]].sum() for rows, own in pairs]
        return self.rate([torch.stack(found)])


@pytest.fixture
def application():
    torch.manual_seed(1)
    model = Sum().eval()
    random = np.random.default_rng(1)
    draws = (1 + random.zipf(1.4, (3, 200, 40))) % ROWS
    rows = np.array([[np.unique(one)[:PLACES] for one in part] for part in draws])
    return Application(
        name="sums",
        metric="error",
        model=model,
        make=lambda: Sum("meta"),
        table="words",
        lookups=PLACES,
        log=AccessLog(rows[0]),
        rated=Sums(model, rows[1]),
        held_out=Sums(model, rows[2]),
        loss=4.0,
        published=0,
    )


def test_the_least_quality_is_a_part_below_also_of_a_negative_one():
    assert least_quality(0.8, 0.005) == pytest.approx(0.796)
    assert least_quality(-100, 0.05) == pytest.approx(-105)


def test_an_application_from_its_log_to_private_outputs(application, tmp_path, capsys):
    report = Report()
    infer(application, Effort(layouts=24, seconds=0.02, timed=3, private=130), tmp_path, report)
    report.save(tmp_path / "report.json")
    facts = json.loads((tmp_path / "report.json").read_text())
    ways = facts["private"]
    assert ways["exact"]["equal"]
    assert ways["exact"]["inferences"] == 130  # two calls of 64, and a shorter one
    assert ways["exact"]["missing_percent"] == 0
    assert ways["exact"]["quality"] == ways["plain"]["quality"] == 1
    assert ways["separate"]["equal"]
    assert ways["separate"]["keys"] == PLACES
    assert ways["relaxed"]["equal"] == (ways["relaxed"]["missing_percent"] == 0)
    assert facts["layouts"]["quality_of_rating"]["plain"] == 1
    assert 1 <= facts["layouts"]["quality_of_rating"]["relaxed"] <= 5
    assert "all that a server saw of one inference" in capsys.readouterr().out


def test_rows_that_do_not_fit_cost_the_quality_that_counting_says(application, tmp_path):
    part, layout = application.held_out, make_layout(ROWS, application.log, bins=3)
    comparison = Comparison(application, Effort(layouts=1, seconds=0, timed=1), tmp_path, Report())
    facts = comparison.run_one("three bins", layout, None)
    table = build(application.weight.detach().numpy(), layout)
    sets = list(part.log)
    found = BatchClient(LocalTable(table.table)).lookup(sets).found
    assert facts["inferences"] == len(sets) == 200
    assert facts["missing_percent"] == pytest.approx(100 * (1 - np.concatenate(found).mean()))
    assert facts["quality"] == pytest.approx(-part.quality(sets, found), rel=1e-5)
    assert not facts["equal"]


def test_counting_rates_the_plain_model_as_its_outputs_do(application):
    part = application.rated
    outputs = list(part.run(application.model, 64))
    assert plain_quality(part) == pytest.approx(part.rate(outputs), rel=1e-4)
