"""Channels to parties that disappear, stall, send invalid frames or abort."""

import select
import socket
import struct
import time

import numpy as np
import pytest

from nescio.errors import (
    ArgumentError,
    ChannelError,
    MalformedMessageError,
    MismatchError,
    PeerGoneError,
    PeerRefusedError,
    PeerTimeoutError,
    ResourceError,
)
from nescio.net import Channel, _transport

pytestmark = pytest.mark.load


def head(kind=b"DATA", sequence=0, length=0):
    return struct.pack("<4sIQ", kind, sequence, length)


def read_refusal(raw, before=0):
    """Reads the reason of the abort that follows `before` bytes of other frames."""
    raw.settimeout(5)
    said = bytearray()
    while more := raw.recv(4096):
        said += more
    raw.close()
    kind, _, length = struct.unpack("<4sIQ", said[before : before + 16])
    assert kind == b"ABRT"
    assert length == len(said) - before - 16
    return said[before + 16 :].decode()


def test_a_peer_that_closes_at_once(open_raw):
    channel, raw = open_raw()
    raw.close()
    with pytest.raises(PeerGoneError, match="expected frame 0, DATA, of 8 bytes"):
        channel.receive("DATA", 8)
    with pytest.raises(ChannelError, match="this channel is closed: expected frame 0"):
        channel.send("DATA", b"")


def test_a_peer_that_is_gone_when_something_is_sent(open_raw):
    channel, raw = open_raw()
    raw.close()
    with pytest.raises(PeerGoneError, match="frame DATA of 5000000 bytes was not delivered"):
        channel.send("DATA", bytes(5_000_000))


def test_a_peer_that_resets_the_connection(open_raw):
    channel, raw = open_raw()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()
    with pytest.raises(PeerGoneError):
        channel.receive("DATA", 8)


@pytest.mark.parametrize("said", [head()[:7], head(length=8), head(length=8) + b"1234"])
def test_a_peer_that_closes_in_the_middle_of_a_frame(open_raw, said):
    channel, raw = open_raw()
    raw.sendall(said)
    raw.close()
    with pytest.raises(PeerGoneError):
        channel.receive("DATA", 8)


@pytest.mark.parametrize("said", [b"", head()[:7], head(length=8), head(length=8) + b"1234"])
def test_a_peer_that_stalls(open_raw, thread, said):
    channel, raw = open_raw(timeout=0.2)
    raw.sendall(said)
    refusal = thread(read_refusal, raw)
    start = time.monotonic()
    with pytest.raises(PeerTimeoutError, match="for 0.2 s"):
        channel.receive("DATA", 8)
    assert time.monotonic() - start < 1
    assert "expected frame 0" in refusal.result(5)


def test_a_peer_that_never_reads_the_refusal_either(open_raw):
    channel, _raw = open_raw(timeout=0.1)
    start = time.monotonic()
    with pytest.raises(PeerTimeoutError):
        channel.receive("DATA", 8)
    assert time.monotonic() - start < 2


@pytest.mark.parametrize("whole", [b"", head(length=20_000)], ids=["in the header", "in the data"])
def test_a_slow_trickle_ends(open_raw, thread, monkeypatch, whole):
    """Bytes that arrive within the timeout each, but too slowly for a whole frame."""
    monkeypatch.setattr(_transport, "MIN_BYTES_PER_SECOND", 100_000)
    channel, raw = open_raw(timeout=0.3)

    def trickle():
        raw.sendall(whole)
        for byte in (head(length=20_000) + bytes(1000))[len(whole) :]:
            raw.sendall(bytes([byte]))
            if select.select([raw], [], [], 0.1)[0]:
                return read_refusal(raw)
        return "it was never refused"

    refusal = thread(trickle)
    start = time.monotonic()
    with pytest.raises(PeerTimeoutError):
        channel.receive("DATA", 20_000)
    # The header alone would take 1.6 seconds, and the stall after it 0.3.
    assert time.monotonic() - start < 1.9
    assert "less than 64 KiB per second" in refusal.result(5)


