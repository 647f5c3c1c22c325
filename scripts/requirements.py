"""Prints the requirements of the build or of extras, one per line, as pyproject.toml has them.

python scripts/requirements.py build          to build without build isolation, tools included
python scripts/requirements.py test docs      of these extras and of the extras that they include
"""

import re
import sys
import tomllib
from pathlib import Path

_PROJECT = Path(__file__).parent.parent / "pyproject.toml"
_TOOLS = ["cmake>=3.20", "ninja>=1.11"]
_OWN = re.compile(r"nescio\[([a-z,-]+)\]")


def _of_extra(extras: dict[str, list[str]], name: str) -> list[str]:
    found: list[str] = []
    for requirement in extras[name]:
        own = _OWN.fullmatch(requirement)
        if own is None:
            found.append(requirement)
        else:
            found += [r for extra in own[1].split(",") for r in _of_extra(extras, extra)]
    return found


def main() -> None:
    """Prints the requirements that the arguments name."""
    table = tomllib.loads(_PROJECT.read_text())
    found: list[str] = []
    for name in sys.argv[1:]:
        if name == "build":
            found += [
                *table["build-system"]["requires"],
                *table["project"]["dependencies"],
                *_TOOLS,
            ]
        else:
            found += _of_extra(table["project"]["optional-dependencies"], name)
    print("\n".join(dict.fromkeys(found)))


if __name__ == "__main__":
    main()
