"""One party: `nescio serve` in a process that is killed, stopped and started again."""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nescio.errors import ServiceError

TABLE = "words"
DATA = "DATA"
"""A placeholder among the options: the data folder of the party takes its place."""

_STOP_SECONDS = 15.0
_POLL_SECONDS = 0.005


def free_port() -> int:
    """Returns a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Party:
    """A server of one party, with its folder of data and its log.

    `prefix` is a command that runs the server, such as one of another network namespace.
    `max_file_bytes` limits the length of the files that it writes.
    """

    number: int
    table: Path
    folder: Path
    options: Sequence[str] = ()
    host: str = "127.0.0.1"
    prefix: Sequence[str] = ()
    max_file_bytes: int | None = None
    start_seconds: float = 60.0
    port: int = field(default_factory=free_port)
    starts: list[float] = field(default_factory=list)  # seconds until each start was ready
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"http://{self.host}:{self.port}"

    @property
    def token(self) -> str:
        """The operator's token."""
        return f"the operator's token of party {self.number}"

    @property
    def data(self) -> Path:
        """The folder of `--data`."""
        return self.folder / f"data-{self.number}"

    @property
    def log(self) -> Path:
        """The file of all that the server has printed to standard error, over all starts."""
        return self.folder / f"log-{self.number}"

    @property
    def running(self) -> bool:
        """True while the process exists."""
        return self._process is not None and self._process.poll() is None

    def start(self, *, wait: bool = True) -> None:
        """Starts the server; waits until it answers, unless told otherwise."""
        self.folder.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        with self._output.open("wb") as output, self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                self._command(),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=log,
                env=self._environment(),
                preexec_fn=self._limiter(),  # noqa: PLW1509 - sets a limit only
            )
        if wait:
            self.wait_until_ready()
            self.starts.append(time.monotonic() - begun)

    def wait_until_ready(self) -> None:
        """Waits until the server says that it serves. Raises ServiceError if it ends or hangs."""
        end = time.monotonic() + self.start_seconds
        while b" on http" not in self._output.read_bytes():
            if not self.running or time.monotonic() > end:
                self.kill()
                text = self.log.read_text(errors="replace")[-500:]
                raise ServiceError(f"party {self.number} did not start: {text}", url=self.url)
            time.sleep(_POLL_SECONDS)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """Ends the process with SIGKILL, and waits for that."""
        if self._process is not None:
            self._process.kill()
            self._gone()

    def stop(self) -> None:
        """Ends the process as an operator does; kills it if it does not end."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._note("did not end after SIGTERM\n")
            self._process.kill()
        self._gone()

    def restart(self) -> None:
        """Starts the server again after `kill` or `stop`."""
        self.start()

    def memory(self) -> int:
        """Returns the resident bytes of the process."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/statm").read_text().split()
        return int(fields[1]) * resource.getpagesize()

    @property
    def _output(self) -> Path:
        return self.folder / f"output-{self.number}"

    def _command(self) -> list[str]:
        serve = [sys.executable, "-P", "-m", "nescio", "serve", str(self.table), "--name", TABLE]
        serve += ["--party", str(self.number), "--host", self.host, "--port", str(self.port)]
        serve += ["--threads", "1", "--device", "cpu", "--exit-with-stdin"]
        own = [str(self.data) if option == DATA else option for option in self.options]
        return [*self.prefix, *serve, *own]

    def _environment(self) -> dict[str, str]:
        """Returns the environment; with a limit of files, bytecode would be written in part."""
        own = {"NESCIO_ADMIN_TOKEN": self.token}
        if self.max_file_bytes is not None:
            own["PYTHONDONTWRITEBYTECODE"] = "1"
        return {**os.environ, **own}

    def _limiter(self) -> Callable[[], None] | None:
        if self.max_file_bytes is None:
            return None
        limit = self.max_file_bytes
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    def _gone(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.wait()
        self._process.stdin.close()

    def _note(self, text: str) -> None:
        with self.log.open("a") as log:
            log.write(f"faults: {text}")