@pytest.mark.parametrize("transport_kind", ["memory", "tcp", "tls"])
def test_a_peer_that_does_not_take_what_is_sent(open_pair, transport_kind):
    a, _ = open_pair(transport_kind, timeout=0.2)

    def send_much():
        for _ in range(10):
            a.send("BULK", bytes(40 << 20))

    with pytest.raises(PeerTimeoutError, match="was not delivered"):
        send_much()


WRONG = [
    (head(b"DATB", length=8), MismatchError, "found frame 0, DATB, of 8 bytes"),
    (head(sequence=1, length=8), MismatchError, "found frame 1, DATA, of 8 bytes"),
    (head(length=7), MismatchError, "of 7 bytes"),
    (head(length=2**64 - 1), MismatchError, "of 18446744073709551615 bytes"),
    (b"GET / HTTP/1.1\r\n", MalformedMessageError, "47 45 54 20"),
    (b"\x16\x03\x01" + bytes(13), MalformedMessageError, "16 03 01 00"),
    (bytes(16), MalformedMessageError, "00 00 00 00"),
]


@pytest.mark.parametrize(("said", "error", "found"), WRONG)
def test_the_wrong_frame_is_refused_before_it_is_read(open_raw, thread, said, error, found):
    channel, raw = open_raw(timeout=5)
    raw.sendall(said)
    refusal = thread(read_refusal, raw)
    with pytest.raises(error, match=found) as caught:
        channel.receive("DATA", 8)
    assert "expected frame 0, DATA, of 8 bytes" in str(caught.value)
    assert refusal.result(5) == str(caught.value)
    assert channel.counts.received_bytes == 0
    with pytest.raises(ChannelError, match="closed"):
        channel.receive("DATA", 8)


def test_a_party_that_is_refused_can_finish_what_it_sends(open_raw, thread):
    """The party stays to receive the reason: a reset connection loses the last bytes."""
    channel, raw = open_raw(timeout=5)

    def send_and_hear():
        raw.sendall(head(length=9) + bytes(30_000_000))
        raw.shutdown(socket.SHUT_WR)
        return read_refusal(raw)

    heard = thread(send_and_hear)
    with pytest.raises(MismatchError):
        channel.receive("DATA", 8)
    assert "found frame 0, DATA, of 9 bytes" in heard.result(5)


def test_a_mismatch_says_what_was_found_and_expected():
    a, b = Channel.pair()
    a.send("TREE", bytes(3))
    with pytest.raises(MismatchError) as caught:
        b.receive_at_most("LEAF", 2)
    assert caught.value.found == "frame 0, TREE, of 3 bytes"
    assert caught.value.expected == "frame 0, LEAF, of 0 to 2 bytes"


def test_a_frame_that_is_played_again(open_raw, thread):
    channel, raw = open_raw(timeout=5)
    frame = head(length=3) + b"abc"
    raw.sendall(frame + frame)
    assert channel.receive("DATA", 3) == b"abc"
    refusal = thread(read_refusal, raw)
    with pytest.raises(MismatchError, match=r"found frame 0, .*expected frame 1,.*repeated"):
        channel.receive("DATA", 3)
    refusal.result(5)


def test_a_frame_that_is_lost(open_raw, thread):
    channel, raw = open_raw(timeout=5)
    raw.sendall(head(sequence=0) + head(sequence=2))
    channel.receive("DATA", 0)
    refusal = thread(read_refusal, raw)
    with pytest.raises(MismatchError, match=r"found frame 2, .*expected frame 1,"):
        channel.receive("DATA", 0)
    refusal.result(5)


def test_noise(open_raw, thread, rng):
    for _ in range(20):
        channel, raw = open_raw(timeout=5)
        raw.sendall(rng.integers(0, 256, 100, dtype=np.uint8).tobytes())
        refusal = thread(read_refusal, raw)
        with pytest.raises((MismatchError, MalformedMessageError)):
            channel.receive("DATA", 8)
        refusal.result(5)


