"""A server as a process of its own, gone when the block that needs it ends."""

import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from ..errors import ServiceError

_START_SECONDS = 120
_STOP_SECONDS = 10


class Spawned:
    """A server that has been started, and may not be ready yet."""

    def __init__(self, process: "subprocess.Popen[str]", log: IO[str]) -> None:
        self._process = process
        self._log = log

    def url(self) -> str:
        """Waits until it is ready: its address. Raises ServiceError with its own words if not."""
        assert self._process.stdout is not None
        impatience = threading.Timer(_START_SECONDS, self._process.kill)
        impatience.daemon = True
        try:
            impatience.start()
            for line in self._process.stdout:
                if " on http" in line:
                    return line.split()[-1]
        finally:
            impatience.cancel()
        self._process.wait()
        self._log.seek(0)
        words = self._log.read().strip().removeprefix("nescio: ")
        raise ServiceError(words or f"a server ended with code {self._process.returncode}", url="")


@contextmanager
def spawned(arguments: Sequence[str]) -> Iterator[Spawned]:
    """`nescio serve` with these arguments, stopped on the way out."""
    command = [sys.executable, "-P", "-m", "nescio", "serve", *arguments, "--exit-with-stdin"]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            yield Spawned(process, log)
        finally:
            _stop(process)


def _stop(process: "subprocess.Popen[str]") -> None:
    """Asks by closing its input, then by signal, then insists."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    for insist in (process.terminate, process.kill):
        try:
            process.wait(_STOP_SECONDS)
            break
        except subprocess.TimeoutExpired:
            insist()
    process.wait()
    process.stdout.close()
