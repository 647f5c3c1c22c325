"""The emulated link: exact arithmetic, approximate waiting times."""

import math
import struct
import time

import pytest

from nescio.errors import ArgumentError, MalformedMessageError, PeerRefusedError
from nescio.net import Channel, Link
from nescio.net._link import Wire

pytestmark = pytest.mark.load


@pytest.mark.parametrize(
    ("rtt", "rate", "expected"),
    [
        ("40ms", "100mbit", Link(0.04, 100e6)),
        ("250us", "1.5gbit", Link(0.00025, 1.5e9)),
        ("1 s", "64 kbit", Link(1.0, 64e3)),
        ("0ms", "300Mbit", Link(0.0, 300e6)),
        (None, None, Link(0.0, math.inf)),
        ("2ms", None, Link(0.002, math.inf)),
    ],
)
def test_links_as_text(rtt, rate, expected):
    link = Link.parse(rtt=rtt, rate=rate)
    assert link.rtt_seconds == pytest.approx(expected.rtt_seconds)
    assert link.bits_per_second == expected.bits_per_second


@pytest.mark.parametrize(
    "rtt", ["", "40", "ms", "-1ms", "1e3ms", "40 mss", "61s", "٤ms", 40, "1.ms"]
)
def test_what_is_no_round_trip_time(rtt):
    with pytest.raises(ArgumentError, match=r"rtt.*found.*expected"):
        Link.parse(rtt=rtt)


@pytest.mark.parametrize(
    "rate", ["", "100", "mbit", "0mbit", "100mb", "infgbit", "9" * 400 + "bit"]
)
def test_what_is_no_rate(rate):
    with pytest.raises(ArgumentError, match=r"rate.*found.*expected"):
        Link.parse(rate=rate)


@pytest.mark.parametrize("arguments", [(math.nan,), (math.inf,), ("1",), (0, 0), (0, math.nan)])
def test_links_that_cannot_be(arguments):
    with pytest.raises(ArgumentError):
        Link(*arguments)


def test_a_wire_carries_one_thing_at_a_time():
    wire = Wire(Link(rtt_seconds=2.0, bits_per_second=800))  # 100 bytes per second
    assert wire.carry(10.0, 100) == 12.0  # one second of sending, one of delay
    assert wire.carry(10.0, 300) == 15.0  # after the first one
    assert wire.carry(14.0, 0) == 15.0  # not before the frame sent earlier
    assert wire.carry(20.0, 100) == 22.0  # the wire was free
    assert wire.backlog(20.5) == 0.5 + 2.0


def test_a_link_without_limits_delays_nothing():
    wire = Wire(Link())
    assert wire.carry(3.0, 1 << 40) == 3.0


def elapsed(function):
    start = time.monotonic()
    function()
    return time.monotonic() - start


@pytest.mark.parametrize("transport", ["memory", "tcp", "tls"])
def test_a_round_takes_the_round_trip_time(open_pair, thread, transport):
    a, b = open_pair(transport, link=Link(rtt_seconds=0.05), timeout=5)

    def other():
        for _ in range(4):
            b.send("PONG", b.receive("PING", 1))

    def this():
        for _ in range(4):
            a.send("PING", b"x")
            a.receive("PONG", 1)

    answered = thread(other)
    assert 0.2 <= elapsed(this) < 1.0
    answered.result(5)
    assert a.counts.sent_bytes == 4 * 17  # the times of sending are not counted


@pytest.mark.parametrize("transport", ["memory", "tcp"])
def test_bytes_take_their_time(open_pair, thread, transport):
    a, b = open_pair(transport, link=Link(bits_per_second=80e6), timeout=5)

    def other():
        for _ in range(4):
            b.receive("BULK", 500_000)

    start = time.monotonic()  # before the other thread runs: frames are sent meanwhile
    received = thread(other)
    for _ in range(4):
        a.send("BULK", bytes(500_000))
    received.result(5)
    assert 0.2 <= time.monotonic() - start < 1.0


def test_time_that_the_receiver_computes_is_not_added():
    a, b = Channel.pair(link=Link(rtt_seconds=0.1))
    a.send("DATA", b"")
    time.sleep(0.06)
    assert elapsed(lambda: b.receive("DATA", 0)) < 0.04


def test_a_busy_link_is_no_stall(open_pair, thread):
    """The first frames keep the link busy for longer than the timeout."""
    a, b = open_pair("tcp", link=Link(bits_per_second=300e6), timeout=0.5)
    received = thread(lambda: [b.receive("BULK", 25_000_000) for _ in range(2)])
    for _ in range(2):
        a.send("BULK", bytes(25_000_000))
    received.result(5)


def test_a_frame_from_the_future_is_held_back_as_one_of_now(open_raw):
    channel, raw = open_raw(link=Link(rtt_seconds=0.01))
    raw.sendall(struct.pack("<Q4sIQ", 2**64 - 1, b"DATA", 0, 0))
    assert elapsed(lambda: channel.receive("DATA", 0)) < 0.5


def test_a_link_at_one_end_only_is_noticed(open_raw, thread):
    with Channel.listener(timeout=5, link=Link(0.01)) as listener:
        accepted = thread(listener.accept)
        plain = Channel.connect("127.0.0.1", listener.port, timeout=5)
        linked = accepted.result(5)
    plain.send("DATA", bytes(100))
    refused = thread(plain.receive, "DATA", 3)
    with pytest.raises(MalformedMessageError, match="only one of the two emulates a link"):
        linked.receive("DATA", 100)
    with pytest.raises((MalformedMessageError, PeerRefusedError)):
        refused.result(5)
