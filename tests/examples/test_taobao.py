"""The application over Taobao's ads: its data, its model, and the whole of it at a small size."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import nescio.torch
from examples.common.private import private_model
from examples.common.quality import roc_auc
from examples.common.report import Report
from examples.taobao.data import load
from examples.taobao.five import separated
from examples.taobao.inferences import pair, split
from examples.taobao.main import main, prepare
from examples.taobao.model import ClickModel, arrived, scores_of
from examples.taobao.part import ClickPart, log_of
from examples.taobao.tables import TABLES
from examples.taobao.task import SIZES, Task
from nescio.pir.batch import make_layout
from sets.reports import check_private


@pytest.fixture
def task(clicks):
    return Task(clicks, SIZES["small"], 8, 3)


@pytest.fixture
def model(task):
    torch.manual_seed(2)
    made = ClickModel(len(task.tables), 8).eval()
    made.features.weight.data *= 20  # so that every row counts
    return made


# ---- inferences ----------------------------------------------------------------------------------


def test_no_history_has_the_click_that_is_predicted_nor_one_held_out(clicks):
    events = load(clicks)
    given = set(pair(events.users, events.ads)[~events.held_out].tolist())
    train, valid, test = split(events, 5)
    validated = set(pair(valid.users, valid.ads)[valid.clicked].tolist())
    for part in (train, valid, test):
        past = part.history(40)
        assert ((past >= 0).sum(1) == part.lengths).all()
        assert not (past == part.ads[:, None]).any()
        pairs = set(pair(np.repeat(part.users, 40), past.ravel())[past.ravel() >= 0].tolist())
        assert pairs <= (given if part is test else given - validated)
    assert len(train) + len(validated) == len(given)


def test_histories_end_before_the_impression(impressions):
    events = load(impressions)
    train, valid, test = split(events, 0)
    assert train.times.max() <= valid.times.min()
    assert valid.times.max() <= test.times.min()
    for i in (0, 100, 500):
        earlier = (events.users == test.users[i]) & (events.times < test.times[i])
        own = events.ads[earlier & events.clicked]
        assert test.lengths[i] == len(own)
        past = test.history(len(own) + 2)[i]
        assert past.tolist() == [*own[::-1].tolist(), -1, -1]


def test_negatives_are_not_clicks_and_as_popular(clicks):
    events = load(clicks)
    test = split(events, 5).test
    known = set(pair(events.users, events.ads).tolist())
    assert known.isdisjoint(pair(test.users, test.ads)[~test.clicked].tolist())
    assert test.clicked.mean() == 0.5
    popular = np.bincount(events.ads)[test.ads]
    assert abs(roc_auc(test.clicked, popular) - 0.5) < 0.05
    first = test[: len(test) // 2]
    assert 0.4 < first.clicked.mean() < 0.6  # in a random order


def test_negatives_of_the_training_do_not_know_the_test(clicks):
    """Otherwise ads that are never negatives of a user would be those held out."""
    task = Task(clicks, SIZES["small"], 8, 3)
    held_out = task.split.test
    positives = pair(held_out.users, held_out.ads)[held_out.clicked]
    drawn = [task.logged() for task.seed in range(12)]
    negatives = np.concatenate([pair(own.users, own.ads)[~own.clicked] for own in drawn])
    assert np.isin(negatives, positives).any()


# ---- tables --------------------------------------------------------------------------------------


def test_rows_of_an_inference_are_in_the_tables_that_they_are_of(task):
    firsts, places = task.tables.firsts, task.tables.places
    assert task.tables.sizes == {
        "ads": 600, "categories": 4, "brands": 9, "segments": 5, "fields": 14
    }  # fmt: skip
    test = task.split.test
    rows = task.tables.rows(test)
    assert rows.shape == (len(test), places.count)
    ads = rows[:, places.past(0)]
    used = ads < 600
    assert (used.sum(1) == np.minimum(test.lengths, 8)).all()
    assert (rows[:, places.past(0)][~used] == np.repeat(rows[:, 1], (~used).sum(1))).all()
    assert (rows[:, 1] == 600 + test.ads % 4).all()
    assert (rows[:, 2] == 604 + test.ads % 9).all()
    assert (rows[:, 3] == 613 + test.users % 5).all()
    assert (rows[:, places.past(1)][used] == 600 + ads[used] % 4).all()
    assert (rows[:, places.past(2)][used] == 604 + ads[used] % 9).all()
    fields = rows[:, 4:11] - firsts[4]
    assert (fields[:, 0] == test.users % 3).all()
    assert (fields[:, -1] == 12 + test.users % 2).all()
    assert len(np.unique(fields)) == 10  # no two fields share a row
    parts = [place for i in range(5) for place in places.of_table(i)]
    assert sorted(parts) == list(range(places.count))


# ---- the model -----------------------------------------------------------------------------------


def test_empty_places_and_missing_rows_do_not_count(task, model):
    rows = torch.from_numpy(task.tables.rows(task.split.test[:1]))
    ads = model.places.past(0)
    last = rows[0].clone()
    for kind in range(3):  # without the ad at the first place
        last[model.places.past(kind).start] = rows[0, 1]
    with torch.no_grad():
        expected = model(last[None])
        assert not torch.allclose(model(rows), expected)
        missing = torch.zeros_like(rows, dtype=torch.bool)
        missing[0, [model.places.past(kind).start for kind in range(3)]] = True
        model.features.last_missing = missing  # as a private embedding
        assert torch.allclose(model(rows), expected)
    assert (rows[0, ads] < 600).any()


def test_a_layout_is_rated_by_the_rows_that_arrive(task, model):
    part = ClickPart(task.tables, model, task.split.valid)
    rows, sets = task.tables.rows(task.split.valid), list(part.log)
    with torch.no_grad():
        plain = part.rate(list(part.run(model, 7)))
    assert part.quality(sets, [np.ones(len(one), bool) for one in sets]) == pytest.approx(plain)
    random = np.random.default_rng(3)
    retrieved = [random.random(len(one)) < 0.5 for one in sets]
    flags = arrived(rows, sets, retrieved)
    for i in (0, 9, 30):
        got = set(sets[i][retrieved[i]].tolist())
        assert flags[i].tolist() == [row in got for row in rows[i].tolist()]
    lookup = model.features.weight.detach()

    class Partial(torch.nn.Module):  # a private embedding in which some rows are missing
        last_missing = torch.from_numpy(~flags)

        def forward(self, places):
            return torch.where(self.last_missing.unsqueeze(2), 0.0, lookup[places])

    model.features = Partial()
    found = part.rate([model(torch.from_numpy(rows)).detach()])
    model.features = torch.nn.Embedding.from_pretrained(lookup)
    assert part.quality(sets, retrieved) == pytest.approx(found)


def test_five_tables_compute_the_same(task, model):
    rows = task.tables.rows(task.split.test)
    five = separated(model, task.tables.firsts.tolist())
    assert (scores_of(five, rows) == scores_of(model, rows)).all()
    sizes = {name: table.num_embeddings for name, table in five.features.tables.items()}
    assert sizes == task.tables.sizes
    assert tuple(sizes) == TABLES


def test_histories_of_all_lengths_send_the_same(task, model, tmp_path):
    """The servers see neither the length of a history, nor from which tables its rows are."""
    logged = task.logged()
    log = log_of(task.tables.rows(logged), logged)
    layout = make_layout(len(task.tables), log, lookups=task.lookups)
    nescio.torch.export(model, tmp_path / "out", layouts={"features": layout})
    test = task.split.test
    order = np.argsort(test.lengths)
    chosen = test[order[[0, len(order) // 2, -1]]]
    assert len(np.unique(chosen.lengths)) == 3
    rows = torch.from_numpy(task.tables.rows(chosen))
    rows[0, model.places.past(0)] = rows[0, 1]  # no history at all
    with private_model(
        lambda: ClickModel(len(task.tables), 8, device="meta"), tmp_path / "out"
    ) as private:
        for one in rows.split(1):
            with torch.no_grad():
                assert torch.equal(private(one), model(one))
        requests = private.tables["features"].requests
    assert len(requests) == len(private.calls) == 3
    assert len({(r.bytes_up, r.bytes_down) for r in requests}) == 1


# ---- the application -----------------------------------------------------------------------------


def report_of(data, folder, *options):
    assert main(["--data", str(data), "--small", "--folder", str(folder), *options]) == 0
    return json.loads((folder / "report.json").read_text())


def test_the_application_on_made_up_clicks(clicks, tmp_path, capsys):
    report = report_of(clicks, tmp_path / "out", "--history=8", "--five-tables")
    check_private(report)
    five = report["five_tables"]
    assert all(facts["equal"] for facts in five.values())
    assert [facts["requests"] for facts in five.values()] == [1, 1, 5, 5]
    assert five["exact"]["bytes_up"] == report["private"]["exact"]["bytes_up"]
    plain = report["plain"]
    assert report["data"]["negatives"] == "sampled"
    assert 0.45 < plain["baselines"]["popularity alone"] < 0.55
    assert plain["baselines"]["histories: the share in the ad's category"] > 0.6
    assert plain["auc"] > 0.55  # the model without histories: 0.5
    said = capsys.readouterr().out
    assert "impressions are missing, so negatives are SAMPLED" in said
    assert "all that a server saw of one inference" in said
    for name in ("log.npz", "exact/device/model.safetensors", "relaxed/servers/features.layout"):
        assert (tmp_path / "out" / name).exists()


def test_the_model_of_made_up_impressions(impressions, capsys):
    report = Report()
    application = prepare(impressions, "small", 0, report)
    assert report.facts["data"]["negatives"] == "real"
    assert report.facts["plain"]["auc"] > 0.55
    assert application.log.times is not None
    scores = list(application.held_out.run(application.model, 64, 100))
    assert [len(own) for own in scores] == [64, 36]
    assert "SAMPLED" not in capsys.readouterr().out


def test_the_application_on_taobao(data_set, tmp_path):
    report = report_of(data_set("taobao"), tmp_path / "out")
    check_private(report)
    assert report["data"]["tables"]["ads"] == 24_624
    assert report["data"]["rows"] == 33_403
    assert report["plain"]["auc"] > 0.6
