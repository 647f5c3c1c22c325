"""The keyboard of the application over WikiText-2."""

import io
import shutil

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import nescio.torch
from examples.wikitext2 import saved
from examples.wikitext2.data import END, UNKNOWN
from examples.wikitext2.keyboard import Keyboard
from examples.wikitext2.main import main
from sets.wikitext2 import SHAPE, WORDS, made_model


@pytest.fixture
def model():
    return made_model()


@pytest.fixture
def keyboard_folder(model, tmp_path):
    """The folder of an earlier run."""
    words = [*(f"w{number}" for number in range(WORDS - 3)), "the", END, UNKNOWN]
    saved.save(tmp_path, words, SHAPE)
    nescio.torch.export(model, tmp_path / "separate")
    return tmp_path


def typed(folder, content, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
    code = main(["--type", "--folder", str(folder)])
    return code, capsys.readouterr()


def test_every_typed_word_is_one_lookup_of_the_same_size(keyboard_folder, monkeypatch, capsys):
    text = b"The w17, nowhere\xff seen\nw3\n\nw4\n"
    code, said = typed(keyboard_folder, text, monkeypatch, capsys)
    assert code == 0
    assert not said.err
    lines = said.out.splitlines()
    firsts = [line[:16].strip() for line in lines if "%" in line]
    unknown = f" {UNKNOWN}"
    assert firsts[:3] == [END, "The", "w17"]  # as "the" is in the vocabulary
    assert all(word.endswith(unknown) for word in firsts[3:7])
    assert firsts[7:] == [END, "w3"]  # the empty line ends
    assert all(UNKNOWN not in line[70:] for line in lines)
    assert lines[-1].startswith("9 lookups; each server saw")
    assert lines[-1].count("bytes up") == 1


def test_a_keyboard_without_input(keyboard_folder, monkeypatch, capsys):
    code, said = typed(keyboard_folder, b"", monkeypatch, capsys)
    assert code == 0
    assert said.out.splitlines()[-1] == "no lookup: the servers saw nothing"


def test_a_keyboard_shows_the_likeliest_words(model, capsys):
    words = [*(f"w{number}" for number in range(WORDS - 2)), END, UNKNOWN]

    class Plain:
        def __init__(self):
            self.calls = []

        def __call__(self, *inputs):
            self.calls.append(type("Phases", (), {"__getattr__": lambda *_: 0.001})())
            with torch.no_grad():
                return model(*inputs)

    keyboard = Keyboard(Plain(), words)
    keyboard.type("w5 w9")
    shown = capsys.readouterr().out.splitlines()[-1].split()[7::2]
    with torch.no_grad():
        scores, _ = model(torch.tensor([[WORDS - 2, 5, 9]]), None)
    scores[0, -1] = -np.inf
    assert shown == [words[number] for number in torch.topk(scores[0], 5).indices]


def test_a_keyboard_whose_input_is_closed(keyboard_folder, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", None)
    assert main(["--type", "--folder", str(keyboard_folder)]) == 1
    assert "found a closed standard input" in capsys.readouterr().err


def test_a_keyboard_shows_no_control_characters(keyboard_folder, monkeypatch, capsys):
    code, said = typed(keyboard_folder, b"w3 \x1b]0;x\x07\n", monkeypatch, capsys)
    assert code == 0
    assert "w3" in said.out
    assert not {"\x1b", "\x07"} & set(said.out)


def test_a_folder_of_a_run_that_did_not_end(keyboard_folder, monkeypatch, capsys):
    shutil.rmtree(keyboard_folder / "separate")
    code, said = typed(keyboard_folder, b"w1\n", monkeypatch, capsys)
    assert code == 1
    assert "separate: found no tables for servers" in said.err
    assert "usage" not in said.err


@pytest.mark.parametrize(
    "content",
    [
        None,
        "{",
        '{"words": []}',
        '{"shape": 3, "words": []}',
        '{"shape": {"cuts": [9]}, "words": ["a", "<eos>"]}',
        '{"shape": {"cuts": [1], "hidden": -1}, "words": ["a", "<unk>", "<eos>"]}',
        '{"shape": {"cuts": [1], "layers": "2"}, "words": ["a", "<unk>", "<eos>"]}',
        '{"shape": {"cuts": [2, 1]}, "words": ["a", "<unk>", "<eos>"]}',
    ],
)
def test_a_folder_of_no_earlier_run(tmp_path, content, monkeypatch, capsys):
    if content is not None:
        (tmp_path / "language.json").write_text(content)
    code, said = typed(tmp_path, b"w1\n", monkeypatch, capsys)
    assert code == 1
    assert "language.json" in said.err
    assert "run" in said.err


@pytest.mark.parametrize("option", ["--small", "--full", "--cache-rows=9"])
def test_a_keyboard_takes_no_options_of_a_run(option, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("w1\n"))
    assert main(["--type", option]) == 1
    assert "--type: found --small, --full or --cache-rows" in capsys.readouterr().err
