"""Frames as bytes: written here, and checked here and nowhere else.

A frame is a header of 16 bytes, little-endian, and its data:

    offset  bytes
    0       4      kind: printable ASCII without spaces, or ABRT
    4       4      sequence number: 0, 1, ... modulo 2^32, counted in each direction alone
    8       8      length of the data in bytes

A frame of kind ABRT is the last one: its data say in UTF-8 why its sender stops. On a channel with
an emulated link, 8 bytes stand before each header: when the frame was sent (link.py).

A receiver knows kind, number and length of the next frame beforehand, and refuses any other before
it reads or allocates anything. The kind, number and length that it found are public, and told.
"""

import re
import struct
from typing import NamedTuple, NoReturn

import numpy as np

from .._arrays import shown
from ..errors import ArgumentError, MalformedMessageError, MismatchError

HEADER_BYTES = 16
ABORT = "ABRT"
MOST_REASON_CHARACTERS = 500
MOST_REASON_BYTES = 4 * MOST_REASON_CHARACTERS
_HEADER = struct.Struct("<4sIQ")
_KIND = re.compile("[!-~]{4}")


class Header(NamedTuple):
    """What a frame says of itself before its data."""

    kind: bytes
    sequence: int
    length: int

    def __str__(self) -> str:
        return _described(self.kind.decode("ascii"), self.sequence, str(self.length))

    @property
    def aborts(self) -> bool:
        """Whether the other party stops here."""
        return self.kind == ABORT.encode()


class Expected(NamedTuple):
    """The frame that comes next: its kind, its number, and the least and most bytes of data."""

    kind: str
    sequence: int
    least: int
    most: int

    def __str__(self) -> str:
        length = str(self.most) if self.least == self.most else f"{self.least} to {self.most}"
        return _described(self.kind, self.sequence, length)

    def check(self, header: Header) -> None:
        """Raises MalformedMessageError for what is no header, MismatchError for another frame's."""
        if not _KIND.fullmatch(header.kind.decode("latin-1")):
            _refuse_garbage(header, self)
        if (
            header.kind != self.kind.encode()
            or header.sequence != self.sequence & 0xFFFFFFFF
            or not self.least <= header.length <= self.most
        ):
            raise MismatchError(
                f"found {header}, expected {self}: a frame was lost, repeated or changed, or the "
                "parties are not at the same step of the same protocol",
                found=str(header),
                expected=str(self),
            )


def _refuse_garbage(header: Header, expected: Expected) -> NoReturn:
    raise MalformedMessageError(
        f"found {header.kind.hex(' ')} (hexadecimal) where a frame's kind should stand, expected "
        f"{expected}: the other party does not speak this protocol, or only one of the two "
        "emulates a link"
    )


def _described(kind: str, sequence: int, length: str) -> str:
    return f"frame {sequence & 0xFFFFFFFF}, {kind}, of {length} bytes"


def encode_header(kind: str, sequence: int, length: int) -> bytes:
    """The 16 bytes before `length` bytes of data."""
    return _HEADER.pack(kind.encode("ascii"), sequence & 0xFFFFFFFF, length)


def parse_header(data: bytes | bytearray | memoryview) -> Header:
    """The header in 16 bytes, which are not checked yet."""
    return Header(*_HEADER.unpack(data))


def check_kind(kind: object) -> str:
    """The kind, if it is one that protocols may use. Raises ArgumentError."""
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise ArgumentError(
            f"kind: found {shown(kind)}, expected 4 ASCII characters without spaces"
        )
    if kind == ABORT:
        raise ArgumentError(f"kind: {ABORT} says that a party stops; use channel.abort(reason)")
    return kind


def as_view(data: object) -> memoryview:
    """The bytes of any C-contiguous buffer, not copied. Raises ArgumentError."""
    try:
        view = memoryview(data)  # type: ignore[arg-type]
        if view.nbytes == 0:
            return memoryview(b"")
        # NumPy takes buffers of any format as bytes; memoryview.cast does not.
        return memoryview(np.frombuffer(data, np.uint8))  # type: ignore[call-overload]
    except (TypeError, ValueError, BufferError) as error:
        raise ArgumentError(
            f"data: found {type(data).__name__}, expected bytes or a C-contiguous array: {error}"
        ) from error


def encode_reason(reason: str) -> bytes:
    """A reason to stop as the data of the frame that says so."""
    return clean(reason).encode()


def decode_reason(data: bytes | bytearray) -> str:
    """What the other party said, made fit to be shown."""
    return clean(bytes(data[:MOST_REASON_BYTES]).decode("utf-8", "replace"))


def clean(text: str) -> str:
    """At most 500 characters, each printable: nothing that moves a cursor or hides text."""
    cut = text[:MOST_REASON_CHARACTERS]
    return "".join(c if c.isprintable() and not 0xD800 <= ord(c) < 0xE000 else "?" for c in cut)
