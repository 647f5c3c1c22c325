"""Two servers as processes of their own on loopback, gone when the demonstration ends."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from ..errors import ServiceError

TABLE = "words"
_START_SECONDS = 120
_STOP_SECONDS = 10


@contextmanager
def two_servers(table: Path, ports: Sequence[int], generator: str) -> Iterator[tuple[str, str]]:
    """The addresses of a server of each party, started together, stopped on the way out.

    Raises ServiceError with the server's own words if one does not start.
    """
    threads = max(1, len(os.sched_getaffinity(0)) // 2) if hasattr(os, "sched_getaffinity") else 1
    with ExitStack() as stack:
        started = [
            stack.enter_context(_process(table, party, ports[party], threads, generator))
            for party in (0, 1)
        ]
        urls = [_wait_until_ready(process, log) for process, log in started]
        yield urls[0], urls[1]


@contextmanager
def _process(
    table: Path, party: int, port: int, threads: int, generator: str
) -> Iterator[tuple["subprocess.Popen[str]", IO[str]]]:
    command = [sys.executable, "-P", "-m", "nescio", "serve", str(table), "--name", TABLE]
    command += ["--party", str(party), "--port", str(port), "--threads", str(threads)]
    command += ["--generator", generator, "--exit-with-stdin"]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            yield process, log
        finally:
            _stop(process)


def _wait_until_ready(process: "subprocess.Popen[str]", log: IO[str]) -> str:
    """Reads what the server prints until it names its address."""
    assert process.stdout is not None
    impatience = threading.Timer(_START_SECONDS, process.kill)
    impatience.daemon = True
    try:
        impatience.start()
        for line in process.stdout:
            if " on http" in line:
                return line.split()[-1]
    finally:
        impatience.cancel()
    process.wait()
    log.seek(0)
    words = log.read().strip().removeprefix("nescio: ")
    raise ServiceError(words or f"a server ended with code {process.returncode}", url="")


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
