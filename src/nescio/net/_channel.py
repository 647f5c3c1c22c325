"""The channel between the two parties of a protocol, and the listener that accepts one."""

import contextlib
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from .._arrays import as_count
from ..errors import (
    ChannelError,
    MessageError,
    PeerGoneError,
    PeerRefusedError,
    PeerTimeoutError,
)
from . import _frame
from ._counts import Counts
from ._frame import Expected
from ._link import Link, check_link
from ._stream import FrameStream, tls_alert
from ._tcp import (
    TlsFiles,
    bind,
    check_address,
    connecting_context,
    dial,
    listening_context,
    secure,
)
from ._transport import MemoryTransport, SocketTransport, Transport, check_timeout

DEFAULT_TIMEOUT = 30.0
_MAX_LENGTH = 1 << 48
_OWN_ERROR = "an error on its side"


class Channel:
    """Sends frames to one other party and receives its frames, in order.

    Create one with `pair`, `listen`, `connect` or a `listener`. Only one thread may use a channel
    at a time. The parties take turns: `send` may block until the other party receives, so two
    parties that both send large frames at the same time block each other until the timeout.

    `timeout` is the longest time in seconds that a call waits without progress; one frame may take
    the timeout plus one second for each 64 KiB. `link` emulates a slower network; pass the same
    link to both ends. After an error, and after `abort` and `close`, the channel is closed and
    every call raises ChannelError. A channel is a context manager. Exiting on an exception sends an
    abort to the other party; for a MessageError, which describes that party's message, the abort
    includes the error's text.
    """

    def __init__(self, transport: Transport, timeout: float, link: Link | None) -> None:
        self._stream = FrameStream(transport, timeout, link)
        self._timeout = timeout
        self._ended: str | None = None

    @classmethod
    def pair(
        cls, *, timeout: float = DEFAULT_TIMEOUT, link: Link | None = None
    ) -> tuple["Channel", "Channel"]:
        """Creates two connected ends in memory, for two threads or for tests in one thread.

        A queue holds up to 64 MiB, or one larger frame; `send` blocks while it is full.
        """
        timeout, link = check_timeout(timeout), check_link(link)
        first, second = MemoryTransport.pair()
        return cls(first, timeout, link), cls(second, timeout, link)

    @classmethod
    def listener(
        cls,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        link: Link | None = None,
        tls_cert: Path | str | None = None,
        tls_key: Path | str | None = None,
        tls_ca: Path | str | None = None,
    ) -> "Listener":
        """Listens on a port; the listener's `accept` returns the channel to the other party.

        Port 0 selects any free port, which is then in `port`. `tls_cert` and `tls_key` (PEM) enable
        TLS 1.3 and identify this party to the connecting party. With `tls_ca` the connecting party
        must present a certificate of that authority. Raises ArgumentError, and ChannelError if it
        cannot listen on the port.
        """
        address = check_address(host, port, 0)
        context = listening_context(TlsFiles(tls_cert, tls_key, tls_ca))
        return Listener(address, check_timeout(timeout), check_link(link), context)

    @classmethod
    def listen(
        cls,
        host: str,
        port: int,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        link: Link | None = None,
        tls_cert: Path | str | None = None,
        tls_key: Path | str | None = None,
        tls_ca: Path | str | None = None,
    ) -> "Channel":
        """Waits for the first connection: `listener` and its `accept` in one call."""
        with cls.listener(
            host,
            port,
            timeout=timeout,
            link=link,
            tls_cert=tls_cert,
            tls_key=tls_key,
            tls_ca=tls_ca,
        ) as listener:
            return listener.accept()

    @classmethod
    def connect(
        cls,
        host: str,
        port: int,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        link: Link | None = None,
        tls: bool = False,
        tls_ca: Path | str | None = None,
        tls_cert: Path | str | None = None,
        tls_key: Path | str | None = None,
    ) -> "Channel":
        """Connects to the listening party, with retries until the timeout.

        `tls`, or any of the files, enables TLS 1.3. The listening party must then present a
        certificate for `host`, issued by the authority in `tls_ca` (PEM; default: the authorities
        that the system trusts), and receives `tls_cert`. Raises ArgumentError; PeerTimeoutError if
        nobody listens; over TLS PeerUntrustedError if the certificate is not trusted; ChannelError
        if the host does not exist.
        """
        address = check_address(host, port, 1)
        context = connecting_context(tls, TlsFiles(tls_cert, tls_key, tls_ca))
        timeout, link = check_timeout(timeout), check_link(link)
        end = time.monotonic() + timeout
        connection = dial(*address, timeout)
        secured = secure(connection, context, host, end - time.monotonic())
        return cls(SocketTransport(secured), timeout, link)

    @property
    def counts(self) -> Counts:
        """Counts of the bytes and frames so far; still available after the channel is closed."""
        return self._stream.tally.counts()

    @property
    def closed(self) -> bool:
        """True after `close`, `abort` or an error."""
        return self._ended is not None

    def send(self, kind: str, data: object) -> None:
        """Sends a frame: a kind of 4 ASCII characters, and a C-contiguous buffer, without a copy.

        Raises ArgumentError, which leaves the channel open; PeerRefusedError, PeerGoneError,
        PeerTimeoutError.
        """
        kind, view = _frame.check_kind(kind), _frame.as_view(data)
        self._check_open()
        with self._closing_on_error(
            f"frame {kind} of {len(view)} bytes was not delivered", tell=False
        ):
            self._stream.write(kind, view)

    def receive(self, kind: str, length: int) -> bytearray:
        """Receives the data of the next frame, which must have this kind and length.

        Raises ArgumentError, which leaves the channel open. Raises MismatchError or
        MalformedMessageError for any other frame, before it reads the data, and tells the other
        party. Raises PeerRefusedError, PeerGoneError, PeerTimeoutError, and ResourceError if the
        memory is not sufficient.
        """
        count = as_count(length, "length", 0, _MAX_LENGTH)
        return self._receive(_frame.check_kind(kind), count, count)

    def receive_at_most(self, kind: str, limit: int) -> bytearray:
        """Receives a frame of up to `limit` bytes; otherwise as `receive`."""
        return self._receive(_frame.check_kind(kind), 0, as_count(limit, "limit", 0, _MAX_LENGTH))

    def abort(self, reason: str) -> None:
        """Closes the channel and tells the other party the reason. Does nothing if closed.

        The other party's next call raises PeerRefusedError with the reason, made printable and cut
        to 500 characters. The reason must not contain secrets. Takes about one second at most.
        """
        if not self.closed:
            self._stop(f"abort() was called: {_frame.clean(reason)}", tell=reason)

    def close(self) -> None:
        """Closes the channel; the other party can still receive all frames sent before."""
        if not self.closed:
            self._ended = "close() was called"
            self._stream.close(linger=False)

    def interrupt(self) -> None:
        """Breaks the connection, from any thread: the thread that uses it gets PeerGoneError."""
        self._stream.interrupt()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abort(_told(error))

    def _check_open(self) -> None:
        if self._ended is not None:
            raise ChannelError(f"this channel is closed: {self._ended}")

    def _receive(self, kind: str, low: int, high: int) -> bytearray:
        self._check_open()
        tally = self._stream.tally
        tally.receiving()
        expected = Expected(kind, tally.received_frames, low, high)
        with self._closing_on_error(f"expected {expected}", tell=True):
            return self._stream.read(expected)

    @contextlib.contextmanager
    def _closing_on_error(self, action: str, *, tell: bool) -> Iterator[None]:
        """Closes the channel on any error, and converts the error to one of nescio.errors."""
        try:
            yield
        except BaseException as error:
            failure = self._as_nescio_error(error, action)
            remote = isinstance(failure, PeerGoneError | PeerRefusedError)
            reason = str(failure) if isinstance(failure, MessageError | ChannelError) else ""
            reason = reason or _OWN_ERROR
            self._stop(reason, tell=reason if tell and not remote else None)
            if failure is error:
                raise
            raise failure from error

    def _as_nescio_error(self, error: BaseException, action: str) -> BaseException:
        if isinstance(error, TimeoutError):
            return PeerTimeoutError(
                f"{action}: no progress by the other party for {self._timeout:g} s, or less than "
                "64 KiB per second"
            )
        if alert := tls_alert(error):
            return PeerRefusedError(f"the other party's TLS refused: {alert}", reason=alert)
        if isinstance(error, OSError):
            return PeerGoneError(f"{action}: the connection ended too early: {error}")
        return error

    def _stop(self, why: str, *, tell: str | None) -> None:
        self._ended = why
        if tell is not None:
            with contextlib.suppress(OSError):
                self._stream.write_abort(tell)
        self._stream.close(linger=tell is not None)


