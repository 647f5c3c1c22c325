"""A party in a network namespace of its own, whose link goes down."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from .party import Party
from .scene import Outcome, Scene
from .settings import Settings, SkippedError

_HERE, _THERE = "10.213.0.1", "10.213.0.2"
_SLOW = "rate 2mbit burst 16kb latency 50ms"
_LOSSY = "delay 40ms 20ms loss 2%"


def link_down(settings: Settings, folder: Path) -> Outcome:
    """Takes the link of party 1 down and up, then makes it slow and, where possible, lossy."""
    with _namespace() as (name, link):
        table = folder / "table.npy"
        options = settings.options
        inside = ["ip", "netns", "exec", name]
        parties = [
            Party(0, table, folder, options),
            Party(1, table, folder, options, host=_THERE, prefix=inside),
        ]
        with Scene("link of a namespace down", folder, parties=parties, timeout=1.0) as scene:
            for number in range(2):
                scene.wait_for_lookups(1)
                _ip("link", "set", link, "down")
                time.sleep(settings.seconds / 2)
                _ip("link", "set", link, "up")
                scene.outcome.times = number + 1
            for kind, numbers in (("tbf", _SLOW), ("netem", _LOSSY)):
                scene.outcome.notes.append(_shape(link, kind, numbers, settings.seconds / 2))
    return scene.outcome


def _shape(link: str, kind: str, numbers: str, seconds: float) -> str:
    """Shapes the traffic to party 1 for some seconds; says how, or why not."""
    add = ["tc", "qdisc", "add", "dev", link, "root", kind, *numbers.split()]
    done = subprocess.run(add, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        return f"tc {kind} is not possible here: {done.stderr.strip()}"
    time.sleep(seconds)
    subprocess.run(["tc", "qdisc", "del", "dev", link, "root"], check=True)  # noqa: S603, S607
    return f"then tc {kind} {numbers} for {seconds:g} s"


@contextlib.contextmanager
def _namespace() -> Iterator[tuple[str, str]]:
    """Makes a namespace with a link to this one. Raises SkippedError if that is not permitted."""
    if shutil.which("ip") is None:
        raise SkippedError("the command ip is not installed")
    name, link = f"nescio{os.getpid()}", f"nf{os.getpid()}"
    try:
        _ip("netns", "add", name)
        try:
            _ip("link", "add", link, "type", "veth", "peer", "name", "inside0", "netns", name)
            _ip("address", "add", f"{_HERE}/30", "dev", link)
            _ip("link", "set", link, "up")
            _ip("-n", name, "address", "add", f"{_THERE}/30", "dev", "inside0")
            _ip("-n", name, "link", "set", "inside0", "up")
            yield name, link
        finally:
            subprocess.run(["ip", "netns", "delete", name], check=False)  # noqa: S603, S607
    except subprocess.CalledProcessError as error:
        raise SkippedError(f"network namespaces: {error.stderr.strip()}") from error


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)  # noqa: S603, S607
