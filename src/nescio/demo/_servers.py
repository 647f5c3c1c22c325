"""The two local servers of the demonstration."""

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
    """Runs a server of each party until the block ends; gives their URLs.

    Raises ServiceError with the server's message if one does not start.
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
