"""The application over MovieLens: its data, its model, and the whole of it at a small size."""

import gzip
import json

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import nescio.torch
from examples.common.application import plain_quality
from examples.common.private import private_model
from examples.common.report import Report
from examples.movielens.data import Inferences, load
from examples.movielens.main import load_task, main, prepare
from examples.movielens.model import LayoutQuality, Recommender, auc
from examples.movielens.task import SIZES, Task
from nescio.errors import ArgumentError, FileError
from nescio.pir.batch import AccessLog, make_layout
from sets import movielens
from sets.reports import check_private

RATINGS = """userId,movieId,rating,timestamp
9,300,4.0,1000
9,10,4.0,900
9,20,2.5,950
9,7,5.0,1000
9,20000,3.5,1001
4,10,4.5,80
4,300,0.5,70
"""
TITLES = """movieId,title,genres
7,"Seven (a.k.a. ""Se7en"") (1995)",Crime
10,"American President, The (1995)",Comedy
20,Emma (1996),Drama
300,Emma (1996),Romance
301,Not Rated (1995),Drama
"""
TITLES_DAT = """7::Seven (a.k.a. "Se7en") (1995)::Crime
10::American President, The (1995)::Comedy
20::Emma (1996)::Drama
300::Emma (1996)::Romance
301::Café (1995)::Drama
"""


def written(folder, kind):
    """Writes the same ratings in the format of one of the sets."""
    folder.mkdir(parents=True)
    if kind == "dat":
        lines = RATINGS.split("\n", 1)[1].replace(",", "::")
        (folder / "ratings.dat").write_text(lines)
        (folder / "movies.dat").write_text(TITLES_DAT, encoding="latin-1")
    elif kind == "csv":
        (folder / "ratings.csv").write_text(RATINGS)
        (folder / "movies.csv").write_text(TITLES)
    else:
        (folder / "ratings.csv.gz").write_bytes(gzip.compress(RATINGS.encode()))
        (folder / "movies.csv.gz").write_bytes(gzip.compress(TITLES.encode()))
    return folder


@pytest.fixture
def films(tmp_path):
    """Ratings in the format of ml-20m."""
    return movielens.written(tmp_path / "ml-20m", 11)


@pytest.fixture
def model():
    torch.manual_seed(2)
    return Recommender(400).eval()


# ---- data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dat", "csv", "gz"])
def test_the_three_sets_load_alike(tmp_path, kind):
    ratings = load(written(tmp_path / "ml-x", kind))
    assert ratings.name == "ml-x"
    assert ratings.users.tolist() == [0, 0, 1, 1, 1, 1, 1]
    assert ratings.films.tolist() == [3, 1, 1, 2, 3, 0, 4]
    assert ratings.times.tolist() == [70, 80, 900, 950, 1000, 1000, 1001]
    assert ratings.liked.tolist() == [False, True, True, False, True, True, False]
    assert ratings.titles == [
        'Seven (a.k.a. "Se7en") (1995)',
        "American President, The (1995)",
        "Emma (1996) #20",
        "Emma (1996) #300",
        "#20000",
    ]


def test_the_small_set_is_found_in_the_folder_of_sets(tmp_path):
    written(tmp_path / "ml-latest-small", "gz")
    assert load(tmp_path).name == "ml-latest-small"


def test_a_set_that_is_missing_can_be_got(tmp_path, capsys):
    assert main(["--data", str(tmp_path / "no")]) == 1
    said = capsys.readouterr().err
    assert "found no such folder, expected ratings.csv or ratings.dat" in said
    assert "https://grouplens.org/datasets/movielens" in said


def test_a_set_that_is_too_small(tmp_path, capsys):
    assert main(["--data", str(written(tmp_path / "a", "csv"))]) == 1
    assert "found 2 users and 4 ratings of at least 4, expected ten" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1,2,3\n", "ratings.csv: .*expected lines of a user, film, rating, time"),
        ("1,2,good,4\n", "ratings.csv: .*'good'.*expected lines of a user, film, rating, time"),
        ("1,2,nan,4\n", "ratings.csv: found 1,2,nan,4, expected numbers below"),
        ("1,2,3,1e300\n", "ratings.csv: found 1,2,3,1e.300, expected numbers below"),
    ],
)
def test_lines_that_are_not_ratings(tmp_path, line, said):
    folder = written(tmp_path / "a", "csv")
    with (folder / "ratings.csv").open("a") as file:
        file.write(line)
    with pytest.raises(FileError, match=said):
        load(folder)


