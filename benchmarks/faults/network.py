"""Networks that cut connections, are slow, or carry one direction only."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from .proxy import Direction, Mode, Proxy
from .scene import Outcome, Scene
from .settings import Settings

_CUT_SHARE = 0.1


@contextlib.contextmanager
def _proxied(
    fault: str, settings: Settings, folder: Path, timeout: float = 1.0
) -> Iterator[tuple[Scene, list[Proxy]]]:
    """Makes a scene in which clients and the operator reach both parties through proxies."""
    scene = Scene(fault, folder, options=settings.options, timeout=timeout)
    with contextlib.ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(party.port)) for party in scene.parties]
        scene.connect([proxy.url for proxy in proxies])
        with scene:
            yield scene, proxies
            for proxy in proxies:
                proxy.become("pass")
                proxy.cut = {"request": 0.0, "reply": 0.0}


def _cut(direction: Direction, settings: Settings, folder: Path) -> Outcome:
    fault = f"connections cut in a {direction}"
    with _proxied(fault, settings, folder) as (scene, proxies):
        for proxy in proxies:
            proxy.cut[direction] = _CUT_SHARE
        time.sleep(settings.seconds)
        scene.outcome.times = sum(proxy.cuts for proxy in proxies)
    return scene.outcome


def cut_requests(settings: Settings, folder: Path) -> Outcome:
    """Resets connections in the middle of requests."""
    return _cut("request", settings, folder)


def cut_replies(settings: Settings, folder: Path) -> Outcome:
    """Resets connections in the middle of replies."""
    return _cut("reply", settings, folder)


def slow(settings: Settings, folder: Path) -> Outcome:
    """Delays each piece by 50 ms, at 1 Mbit/s."""
    fault = "network of 100 ms and 1 Mbit/s"
    with _proxied(fault, settings, folder, 5.0) as (scene, proxies):
        for proxy in proxies:
            proxy.delay, proxy.rate = 0.05, 125_000
        time.sleep(settings.seconds)
        for proxy in proxies:
            proxy.delay, proxy.rate = 0.0, float("inf")
        scene.outcome.times = 1
    return scene.outcome


def _half(mode: Mode, fault: str, settings: Settings, folder: Path) -> Outcome:
    """Takes one party's network away after the other's, for some seconds each."""
    with _proxied(fault, settings, folder) as (scene, proxies):
        for number, proxy in enumerate(proxies):
            scene.wait_for_lookups(1)
            proxy.become(mode)
            time.sleep(settings.seconds / 2)
            proxy.become("pass")
            scene.outcome.times = number + 1
    return scene.outcome


def unreachable(settings: Settings, folder: Path) -> Outcome:
    """Resets every connection to one party."""
    return _half("refuse", "one party unreachable", settings, folder)


def silent(settings: Settings, folder: Path) -> Outcome:
    """Carries nothing to or from one party."""
    return _half("silent", "one party silent", settings, folder)


def one_way(settings: Settings, folder: Path) -> Outcome:
    """Carries requests to one party, and none of its replies."""
    return _half("no replies", "one party's replies dropped", settings, folder)
