"""Memory, processor time and bytes read from disks, of a process and of all below it, on Linux."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Process", "Watch", "tree"]

_TICKS = os.sysconf("SC_CLK_TCK")
_STEP_SECONDS = 0.25


class Process(NamedTuple):
    """A process: its title, the seconds of processors that it has had, and bytes.

    `private` is memory that no file backs, `read` what disks have given it.
    """

    pid: int
    title: str
    seconds: float
    private: int
    read: int


def tree(root: int) -> list[Process]:
    """Lists a process and all below it. Those that end meanwhile are left out."""
    parents = dict(_parents())
    found = [root]
    for pid in found:
        found.extend(child for child, parent in parents.items() if parent == pid)
    return [one for pid in found if (one := _described(pid)) is not None]


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            yield int(entry.name), int(stat.rpartition(")")[2].split()[1])


def _described(pid: int) -> Process | None:
    folder = Path("/proc", str(pid))
    try:
        title = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        counts = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
    except (OSError, ValueError):
        return None
    private = sum(int(status.get(name, "0 kB").split()[0]) for name in ("RssAnon", "RssShmem"))
    seconds = (int(fields[11]) + int(fields[12])) / _TICKS
    return Process(pid, title.strip(), seconds, private << 10, int(counts["read_bytes"]))


class Watch:
    """Follows the memory of a process and all below it until its block ends."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.peak = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> "Watch":
        """Starts."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends."""
        self._stopped.set()
        self._thread.join()

    def read(self) -> int:
        """Returns the bytes that disks have given the processes until now."""
        return sum(one.read for one in tree(self._root))

    def _follow(self) -> None:
        while not self._stopped.wait(_STEP_SECONDS):
            self.peak = max(self.peak, sum(one.private for one in tree(self._root)))
