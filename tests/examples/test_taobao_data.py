"""The sets of Taobao's ads: both formats, and files that are broken."""

import pytest

pytest.importorskip("torch")

from examples.taobao.data import load
from examples.taobao.main import main
from nescio.errors import FileError
from sets.taobao import CLICKS, RAW, written


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


def test_a_log_with_a_byte_order_mark(tmp_path):
    marked = {"raw_sample.csv": "\ufeff" + RAW["raw_sample.csv"]}
    assert len(load(written(tmp_path / "a", RAW | marked)).users) == 5


def test_a_log_with_other_clicks(tmp_path):
    text = RAW["raw_sample.csv"].replace("1007,0,1", "1007,0,2")
    with pytest.raises(FileError, match="found clk other than 0 and 1"):
        load(written(tmp_path / "a", RAW | {"raw_sample.csv": text}))


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
