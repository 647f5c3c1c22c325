"""The limits of connections: heads, framing, TLS handshakes, and who is closed at the maximum."""

import contextlib
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from starlette.responses import JSONResponse

import nescio
from nescio.errors import ArgumentError, FileError
from nescio.service import Quotas, RemoteTable
from nescio.service._connection import Admission, ConnectionLimits, _protocol
from nescio.service._serve import Address
from service.conftest import VALUES, make_app, post, raw_request, running

HEAD = b"POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\n"


def connect(url):
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), 10)


@pytest.fixture
def connected():
    """Makes connections, which end with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda url, count: [stack.enter_context(connect(url)) for _ in range(count)]


def flood(url, start, again, most):
    """Sends `again` until the server closes; returns the bytes sent and the start of the reply."""
    with connect(url) as connection:
        connection.sendall(start)
        sent = 0
        connection.settimeout(0.2)
        try:
            while sent < most:
                sent += connection.send(again)
        except OSError:
            pass
        try:
            return sent, connection.recv(4096)
        except OSError:
            return sent, b""


@pytest.mark.parametrize(
    ("start", "again"),
    [
        (b"GET /", b"x" * 4096),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: ", b"x" * 4096),
        (b"GET / HTTP/1.1\r\n", b"A: " + b"x" * 997 + b"\r\n"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x" * 4096),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1;" + b"x" * 995 + b"\r\nx\r\n"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"A: " + b"x" * 997 + b"\r\n"),
    ],
    ids=["path", "field", "fields", "extension", "extensions", "trailers"],
)
def test_a_head_or_framing_without_an_end(start, again):
    with running(make_app(0, quotas=Quotas(read_seconds=5))) as url:
        sent, _ = flood(url, start, again, 64 << 20)
        assert sent < 16 << 20  # of the sockets' buffers
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_a_head_that_is_too_long_is_refused_with_the_reason(url):
    fits = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA: " + b"x" * 60_000
    assert b" 200 " in raw_request(url, fits + b"\r\n\r\n")
    long = raw_request(url, fits + b"x" * (65_536 - len(fits)))
    assert long.startswith(b"HTTP/1.1 431 ")
    assert b'"code": "head_too_large"' in long
    many = b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 100 + b"\r\n"
    assert b"more than 100 header fields" in raw_request(url, many)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_requests_in_pieces(url, client, size):
    query = client.query([5]).keys[0]
    plain = HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(query), query)
    chunked = HEAD + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    chunked += b"%x\r\n%s\r\n0\r\nTrailer: 1\r\n\r\n" % (len(query), query)
    data = plain + chunked
    with connect(url) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for first in range(0, len(data), size):
            connection.sendall(data[first : first + size])
        reply = b"".join(iter(lambda: connection.recv(65536), b""))
    assert reply.count(b"HTTP/1.1 200 ") == 2


class SlowServer(nescio.Server):
    def answer_batch(self, queries):
        time.sleep(0.5)
        return super().answer_batch(queries)


def test_a_refusal_comes_after_the_earlier_responses(client):
    query = client.query([5]).keys[0]
    first = HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(query), query)
    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    with running(make_app(0, server=SlowServer)) as url:
        for refused in b"GET / HTTP/1.1\r\n\r\n", chunked + b"invalid":
            reply = raw_request(url, first + refused)
            assert reply.startswith(b"HTTP/1.1 200 ")
            assert reply.count(b"HTTP/1.1 ") == 2
            assert reply.index(b"HTTP/1.1 400 ") > 100
        assert b" 400 " in raw_request(url, b"GET / HTTP/1.1\r\n\r\n")


def test_long_heads_in_one_piece(url):
    one = b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 30_000 + b"\r\n\r\n"
    last = one.replace(b"A: ", b"Connection: close\r\nA: ")
    assert raw_request(url, one * 5 + last).count(b"HTTP/1.1 200 ") == 6
    reply = raw_request(url, one * 2 + one[:-4] + b"x" * 60_000)
    assert [part[:3] for part in reply.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"431"]


def test_heads_that_wait_for_a_response_count_as_held_bytes(client):
    query = client.query([5]).keys[0]
    first = HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(query), query)
    one = b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 30_000 + b"\r\n\r\n"
    quotas = Quotas(max_held_bytes=100_000, max_answer_bytes=80_000)
    with running(make_app(0, server=SlowServer, quotas=quotas)) as url:
        reply = raw_request(url, first + one * 6)
        statuses = [part[:3] for part in reply.split(b"HTTP/1.1 ")[1:]]
        assert statuses[0] == b"200"
        assert statuses[-1] == b"503"
        assert 3 <= len(statuses) <= 5
        assert raw_request(url, one * 2 + b"GET / HTTP/1.1\r\n\r\n").count(b" 200 OK") == 2


async def long_replies(scope, receive, send):
    """Replies with 8 MB, except at /healthz."""
    text = "ok" if scope["path"] == "/healthz" else "x" * (8 << 20)
    await JSONResponse(text)(scope, receive, send)


def unread(url):
    """Makes a connection that has sent three requests and reads none of the replies."""
    connection = connect(url)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
    return connection


@pytest.mark.parametrize("loop", ["auto", "asyncio"])
def test_any_reply_must_be_read_in_time(caplog, loop):
    with running(long_replies, loop=loop, write_seconds=0.3) as url, unread(url) as connection:
        time.sleep(2)  # the kernel tells the end only after what it still holds
        read = 0
        with contextlib.suppress(ConnectionResetError):
            while data := connection.recv(1 << 20):
                read += len(data)
        assert read < 16 << 20  # the rest was not sent
    assert not caplog.records


def test_at_the_maximum_connections_that_do_not_read_are_closed(monkeypatch):
    monkeypatch.setattr(_protocol, "_BLOCKED_SECONDS", 0.1)
    with running(long_replies, max_connections=1) as url, unread(url):
        time.sleep(0.5)
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_errors_repeat_little_of_a_request(url):
    for path in "/" + "x" * 7000, "/v1/tables/" + "x" * 7000:
        response = httpx.get(url + path)
        assert response.status_code == 404
        assert len(response.content) < 300
        assert "xxxx" in response.text


def test_a_length_with_many_zeros(url):
    head = HEAD + b"Connection: close\r\nContent-Length: " + b"0" * 5000 + b"1\r\n\r\nx"
    assert raw_request(url, head).startswith(b"HTTP/1.1 400 ")


def test_trailers_and_extensions_within_the_limits(client):
    query = client.query([5]).keys[0]
    body = b"%x;name=value\r\n%s\r\n0\r\nTrailer: 1\r\n\r\n" % (len(query), query)
    head = HEAD + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    with running(make_app(0)) as url:
        assert raw_request(url, head + body).startswith(b"HTTP/1.1 200 ")


def test_a_body_in_small_chunks(client):
    query = client.query([5]).keys[0] * 200  # 80 kB, with 6 bytes for each one
    body = b"".join(b"1\r\n%c\r\n" % byte for byte in query) + b"0\r\n\r\n"
    head = HEAD + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    with running(make_app(0)) as url:
        assert raw_request(url, head + body).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("hosts", [0, 2])
def test_a_head_without_a_host_or_with_two(url, hosts):
    head = b"GET /healthz HTTP/1.1\r\n" + b"Host: x\r\n" * hosts + b"\r\n"
    reply = raw_request(url, head)
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert b"found" not in reply.split(b"\r\n\r\n")[0]
    assert b"%d header fields 'Host', expected one" % hosts in reply
    assert raw_request(url, b"GET /healthz HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_heads_count_as_held_bytes(client):
    quotas = Quotas(max_held_bytes=80_000, max_answer_bytes=80_000)
    with running(make_app(0, quotas=quotas)) as url:
        with connect(url) as first, connect(url) as second:
            first.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 50_000)
            time.sleep(0.3)
            second.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 50_000)
            refused = second.recv(4096)
            assert refused.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 1\r\n" in refused
            first.sendall(b"\r\n\r\n")
            assert first.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert post(url, client.query([5]).keys[0]).status_code == 200  # all of it is released


def test_bytes_between_requests_are_bounded(client):
    with running(make_app(0)) as url:
        sent, reply = flood(url, b"", b"\r\n" * 2048, 64 << 20)
        assert sent < 16 << 20
        assert not reply or reply.startswith(b"HTTP/1.1 431 ")
        assert post(url, client.query([5]).keys[0]).status_code == 200


def test_requests_that_are_sent_ahead_of_responses(url):
    one = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert raw_request(url, one * 9 + last).count(b"HTTP/1.1 200 ") == 10
    assert raw_request(url, one * 1000).count(b"HTTP/1.1 200 ") < 50


def closed(connection):
    """Tests if the server has closed a connection."""
    connection.settimeout(0.3)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def test_at_the_maximum_the_oldest_idle_connections_are_closed(connected):
    with running(make_app(0), max_connections=3) as url:
        idle = connected(url, 3)
        for _ in range(2):  # nobody is locked out
            assert httpx.get(f"{url}/healthz").status_code == 200
        assert [closed(connection) for connection in idle] == [True, False, False]


def test_at_the_maximum_connections_with_requests_are_kept(client, connected):
    with running(make_app(0), max_connections=2) as url:
        body = client.query([5]).keys[0]
        head = HEAD + b"Content-Length: %d\r\n\r\n" % len(body)
        busy = connected(url, 2)
        for connection in busy:
            connection.sendall(head)
        time.sleep(0.3)
        with connect(url) as late:
            assert closed(late)
        for connection in busy:
            connection.sendall(body)
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_one_address_has_a_maximum_of_its_own(connected):
    with running(make_app(0), max_per_address=2) as url:
        idle = connected(url, 2)
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert [closed(connection) for connection in idle] == [True, False]


@pytest.mark.parametrize("loop", ["auto", "asyncio"])
def test_unfinished_tls_handshakes_are_counted_and_end(certificate, connected, loop):
    cert, key = map(str, certificate)
    trust = ssl.create_default_context(cafile=cert)
    options = {"certificate": (cert, key), "max_connections": 4, "loop": loop}
    with (
        running(make_app(0), handshake_seconds=0.5, **options) as first,
        running(make_app(1), **options) as second,
    ):
        slow = connected(first, 4)
        for connection in slow[:2]:
            connection.sendall(b"\x16\x03\x01")  # the start of a hello
        with RemoteTable([first, second], "words", tls=trust) as table:
            assert np.array_equal(table.lookup([5]), VALUES[[5]])
        deadline = time.monotonic() + 5
        for connection in slow:
            while not closed(connection):
                assert time.monotonic() < deadline


class Transport:
    def __init__(self, address):
        self._address = address

    def get_extra_info(self, name):
        return (self._address, 1) if name == "peername" else None


class Member:
    evicted = False

    def evict(self):
        self.evicted = True


def test_addresses_are_counted_apart_and_ipv6_by_network():
    admission = Admission(ConnectionLimits(max_per_address=1))
    members = [Member() for _ in range(5)]
    hosts = ["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::ffff", "::ffff:192.0.2.1"]
    assert all(admission.enter(m, Transport(h)) for m, h in zip(members, hosts, strict=True))
    assert [member.evicted for member in members] == [True, False, True, False, False]


@pytest.mark.parametrize(
    "limits",
    [{"max_connections": 0}, {"max_per_address": 1.5}, {"head_seconds": float("nan")}],
)
def test_invalid_limits(limits):
    with pytest.raises(ArgumentError, match=next(iter(limits))):
        ConnectionLimits(**limits)


def test_the_service_ends_during_handshakes(certificate, connected):
    begun = time.monotonic()
    with running(make_app(0), certificate=tuple(map(str, certificate))) as url:
        idle = connected(url, 3)
        time.sleep(0.2)
    assert time.monotonic() - begun < 5
    assert all(closed(connection) for connection in idle)


@pytest.mark.parametrize("loop", ["auto", "asyncio"])
def test_many_tls_clients_at_once(certificate, loop):
    cert, key = map(str, certificate)
    trust = ssl.create_default_context(cafile=cert)

    def ask(address):  # the handshake begins as soon as the connection does
        with (
            socket.create_connection(address, 30) as connection,
            trust.wrap_socket(connection, server_hostname=address[0]) as secured,
        ):
            secured.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return secured.recv(13)

    with (
        running(make_app(0), certificate=(cert, key), loop=loop) as url,
        ThreadPoolExecutor(16) as pool,
    ):
        address = (urlsplit(url).hostname, urlsplit(url).port)
        assert set(pool.map(ask, [address] * 60)) == {b"HTTP/1.1 200 "}


def test_a_key_with_a_passphrase_is_refused(certificate, tmp_path):
    """OpenSSL would ask at the terminal, and a reload would wait for the answer."""
    encrypted = tmp_path / "key.pem"
    key = serialization.load_pem_private_key(certificate[1].read_bytes(), None)
    encrypted.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"passphrase"),
        )
    )
    with pytest.raises(FileError, match=r"the key is encrypted; expected one without"):
        Address(tls_cert=certificate[0], tls_key=encrypted)
