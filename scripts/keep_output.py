"""Runs a compiler and keeps its messages: those of `... -o X.o` in the file `X.o.txt`.

    python scripts/keep_output.py nvcc -Xptxas=-v ... -o X.o

Of a compilation that succeeds, what ptxas says about kernels is not printed as well.
"""

import re
import subprocess
import sys
from pathlib import Path

_ABOUT_KERNELS = re.compile(rb"ptxas info |    \d+ bytes stack frame")


def main() -> int:
    """Returns the compiler's exit code."""
    command = sys.argv[1:]
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    lines = done.stderr.splitlines(keepends=True)
    if done.returncode == 0:
        Path(command[command.index("-o") + 1] + ".txt").write_bytes(done.stderr)
        lines = [line for line in lines if not _ABOUT_KERNELS.match(line)]
    sys.stderr.buffer.write(b"".join(lines))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
