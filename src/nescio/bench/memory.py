"""Peak resident memory."""

import contextlib
import ctypes
import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"


class PeakMemory:
    """Resident memory, in bytes, above that at the time of creation."""

    def __init__(self) -> None:
        _give_back()
        self._before = _resident("VmRSS")

    def forget(self) -> None:
        """Resets the peak, where the system can (Linux)."""
        _give_back()
        if _CLEAR.exists():
            _CLEAR.write_text(_FORGET_PEAK)

    def bytes(self) -> int:
        """Returns the peak since `forget`, or since the start if the system cannot reset it."""
        return max(0, _resident("VmHWM") - self._before)


def _give_back() -> None:
    """Makes the C library return freed memory, which would count as resident otherwise."""
    with contextlib.suppress(OSError, AttributeError):  # only glibc has this function
        ctypes.CDLL(None).malloc_trim(0)


def _resident(field: str) -> int:
    if not _STATUS.exists():
        usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return usage if sys.platform == "darwin" else usage * 1024
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0
