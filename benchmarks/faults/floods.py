"""Floods: heads without an end, half-open requests, many connections, slow clients."""

import time
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np

from nescio.pir import Client, TableParams

from .hostile import Attack, Habit, attacking
from .party import TABLE, Party
from .scene import Outcome, Scene
from .settings import Settings

_FILL_SECONDS = 30.0
_LONG = 1000  # rows of the answers that slow readers ask for
_HEAD = b"POST /v1/tables/%s/answer HTTP/1.1\r\nHost: x\r\n" % TABLE.encode()


def _flood(
    fault: str,
    settings: Settings,
    folder: Path,
    habit: Habit | Callable[[Party], Habit],
    *options: str,
    fill: int = 0,
) -> Outcome:
    """Attacks party 0 for some seconds, after `fill` connections have been opened."""
    own = [*settings.options, *options]
    with Scene(fault, folder, options=own, timeout=5.0) as scene:
        before = scene.parties[0].memory()
        calm = _median(scene, settings.seconds / 2)
        chosen = habit if isinstance(habit, Habit) else habit(scene.parties[0])
        with attacking(scene.parties[0].port, chosen) as attack:
            _fill(attack, fill)
            busy = _median(scene, settings.seconds)
            opened, most = attack.opened.value, attack.open.value
            scene.outcome.times = opened
        grown = (scene.parties[0].memory() - before) / 1e6
        if opened < fill:
            scene.outcome.failed.append(f"{opened} connections were opened, expected {fill}")
        scene.outcome.notes += [
            f"median lookup {calm * 1e3:.1f} ms before, {busy * 1e3:.1f} ms during",
            f"{most} connections open at the end, memory +{grown:.0f} MB",
        ]
    return scene.outcome


def _fill(attack: Attack, count: int) -> None:
    end = time.monotonic() + _FILL_SECONDS
    while attack.opened.value < count and time.monotonic() < end:
        time.sleep(0.1)


def _median(scene: Scene, seconds: float) -> float:
    """Returns the median time of lookups in the next seconds."""
    begin = [len(reader.latencies) for reader in scene.readers]
    time.sleep(seconds)
    scene.wait_for_lookups(1)
    found = [reader.latencies[b:] for reader, b in zip(scene.readers, begin, strict=True)]
    return float(np.median(np.concatenate(found)))


def heads(settings: Settings, folder: Path) -> Outcome:
    """Sends heads of requests that never end, a field at a time."""
    habit = Habit(500, _HEAD, b"X-Field: " + b"x" * 1000 + b"\r\n", seconds=0.05)
    return _flood("heads without an end", settings, folder, habit)


def half_open(settings: Settings, folder: Path) -> Outcome:
    """Opens requests and sends no more of them."""
    count = settings.connections
    habit = Habit(count, _HEAD)
    return _flood(f"{count:,} half-open requests", settings, folder, habit, fill=count)


def connections(settings: Settings, folder: Path) -> Outcome:
    """Keeps connections open, each after one request."""
    count = settings.connections
    limit = str(count + 100)
    habit = Habit(count, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    options = ["--max-connections", limit, "--max-connections-per-address", limit]
    return _flood(f"{count:,} connections", settings, folder, habit, *options, fill=count)


def slow_writers(settings: Settings, folder: Path) -> Outcome:
    """Sends bodies a byte at a time."""
    head = _HEAD + b"Content-Length: 100000\r\n\r\n"
    return _flood("500 slow writers", settings, folder, Habit(500, head, b"x", seconds=0.5))


def slow_readers(settings: Settings, folder: Path) -> Outcome:
    """Asks for long answers, and reads none of them."""

    def habit(party: Party) -> Habit:
        query = query_of(party, _LONG)
        request = _HEAD + b"Content-Length: %d\r\n\r\n" % len(query) + query
        return Habit(100, request * 12, deaf=True)

    return _flood("100 slow readers", settings, folder, habit)


def query_of(party: Party, lookups: int) -> bytes:
    """Makes a query of random rows, as a client sends it to party 0."""
    params = params_of(party)
    client = Client(params, verify=False, insecure_generator=True)
    indices = np.random.default_rng().integers(params.rows, size=lookups)
    return bytes(client.query(indices).keys[0])


def params_of(party: Party) -> TableParams:
    """Returns the parameters of the table that a party serves."""
    reply = httpx.get(f"{party.url}/v1/tables/{TABLE}", trust_env=False)
    return TableParams.from_dict(reply.json()["params"])
