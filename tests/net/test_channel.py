"""Channels between parties that follow the protocol."""

import math
import multiprocessing
import pickle
import socket
import threading
import time

import numpy as np
import pytest

from nescio.errors import (
    ArgumentError,
    ChannelError,
    MismatchError,
    PeerGoneError,
    PeerRefusedError,
    PeerTimeoutError,
    PeerUntrustedError,
)
from nescio.net import Channel, Counts, Link, aborting
from nescio.net._transport import SocketTransport


def test_frames_arrive_in_order(pair):
    a, b = pair
    for data in (b"", b"x", bytes(range(256)) * 300):
        a.send("DATA", data)
        assert b.receive("DATA", len(data)) == data
    b.send("BACK", b"12")
    b.send("MORE", b"345")
    assert a.receive("BACK", 2) == b"12"
    assert a.receive_at_most("MORE", 100) == b"345"


def test_large_frames_arrive_whole(pair, thread, rng):
    a, b = pair
    data = rng.integers(0, 256, 20_000_001, dtype=np.uint8)
    sent = thread(a.send, "BULK", data)
    assert np.array_equal(np.frombuffer(b.receive("BULK", data.nbytes), np.uint8), data)
    sent.result(5)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.uint64).reshape(6, 2),
        np.arange(4, dtype=">i4"),
        np.zeros((0, 2), np.uint64),
        np.array(7, np.uint8),
        np.zeros(3, [("a", "u1"), ("b", "<f8")]),
    ],
    ids=str,
)
def test_arrays_are_sent_as_their_bytes(array):
    a, b = Channel.pair()
    array.flags.writeable = False
    a.send("ROWS", array)
    received = b.receive("ROWS", array.nbytes)
    assert received == array.tobytes()
    np.frombuffer(received, np.uint8)[:] = 1  # received data are writable


def test_what_was_sent_can_change_afterwards(pair):
    a, b = pair
    data = bytearray(1000)
    a.send("DATA", data)
    data[:] = b"x" * 1000
    assert b.receive("DATA", 1000) == bytes(1000)


@pytest.mark.parametrize("data", ["text", None, [1, 2], np.zeros((4, 4))[:, 1], np.zeros((2, 3)).T])
def test_only_contiguous_buffers_are_sent(data):
    a, b = Channel.pair()
    with pytest.raises(ArgumentError, match="C-contiguous"):
        a.send("DATA", data)
    a.send("DATA", b"the channel is still open")
    assert b.receive("DATA", 25)


@pytest.mark.parametrize("kind", ["", "ABC", "ABCDE", "A CD", "ÄBCD", b"ABCD", None, ["A"], "ABRT"])
def test_kinds_are_four_ascii_characters(kind):
    a, b = Channel.pair()
    with pytest.raises(ArgumentError, match="kind"):
        a.send(kind, b"")
    with pytest.raises(ArgumentError, match="kind"):
        b.receive(kind, 0)
    assert not a.closed
    assert not b.closed


@pytest.mark.parametrize("length", [-1, 1.5, None, 1 << 60])
def test_lengths_are_numbers_of_bytes(length):
    a, _ = Channel.pair()
    with pytest.raises(ArgumentError, match="length"):
        a.receive("DATA", length)


@pytest.mark.parametrize("timeout", [0, -1, math.inf, math.nan, "1", True])
def test_timeouts_are_numbers_of_seconds(timeout):
    with pytest.raises(ArgumentError, match="timeout"):
        Channel.pair(timeout=timeout)


def test_links_are_links():
    with pytest.raises(ArgumentError, match="link"):
        Channel.pair(link="40ms")


