"""The application over WikiText-2: its data, its model, the whole of it, and the keyboard."""

import gzip
import io
import json
import math

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import nescio.torch
from examples.common.private import private_model
from examples.wikitext2.cached import new_rows
from examples.wikitext2.data import END, UNKNOWN, load, streams
from examples.wikitext2.main import main
from examples.wikitext2.model import LanguageModel
from examples.wikitext2.ngrams import bigram, unigram
from examples.wikitext2.part import WINDOW, TextPart, log_of
from nescio.errors import ArgumentError, FileError
from nescio.pir import LocalTable
from nescio.pir.batch import AccessLog, BatchClient, build, make_layout
from sets.wikitext2 import SHAPE, WORDS, made_model

TRAIN = " \n = A title = \n \n a b a <unk> b a @-@ é \n"
VALID = "b new a\n"
TEST = "é a\n"


def written(folder, names="{}.txt", packed=False):
    """Writes the three texts under the names of one of the distributions."""
    folder.mkdir(parents=True)
    for part, text in {"train": TRAIN, "valid": VALID, "test": TEST}.items():
        content = text.encode()
        name = names.format(part) + (".gz" if packed else "")
        (folder / name).write_bytes(gzip.compress(content) if packed else content)
    return folder


@pytest.fixture
def made_up(tmp_path):
    """A text in which each word has four that may follow it."""
    random = np.random.default_rng(6)
    common = np.arange(1, WORDS + 1) ** -1.0
    after = random.choice(WORDS, (WORDS, 4), p=common / common.sum())
    folder = tmp_path / "made-up"
    folder.mkdir()
    for part, count in {"train": 60_000, "valid": 10_000, "test": 6_000}.items():
        words, choices = [0], random.integers(0, 4, count)
        for choice in choices:
            words.append(after[words[-1], choice])
        text = [f"w{word}" + ("\n" if at % 29 == 28 else "") for at, word in enumerate(words)]
        (folder / f"{part}.txt").write_text(" ".join(text))
    return folder


@pytest.fixture
def model():
    return made_model()


@pytest.fixture
def part(model):
    random = np.random.default_rng(3)
    text = (random.zipf(1.3, 6 * 4 * WINDOW + 1) - 1) % WORDS
    return TextPart(model, streams(text, 6, WINDOW))


# ---- data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("names", ["{}.txt", "wiki.{}.tokens", "wiki.{}.txt"])
@pytest.mark.parametrize("inner", ["", "wikitext-2"])
def test_all_distributions_load_alike(tmp_path, names, packed, inner):
    written(tmp_path / "set" / inner, names, packed)
    texts = load(tmp_path / "set")
    assert texts.words[:2] == [END, "a"]
    assert texts.counts().tolist() == sorted(texts.counts().tolist(), reverse=True)
    assert [texts.words[word] for word in texts.valid] == ["b", UNKNOWN, "a", END]
    assert [texts.words[word] for word in texts.test] == ["é", "a", END]
    assert len(texts.train) == len(TRAIN.split()) + 4  # an end for each line
    assert len(set(texts.words)) == len(texts.words) == 9


def test_a_set_that_is_missing_can_be_got(tmp_path, capsys):
    assert main(["--data", str(tmp_path / "no")]) == 1
    said = capsys.readouterr().err
    assert "found no such folder, expected train.txt or wiki.train.tokens" in said
    assert "https://github.com/pytorch/examples" in said


def test_a_set_with_a_part_missing(tmp_path, capsys):
    (written(tmp_path / "a") / "valid.txt").unlink()
    assert main(["--data", str(tmp_path / "a")]) == 1
    assert "found no such files, expected train.txt" in capsys.readouterr().err


def test_texts_without_words_and_short_ones(tmp_path, capsys):
    folder = written(tmp_path / "a")
    assert main(["--data", str(folder), "--small"]) == 1
    assert "--data: found a text of 16 words, expected 17,921 or more" in capsys.readouterr().err
    (folder / "test.txt").write_text("\n \n")
    with pytest.raises(FileError, match=r"test\.txt: found no words, expected a text"):
        load(folder)


