"""Holds the checked-in stub of the engine against the engine as it was built.

python scripts/check_stub.py BUILD_FOLDER STUB [--write]
"""

import difflib
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> int:
    """Returns 0 if the stub says what the extension offers; `--write` makes it so."""
    build, stub = Path(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "_core.pyi"
        command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "_core"]
        subprocess.run([*command, "-i", str(build), "-o", str(made)], check=True)
        text = made.read_text()
    if "--write" in sys.argv[3:]:
        stub.write_text(text)
        return 0
    lines = [t.splitlines(keepends=True) for t in (stub.read_text(), text)]
    difference = "".join(difflib.unified_diff(*lines, str(stub), "the engine as built"))
    if difference:
        print(f"{difference}\nwrite it anew: python scripts/check_stub.py {build} {stub} --write")
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