def test_counts_are_exact(pair):
    a, b = pair
    assert a.counts == Counts()
    a.send("ONE1", b"123")
    a.send("TWO2", b"")
    b.receive("ONE1", 3)
    b.receive("TWO2", 0)
    before = b.counts
    b.send("BACK", bytes(100))
    a.receive("BACK", 100)
    a.send("ONE1", b"4")
    b.receive("ONE1", 1)
    assert a.counts == Counts(
        sent_bytes=3 * 16 + 4,
        received_bytes=116,
        sent_frames=3,
        received_frames=1,
        rounds=1,
        sent_by_kind={"ONE1": 36, "TWO2": 16},
        received_by_kind={"BACK": 116},
    )
    assert b.counts.received_by_kind == a.counts.sent_by_kind
    assert b.counts.rounds == 1
    added = b.counts.since(before)
    assert added == Counts(116, 17, 1, 1, 1, {"BACK": 116}, {"ONE1": 17})
    assert before.plus(added) == added.plus(before) == b.counts
    assert pickle.loads(pickle.dumps(added)) == added


def test_rounds_are_waits_for_an_answer():
    a, b = Channel.pair()
    for _ in range(3):
        a.send("ASKS", b"")
        a.send("ASKS", b"")
        for _ in range(2):
            b.receive("ASKS", 0)
        b.send("ANSW", b"")
        a.receive("ANSW", 0)
    assert (a.counts.rounds, b.counts.rounds) == (3, 2)


def test_a_frame_that_comes_early_waits_while_this_party_sends(pair):
    a, b = pair
    a.send("ATOB", b"a")
    b.send("BTOA", b"b")
    b.send("BTOA", b"c")
    a.send("ATOB", b"d")
    assert [a.receive("BTOA", 1), a.receive("BTOA", 1)] == [b"b", b"c"]
    assert [b.receive("ATOB", 1), b.receive("ATOB", 1)] == [b"a", b"d"]


def test_what_was_sent_before_closing_still_arrives(pair):
    a, b = pair
    with a:
        a.send("LAST", b"bye")
    assert b.receive("LAST", 3) == b"bye"
    with pytest.raises(PeerGoneError, match="expected frame 1, MORE"):
        b.receive("MORE", 1)


def test_an_interrupted_channel_ends_in_the_thread_that_uses_it(pair, thread):
    a, b = pair
    waiting = thread(a.receive, "MORE", 1)
    time.sleep(0.1)
    a.interrupt()
    for receive in (waiting.result, lambda: b.receive("MORE", 1)):
        with pytest.raises(PeerGoneError, match="expected frame 0, MORE"):
            receive()
    a.interrupt()  # does nothing more


def test_a_closed_channel_says_so(pair):
    a, _ = pair
    a.close()
    a.close()
    a.abort("too late to say")
    assert a.closed
    for use in (lambda: a.send("DATA", b""), lambda: a.receive("DATA", 0)):
        with pytest.raises(ChannelError, match=r"closed: close\(\)"):
            use()


def test_a_send_waits_until_there_is_room(thread):
    a, b = Channel.pair(timeout=5)
    frame = bytes(40 << 20)
    a.send("BULK", frame)
    second = thread(a.send, "BULK", frame)
    time.sleep(0.05)
    assert not second.done()
    b.receive("BULK", len(frame))
    second.result(5)
    b.receive("BULK", len(frame))


def test_two_threads_exchange_many_frames(pair, thread):
    a, b = pair

    def other():
        for _ in range(500):
            b.send("PONG", b.receive("PING", 4))

    echoed = thread(other)
    for number in range(500):
        a.send("PING", number.to_bytes(4, "little"))
        assert int.from_bytes(a.receive("PONG", 4), "little") == number
    echoed.result(5)


def test_who_connects_waits_for_who_listens(thread):
    with Channel.listener() as reserved:
        port = reserved.port
    connected = thread(Channel.connect, "127.0.0.1", port, timeout=5)
    time.sleep(0.1)
    with Channel.listen("127.0.0.1", port, timeout=5) as a, connected.result(5) as b:
        a.send("DATA", b"1")
        assert b.receive("DATA", 1) == b"1"


def test_nobody_comes():
    with Channel.listener(timeout=0.1) as listener:
        with pytest.raises(PeerTimeoutError, match="no party connected"):
            listener.accept()
    with pytest.raises(PeerTimeoutError, match="check that the other party listens"):
        Channel.connect("127.0.0.1", listener.port, timeout=0.1)


