"""Frames on a transport: headers, an emulated link, counts, and the other party's abort."""

import ssl
import time
from typing import NoReturn

from ..errors import PeerRefusedError, ResourceError
from . import _frame
from ._counts import Tally
from ._frame import Expected, Header
from ._link import STAMP_BYTES, Link, Wire, hold, stamp
from ._tcp import alert_of
from ._transport import PARTING_SECONDS, Patience, Transport

_PARTING = Patience(PARTING_SECONDS, PARTING_SECONDS)


class FrameStream:
    """Writes and reads frames, in order.

    Every method raises what the transport raises: TimeoutError without progress, and another
    OSError when the connection ends. After an error the stream is unusable, except for
    `write_abort` and `close`.
    """

    def __init__(self, transport: Transport, timeout: float, link: Link | None) -> None:
        self._transport = transport
        self._timeout = timeout
        self._linked = link is not None
        self._outward = Wire(link or Link())
        self._inward = Wire(link or Link())
        self._early: tuple[bytes, Header] | None = None  # a header read before `read` was called
        self.tally = Tally()

    def write(self, kind: str, view: memoryview) -> None:
        """Writes a frame. Raises PeerRefusedError if the other party has sent an abort."""
        self._check_for_abort()
        try:
            self._write(kind, view)
        except TimeoutError:
            raise
        except OSError:
            self._check_for_final_abort()
            raise
        self.tally.sent(kind, len(view))

    def read(self, expected: Expected) -> bytearray:
        """Reads the next frame, which must be the expected one.

        Raises MismatchError or MalformedMessageError for another frame, before its data are read,
        PeerRefusedError for an abort, ResourceError if the memory is not sufficient.
        """
        stamped, header = self._early or self._read_header()
        self._early = None
        if header.aborts:
            self._raise_abort(header)
        expected.check(header)
        data = self._read_data(header.length)
        if self._linked:
            hold(self._inward, stamped, _frame.HEADER_BYTES + header.length)
        self.tally.received(expected.kind, header.length)
        return data

    def write_abort(self, reason: str) -> None:
        """Writes an abort, within one second."""
        data = memoryview(_frame.encode_reason(reason))
        header = _frame.encode_header(_frame.ABORT, self.tally.sent_frames, len(data))
        stamped = stamp() if self._linked else b""
        self._transport.write(stamped + header, data, _PARTING)

    def interrupt(self) -> None:
        """Ends the connection, from any thread."""
        self._transport.interrupt()

    def close(self, *, linger: bool) -> None:
        """Closes the transport."""
        self._transport.close(linger=linger)

    @property
    def _header_size(self) -> int:
        return _frame.HEADER_BYTES + STAMP_BYTES * self._linked

    def _write(self, kind: str, view: memoryview) -> None:
        count = _frame.HEADER_BYTES + len(view)
        header = _frame.encode_header(kind, self.tally.sent_frames, len(view))
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
            raise ResourceError(f"not enough memory for a frame of {length} bytes") from error

    def _check_for_abort(self) -> None:
        """Raises PeerRefusedError if an abort of the other party has arrived."""
        if self._early is None:
            head = self._transport.poll_header(self._header_size)
            self._early = None if head is None else self._split(head)
        if self._early is not None and self._early[1].aborts:
            self._raise_abort(self._early[1])

    def _check_for_final_abort(self) -> None:
        """Checks for an abort after the connection ended while this party was sending."""
        try:
            self._check_for_abort()
        except OSError as error:
            if tls_alert(error):
                raise

    def _raise_abort(self, header: Header) -> NoReturn:
        length = min(header.length, _frame.MAX_REASON_BYTES)
        try:
            reason = _frame.decode_reason(self._transport.read_data(length, _PARTING))
        except OSError:
            reason = "it gave no reason"
        raise PeerRefusedError(f"the other party stopped: {reason}", reason=reason)


def tls_alert(error: BaseException) -> str | None:
    """Returns the TLS alert by which the other party refused, or None for any other error."""
    return alert_of(error) if isinstance(error, ssl.SSLError) else None