@pytest.mark.parametrize("lines", ["", RATINGS.splitlines()[0]])
@pytest.mark.filterwarnings("error")
def test_files_without_ratings(tmp_path, lines):
    folder = written(tmp_path / "a", "csv")
    (folder / "ratings.csv").write_text(lines)
    with pytest.raises(
        FileError, match=r"ratings\.csv: found no ratings, expected lines of a user"
    ):
        load(folder)


def test_files_of_titles_with_oddities(tmp_path):
    folder = written(tmp_path / "a", "csv")
    (folder / "movies.csv").write_text('movieId,title,genres\n\n7,"Two\nlines ",Drama\n\n')
    assert load(folder).titles[:2] == ["Two lines", "#10"]
    (folder / "movies.csv").write_text("movieId,title,genres\nseven,Seven,Drama\n")
    with pytest.raises(FileError, match=r"movies\.csv: found \['seven', .*expected a film, title"):
        load(folder)
    (folder / "movies.csv").write_text("movieId,title,genres\n7," + 200_000 * "a" + "\n")
    with pytest.raises(FileError, match=r"movies\.csv: field larger .*expected CSV"):
        load(folder)


def test_times_may_be_far_apart(tmp_path):
    """A history has no films of other users."""
    folder = written(tmp_path / "a", "csv")
    lines = [f"{user},{film},5,{film * 2**49}\n" for user in range(5000) for film in range(9)]
    (folder / "ratings.csv").write_text("userId,movieId,rating,timestamp\n" + "".join(lines))
    inferences = Inferences(load(folder))
    assert inferences.lengths.tolist() == list(range(9)) * 5000


def test_a_history_has_the_films_liked_in_earlier_seconds(tmp_path):
    inferences = Inferences(load(written(tmp_path / "a", "csv")))
    assert inferences.lengths.tolist() == [0, 0, 0, 1, 1, 1, 3]
    assert inferences.rows(np.arange(7), 2).tolist() == [
        [3, 3, 3],
        [1, 1, 1],
        [1, 1, 1],
        [2, 1, 2],
        [3, 1, 3],
        [0, 1, 0],
        [4, 0, 3],  # the two liked last, both in one second
    ]


def test_no_user_is_in_two_parts(films):
    task = Task(films, SIZES["small"], 71, 3)
    users = [set(task.inferences.users[part].tolist()) for part in task.split]
    assert sum(map(len, users)) == len(set.union(*users)) == task.ratings.people
    assert sum(map(len, task.split)) == len(task.inferences)
    log = task.log(task.split.train)
    assert log.people == len(users[0])
    assert log.lengths.max() <= 72


def test_histories_are_shorter_than_the_table(films):
    with pytest.raises(ArgumentError, match="--history: found 240, expected less than the 240"):
        Task(films, SIZES["small"], 240, 3)


def test_each_part_has_both_labels(tmp_path):
    folder = written(tmp_path / "a", "csv")
    lines = [f"{user},{film},{1 + 4 * (user == 3)},9\n" for user in range(20) for film in range(99)]
    (folder / "ratings.csv").write_text("userId,movieId,rating,timestamp\n" + "".join(lines))
    with pytest.raises(ArgumentError, match="--data: found 0 of .* to .* with, .* another --seed"):
        Task(folder, SIZES["small"], 71, 0)


def test_a_part_of_the_users_keeps_the_table(films):
    some = load(films).of_users(12, seed=1)
    assert some.people == len(np.unique(some.users)) == 12
    assert len(some.titles) == 240


# ---- the model -----------------------------------------------------------------------------------


def test_empty_places_and_missing_rows_do_not_count(model):
    short, long = torch.tensor([[7, 1, 2]]), torch.tensor([[7, 7, 1, 2, 7]])
    with torch.no_grad():
        assert torch.allclose(model(short), model(long))
        assert not torch.allclose(model(short), model(torch.tensor([[7, 1, 3]])))
        expected = model(torch.tensor([[7, 1, 7]]))
        model.films.last_missing = torch.tensor([[False, False, True]])  # as a private embedding
        assert torch.allclose(model(short), expected)


def test_a_layout_is_rated_by_the_rows_that_arrive(model):
    liked = np.arange(50) % 3 == 0
    rows = np.random.default_rng(1).integers(0, 400, (50, 20))
    log, quality = AccessLog(rows), LayoutQuality(model, liked)
    rows, labels = torch.from_numpy(rows), torch.from_numpy(liked.astype("f4"))
    plain = auc(model, lambda own: (rows[own], labels[own]), np.arange(50))
    assert quality(list(log), [np.ones(len(one), bool) for one in log]) == pytest.approx(plain)
    few, all_of_few = [one[:5] for one in log], [np.ones(5, bool)] * 50
    found = quality(list(log), [np.arange(len(one)) < 5 for one in log])
    assert found == pytest.approx(quality(few, all_of_few))
    assert found != plain