def test_streams_are_parts_of_the_text_with_the_word_that_follows():
    cut = streams(np.arange(100), 3, 10)
    assert cut.tolist() == [list(range(first, first + 31)) for first in (0, 30, 60)]
    assert streams(np.arange(31), 3, 10).shape == (3, 11)
    with pytest.raises(ArgumentError, match="found a text of 30 words, expected 31 or more"):
        streams(np.arange(30), 3, 10)


def test_the_log_has_a_user_for_each_stream_and_windows_in_order():
    log = log_of(streams(np.arange(6 * WINDOW + 1), 2, WINDOW))
    assert log.users.tolist() == [0, 0, 0, 1, 1, 1]
    assert log.times.tolist() == [0, 1, 2, 0, 1, 2]
    assert sorted(log[4].tolist()) == list(range(4 * WINDOW, 5 * WINDOW))


def test_probabilities_by_counting_add_up_to_one(rng):
    train = rng.integers(0, 5, 60)
    for first in range(6):  # the training lacks word 5
        pairs = [np.array([first, word]) for word in range(6)]
        assert sum(1 / bigram(train, pair, 6) for pair in pairs) == pytest.approx(1)
        assert sum(1 / unigram(train, pair, 6) for pair in pairs) == pytest.approx(1)


def test_counting_predicts_the_same_words_as_the_model(rng):
    """The first word of a stream is predicted by neither, and words left out of streams too."""
    train, text = rng.integers(0, 5, 200), rng.integers(0, 5, 100)
    cut = streams(text, 3, 10)
    for count in (unigram, bigram):
        each = [math.log(count(train, stream, 5)) for stream in cut]
        assert math.log(count(train, cut, 5)) == pytest.approx(np.mean(each))


# ---- the model -----------------------------------------------------------------------------------


def test_probabilities_of_all_words_add_up_to_one(model):
    words = torch.tensor([[5, 17, 250], [0, 0, 1]])
    with torch.no_grad():
        every, state = model(words, None)
        assert every.shape == (2, WORDS)
        assert torch.allclose(every.exp().sum(1), torch.ones(2), atol=1e-5)
        for following in (3, 50, 299):  # of each group of the output layer
            scores, same = model(words, torch.full((2, 3), following))
            assert torch.allclose(scores[:, -1], every[:, following], atol=1e-5)
            assert torch.equal(same[0], state[0])


def test_the_state_carries_a_text_from_window_to_window(model):
    text = torch.arange(41).reshape(1, -1)
    with torch.no_grad():
        whole, _ = model(text[:, :40], text[:, 1:])
        first, state = model(text[:, :25], text[:, 1:26])
        second, _ = model(text[:, 25:40], text[:, 26:], state)
    assert torch.allclose(whole, torch.cat([first, second], 1), atol=1e-5)


def test_missing_rows_are_those_of_no_word(model):
    words = torch.tensor([[5, 17, 5, 250]])
    with torch.no_grad():
        plain, _ = model(words, words)
        model.words.last_missing = words == 5  # as a private embedding
        missing, _ = model(words, words)
        model.words.weight[5] = model.absent
        model.words.last_missing = torch.zeros_like(words, dtype=torch.bool)
        same, _ = model(words, words)
    assert torch.equal(missing, same)
    assert not torch.allclose(missing, plain)


@pytest.mark.parametrize("at_once", [1, 4, 64])
def test_the_perplexity_does_not_depend_on_how_many_run_together(part, model, at_once):
    with torch.no_grad():
        outputs = list(part.run(model, at_once))
        one = list(part.run(model, 6))
        few = list(part.run(model, at_once, 10))
    assert sum(map(len, outputs)) == len(part) == 24
    assert sum(map(len, few)) == 10
    assert part.rate(outputs) == pytest.approx(part.rate(one), rel=1e-5)
    assert torch.allclose(few[-1], outputs[len(few) - 1][: len(few[-1])], atol=1e-5)


def test_a_layout_is_rated_by_the_rows_that_arrive(part, model):
    sets = list(part.log)
    everything = [np.ones(len(rows), bool) for rows in sets]
    with torch.no_grad():
        plain = part.rate(list(part.run(model, 6)))
    assert part.quality(sets, everything) == pytest.approx(plain, rel=1e-5)
    table = build(model.words.weight.detach().numpy(), make_layout(WORDS, part.log, bins=9))
    found = BatchClient(LocalTable(table.table)).lookup(sets).found
    private = nescio_model(model, table)
    with torch.no_grad():
        expected = part.rate(list(part.run(private, 6)))
    assert part.quality(sets, found) == pytest.approx(expected, rel=1e-5)
    assert expected != pytest.approx(plain, rel=1e-3)


