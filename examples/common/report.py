"""Reports of applications: texts on standard output, and the facts as JSON."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from nescio.errors import FileError

_HEX = 64


class Report:
    """Prints an application's steps and results; `facts` has the numbers, for a file."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self._begin = time.monotonic()

    def step(self, text: str) -> None:
        """Prints the heading of a step, with the seconds since the start."""
        print(f"\n[{time.monotonic() - self._begin:5.0f} s] {text}", flush=True)

    def say(self, text: str) -> None:
        """Prints a line of a step."""
        print(f"  {text}", flush=True)

    def table(self, columns: Sequence[str], lines: Mapping[str, Sequence[object]]) -> None:
        """Prints lines of texts and numbers, with a heading for each column."""
        cells = {name: [_cell(value) for value in values] for name, values in lines.items()}
        widths = [
            max(len(heading), *(len(row[i]) for row in cells.values()))
            for i, heading in enumerate(columns)
        ]
        first = max(map(len, cells))
        for name, row in ({"": list(columns)} | cells).items():
            padded = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            self.say(f"{name:{first}}  {'  '.join(padded)}")

    def seen(self, message: bytes) -> None:
        """Prints the ends of a message, all that a server saw of one inference."""
        text = message.hex()
        self.say(f"all that a server saw of one inference: {len(message):,} bytes")
        self.say(f"  {text[:_HEX]}...{text[-_HEX:]}")

    def save(self, path: Path) -> None:
        """Writes the facts as JSON. Raises FileError if that fails."""
        try:
            path.write_text(json.dumps(self.facts, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise FileError(f"{path}: cannot be written: {error.strerror}") from error


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
