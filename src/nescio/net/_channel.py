"""The channel between the two parties of a protocol: frames, counted, in time, or an error."""

import contextlib
import ssl
import time
from collections.abc import Iterator
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
    ResourceError,
)
from . import _frame
from ._counts import Counts, Tally
from ._frame import Expected, Header
from ._link import STAMP_BYTES, Link, Wire, check_link, hold, stamp
from ._tcp import (
    TlsFiles,
    alert_of,
    bind,
    check_address,
    connecting_context,
    dial,
    listening_context,
    secure,
)
from ._transport import (
    PARTING_SECONDS,
    MemoryTransport,
    Patience,
    SocketTransport,
    Transport,
    check_timeout,
)

DEFAULT_TIMEOUT = 30.0
_MOST_LENGTH = 1 << 48
_OWN_ERROR = "an error of its own"


class Channel:
    """Frames in order to and from one other party.

    Made by `pair`, `listen`, `connect` or a `listener`. One thread uses a channel at a time. The
    parties take turns: `send` may wait until the other party receives, so two parties that send
    each other much at once wait in vain.

    `timeout`, in seconds, is how long any call may stand still; as a whole a frame may take the
    timeout and a second more for each 64 KiB. `link` emulates a slower network; give it to both
    ends. After an error, and after `abort` and `close`, the channel is closed and every call raises
    ChannelError. A context manager; leaving it by an exception tells the other party to stop;
    of a MessageError also the text, which is about what that party sent.
    """

    def __init__(self, transport: Transport, timeout: float, link: Link | None) -> None:
        self._transport = transport
        self._timeout = timeout
        self._linked = link is not None
        self._outward = Wire(link or Link())
        self._inward = Wire(link or Link())
        self._tally = Tally()
        self._early: tuple[bytes, Header] | None = None  # a header that was there before its time
        self._ended: str | None = None

    @classmethod
    def pair(
        cls, *, timeout: float = DEFAULT_TIMEOUT, link: Link | None = None
    ) -> tuple["Channel", "Channel"]:
        """Two ends in memory, for two threads, or for one that sends before it receives.

        Up to 64 MiB, or one frame, wait to be received.
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
        """Listens; the other party is taken by its `accept`. Port 0 is any free one, see `port`.

        With `tls_cert` and `tls_key` (PEM) by TLS 1.3: who connects can tell who this is. With
        `tls_ca` who connects has to show a certificate of that authority. Raises ArgumentError, and
        ChannelError if the port cannot be had.
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
        """The channel to the first that connects: `listener` and its `accept` in one."""
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
        """The channel to who listens there, tried again until the timeout.

        With `tls`, or any file, by TLS 1.3: who listens has to show a certificate for `host` of the
        authority in `tls_ca` (PEM; default: those that the system trusts), and is shown `tls_cert`.
        Raises ArgumentError, PeerTimeoutError if nobody listens, over TLS PeerUntrustedError for
        somebody else; ChannelError if there is no such host.
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
        """What was sent and received so far, also after the end."""
        return self._tally.counts()

    @property
    def closed(self) -> bool:
        """Whether it can be used no more."""
        return self._ended is not None

    def send(self, kind: str, data: object) -> None:
        """Sends a frame: a kind of 4 ASCII characters, and any C-contiguous buffer, not copied.

        Raises ArgumentError, which leaves the channel open; PeerRefusedError, PeerGoneError,
        PeerTimeoutError.
        """
        kind, view = _frame.check_kind(kind), _frame.as_view(data)
        self._check_open()
        with self._failing(f"frame {kind} of {len(view)} bytes was not taken", tell=False):
            self._look_for_refusal()
            try:
                self._write(kind, view)
            except TimeoutError:
                raise
            except OSError:
                self._read_last_words()
                raise
        self._tally.sent(kind, len(view))

    def receive(self, kind: str, length: int) -> bytearray:
        """The data of the next frame, which has to be of this kind and length.

        Raises ArgumentError, which leaves the channel open; MismatchError or MalformedMessageError
        for any other frame, before its data are read, which the other party is told;
        PeerRefusedError, PeerGoneError, PeerTimeoutError; ResourceError without memory.
        """
        count = as_count(length, "length", 0, _MOST_LENGTH)
        return self._receive(_frame.check_kind(kind), count, count)

    def receive_at_most(self, kind: str, limit: int) -> bytearray:
        """As `receive`, for a frame of up to `limit` bytes."""
        return self._receive(_frame.check_kind(kind), 0, as_count(limit, "limit", 0, _MOST_LENGTH))

    def abort(self, reason: str) -> None:
        """Tells the other party why this one stops, and closes; nothing if it is closed already.

        The other party's next call raises PeerRefusedError with the reason, made printable and cut
        after 500 characters. Put nothing secret into it. Takes about a second at most.
        """
        if not self.closed:
            self._stop(f"it was aborted: {_frame.clean(reason)}", tell=reason)

    def close(self) -> None:
        """Ends the channel; what was sent can still be received."""
        if not self.closed:
            self._ended = "close() was called"
            self._transport.close(linger=False)

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
            self.abort(str(error) if isinstance(error, MessageError) else _OWN_ERROR)

    def _check_open(self) -> None:
        if self._ended is not None:
            raise ChannelError(f"this channel is closed: {self._ended}")

    def _receive(self, kind: str, least: int, most: int) -> bytearray:
        self._check_open()
        self._tally.receiving()
        expected = Expected(kind, self._tally.received_frames, least, most)
        with self._failing(f"expected {expected}", tell=True):
            stamped, header = self._early or self._read_header()
            self._early = None
            self._check_refusal(header)
            expected.check(header)
            data = self._read_data(header.length)
            if self._linked:
                hold(self._inward, stamped, _frame.HEADER_BYTES + header.length)
        self._tally.received(kind, header.length)
        return data

    @property
    def _header_size(self) -> int:
        return _frame.HEADER_BYTES + STAMP_BYTES * self._linked

    def _write(self, kind: str, view: memoryview) -> None:
        count = _frame.HEADER_BYTES + len(view)
        header = _frame.encode_header(kind, self._tally.sent_frames, len(view))
        patience = Patience.for_bytes(count, self._timeout)
        if self._linked:
            now = time.monotonic()
            patience = patience.longer(self._outward.backlog(now))
            self._outward.carry(now, count)
            header = stamp() + header
        self._transport.write(header, view, patience)

    def _read_header(self) -> tuple[bytes, Header]:
        patience = Patience(self._timeout, self._timeout)
        return self._split(self._transport.read_header(self._header_size, patience))

    def _split(self, head: bytes) -> tuple[bytes, Header]:
        return head[: -_frame.HEADER_BYTES], _frame.parse_header(head[-_frame.HEADER_BYTES :])

    def _read_data(self, length: int) -> bytearray:
        try:
            return self._transport.read_data(length, Patience.for_bytes(length, self._timeout))
        except MemoryError as error:
            raise ResourceError(f"there is no memory for a frame of {length} bytes") from error

    def _look_for_refusal(self) -> None:
        """Raises PeerRefusedError if the other party has stopped and said so."""
        if self._early is None:
            head = self._transport.poll_header(self._header_size)
            self._early = None if head is None else self._split(head)
        if self._early is not None:
            self._check_refusal(self._early[1])

    def _read_last_words(self) -> None:
        """As `_look_for_refusal`, where the connection ended while this party was sending."""
        try:
            self._look_for_refusal()
        except OSError as error:
            if _alert(error):
                raise

    def _check_refusal(self, header: Header) -> None:
        if header.aborts:
            length = min(header.length, _frame.MOST_REASON_BYTES)
            patience = Patience(PARTING_SECONDS, PARTING_SECONDS)
            try:
                reason = _frame.decode_reason(self._transport.read_data(length, patience))
            except OSError:
                reason = "it did not say why"
            raise PeerRefusedError(f"the other party stopped: {reason}", reason=reason)

    @contextlib.contextmanager
    def _failing(self, what: str, *, tell: bool) -> Iterator[None]:
        """Closes the channel on any error, and says in Nescio's errors which it was."""
        try:
            yield
        except BaseException as error:
            failure = self._named(error, what)
            remote = isinstance(failure, PeerGoneError | PeerRefusedError)
            reason = str(failure) if isinstance(failure, MessageError | ChannelError) else ""
            reason = reason or _OWN_ERROR
            self._stop(reason, tell=reason if tell and not remote else None)
            if failure is error:
                raise
            raise failure from error

    def _named(self, error: BaseException, what: str) -> BaseException:
        if isinstance(error, TimeoutError):
            return PeerTimeoutError(
                f"{what}: the other party stood still for {self._timeout:g} s, or was slower than "
                "64 KiB a second"
            )
        if alert := _alert(error):
            return PeerRefusedError(f"the other party's TLS refused: {alert}", reason=alert)
        if isinstance(error, OSError):
            return PeerGoneError(f"{what}: the connection ended too early: {error}")
        return error

    def _stop(self, why: str, *, tell: str | None) -> None:
        self._ended = why
        if tell is not None:
            with contextlib.suppress(OSError):
                data = memoryview(_frame.encode_reason(tell))
                header = _frame.encode_header(_frame.ABORT, self._tally.sent_frames, len(data))
                stamped = stamp() if self._linked else b""
                patience = Patience(PARTING_SECONDS, PARTING_SECONDS)
                self._transport.write(stamped + header, data, patience)
        self._transport.close(linger=tell is not None)


class Listener:
    """A port on which the other party is waited for; made by `Channel.listener`.

    `host` and `port` are where it listens, also if port 0 was asked for. `accept` may be called
    again, for another channel. A context manager, which closes the port and no channel.
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
        """The channel to the first that connects.

        Raises PeerTimeoutError if nobody does in time; over TLS PeerUntrustedError for somebody
        else, PeerRefusedError for somebody who does not trust this party.
        """
        end = time.monotonic() + self._timeout
        self._socket.settimeout(self._timeout)
        try:
            connection, _ = self._socket.accept()
        except TimeoutError as error:
            raise PeerTimeoutError(
                f"nobody connected to {self.host} port {self.port} in {self._timeout:g} s"
            ) from error
        except OSError as error:
            raise ChannelError(f"{self.host} port {self.port}: {error}") from error
        secured = secure(connection, self._context, None, end - time.monotonic())
        return Channel(SocketTransport(secured), self._timeout, self._link)

    def close(self) -> None:
        """Frees the port."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _alert(error: BaseException) -> str | None:
    return alert_of(error) if isinstance(error, ssl.SSLError) else None
