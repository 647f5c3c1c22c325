"""Counts of a channel: bytes, frames and rounds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ._frame import HEADER_BYTES


@dataclass(frozen=True, slots=True)
class Counts:
    """The bytes and frames that one party sent and received; bytes include 16-byte headers.

    `rounds` counts how often this party began to receive after it had sent, that is, how often it
    waited for a network round trip. Consecutive frames in one direction do not add rounds.
    `sent_by_kind` and `received_by_kind` split the bytes by the kind of frame, in order of first
    use.

    Overhead of TCP and TLS is not counted, nor are rejected frames and aborts.
    """

    sent_bytes: int = 0
    received_bytes: int = 0
    sent_frames: int = 0
    received_frames: int = 0
    rounds: int = 0
    sent_by_kind: Mapping[str, int] = field(default_factory=dict)
    received_by_kind: Mapping[str, int] = field(default_factory=dict)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the counts, for a report to another process."""
        values = (getattr(self, name) for name in self.__dataclass_fields__)
        return Counts, tuple(dict(v) if isinstance(v, Mapping) else v for v in values)

    def since(self, before: "Counts") -> "Counts":
        """Subtracts earlier counts of the same channel, for the counts of one protocol step."""
        return self._with(before, -1)

    def plus(self, other: "Counts") -> "Counts":
        """Adds the counts of another step."""
        return self._with(other, 1)

    def _with(self, other: "Counts", factor: int) -> "Counts":
        return Counts(
            self.sent_bytes + factor * other.sent_bytes,
            self.received_bytes + factor * other.received_bytes,
            self.sent_frames + factor * other.sent_frames,
            self.received_frames + factor * other.received_frames,
            self.rounds + factor * other.rounds,
            _sums(self.sent_by_kind, other.sent_by_kind, factor),
            _sums(self.received_by_kind, other.received_by_kind, factor),
        )


def _sums(one: Mapping[str, int], other: Mapping[str, int], factor: int) -> Mapping[str, int]:
    sums = {kind: one.get(kind, 0) + factor * other.get(kind, 0) for kind in {**one, **other}}
    return MappingProxyType({kind: count for kind, count in sums.items() if count})


class Tally:
    """Mutable counts of a channel."""

    def __init__(self) -> None:
        self.sent_frames = 0
        self.received_frames = 0
        self._rounds = 0
        self._sent_last = False
        self._sent: dict[str, int] = {}
        self._received: dict[str, int] = {}

    def sent(self, kind: str, length: int) -> None:
        """Records a sent frame."""
        self.sent_frames += 1
        self._sent_last = True
        self._sent[kind] = self._sent.get(kind, 0) + HEADER_BYTES + length

    def receiving(self) -> None:
        """Records the start of a wait for a frame."""
        self._rounds += self._sent_last
        self._sent_last = False

    def received(self, kind: str, length: int) -> None:
        """Records an accepted frame."""
        self.received_frames += 1
        self._received[kind] = self._received.get(kind, 0) + HEADER_BYTES + length

    def counts(self) -> Counts:
        """Returns an immutable copy of the counts."""
        return Counts(
            sum(self._sent.values()),
            sum(self._received.values()),
            self.sent_frames,
            self.received_frames,
            self._rounds,
            MappingProxyType(dict(self._sent)),
            MappingProxyType(dict(self._received)),
        )
