"""Checks that no code compiled for one CPU tier can be linked into code that runs everywhere.

A file that is compiled with -mavx512f and leaves a shared (weak) function behind may have that copy
chosen by the linker for every caller, and older machines then die of an illegal instruction. So the
objects of the tiers may define functions of their own only.

    python scripts/check_tiers.py BUILD_FOLDER
"""

import subprocess
import sys
from pathlib import Path

_SHARED = set("Ww")  # weak functions; shared data (V, v, u) has no instructions


def main() -> int:
    """Returns 0 if every object of a tier keeps to itself."""
    objects = [
        path for tier in ("avx2", "avx512") for path in Path(sys.argv[1]).rglob(f"*_{tier}.cc.o")
    ]
    problems = []
    for path in objects:
        command = ["nm", "-C", "--defined-only", str(path)]
        listing = subprocess.run(command, capture_output=True, text=True, check=True)
        for line in listing.stdout.splitlines():
            _, kind, name = line.split(maxsplit=2)
            if kind in _SHARED:
                problems.append(f"{path.name}: {name} is shared with other tiers")
    print("\n".join(problems) or f"{len(objects)} objects of CPU tiers keep to themselves")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
