"""How much memory something took, at its peak."""

import contextlib
import ctypes
import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"


class PeakMemory:
    """Resident memory above that of the moment this was made, in bytes."""

    def __init__(self) -> None:
        _give_back()
        self._before = _resident("VmRSS")

    def forget(self) -> None:
        """Begins a new peak, where the system can (Linux)."""
        _give_back()
        if _CLEAR.exists():
            _CLEAR.write_text(_FORGET_PEAK)

    def bytes(self) -> int:
        """The most that was resident since `forget`, or, elsewhere, since the program began."""
        return max(0, _resident("VmHWM") - self._before)


def _give_back() -> None:
    """Has the C library return what was freed, so that it is not taken for what is to come."""
    with contextlib.suppress(OSError, AttributeError):  # other libraries have no such call
        ctypes.CDLL(None).malloc_trim(0)


def _resident(field: str) -> int:
    if not _STATUS.exists():
        usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return usage if sys.platform == "darwin" else usage * 1024
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0
