"""Checks the wording that a program can check.

    python scripts/check_words.py

A docstring starts with a verb or a noun phrase, not with What, Whether, Where, Who, How or Which.
The same holds for the `///` comments of the engine. The subject of a commit has at most 72
characters; a clone without the history since the rule is checked skips this check.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_PYTHON = ("src", "tests/spec", "benchmarks", "examples", "scripts")
_ENGINE = ("core", "tests/core")
_OPENING = re.compile(r"(What|Whether|Where|Who|How|Which)\b")
_LAST_UNCHECKED = "dd44ccc"
_SUBJECT = 72


def _docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the line and text of every docstring, those of attributes included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, node.value.value


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the line and text of the first line of every `///` comment."""
    inside = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        _, mark, text = line.partition("///")
        if mark and not inside:
            yield number, text.lstrip("<")
        inside = line.lstrip().startswith("///")


def wrong_openings(root: Path = _ROOT) -> list[str]:
    """Returns a line for every docstring or comment that opens with a question word."""
    python = [p for folder in _PYTHON for p in sorted((root / folder).rglob("*.py"))]
    engine = [p for folder in _ENGINE for p in sorted((root / folder).rglob("*")) if p.is_file()]
    found = [(path, *text) for path in python for text in _docstrings(path)]
    found += [
        (path, *text)
        for path in engine
        if path.suffix in {".h", ".cc", ".cu"}
        for text in _comments(path)
    ]
    return [
        f"{path.relative_to(root)}:{line}: opens with a question word: {text.strip()[:60]!r}"
        for path, line, text in found
        if _OPENING.match(text.strip())
    ]


def long_subjects(root: Path = _ROOT) -> list[str]:
    """Returns a line for every commit whose subject is too long, or none without the history."""
    git = ["git", "-C", str(root)]
    try:
        log = subprocess.run(
            [*git, "log", "--format=%h %s", f"{_LAST_UNCHECKED}..HEAD"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return []  # no git, no repository, or a shallow clone
    commits = [line.split(" ", 1) for line in log.stdout.splitlines()]
    return [
        f"commit {name}: the subject has {len(subject)} characters, expected at most {_SUBJECT}"
        for name, subject in commits
        if len(subject) > _SUBJECT
    ]


def main() -> int:
    """Returns 0 if no problem is found."""
    problems = wrong_openings() + long_subjects()
    print("\n".join(problems) or "wording: no problem in docstrings, comments and commit subjects")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