def test_both_sides_say_what_they_found_and_expected(pair, thread):
    a, b = pair
    a.send("SIZE", bytes(16))
    answer = thread(a.receive, "ANSW", 4)
    with pytest.raises(MismatchError, match="found frame 0, SIZE, of 16 bytes, expected"):
        b.receive("SIZE", 8)
    with pytest.raises(PeerRefusedError) as caught:
        answer.result(5)
    assert "found frame 0, SIZE, of 16 bytes, expected frame 0, SIZE, of 8" in caught.value.reason
    assert caught.value.reason in str(caught.value)


def test_a_refusal_is_heard_by_who_sends(pair, thread):
    a, b = pair
    refused = thread(b.abort, "a point outside the group")
    time.sleep(0.05)
    with pytest.raises(PeerRefusedError, match="a point outside the group"):
        a.send("DATA", b"x")
    refused.result(5)


def test_a_refusal_is_heard_in_the_middle_of_a_large_frame(pair, thread):
    a, b = pair
    refused = thread(b.receive, "ELSE", 1)

    def send_much():
        for _ in range(4):
            a.send("BULK", bytes(30_000_000))

    with pytest.raises(PeerRefusedError, match="expected frame 0, ELSE"):
        send_much()
    with pytest.raises(MismatchError):
        refused.result(5)


def test_leaving_by_an_exception_tells_the_other_party(pair, thread):
    a, b = pair
    heard = thread(b.receive, "DATA", 1)
    with pytest.raises(ZeroDivisionError), a:
        raise ZeroDivisionError("a secret of this party")
    with pytest.raises(PeerRefusedError) as caught:
        heard.result(5)
    assert caught.value.reason == "an error on its side"


def test_leaving_by_a_refusal_says_what_was_refused(pair, thread):
    a, b = pair
    heard = thread(b.receive, "DATA", 1)
    with pytest.raises(MalformedMessageError), a:
        raise MalformedMessageError("point 7 is outside the group")
    with pytest.raises(PeerRefusedError, match="point 7 is outside the group"):
        heard.result(5)


HOSTILE = "\x1b[31mred\x07\r\n\u202e\u0000bold" + "é" * 10_000


def test_a_reason_is_made_printable_and_short(open_raw):
    channel, raw = open_raw()
    text = HOSTILE.encode() + b"\xff\xfe"
    raw.sendall(head(b"ABRT", length=len(text)) + text)
    with pytest.raises(PeerRefusedError) as caught:
        channel.receive("DATA", 8)
    reason = caught.value.reason
    assert reason.startswith("?[31mred?????boldéé")
    assert reason.isprintable()
    assert len(reason) == 500


def test_a_reason_of_this_party_is_made_printable_and_short(pair, thread):
    a, b = pair
    aborted = thread(a.abort, HOSTILE + "\ud800")
    with pytest.raises(PeerRefusedError) as caught:
        b.receive("DATA", 8)
    aborted.result(5)
    assert caught.value.reason.startswith("?[31mred?????boldéé")
    assert len(caught.value.reason) == 500


@pytest.mark.parametrize("length", [10, 2**64 - 1])
def test_a_reason_that_does_not_come(open_raw, length):
    channel, raw = open_raw()
    raw.sendall(head(b"ABRT", length=length) + b"so")
    raw.close()
    with pytest.raises(PeerRefusedError, match="gave no reason"):
        channel.receive("DATA", 8)


def test_memory_that_cannot_be_had(open_raw, thread):
    channel, raw = open_raw(timeout=5)
    raw.sendall(head(length=1 << 47))
    refusal = thread(read_refusal, raw)
    with pytest.raises(ResourceError, match="not enough memory"):
        channel.receive("DATA", 1 << 47)
    assert refusal.result(5) == "an error on its side"


def test_a_reserved_kind_cannot_be_sent():
    a, _ = Channel.pair()
    with pytest.raises(ArgumentError, match="abort"):
        a.send("ABRT", b"")
