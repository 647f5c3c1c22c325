"""Builds the engine in build/engine and installs the package into this environment, in place.

    python scripts/install.py [-D NAME=VALUE ...]

Each option is a CMake option, such as NESCIO_CUDA=ON; build/engine keeps it for later calls. Python
sources are used where they are. The engine's tests (`make check`) are built in the same folder from
the same library. Prints the steps of the build as they end, and keeps all output in
build/install.log.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_LOG = _ROOT / "build" / "install.log"
_STEP = re.compile(r"\s*\[(\d+)/(\d+)\] ")
_NO_COMPILER = """error: found no C++ compiler; the engine needs one for C++20. Install the package
  g++      on Debian and Ubuntu:  sudo apt install g++
  gcc-c++  on Fedora and RHEL:    sudo dnf install gcc-c++
or on macOS run: xcode-select --install. CXX=/path/to/compiler names another."""


class _Progress:
    """One line on a terminal; elsewhere a line for each quarter of the steps."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._quarter = -1

    def show(self, done: int, steps: int) -> None:
        if self._terminal:
            print(f"\r  compiled {done} of {steps} files", end="", flush=True)
        elif steps >= 8 and 4 * done // steps > self._quarter:
            self._quarter = 4 * done // steps
            print(f"  compiled {done} of {steps} files", flush=True)

    def end(self) -> None:
        if self._terminal:
            print("\r\033[K", end="", flush=True)


def _compiler() -> str | None:
    named = os.environ.get("CXX", "").split()
    return next(filter(None, map(shutil.which, named[:1] or ["c++", "g++", "clang++"])), None)


def _install(options: list[str]) -> int:
    """Runs pip and returns its exit code."""
    settings = ["build-dir=build/engine", *(f"cmake.define.{option}" for option in options)]
    command = [sys.executable, "-m", "pip", "install", "-v", "--no-build-isolation", "--no-deps"]
    command += [part for setting in settings for part in ("-C", setting)] + ["--editable", "."]
    progress = _Progress()
    with _LOG.open("w") as log:
        pip = subprocess.Popen(
            command, cwd=_ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert pip.stdout is not None
        for line in pip.stdout:
            log.write(line)
            if step := _STEP.match(line):
                progress.show(int(step[1]), int(step[2]))
        progress.end()
        return pip.wait()


_FAILURE = re.compile(r"\berror:|^FAILED:|CMake Error", re.IGNORECASE)


def main() -> int:
    """Returns 0 if the package is installed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("-D", dest="options", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args().options
    if _compiler() is None:
        print(_NO_COMPILER, file=sys.stderr)
        return 1
    _LOG.parent.mkdir(exist_ok=True)
    print("Building the engine (C++), about a minute on two processors the first time:", flush=True)
    start = time.monotonic()
    if code := _install(options):
        lines = _LOG.read_text().splitlines()
        first = next((i for i, t in enumerate(lines) if _FAILURE.search(t)), len(lines))
        print("\n".join(lines[max(0, first - 3) : first + 30]), file=sys.stderr)
        print(f"error: the build failed; all of its output is in {_LOG}", file=sys.stderr)
        return code
    print(f"  done in {time.monotonic() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