def nescio_model(model, table):
    """The model with private lookups in this process."""
    private = LanguageModel(WORDS, SHAPE).eval()
    private.load_state_dict(model.state_dict())
    private.words = nescio.torch.PrivateEmbedding(LocalTable(table.table)).eval()
    return private


def test_all_windows_send_the_same(model, tmp_path):
    """The servers see neither the words nor how many of them differ, nor if they fit."""
    layout = make_layout(WORDS, AccessLog([np.arange(9)]), lookups=9)
    nescio.torch.export(model, tmp_path / "out", layouts={"words": layout})
    random = np.random.default_rng(5)
    make = lambda: LanguageModel(WORDS, SHAPE, device="meta")  # noqa: E731
    with private_model(make, tmp_path / "out") as private:
        for different in (1, 4, 9):
            words = torch.from_numpy(random.choice(random.permutation(WORDS)[:different], (1, 35)))
            with torch.no_grad():
                assert torch.equal(private(words, words)[0], model(words, words)[0])
        private(torch.arange(35)[None], torch.arange(35)[None])
        assert private.model.words.last_missing.any()
        requests = private.tables["words"].requests
    assert len(requests) == 4
    assert len({(r.bytes_up, r.bytes_down) for r in requests}) == 1


def test_a_cache_keeps_the_rows_used_last():
    window = np.arange(WINDOW)
    text = np.concatenate([window, window, window + 20, window, [0]])[None]
    assert new_rows(text, 0) == WINDOW
    assert new_rows(text, 35) == (35 + 0 + 20 + 20) / 4
    assert new_rows(text, 1000) == (35 + 0 + 20 + 0) / 4


# ---- the application -----------------------------------------------------------------------------


def report_of(data, folder, *options):
    assert main(["--data", str(data), "--small", "--folder", str(folder), *options]) == 0
    return json.loads((folder / "report.json").read_text())


def check_private(report):
    plain, ways = report["plain"], report["private"]
    assert ways["exact"]["equal"]
    assert ways["exact"]["missing_percent"] == 0
    assert ways["separate"]["equal"]
    assert ways["exact"]["quality"] == ways["plain"]["quality"]
    assert ways["plain"]["quality"] == pytest.approx(plain["perplexity"], rel=1e-5)
    rated = report["layouts"]["quality_of_rating"]
    assert rated["relaxed"] <= 1.05 * rated["plain"]
    assert 2 * (ways["exact"]["bytes_up"] + ways["exact"]["bytes_down"]) <= 300_000


def test_the_application_on_a_made_up_text(made_up, tmp_path, monkeypatch, capsys):
    report = report_of(made_up, tmp_path / "out", "--cache-rows", "50")
    check_private(report)
    plain = report["plain"]
    assert plain["perplexity"] < plain["unigram"] / 2  # a word has four that may follow
    assert plain["bigram"] < plain["unigram"]
    missing = report["missing_words"]
    relaxed = report["layouts"]["quality_of_rating"]["relaxed"]
    assert missing["plain"] <= missing["learned"] == pytest.approx(relaxed, rel=1e-4)
    assert len(missing) == 6
    cache = report["cache"]
    assert 0 < cache["new_rows_a_window"] < cache["rows_a_window"]
    assert cache["quality"] > 0.99 * cache["plain"] > 1
    assert cache["keys"] >= 1
    assert cache["missing_percent"] < 50
    monkeypatch.setattr("sys.stdin", io.StringIO("w1 w2\n"))
    assert main(["--type", "--folder", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert "all that a server saw of one inference" in said.out
    assert "3 lookups" in said.out


def test_the_application_on_wikitext(data_set, tmp_path):
    report = report_of(data_set("wikitext2"), tmp_path / "out")
    check_private(report)
    assert report["data"]["words"] == 33_278
    assert report["plain"]["perplexity"] < report["plain"]["unigram"]
    assert report["private"]["relaxed"]["missing_percent"] < 20


def test_the_keyboard_trains_a_small_model(made_up, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("w1\n"))
    assert main(["--data", str(made_up), "--type"]) == 0
    assert "2 lookups; each server saw" in capsys.readouterr().out
