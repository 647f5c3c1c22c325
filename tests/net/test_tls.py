"""TLS between two parties: trusted and untrusted certificates."""

import socket
import ssl

import pytest

from nescio.errors import (
    ChannelError,
    MalformedMessageError,
    PeerGoneError,
    PeerRefusedError,
    PeerTimeoutError,
    PeerUntrustedError,
)
from nescio.net import Channel


def test_an_authority_that_did_not_sign(certificate, stranger, thread):
    cert, key = certificate
    with Channel.listener(timeout=5, tls_cert=cert, tls_key=key) as listener:
        accepted = thread(listener.accept)
        with pytest.raises(PeerUntrustedError, match="not trusted"):
            Channel.connect("127.0.0.1", listener.port, timeout=5, tls_ca=stranger[0])
        with pytest.raises(PeerRefusedError, match="unknown ca"):
            accepted.result(5)


def test_a_certificate_for_another_host(certificate, thread):
    cert, key = certificate
    with Channel.listener("localhost", timeout=5, tls_cert=cert, tls_key=key) as listener:
        accepted = thread(listener.accept)
        with pytest.raises(PeerUntrustedError, match="[Hh]ostname"):
            Channel.connect("localhost", listener.port, timeout=5, tls_ca=cert)
        with pytest.raises(ChannelError):
            accepted.result(5)


@pytest.mark.parametrize("shown", [False, True])
def test_who_connects_has_to_show_itself(certificate, stranger, thread, shown):
    cert, key = certificate
    files = {"tls_cert": stranger[0], "tls_key": stranger[1]} if shown else {}
    with Channel.listener(timeout=5, tls_cert=cert, tls_key=key, tls_ca=cert) as listener:
        accepted = thread(listener.accept)
        # With TLS 1.3 the client finishes before the server has checked its certificate.
        channel = Channel.connect("127.0.0.1", listener.port, timeout=5, tls_ca=cert, **files)
        with pytest.raises((PeerRefusedError, PeerGoneError)):
            channel.receive("DATA", 1)
        with pytest.raises(PeerUntrustedError):
            accepted.result(5)


def test_a_peer_without_tls(certificate, thread):
    cert, key = certificate
    with Channel.listener(timeout=0.3, tls_cert=cert, tls_key=key) as listener:
        accepted = thread(listener.accept)
        with Channel.connect("127.0.0.1", listener.port, timeout=1) as plain:
            plain.send("DATA", bytes(100))
            with pytest.raises(PeerUntrustedError, match="check that both parties use TLS"):
                accepted.result(5)


def test_a_peer_that_does_not_finish_the_handshake(certificate, thread):
    cert, key = certificate
    with Channel.listener(timeout=0.2, tls_cert=cert, tls_key=key) as listener:
        with socket.create_connection(("127.0.0.1", listener.port)):
            with pytest.raises(PeerTimeoutError, match="handshake"):
                listener.accept()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(PeerTimeoutError, match="handshake"):
            Channel.connect("127.0.0.1", port, timeout=0.2, tls_ca=cert)


def test_who_talks_tls_to_who_does_not(certificate, thread):
    with Channel.listener(timeout=5) as listener:
        connecting = thread(
            lambda: Channel.connect("127.0.0.1", listener.port, timeout=5, tls_ca=certificate[0])
        )
        channel = listener.accept()
        with pytest.raises(MalformedMessageError, match="found 16 03"):
            channel.receive("DATA", 1)
        with pytest.raises((PeerUntrustedError, PeerGoneError)):
            connecting.result(5)


def test_tls_is_of_today(certificate, thread):
    cert, key = certificate
    old = ssl.create_default_context(cafile=cert)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with Channel.listener(timeout=5, tls_cert=cert, tls_key=key) as listener:
        accepted = thread(listener.accept)
        with socket.create_connection(("127.0.0.1", listener.port)) as raw:
            with pytest.raises(ssl.SSLError), old.wrap_socket(raw, server_hostname="127.0.0.1"):
                pass
        with pytest.raises(PeerUntrustedError, match="TLS handshake failed"):
            accepted.result(5)
