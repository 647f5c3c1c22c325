"""Builds a wheel for Linux with glibc 2.28 or newer into dist, and checks it.

    python scripts/wheel.py [--python python3.12]

Zig, from PyPI, compiles for the old glibc. Without `--python` the wheel is for this Python; from
Python 3.12 on, one wheel serves all later versions too (the stable ABI). auditwheel checks the
wheel, and so does a lookup in a new environment whose PATH has no compiler. Wheels contain no CUDA
code.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_WORK = _ROOT / "build" / "wheel"
_DIST = _ROOT / "dist"
_GLIBC = "2.28"
_FORBIDDEN = ("_emulated", "_cuda", "benchmarks/", "tests/")
_LOOKUP = """
import numpy as np, nescio
rows = np.arange(4000, dtype=np.uint8).reshape(1000, 4)
table = nescio.Table(rows)
client = nescio.Client(table.params, table.tops)
servers = [nescio.Server(table) for _ in range(2)]
query = client.query([17, 999])
found = client.decode(query, *(s.answer(k) for s, k in zip(servers, query.keys, strict=True)))
assert (found == rows[[17, 999]]).all()
print("a lookup with", nescio.__file__)
"""


def _run(*command: str | Path, **settings: object) -> None:
    subprocess.run([str(part) for part in command], check=True, **settings)  # type: ignore[call-overload]


def _compiler(python: Path) -> dict[str, str]:
    """Writes the commands that call Zig, and returns the environment that names them."""
    target = f"{platform.machine()}-linux-gnu.{_GLIBC}"
    tools = {"c++": f"c++ -target {target}", "ar": "ar", "ranlib": "ranlib"}
    for name, arguments in tools.items():
        script = _WORK / f"zig-{name}"
        script.write_text(f'#!/bin/sh\nexec "{python}" -m ziglang {arguments} "$@"\n')
        script.chmod(0o755)
    return {**os.environ, "CXX": str(_WORK / "zig-c++")}


def _environment(python: str, folder: Path, requirements: list[str]) -> Path:
    _run(python, "-m", "venv", folder)
    _run(folder / "bin" / "pip", "install", "--quiet", *requirements)
    return folder / "bin" / "python"


def _requirements() -> list[str]:
    script = _ROOT / "scripts" / "requirements.py"
    command = [sys.executable, str(script), "build", "wheel"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def _build(python: Path, folder: Path) -> Path:
    """Returns the wheel as the build leaves it."""
    defines = {
        "NESCIO_CUDA": "OFF",
        "CMAKE_DISABLE_PRECOMPILE_HEADERS": "ON",  # Zig does not write them
        "CMAKE_AR": str(_WORK / "zig-ar"),
        "CMAKE_RANLIB": str(_WORK / "zig-ranlib"),
    }
    settings = [f"build-dir={folder}", *(f"cmake.define.{k}={v}" for k, v in defines.items())]
    options = [part for setting in settings for part in ("-C", setting)]
    environment = {**_compiler(python), "PATH": f"{python.parent}:{os.environ['PATH']}"}
    command = [python, "-m", "pip", "wheel", "-v", "--no-deps", "--no-build-isolation", *options]
    with tempfile.TemporaryDirectory(dir=_WORK) as made:
        _run(*command, "-w", made, ".", cwd=_ROOT, env=environment)
        (wheel,) = Path(made).glob("*.whl")
        return wheel.rename(_WORK / wheel.name)


def _repair(python: Path, wheel: Path) -> Path:
    """Names the wheel after the oldest glibc that it runs with; auditwheel checks its symbols."""
    tag = f"manylinux_{_GLIBC.replace('.', '_')}_{platform.machine()}"
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"}
    _run(python, "-m", "auditwheel", "show", wheel, env=environment)
    with tempfile.TemporaryDirectory(dir=_WORK) as made:
        _run(
            python, "-m", "auditwheel", "repair", "--plat", tag, "-w", made, wheel, env=environment
        )
        (repaired,) = Path(made).glob("*.whl")
        return repaired.rename(_WORK / repaired.name)


def _check(python: str, wheel: Path) -> None:
    """Looks rows up with the wheel, in a new environment without a compiler."""
    names = zipfile.ZipFile(wheel).namelist()
    if wrong := [name for name in names if any(part in name for part in _FORBIDDEN)]:
        sys.exit(f"error: {wheel.name} contains {', '.join(wrong)}")
    with tempfile.TemporaryDirectory() as folder:
        own = _environment(python, Path(folder) / "venv", [str(wheel)])
        _run(own, "-c", _LOOKUP, cwd=folder, env={"PATH": str(own.parent), "HOME": folder})


def main() -> None:
    """Builds and checks one wheel."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--python", default=sys.executable, help="the Python that the wheel is for (this one)"
    )
    base = parser.parse_args().python
    _WORK.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(
        [base, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    python = _environment(base, _WORK / f"{version}-environment", _requirements())
    folder = _WORK / version
    wheel = _repair(python, _build(python, folder))
    _run(python, _ROOT / "scripts" / "check_tiers.py", folder)
    _check(base, wheel)
    _DIST.mkdir(exist_ok=True)
    wheel = wheel.rename(_DIST / wheel.name)
    print(f"{wheel.relative_to(_ROOT)}: {wheel.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
