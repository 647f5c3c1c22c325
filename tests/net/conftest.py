import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from nescio.net import Channel


@pytest.fixture
def thread():
    """Runs the other party: `thread(function, *arguments)` returns a future."""
    with ThreadPoolExecutor(1) as executor:
        yield executor.submit


@pytest.fixture
def open_pair(thread, certificate):
    """Two connected channels in this process, by a kind of transport."""
    with contextlib.ExitStack() as opened:

        def open_one(transport, **options):
            if transport == "memory":
                pair = Channel.pair(**options)
            else:
                cert, key = certificate
                mine = {"tls_cert": cert, "tls_key": key} if transport == "tls" else {}
                theirs = {"tls_ca": cert} if transport == "tls" else {}
                with Channel.listener(**options, **mine) as listener:
                    accepted = thread(listener.accept)
                    other = Channel.connect("127.0.0.1", listener.port, **options, **theirs)
                    pair = accepted.result(5), other
            for channel in pair:
                opened.callback(channel.close)
            return pair

        yield open_one


@pytest.fixture(params=["memory", "tcp", "tls"])
def pair(request, open_pair):
    """Two connected channels over each kind of transport."""
    return open_pair(request.param, timeout=5)


@pytest.fixture
def open_raw():
    """A channel and, at its other end, a socket that can send it anything."""
    with contextlib.ExitStack() as opened:

        def open_one(timeout=0.3, link=None):
            with Channel.listener(timeout=timeout, link=link) as listener:
                raw = socket.create_connection(("127.0.0.1", listener.port), timeout=5)
                channel = listener.accept()
            opened.callback(raw.close)  # first, otherwise the channel would wait
            opened.callback(channel.close)
            return channel, raw

        yield open_one
