"""Hostile clients, in a process of their own: many connections that use them badly."""

import asyncio
import contextlib
import multiprocessing
import resource
import socket
from collections.abc import Awaitable, Callable, Iterator
from multiprocessing.sharedctypes import Synchronized
from typing import NamedTuple

_ADDRESSES = 250  # of 127.0.1.0/24, so that limits for one address apply to fewer connections
_RETRY_SECONDS = 0.2
_PIECE = 1 << 16
_FEW_BYTES = 4096


class Habit(NamedTuple):
    """A hostile client: how many connections, and what each sends.

    Each sends `first`, then `again` every `seconds`, or nothing more if that is empty. It reads
    what comes unless `deaf`, and connects again when it is closed, unless not `stubborn`.
    """

    connections: int
    first: bytes
    again: bytes = b""
    seconds: float = 1.0
    deaf: bool = False
    stubborn: bool = True


class Attack(NamedTuple):
    """Counts of an attack that runs."""

    opened: "Synchronized[int]"
    open: "Synchronized[int]"


@contextlib.contextmanager
def attacking(port: int, habit: Habit) -> Iterator[Attack]:
    """Attacks a port of 127.0.0.1 until the block ends."""
    spawn = multiprocessing.get_context("spawn")
    attack = Attack(spawn.Value("q", 0), spawn.Value("q", 0))
    process = spawn.Process(target=_attack, args=(port, habit, attack), daemon=True)
    process.start()
    try:
        yield attack
    finally:
        process.terminate()
        process.join()


def _attack(port: int, habit: Habit, attack: Attack) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(_all(port, habit, attack))


async def _all(port: int, habit: Habit, attack: Attack) -> None:
    one: Callable[[int], Awaitable[None]] = lambda n: _connect(port, habit, attack, n)  # noqa: E731
    await asyncio.gather(*(one(number) for number in range(habit.connections)))


async def _connect(port: int, habit: Habit, attack: Attack, number: int) -> None:
    """Keeps one connection, from an address that depends on its number."""
    while True:
        await asyncio.sleep(_RETRY_SECONDS * (number % 100) / 100)
        with contextlib.suppress(OSError):
            connection = _socket(habit, number)
            try:
                await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
                attack.opened.value += 1
                attack.open.value += 1
                try:
                    await _use(connection, habit)
                finally:
                    attack.open.value -= 1
            finally:
                connection.close()
        if not habit.stubborn:
            return
        await asyncio.sleep(_RETRY_SECONDS)


def _socket(habit: Habit, number: int) -> socket.socket:
    connection = socket.socket()
    connection.setblocking(False)
    if habit.deaf:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _FEW_BYTES)
    connection.bind((f"127.0.1.{1 + number % _ADDRESSES}", 0))
    return connection


async def _use(connection: socket.socket, habit: Habit) -> None:
    """Sends what the habit says until the server closes the connection."""
    sender = asyncio.ensure_future(_send(connection, habit))
    try:
        if habit.deaf:
            await sender
        while await asyncio.get_running_loop().sock_recv(connection, _PIECE):
            pass
    finally:
        sender.cancel()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await sender


async def _send(connection: socket.socket, habit: Habit) -> None:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(connection, habit.first)
    while habit.again:
        await asyncio.sleep(habit.seconds)
        await loop.sock_sendall(connection, habit.again)
    if habit.deaf:
        await asyncio.Event().wait()
