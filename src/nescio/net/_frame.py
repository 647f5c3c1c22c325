"""The format of frames: encoding, and the only validation of frames from outside.

A frame is a little-endian header of 16 bytes and its data:

    offset  bytes
    0       4      kind: printable ASCII without spaces, or ABRT
    4       4      sequence number: 0, 1, ... modulo 2^32, counted separately in each direction
    8       8      length of the data in bytes

A frame of kind ABRT is the last one: its data are the reason, in UTF-8. On a channel with an
emulated link, 8 bytes with the time of sending precede each header (_link.py).

A receiver knows the kind, number and length of the next frame in advance, and rejects any other
frame before it reads data or allocates memory. Errors show the kind, number and length that were
found; these are public.
"""

import re
import struct
from typing import NamedTuple, NoReturn

import numpy as np

from .._arrays import shown
from ..errors import ArgumentError, MalformedMessageError, MismatchError

HEADER_BYTES = 16
ABORT = "ABRT"
MAX_REASON_CHARACTERS = 500
MAX_REASON_BYTES = 4 * MAX_REASON_CHARACTERS
_HEADER = struct.Struct("<4sIQ")
_KIND = re.compile("[!-~]{4}")


class Header(NamedTuple):
    """The header of a frame."""

    kind: bytes
    sequence: int
    length: int

    def __str__(self) -> str:
        return _described(self.kind.decode("ascii"), self.sequence, str(self.length))

    @property
    def aborts(self) -> bool:
        """True for the frame by which the other party aborts."""
        return self.kind == ABORT.encode()


class Expected(NamedTuple):
    """The next frame that the protocol expects: kind, number, and range of data lengths."""

    kind: str
    sequence: int
    low: int
    high: int

    def __str__(self) -> str:
        length = str(self.high) if self.low == self.high else f"{self.low} to {self.high}"
        return _described(self.kind, self.sequence, length)

    def check(self, header: Header) -> None:
        """Raises MalformedMessageError for an invalid header, MismatchError for another frame."""
        if not _KIND.fullmatch(header.kind.decode("latin-1")):
            _reject_garbage(header, self)
        if (
            header.kind != self.kind.encode()
            or header.sequence != self.sequence & 0xFFFFFFFF
            or not self.low <= header.length <= self.high
        ):
            raise MismatchError(
                f"found {header}, expected {self}: a frame was lost, repeated or changed, or the "
                "parties are not at the same step of the same protocol",
                found=str(header),
                expected=str(self),
            )


def _reject_garbage(header: Header, expected: Expected) -> NoReturn:
    raise MalformedMessageError(
        f"found {header.kind.hex(' ')} (hexadecimal) in place of a frame's kind, expected "
        f"{expected}: the other party does not speak this protocol, or only one of the two "
        "emulates a link"
    )


def _described(kind: str, sequence: int, length: str) -> str:
    return f"frame {sequence & 0xFFFFFFFF}, {kind}, of {length} bytes"


def encode_header(kind: str, sequence: int, length: int) -> bytes:
    """Encodes the header of `length` bytes of data."""
    return _HEADER.pack(kind.encode("ascii"), sequence & 0xFFFFFFFF, length)


def parse_header(data: bytes | bytearray | memoryview) -> Header:
    """Decodes a header of 16 bytes without validation."""
    return Header(*_HEADER.unpack(data))


def check_kind(kind: object) -> str:
    """Returns the kind of a protocol's frame. Raises ArgumentError if it is invalid."""
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise ArgumentError(
            f"kind: found {shown(kind)}, expected 4 ASCII characters without spaces"
        )
    if kind == ABORT:
        raise ArgumentError(f"kind: {ABORT} is reserved for aborts; use channel.abort(reason)")
    return kind


def as_view(data: object) -> memoryview:
    """Views any C-contiguous buffer as bytes, without a copy. Raises ArgumentError."""
    try:
        view = memoryview(data)  # type: ignore[arg-type]
        if view.nbytes == 0:
            return memoryview(b"")
        # NumPy reads buffers of any format as bytes; memoryview.cast does not.
        return memoryview(np.frombuffer(data, np.uint8))  # type: ignore[call-overload]
    except (TypeError, ValueError, BufferError) as error:
        raise ArgumentError(
            f"data: found {type(data).__name__}, expected bytes or a C-contiguous array: {error}"
        ) from error


def encode_reason(reason: str) -> bytes:
    """Encodes the reason of an abort as the data of its frame."""
    return clean(reason).encode()


def decode_reason(data: bytes | bytearray) -> str:
    """Decodes the other party's reason, with unprintable characters replaced."""
    return clean(bytes(data[:MAX_REASON_BYTES]).decode("utf-8", "replace"))


def clean(text: str) -> str:
    """Cuts text to 500 characters and replaces those that are not printable."""
    cut = text[:MAX_REASON_CHARACTERS]
    return "".join(c if c.isprintable() and not 0xD800 <= ord(c) < 0xE000 else "?" for c in cut)
