"""Both servers of the demonstration, on loopback."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from .. import _core
from ..service._spawn import spawned

TABLE = "words"


@contextmanager
def two_servers(
    table: Path, ports: Sequence[int], generator: str, device: str
) -> Iterator[tuple[str, str]]:
    """The addresses of a server of each party, started together, stopped on the way out.

    Raises ServiceError with the server's own words if one does not start.
    """
    threads = max(1, _core.available_processors() // 2)
    options = ["--name", TABLE, "--generator", generator, "--threads", str(threads)]
    options += ["--device", device]
    with ExitStack() as stack:
        servers = [
            stack.enter_context(
                spawned([str(table), "--party", str(party), "--port", str(ports[party]), *options])
            )
            for party in (0, 1)
        ]
        first, second = (server.url() for server in servers)
        yield first, second
