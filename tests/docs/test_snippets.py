"""Runs every Python block of the documentation, and parses every `nescio` command line."""

import importlib
import re
import shlex
from pathlib import Path

import pytest

from benchmarks._main import build_parser as benchmark_parser
from nescio.cli import build_parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    return [code for found, code in FENCE.findall(page.read_text()) if found == language]


def commands(page):
    lines = "\n".join(blocks(page, "console") + blocks(page, "")).splitlines()
    return [line[2:] for line in lines if line.startswith("$ ")]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_blocks_run_in_order(page):
    if any("import torch" in code for code in blocks(page, "python")):
        pytest.importorskip("torch")
    namespace = {}
    for code in blocks(page, "python"):
        exec(compile(code, page.name, "exec"), namespace)


def lines_that_start_with(words):
    return [
        (page.name, line) for page in PAGES for line in commands(page) if line.startswith(words)
    ]


@pytest.mark.parametrize(("page", "line"), lines_that_start_with("nescio "))
def test_commands_are_grammatical(page, line):
    build_parser().parse_args(shlex.split(line, comments=True)[1:])


@pytest.mark.parametrize(("page", "line"), lines_that_start_with("python -m benchmarks."))
def test_benchmarks_are_grammatical(page, line):
    _, _, module, *arguments = shlex.split(line, comments=True)
    folder = importlib.import_module(f"{module}.__main__")
    benchmark_parser(module, "", folder.BENCHMARKS).parse_args(arguments)


def test_make_lines_have_targets():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = [c for p in PAGES for c in commands(p) if c.startswith("make ")]
    assert lines
    assert {shlex.split(line, comments=True)[1] for line in lines} <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
