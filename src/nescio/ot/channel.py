"""What the protocols ask of a channel; `nescio.net.Channel` has it."""

from typing import Protocol


class Channel(Protocol):
    """Frames to and from the other party, in order. A kind is four ASCII characters."""

    def send(self, kind: str, data: bytes, /) -> None:
        """Sends one frame."""

    def receive(self, kind: str, length: int, /) -> bytes | bytearray:
        """The next frame, which must be of this kind and of exactly `length` bytes.

        Raises a MessageError or the channel's own errors for anything else.
        """
