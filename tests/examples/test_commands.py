"""The command lines of the applications in the documentation."""

import importlib
import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*/*.md"))]
LINE = re.compile(r"^\$ python examples/(\w+)/main\.py(.*)$", re.MULTILINE)
COMMANDS = [(page, *found) for page in PAGES for found in LINE.findall(page.read_text())]


@pytest.mark.parametrize(("page", "name", "options"), COMMANDS)
def test_commands_of_applications_are_grammatical(page, name, options):
    command = importlib.import_module(f"examples.{name}.main").command_line()
    command.parse_args(shlex.split(options, comments=True))


def test_every_application_is_documented():
    folders = {path.parent.name for path in (ROOT / "examples").glob("*/main.py")}
    assert {name for _, name, _ in COMMANDS} == folders


@pytest.mark.parametrize("page", [p for p in PAGES if "examples" in p.parts], ids=str)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