@contextlib.contextmanager
def aborting(channel: Channel) -> Iterator[None]:
    """Aborts a channel on an exception in the block, as leaving the channel's own block does.

    Without an exception the channel stays open.
    """
    try:
        yield
    except BaseException as error:
        channel.abort(_told(error))
        raise


def _told(error: BaseException) -> str:
    """Returns the reason that the other party is told: without what may contain a secret."""
    if isinstance(error, MessageError):
        return str(error)
    return "not enough memory" if isinstance(error, MemoryError) else _OWN_ERROR


class Listener:
    """Listens on a port for the other party; created by `Channel.listener`.

    `host` and `port` are the address in use, also after port 0 was requested. Each call of `accept`
    returns another channel. A listener is a context manager that closes the port but no channel.
    """

    def __init__(
        self,
        address: tuple[str, int],
        timeout: float,
        link: Link | None,
        context: ssl.SSLContext | None,
    ) -> None:
        self._timeout = timeout
        self._link = link
        self._context = context
        self._socket = bind(*address)
        self.host: str = address[0]
        self.port: int = self._socket.getsockname()[1]

    def accept(self) -> Channel:
        """Waits for the next connection and returns its channel.

        Raises PeerTimeoutError if nobody connects in time. Over TLS it raises PeerUntrustedError if
        this party does not trust the other's certificate, and PeerRefusedError if the other party
        does not trust this one's.
        """
        return self.pending()()

    def pending(self) -> Callable[[], Channel]:
        """Waits for the next connection; the function that it returns does the rest of `accept`.

        This rest is the TLS handshake: in a thread of its own, a slow one delays nobody else.
        """
        end = time.monotonic() + self._timeout
        self._socket.settimeout(self._timeout)
        try:
            connection, _ = self._socket.accept()
        except TimeoutError as error:
            raise PeerTimeoutError(
                f"no party connected to {self.host} port {self.port} within {self._timeout:g} s"
            ) from error
        except OSError as error:
            raise ChannelError(f"{self.host} port {self.port}: {error}") from error

        def finish() -> Channel:
            secured = secure(connection, self._context, None, end - time.monotonic())
            return Channel(SocketTransport(secured), self._timeout, self._link)

        return finish

    def fileno(self) -> int:
        """Returns the descriptor, which is readable while a connection waits."""
        return self._socket.fileno()

    def close(self) -> None:
        """Closes the port."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
