"""The documentation runs: every Python block, and every `nescio` line against the grammar."""

import re
import shlex
from pathlib import Path

import pytest

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


NESCIO_LINES = [(p.name, c) for p in PAGES for c in commands(p) if c.startswith("nescio ")]


@pytest.mark.parametrize(("page", "line"), NESCIO_LINES)
def test_commands_are_grammatical(page, line):
    build_parser().parse_args(shlex.split(line, comments=True)[1:])


def test_make_lines_have_targets():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = [c for p in PAGES for c in commands(p) if c.startswith("make ")]
    assert lines
    assert {shlex.split(line, comments=True)[1] for line in lines} <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
