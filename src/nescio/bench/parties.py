"""Benchmarks of two parties: each is a process, and both are joined by TCP on this machine."""

import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from ..errors import ArgumentError, NescioError
from ..net import Channel, Link

__all__ = ["PARTY_SECONDS", "connect", "meet", "parse_link", "report", "reporting", "two_parties"]

HOST = "127.0.0.1"
PARTY_SECONDS = 900
_TIMEOUT = 600.0


def parse_link(name: str) -> Link | None:
    """Parses a rate and a round trip, such as "300mbit/2ms"; returns None for "local".

    Raises ArgumentError.
    """
    if name == "local":
        return None
    rate, slash, rtt = name.partition("/")
    if not slash:
        raise ArgumentError(f"link: found {name!r}, expected 'local', or such as '300mbit/2ms'")
    return Link.parse(rtt=rtt, rate=rate)


@contextmanager
def two_parties(
    target: Callable[..., None], roles: Mapping[str, Sequence[object]]
) -> Iterator[list[Connection]]:
    """Starts target(role, pipe, port, *arguments) in a process for each of two roles.

    The first party gets no port: it sends the one that it chose. Gives a pipe to each.
    """
    context = multiprocessing.get_context("spawn")
    processes, pipes = [], []
    try:
        port: int | None = None
        for role, arguments in roles.items():
            pipe, other = context.Pipe()
            process = context.Process(
                target=target, args=(role, other, port, *arguments), daemon=True
            )
            process.start()
            processes.append(process)
            pipes.append(pipe)
            other.close()
            if port is None:
                port = report(pipe)
        yield pipes
    finally:
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.join(5)
            if process.is_alive():
                process.terminate()


def report(pipe: Connection) -> Any:  # noqa: ANN401 - whatever the other process sends
    """Receives a party's report. Raises the error that the party sent instead."""
    if not pipe.poll(PARTY_SECONDS):
        raise NescioError(f"a party of the benchmark sent nothing for {PARTY_SECONDS} s")
    try:
        found = pipe.recv()
    except EOFError as error:
        raise NescioError("a party of the benchmark has ended; its error is above") from error
    if isinstance(found, NescioError):
        raise found
    return found


@contextmanager
def reporting(pipe: Connection) -> Iterator[None]:
    """Sends an error of a party in place of its report; ends it if nobody reads reports."""
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            yield
        except NescioError as error:
            pipe.send(error)


def connect(pipe: Connection, port: int | None, link: Link | None) -> Channel:
    """Joins the parties: the one without a port listens, and sends its port into the pipe."""
    if port is not None:
        return Channel.connect(HOST, port, timeout=_TIMEOUT, link=link)
    with Channel.listener(HOST, 0, timeout=_TIMEOUT, link=link) as listener:
        pipe.send(listener.port)
        return listener.accept()


def meet(channel: Channel) -> None:
    """Waits until the other party is here too."""
    channel.send("SYNC", b"")
    channel.receive("SYNC", 0)
