"""Emulation of a slower network: a round-trip time and a rate between parties on one machine.

Every frame carries its time of sending. The receiver models the link as one wire in each
direction, and delays the frame until its computed arrival:

    free(0)    = the frame was sent, if the wire was free
    free(i)    = max(sent(i), free(i - 1)) + bytes(i) / rate
    arrival(i) = free(i) + rtt / 2

This needs no thread, and arrival depends only on the times of sending. Pass the same link to both
ends: each delays the frames that it receives. Times are from the machine's monotonic clock, which
all its processes share, so the emulation works on one machine only. Bytes are those in `Counts`,
without the overhead of TCP and IP.
"""

import math
import re
import struct
import time
from dataclasses import dataclass

from .._arrays import shown
from ..errors import ArgumentError

STAMP_BYTES = 8
MAX_RTT_SECONDS = 60.0
_STAMP = struct.Struct("<Q")
_NUMBER = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?) ?([a-z]+)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_BITS = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


@dataclass(frozen=True, slots=True)
class Link:
    """A link to emulate: round-trip time, and bits per second in each direction.

    Raises ArgumentError unless 0 <= rtt_seconds <= 60 and bits_per_second > 0 (math.inf: no limit).
    """

    rtt_seconds: float = 0.0
    bits_per_second: float = math.inf

    def __post_init__(self) -> None:
        _check_number(self.rtt_seconds, "rtt_seconds")
        _check_number(self.bits_per_second, "bits_per_second")
        if not 0 <= self.rtt_seconds <= MAX_RTT_SECONDS:
            raise ArgumentError(
                f"rtt: found {self.rtt_seconds:g} s, expected 0 to {MAX_RTT_SECONDS:g} s"
            )
        if not self.bits_per_second >= 1:
            raise ArgumentError(
                f"rate: found {self.bits_per_second:g} bits per second, expected at least 1"
            )

    @classmethod
    def parse(cls, *, rtt: str | None = None, rate: str | None = None) -> "Link":
        """Parses a link: an rtt in us, ms or s ("40ms"), a rate in bit to gbit ("100mbit").

        None means no delay, or no limit of the rate. Raises ArgumentError for invalid text.
        """
        return cls(
            0.0 if rtt is None else _parse(rtt, "rtt", _SECONDS, "40ms"),
            math.inf if rate is None else _parse(rate, "rate", _BITS, "100mbit"),
        )

    def transfer_seconds(self, count: int) -> float:
        """Computes the time that `count` bytes occupy one direction."""
        return 8 * count / self.bits_per_second

    def __str__(self) -> str:
        rate = "no limit" if math.isinf(self.bits_per_second) else f"{self.bits_per_second:g} bit/s"
        return f"rtt {self.rtt_seconds * 1e3:g} ms, rate {rate}"


def check_link(link: object) -> Link | None:
    """Checks a link or None. Raises ArgumentError."""
    if link is not None and not isinstance(link, Link):
        raise ArgumentError(f"link: found {shown(link)}, expected a nescio.net.Link")
    return link


def _check_number(value: object, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ArgumentError(f"{what}: found {value!r}, expected a number")


def _parse(text: object, what: str, units: dict[str, float], example: str) -> float:
    found = _NUMBER.fullmatch(text.lower()) if isinstance(text, str) else None
    if found is None or found[2] not in units:
        raise ArgumentError(
            f"{what}: found {str(text)[:40]!r}, expected a number with one of the units "
            f"{', '.join(units)}, as in {example}"
        )
    return float(found[1]) * units[found[2]]


class Wire:
    """One direction of a link. It computes arrival times, in seconds."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.free_at = -math.inf

    def carry(self, sent_at: float, count: int) -> float:
        """Returns the arrival of `count` bytes; sets `free_at`, when the next bytes can follow."""
        self.free_at = max(sent_at, self.free_at) + self._link.transfer_seconds(count)
        return self.free_at + self._link.rtt_seconds / 2

    def backlog(self, now: float) -> float:
        """Returns an upper bound on the time until all earlier bytes have arrived."""
        return max(0.0, self.free_at - now) + self._link.rtt_seconds


def stamp() -> bytes:
    """Encodes the current time, which is sent before a header."""
    return _STAMP.pack(time.monotonic_ns())


def hold(wire: Wire, stamped: bytes | bytearray | memoryview, count: int) -> None:
    """Waits until the arrival of a frame of `count` bytes that was sent at the time in `stamped`.

    A time in the future counts as now, so a false time cannot make the wait longer than the link
    takes for one frame.
    """
    now = time.monotonic()
    (sent_ns,) = _STAMP.unpack(stamped)
    wait = wire.carry(min(sent_ns / 1e9, now), count) - now
    if wait > 0:
        time.sleep(wait)