def test_the_auc_needs_memory_for_few_examples_at_once(model):
    def examples(numbers):
        assert len(numbers) <= 1024
        rows = torch.from_numpy(np.stack([numbers % 400, numbers % 7], axis=1))
        return rows, torch.from_numpy((numbers % 3 == 0).astype("f4"))

    assert 0.3 < auc(model, examples, np.arange(3000)) < 0.7


def test_histories_of_all_lengths_send_the_same(model, tmp_path):
    """The servers see neither the length of a history, nor if it has too many films.

    The header of a query and of each key are the same for everyone, the rest is new.
    """
    layout = make_layout(400, AccessLog([np.arange(9)]), lookups=9)
    nescio.torch.export(model, tmp_path / "out", layouts={"films": layout})
    random, seen = np.random.default_rng(5), []
    with private_model(lambda: Recommender(400, device="meta"), tmp_path / "out") as private:
        for length in (0, 1, 8):
            rows = torch.full((1, 72), 17)
            rows[0, 1 : length + 1] = torch.from_numpy(random.permutation(400)[:length])
            with torch.no_grad():
                assert torch.equal(private(rows), model(rows))
            seen.append(np.frombuffer(private.tables["films"].seen, np.uint8))
        private(torch.from_numpy(random.permutation(400)[None, :72]))
        assert private.model.films.last_missing.any()
        requests = private.tables["films"].requests
    same = (np.array(seen) == seen[0]).all(0)
    keys = same[32:].reshape(-1, 96)  # of trees of depth 0, for short bins
    assert same[:32].all()
    assert keys[:, :16].all()
    assert keys[:, 16:].mean() < 0.01
    assert len(requests) == len(private.calls) == 4
    assert len({(r.bytes_up, r.bytes_down) for r in requests}) == 1
    assert all(call.total > call.servers > 0 for call in private.calls)


# ---- the application -----------------------------------------------------------------------------


def test_held_out_ratings_change_neither_model_nor_layouts(films, tmp_path):
    """Weights but for rounding, the log of the layouts, and the inferences that rate them."""
    plain = prepare(films, "small", 4, Report())
    task = load_task(films, "small", 4, Report())
    held_out = np.unique(task.inferences.users[task.split.test])
    head, *lines = (films / "ratings.csv").read_text().splitlines()
    people = np.unique([int(line.split(",")[0]) for line in lines])[held_out]
    other = tmp_path / "ml-other"
    other.mkdir()
    (other / "movies.csv").write_text((films / "movies.csv").read_text())
    changed = [
        line.replace(",4.5,", ",1,").replace(",2.0,", ",5,")
        if int(line.split(",")[0]) in people
        else line
        for line in lines
    ]
    (other / "ratings.csv").write_text("\n".join([head, *changed]))
    found = prepare(other, "small", 4, Report())
    for name, value in plain.model.state_dict().items():
        change = (value - found.model.state_dict()[name]).abs().sum() / value.abs().sum()
        assert change < 0.01, name
    assert (plain.log.rows == found.log.rows).all()
    assert (plain.rated.log.rows == found.rated.log.rows).all()
    assert plain_quality(found.rated) == pytest.approx(plain_quality(plain.rated), abs=0.01)
    assert plain_quality(found.held_out) != plain_quality(plain.held_out)


def test_inferences_to_time_are_of_many_users(films):
    """Histories of one user's first ratings are short."""
    part = prepare(films, "small", 4, Report()).held_out
    assert len(np.unique(part.log.users[:20])) > 5


def report_of(data, folder, *options):
    assert main(["--data", str(data), "--small", "--folder", str(folder), *options]) == 0
    return json.loads((folder / "report.json").read_text())


def test_the_application_on_made_up_ratings(films, tmp_path, capsys):
    report = report_of(films, tmp_path / "out", "--by-title")
    check_private(report)
    assert report["plain"]["auc"] > 0.6  # chance is 0.5
    titles = report["titles"]
    assert titles["equal"]
    assert not titles["unknown_title_found"]
    assert "all that a server saw of one inference" in capsys.readouterr().out
    for name in ("log.npz", "exact/device/model.safetensors", "relaxed/servers/films.layout"):
        assert (tmp_path / "out" / name).exists()


def test_the_application_on_movielens(data_set, tmp_path):
    report = report_of(data_set("movielens"), tmp_path / "out")
    check_private(report)
    assert report["data"]["films"] == 9724
    assert report["plain"]["auc"] > 0.55
