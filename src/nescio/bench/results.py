"""The cases of a benchmark as a JSON file, complete after every case."""

import json
import secrets
from pathlib import Path
from types import TracebackType

from .._report import Case, check_writable

__all__ = ["Results"]


class Results:
    """The cases measured so far, and, if there is a path, the JSON file that lists them.

    The file is replaced as a whole after each case, so a run that is cut short leaves valid JSON
    with everything measured until then. A path that is not a regular file, such as a pipe, is
    written once, when the `with` block ends.

    Raises ArgumentError, when made, if the path cannot be written.
    """

    def __init__(self, path: str | Path | None) -> None:
        check_writable(None if path is None else str(path))
        self.cases: list[Case] = []
        self._path = None if path is None else Path(path).resolve()
        self._replaceable = path is not None and (not Path(path).exists() or Path(path).is_file())

    def __enter__(self) -> "Results":
        """Returns itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Writes the file if it is not a regular file, or if there are no cases."""
        if self._path is not None and (not self._replaceable or (not self.cases and kind is None)):
            self._path.write_text(self._text(), encoding="utf-8")

    def add(self, case: Case) -> None:
        """Appends a case and writes the file."""
        self.cases.append(case)
        if self._path is not None and self._replaceable:
            _replace(self._path, self._text())

    def _text(self) -> str:
        return json.dumps(self.cases, indent=1) + "\n"


def _replace(path: Path, text: str) -> None:
    """Replaces a file's content in one step; in place where its folder allows no new file."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        file = new.open("x", encoding="utf-8")
    except OSError:
        path.write_text(text, encoding="utf-8")
        return
    try:
        with file:
            file.write(text)
        if path.exists():
            new.chmod(path.stat().st_mode & 0o777)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
