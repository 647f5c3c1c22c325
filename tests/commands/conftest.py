"""Runs the command line as a user does: processes, output, exit codes."""

import contextlib
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nescio.cli import main

ROOT = Path(__file__).parents[2]


def nescio(*arguments, **options):
    """Runs a command until it exits."""
    command = [sys.executable, "-m", "nescio", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def nescio_here(*arguments):
    """Runs a command to its end in this process: for the many that only refuse their arguments."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = main([*map(str, arguments)])
        except SystemExit as error:  # of argparse
            code = error.code
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())


def benchmark(folder, *arguments, **options):
    """Runs a benchmark of the folder `benchmarks` to its end, in any working directory."""
    command = [sys.executable, "-m", f"benchmarks.{folder}", *map(str, arguments)]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=env, **options)


@contextlib.contextmanager
def serving(*arguments):
    """Runs `nescio serve` until the block ends; gives its process, URL and output."""
    command = [sys.executable, "-m", "nescio", "serve", *map(str, arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    lines = []
    try:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if " on http" in line:
                break
        else:
            raise AssertionError(process.stderr.read())
        yield process, lines[-1].split()[-1], lines
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def write_words(folder):
    """Writes a table of 100 rows of 3 floats; returns its path."""
    path = folder / "words.npy"
    np.save(path, np.arange(300, dtype="f4").reshape(100, 3))
    return path


@pytest.fixture
def table_file(tmp_path):
    return write_words(tmp_path)


def assert_one_sentence(finished, code=1):
    """Checks a failure: one sentence on standard error and an exit code, no traceback."""
    assert finished.returncode == code, finished.stderr
    assert finished.stderr.startswith("nescio: ")
    assert len(finished.stderr.strip().splitlines()) == 1
    assert "Traceback" not in finished.stderr
