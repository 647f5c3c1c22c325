"""Malformed requests: many clients in processes of their own send mutated ones, pipelined."""

import asyncio
import multiprocessing
import os
import re
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from nescio.pir._change import Change, head_of

from .floods import params_of, query_of
from .mutate import Mutator, Request
from .party import TABLE, Party
from .scene import Outcome, Scene
from .settings import Settings

_PIPELINED = 12  # the server takes 16
_CONNECTIONS = 8  # of each process
_UNFRAMED_SHARE = 0.05
_REPLY_SECONDS = 5.0
_CLOSING_SECONDS = 0.1
_STATUS = re.compile(rb"HTTP/1\.1 ([0-9]{3}) ")
_ALLOWED_FAILURES = {503}
_TABLE = f"/v1/tables/{TABLE}".encode()


def fuzz(settings: Settings, folder: Path) -> Outcome:
    """Sends mutated requests to both parties, while one client looks up rows."""
    options = settings.options
    with Scene("malformed requests", folder, options=options, readers=1, pause=None) as scene:
        before = [party.memory() for party in scene.parties]
        begun = time.monotonic()
        statuses = _send_all(scene.parties, settings)
        seconds = time.monotonic() - begun
        after = [party.memory() for party in scene.parties]
        out = scene.outcome
        out.times = settings.fuzzed
        grown = max(a - b for a, b in zip(after, before, strict=True)) / 1e6
        shown = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
        out.notes.append(f"{settings.fuzzed / seconds:,.0f} requests/s, memory +{grown:.0f} MB")
        out.notes.append(f"replies {shown}")
        failures = {s: n for s, n in statuses.items() if s >= 500 and s not in _ALLOWED_FAILURES}
        if failures:
            out.failed.append(f"replies of a server that failed: {failures}")
        if not sum(statuses.values()) > settings.fuzzed / 2:
            out.failed.append("less than half of the requests had a reply")
    return scene.outcome


def _send_all(parties: Sequence[Party], settings: Settings) -> Counter[int]:
    """Sends the requests from a process for each processor; counts the replies by status."""
    workers = max(2, os.cpu_count() or 2)
    share = settings.fuzzed // workers + 1
    requests = {party.port: _valid(party) for party in parties}
    statuses: Counter[int] = Counter()
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        ports = [party.port for party in parties]
        jobs = [
            pool.submit(_send, port, requests[port], share, settings.seed + number)
            for number, port in zip(range(workers), ports * workers, strict=False)
        ]
        for job in jobs:
            statuses += job.result()
    return statuses


def _valid(party: Party) -> list[Request]:
    """Lists valid requests of clients and of operators, none of which changes the table."""
    token = (b"Authorization", b"Bearer " + party.token.encode())
    queries = [Request(b"POST", _TABLE + b"/answer", (), query_of(party, n)) for n in (1, 1, 3)]
    params = params_of(party)
    change = Change(
        "update", "2", np.arange(3, dtype=np.uint64), np.zeros((3, params.row_bytes), np.uint8)
    )
    head = head_of(change.encode(params))
    never = change.encode(params, bytes(16))  # a change of another table
    return [
        *queries * 4,
        Request(b"GET", b"/healthz"),
        Request(b"GET", b"/v1/tables"),
        Request(b"GET", _TABLE),
        Request(b"GET", _TABLE + b"/tops?since=" + b"0" * 32),
        Request(b"GET", _TABLE + b"/layout"),
        Request(b"POST", _TABLE + b"/rows", (token,), never),
        Request(b"POST", _TABLE + b"/rows/check", (token,), head),
    ]


def _send(port: int, requests: Sequence[Request], count: int, seed: int) -> Counter[int]:
    return asyncio.run(_send_shares(port, requests, count, seed))


async def _send_shares(
    port: int, requests: Sequence[Request], count: int, seed: int
) -> Counter[int]:
    """Sends `count` requests over several connections at a time."""
    share = count // _CONNECTIONS + 1
    clients = [
        _Fuzzer(port, Mutator(requests, seed * 1000 + number)) for number in range(_CONNECTIONS)
    ]
    await asyncio.gather(*(client.run(share) for client in clients))
    return sum((client.statuses for client in clients), Counter[int]())


class _Fuzzer:
    """One connection at a time, which sends mutated requests and counts replies."""

    def __init__(self, port: int, mutator: Mutator) -> None:
        self.statuses: Counter[int] = Counter()
        self._port, self._mutator = port, mutator
        self._tail = b""

    async def run(self, count: int) -> None:
        """Sends `count` requests; opens a new connection where the server closes one."""
        while count > 0:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            self._tail = b""
            try:
                while count > 0:
                    number = min(count, _PIPELINED)
                    count -= number
                    writer.write(b"".join(self._mutator.framed() for _ in range(number)))
                    if self._mutator.chance(_UNFRAMED_SHARE):
                        count -= 1
                        writer.write(self._mutator.unframed())
                        await self._read(reader, number + 1, _CLOSING_SECONDS)
                        break
                    if not await self._read(reader, number, _REPLY_SECONDS):
                        break
            except OSError:
                continue
            finally:
                writer.transport.abort()

    async def _read(self, reader: asyncio.StreamReader, expected: int, seconds: float) -> bool:
        """Reads replies; False if the connection ends, or if fewer come in time."""
        found = 0
        try:
            async with asyncio.timeout(seconds):
                while found < expected:
                    data = await reader.read(1 << 16)
                    if not data:
                        return False
                    text = self._tail + data
                    matches = list(_STATUS.finditer(text))
                    self.statuses.update(int(match[1]) for match in matches)
                    found += len(matches)
                    self._tail = text[max(matches[-1].end() if matches else 0, len(text) - 12) :]
        except TimeoutError:
            return False
        return True
