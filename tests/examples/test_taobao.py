"""The application over Taobao's ads: its data, its model, and the whole of it at a small size."""

import gzip
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
from nescio.errors import FileError
from nescio.pir.batch import make_layout

ADS = "0 3 0 1\n1 3 2 0\n2 0 1 1\n3 1 0 1\n"
PEOPLE = "0 0 2 1 2 0 2 0 3 \n1 4 1 1 1 2 2 0 0 \n"
CLICKS = {"train.txt": "0 1 2\n1 3 0\n", "test.txt": "0 3\n1 2\n", "u.item": ADS, "u.user": PEOPLE}
RAW = {
    "raw_sample.csv": "user,time_stamp,adgroup_id,pid,nonclk,clk\n"
    "900,80,77,430539_1007,0,1\n5,10,20,430548_1007,1,0\n5,30,77,430548_1007,0,1\n"
    "900,70,30,430539_1007,0,1\n5,30,20,430548_1007,1,0\n",
    "ad_feature.csv": "adgroup_id,cate_id,campaign_id,customer,brand,price\n"
    "77,6406,83237,1,95471,170.0\n20,392,83237,1,NULL,199.0\n30,392,83237,1,95471,38.5\n",
    "user_profile.csv": "userid,cms_segid,cms_group_id,final_gender_code,age_level,pvalue_level,"
    "shopping_level,occupation,new_user_class_level \n"
    "1,7,5,2,5,,3,0,3\n900,0,5,2,5,,3,0,3\n",
}


def written(folder, files, gzipped=False):
    folder.mkdir(parents=True)
    for name, text in files.items():
        if gzipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / name).write_text(text)
    return folder


@pytest.fixture
def clicks(tmp_path):
    """Clicks by users who like one of four categories, and mostly popular ads."""
    random = np.random.default_rng(7)
    people, ads = 300, 600
    weights = 1 / np.sqrt(np.arange(20, ads + 20))
    lines = {"train.txt": [], "test.txt": []}
    for user in range(people):
        liked = weights * np.where(np.arange(ads) % 4 == user % 4, 20, 1)
        own = random.choice(ads, random.integers(6, 40), replace=False, p=liked / liked.sum())
        for name, part in (("train.txt", own[2:]), ("test.txt", own[:2])):
            lines[name].append(" ".join(map(str, [user, *part])))
    lines["u.item"] = [f"{ad} {ad % 4} {ad % 9} {ad % 2}" for ad in range(ads)]
    lines["u.user"] = [f"{u} {u % 5} {u % 3} 1 2 0 1 0 {u % 2} " for u in range(people)]
    files = {name: "\n".join(own) + "\n" for name, own in lines.items()}
    return written(tmp_path / "clicks", files)


@pytest.fixture
def impressions(tmp_path):
    """Impressions over eight days; users click ads of one of three categories."""
    random = np.random.default_rng(8)
    count, people, ads = 12_000, 120, 90
    users, shown = random.integers(0, people, count), random.integers(0, ads, count)
    clicked = random.random(count) < np.where(shown % 3 == users % 3, 0.6, 0.05)
    times = np.sort(random.integers(1_494_000_000, 1_494_000_000 + 8 * 86_400, count))
    events = zip(users, times, shown, clicked, strict=True)
    raw = [f"{u},{t},{5 * ad},430548_1007,{int(not c)},{int(c)}" for u, t, ad, c in events]
    features = [f"{5 * ad},{ad % 3},1,1,{'NULL' if ad % 2 else ad % 7},9.5" for ad in range(ads)]
    profiles = [f"{user},{user % 4},1,2,3,,1,0," for user in range(0, people, 2)]
    headers = {name: text.split("\n", 1)[0] for name, text in RAW.items()}
    bodies = (raw, features, profiles)
    files = {
        name: "\n".join([header, *lines]) + "\n"
        for (name, header), lines in zip(headers.items(), bodies, strict=True)
    }
    return written(tmp_path / "raw", files)


@pytest.fixture
def task(clicks):
    return Task(clicks, SIZES["small"], 8, 3)


@pytest.fixture
def model(task):
    torch.manual_seed(2)
    made = ClickModel(len(task.tables), 8).eval()
    made.features.weight.data *= 20  # so that every row counts
    return made


# ---- data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gzipped", [False, True])
def test_a_set_of_clicks(tmp_path, gzipped):
    events = load(written(tmp_path / "a", CLICKS, gzipped))
    assert events.users.tolist() == [0, 0, 1, 1, 0, 1]
    assert events.ads.tolist() == [1, 2, 3, 0, 3, 2]
    assert events.held_out.tolist() == [False] * 4 + [True] * 2
    assert events.clicked.all()
    assert events.times is None
    assert events.categories.tolist() == [3, 3, 0, 1]
    assert events.brands.tolist() == [0, 2, 1, 0]
    assert events.profiles.tolist() == [[0, 2, 1, 2, 0, 2, 0, 3], [4, 1, 1, 1, 2, 2, 0, 0]]


@pytest.mark.parametrize("gzipped", [False, True])
def test_a_log_of_impressions(tmp_path, gzipped):
    events = load(written(tmp_path / "a", RAW, gzipped))
    assert events.users.tolist() == [1, 0, 0, 1, 0]
    assert events.ads.tolist() == [2, 0, 2, 1, 0]  # by their ids: 20, 30, 77
    assert events.times.tolist() == [80, 10, 30, 70, 30]
    assert events.clicked.tolist() == [True, False, True, True, False]
    assert events.categories.tolist() == [0, 0, 1]
    assert events.brands.tolist() == [0, 1, 1]  # 0: NULL
    assert events.profiles[0].tolist() == [0] * 8  # user 5 has none
    assert events.profiles[1].tolist() == [1] * 8  # the first level of each field


