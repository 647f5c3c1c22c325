"""Starts a server in a child process, which ends with a `with` block."""

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
    """A server process that may not be ready yet."""

    def __init__(self, process: "subprocess.Popen[str]", log: IO[str]) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def url(self, seconds: float = _START_SECONDS) -> str:
        """Waits until it is ready; returns its URL. Raises ServiceError with its message.

        A server that is not ready after some seconds is killed.
        """
        assert self._process.stdout is not None
        timeout = threading.Timer(seconds, self._process.kill)
        timeout.daemon = True
        try:
            timeout.start()
            for line in self._process.stdout:
                if " on http" in line:
                    return line.split()[-1]
        finally:
            timeout.cancel()
        self._process.wait()
        self._log.seek(0)
        message = self._log.read().strip().removeprefix("nescio: ")
        raise ServiceError(
            message or f"a server ended with code {self._process.returncode}", url=""
        )


@contextmanager
def spawned(arguments: Sequence[str]) -> Iterator[Spawned]:
    """Runs `nescio serve` with these arguments until the block ends."""
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
    """Closes standard input, then sends SIGTERM, then SIGKILL."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    for signal in (process.terminate, process.kill):
        try:
            process.wait(_STOP_SECONDS)
            break
        except subprocess.TimeoutExpired:
            signal()
    process.wait()
    process.stdout.close()
