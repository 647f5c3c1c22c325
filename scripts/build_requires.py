"""Prints what `pip install --no-build-isolation` needs: what the build requires, and its tools.

python scripts/build_requires.py
"""

import tomllib
from pathlib import Path

_PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def main() -> None:
    """Prints one requirement a line."""
    requires = tomllib.loads(_PROJECT.read_text())["build-system"]["requires"]
    print("\n".join([*requires, "cmake>=3.20", "ninja>=1.11"]))


if __name__ == "__main__":
    main()