def test_a_click_that_is_given_twice_counts_once(tmp_path):
    """Otherwise a click to test with would be in its own history."""
    repeated = {"train.txt": "0 1 2 1\n1 3 2 0\n", "test.txt": "0 3 3\n1 2\n"}
    events = load(written(tmp_path / "a", CLICKS | repeated))
    pairs = list(zip(events.users.tolist(), events.ads.tolist(), strict=True))
    assert sorted(pairs) == [(0, 1), (0, 2), (0, 3), (1, 0), (1, 2), (1, 3)]
    assert events.held_out[[pairs.index((0, 3)), pairs.index((1, 2))]].all()
    assert events.held_out.sum() == 2


def test_a_set_that_is_missing_can_be_got(tmp_path, capsys):
    assert main(["--data", str(tmp_path / "no")]) == 1
    said = capsys.readouterr().err
    assert "found no such folder, expected raw_sample.csv and ad_feature.csv and" in said
    assert "https://tianchi.aliyun.com/dataset/56" in said
    assert "https://github.com/project-NFA/NFA-Pytorch" in said


def test_a_set_that_is_too_small(tmp_path, capsys):
    assert main(["--data", str(written(tmp_path / "a", RAW))]) == 1
    assert "inferences of the part 'valid', of which" in capsys.readouterr().err


def test_a_user_who_clicked_every_ad_has_no_negatives(tmp_path, capsys):
    lines = [f"{user} {ad}\n" for user in range(2) for ad in range(3)]
    folder = written(tmp_path / "a", CLICKS | {"train.txt": "".join(lines), "test.txt": "0 3\n"})
    assert main(["--data", str(folder)]) == 1
    assert "found a user who clicked nearly all of" in capsys.readouterr().err


def test_a_history_of_more_rows_than_the_tables_have(impressions, capsys):
    assert main(["--data", str(impressions), "--small", "--history=100"]) == 1
    assert "which makes 311 rows of an inference, expected at most the 118" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("files", "name", "text", "said"),
    [
        (CLICKS, "train.txt", "0 1 x\n", "train.txt: .*'x'.*expected lines of a user and the ads"),
        (
            CLICKS,
            "train.txt",
            "0 4\n",
            "train.txt: found ads from 4 to 4, expected ads from 0 to 3",
        ),
        (
            CLICKS,
            "test.txt",
            "-1 2\n",
            "test.txt: found users from -1 to -1, expected users from 0",
        ),
        (CLICKS, "test.txt", "0\n", "test.txt: found no clicks, expected lines of a user"),
        (CLICKS, "u.item", "0 1 2\n", r"u.item: found lines of \[3\] numbers, expected 4: an ad"),
        (CLICKS, "u.item", "1 1 2 0\n", "u.item: found lines out of order, expected"),
        (CLICKS, "u.item", "0 1 -2 0\n", "u.item: found numbers from -2 to 1, expected 0 to"),
        (CLICKS, "u.item", f"0 {10**30} 2 0\n", "u.item: found a number of 2.53 or more"),
        (CLICKS, "u.user", "", r"u.user: found lines of \[\] numbers, expected 9: a user and"),
        (RAW, "raw_sample.csv", "user,clk\n1,0\n", "raw_sample.csv: found no column 'time_stamp'"),
        (
            RAW,
            "raw_sample.csv",
            RAW["raw_sample.csv"] + "1,2\n",
            "raw_sample.csv: .*expected lines",
        ),
        (RAW, "raw_sample.csv", RAW["raw_sample.csv"].split("\n")[0], "sample.csv: found no lines"),
        (RAW, "raw_sample.csv", RAW["raw_sample.csv"] + f"1,{10**17},20,x,1,0", "2.53 or more"),
        (RAW, "ad_feature.csv", RAW["ad_feature.csv"] + "1,inf,1,1,1,1\n", "ad_feature.csv: .*inf"),
        (RAW, "ad_feature.csv", RAW["ad_feature.csv"] + "1,x,1,1,1,1\n", "ad_feature.csv: .*'x'"),
        (RAW, "ad_feature.csv", RAW["ad_feature.csv"][:80], "ad_feature.csv: found no ad 20"),
        (
            RAW,
            "user_profile.csv",
            RAW["user_profile.csv"].split("\n")[0],
            "profile.csv: found no l",
        ),
    ],
)
def test_files_that_are_broken(tmp_path, files, name, text, said):
    folder = written(tmp_path / "a", files | {name: text})
    with pytest.raises(FileError, match=said):
        load(folder)


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


def check_private(report):
    exact, relaxed = report["private"]["exact"], report["private"]["relaxed"]
    assert exact["equal"]
    assert exact["missing_percent"] == 0
    assert exact["quality"] == report["private"]["plain"]["quality"]
    assert report["private"]["separate"]["equal"]
    assert relaxed["bytes_up"] < exact["bytes_up"]
    assert 2 * (exact["bytes_up"] + exact["bytes_down"]) <= 300_000
    rated = report["layouts"]["quality_of_rating"]
    assert rated["relaxed"] >= 0.995 * rated["plain"]


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
