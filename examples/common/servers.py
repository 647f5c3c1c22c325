"""Two servers on this machine, each a process of `nescio serve`."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from nescio.errors import ServiceError

_STOP_SECONDS = 10


@contextmanager
def two_servers(
    tables: Sequence[Path], *options: str, seconds: float = 900
) -> Iterator[tuple[str, str]]:
    """Serves files of tables until the block ends; gives the addresses of both servers.

    Two processes of one machine protect nothing: in use, each server is another operator's. Each
    has one thread, and answers a request at once. `options` are further ones of `nescio serve`.
    After `seconds` the servers are killed. Raises ServiceError with the message of a server that
    does not start.
    """
    with ExitStack() as running:
        arguments = [*map(str, tables), "--threads", "1", "--batch-window", "0", *options]
        servers = [running.enter_context(_server(party, arguments, seconds)) for party in (0, 1)]
        first, second = map(_address, servers)
        yield first, second


@contextmanager
def _server(
    party: int, arguments: Sequence[str], seconds: float
) -> Iterator["subprocess.Popen[str]"]:
    """Runs a server, whose messages on standard error join its output."""
    # -P: no module of the current folder, from which paths begin, is imported
    command = [sys.executable, "-P", "-m", "nescio", "serve", *arguments, "--party", str(party)]
    process = subprocess.Popen(  # noqa: S603 - our own command
        [*command, "--port", "0", "--exit-with-stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    limit = threading.Timer(seconds, process.kill)
    limit.daemon = True
    limit.start()
    try:
        yield process
    finally:
        limit.cancel()
        _stop(process)


def _address(process: "subprocess.Popen[str]") -> str:
    """Waits until a server is ready, and returns its address."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        if " on http" in line:
            return line.split()[-1]
        lines.append(line.strip())
    code = process.wait()
    raise ServiceError(
        f"a server ended with code {code}: {' '.join(lines) or 'no message'}", url=""
    )


def _stop(process: "subprocess.Popen[str]") -> None:
    """Closes standard input, at which a server ends; kills it if it does not."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