@pytest.mark.parametrize("address", [("", 1), ("ä.example", 1), (3, 1), ("a", -1), ("a", 65536)])
def test_addresses_that_cannot_be(address):
    with pytest.raises(ArgumentError):
        Channel.connect(*address)
    with pytest.raises(ArgumentError):
        Channel.listen(*address)


def test_a_port_that_is_taken():
    with Channel.listener() as listener, pytest.raises(ChannelError, match="cannot listen"):
        Channel.listen("127.0.0.1", listener.port)


def test_tls_files_that_cannot_be(certificate, tmp_path):
    cert, key = certificate
    for files in ({"tls_ca": cert}, {"tls_cert": cert}, {"tls_cert": key, "tls_key": cert}):
        with pytest.raises(ArgumentError, match="TLS"):
            Channel.listener(**files)
    with pytest.raises(ArgumentError, match="TLS"):
        Channel.connect("127.0.0.1", 1, tls_ca=tmp_path / "none.pem")


def test_both_parties_show_certificates(certificate, thread):
    cert, key = certificate
    files = {"tls_cert": cert, "tls_key": key, "tls_ca": cert, "timeout": 5}
    with Channel.listener(**files) as listener:
        accepted = thread(listener.accept)
        with Channel.connect("127.0.0.1", listener.port, **files) as b, accepted.result(5) as a:
            b.send("DATA", b"1")
            assert a.receive("DATA", 1) == b"1"


def _in_another_process(port, link):
    with Channel.connect("127.0.0.1", port, timeout=10, link=link) as channel:
        data = channel.receive("BULK", 3_000_000)
        channel.send("SUMS", np.frombuffer(data, np.uint8).sum(dtype=np.uint64))


@pytest.mark.parametrize("link", [None, Link(rtt_seconds=0.02)])
def test_two_processes(link, rng):
    data = rng.integers(0, 256, 3_000_000, dtype=np.uint8)
    with Channel.listener(timeout=10, link=link) as listener:
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_in_another_process, args=(listener.port, link))
        process.start()
        with listener.accept() as channel:
            channel.send("BULK", data)
            total = np.frombuffer(channel.receive("SUMS", 8), np.uint64)[0]
            assert channel.counts.rounds == 1
    process.join(10)
    assert process.exitcode == 0
    assert total == data.sum(dtype=np.uint64)


def test_small_frames_leave_at_once():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as connection:
            SocketTransport(connection)
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_no_thread_is_left_behind(open_pair):
    before = threading.active_count()
    Channel.pair(link=Link(0.01))
    assert threading.active_count() == before


def test_the_system_does_not_trust_a_certificate_of_our_own(certificate, thread):
    cert, key = certificate
    with Channel.listener(timeout=5, tls_cert=cert, tls_key=key) as listener:
        refused = thread(listener.accept)
        with pytest.raises(PeerUntrustedError, match="tls_ca"):
            Channel.connect("127.0.0.1", listener.port, timeout=5, tls=True)
        with pytest.raises(ChannelError):
            refused.result(5)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MismatchError("found a, expected b", found="a", expected="b"), "found a, expected b"),
        (MemoryError("of 8 bytes"), "not enough memory"),
        (KeyError("a secret"), "an error on its side"),
    ],
)
def test_a_block_that_ends_in_an_error_aborts_the_channel(error, told):
    mine, other = Channel.pair()
    with pytest.raises(type(error)):
        with aborting(mine):
            raise error
    assert mine.closed
    with pytest.raises(PeerRefusedError) as caught:
        other.receive("DATA", 1)
    assert caught.value.reason == told


def test_a_block_that_ends_well_leaves_the_channel_open():
    mine, other = Channel.pair()
    with aborting(mine):
        mine.send("ONES", b"1")
    mine.send("TWOS", b"2")
    assert [other.receive(kind, 1) for kind in ("ONES", "TWOS")] == [b"1", b"2"]
