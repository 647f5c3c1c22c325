"""The errors that actors raise, without Ray's traceback."""

import re

from ...errors import FileError, NescioError, ResourceError

_RAISED = re.compile(r"^\s*nescio\.errors\.(\w+): (.+)$", re.MULTILINE)
_AT_START = "creation task"


def is_at_start(error: BaseException) -> bool:
    """Tests if an actor has ended because its constructor raised an error."""
    return _AT_START in str(error)


def cause_of(error: BaseException) -> NescioError:
    """Returns the error that an actor raised; a ResourceError of one line for others than ours.

    Of an actor that failed at its start Ray keeps the text of the error alone.
    """
    cause = getattr(error, "cause", error)
    if isinstance(cause, NescioError):
        return cause
    text = str(error)
    if found := _RAISED.findall(text):
        kind, message = found[-1]
        return FileError(message) if kind == FileError.__name__ else ResourceError(message)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ResourceError(lines[-1 if is_at_start(error) else 0] if lines else type(error).__name__)
