"""The scripts of the build: each check finds a planted mistake."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"


@pytest.fixture
def check_words():
    spec = importlib.util.spec_from_file_location("check_words", SCRIPTS / "check_words.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("text", ["What it is.", "Whether it is.", "How.", "Which one?"])
@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("src/a.py", 'def f():\n    """{}"""\n'),
        ("src/a.py", 'X = 1\n"""{}"""\n'),
        ("core/a.h", "/// {}\nint f();\n"),
        ("core/a.h", "int x;  ///< {}\n"),
    ],
)
def test_a_docstring_that_opens_with_a_question_word(check_words, tmp_path, name, source, text):
    path = tmp_path / name
    path.parent.mkdir()
    path.write_text(source.format(text))
    (problem,) = check_words.wrong_openings(tmp_path)
    assert problem.startswith(f"{name}:")


@pytest.mark.parametrize("text", ["Returns what it is.", "Whatever it is.", "Whole rows."])
def test_other_openings(check_words, tmp_path, text):
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "a.h").write_text(f"/// {text}\n/// Where this line opens is free.\n")
    assert check_words.wrong_openings(tmp_path) == []


def test_a_folder_without_history_has_no_long_subjects(check_words, tmp_path):
    assert check_words.long_subjects(tmp_path) == []


def requirements(*names):
    command = [sys.executable, SCRIPTS / "requirements.py", *names]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_requirements_of_extras_include_those_of_their_extras():
    names = {line.split(">")[0].split(";")[0] for line in requirements("demo")}
    assert {"starlette", "pyarrow"} <= names
    assert not any("nescio" in name for name in names)


def test_requirements_of_the_build_include_its_tools():
    assert {"cmake>=3.20", "ninja>=1.11"} <= set(requirements("build"))


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def dry_run(folder, target):
    command = ["make", "--no-print-directory", "-C", folder, "-n", target]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@needs_make
def test_make_refuses_a_path_with_a_space(tmp_path):
    folder = tmp_path / "my work"
    folder.mkdir()
    shutil.copy(SCRIPTS.parent / "Makefile", folder)
    found = dry_run(folder, "demo")
    assert found.returncode == 2
    assert "the path of this checkout contains a space" in found.stderr


@needs_make
def test_the_audits_figures_install_the_lattice_reduction():
    found = dry_run(SCRIPTS.parent, "paper-audit")
    assert "scripts/requirements.py audit-lattice" in found.stdout
    assert any("python-flint" in line for line in requirements("audit-lattice"))


def test_the_lookup_that_checks_a_wheel():
    spec = importlib.util.spec_from_file_location("wheel", SCRIPTS / "wheel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = subprocess.run([sys.executable, "-c", module._LOOKUP], capture_output=True, text=True)
    assert found.stdout.startswith("a lookup with"), found.stderr
