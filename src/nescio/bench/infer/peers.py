"""Other programs in the same run: SPU where it is installed, and commands of the user's."""

import argparse
import importlib.util
import json
import math
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..._arrays import shown
from ..._report import Case
from ...errors import ArgumentError, NescioError
from ..parties import PARTY_SECONDS
from . import cheetah
from .cases import Task

__all__ = ["FIELDS", "Peers"]

FIELDS = {
    "layer": str,
    "elements": int,
    "table_bits": int,
    "online_bytes": int,
    "offline_bytes": int,
    "online_seconds": float,
    "offline_seconds": float,
    "cpu_seconds": float,
    "rounds": int,
    "exact": bool,
}
_NO_SPU = (
    "SPU is not installed, so it is left out: pip install spu (it has wheels for Python 3.11), or "
    "measure it with --peer."
)
_SPU_NOTE = """\
SPU: both phases are one call, on as many threads; medians of warm calls, with the truncation of
products. bytes: those that the TCP sockets of both parties received. exact: within 2 steps of its
fixed point."""


@dataclass
class Peers:
    """The programs to measure beside Nescio, and sentences about them for the end of the table."""

    commands: dict[str, list[str]]
    with_spu: bool
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> "Peers":
        """Reads the options. Raises ArgumentError for a peer that is not NAME=COMMAND."""
        commands = dict(map(_command, arguments.peer))
        if not arguments.peers:
            return cls(commands, with_spu=False)
        found = importlib.util.find_spec("spu") is not None
        return cls(commands, found, [_SPU_NOTE if found else _NO_SPU])

    def cases(self, task: Task) -> Iterator[Case]:
        """Yields the rows of all peers that have this layer; they have no emulated links."""
        if task.link != "local":
            return
        if self.with_spu:
            yield from self._cheetah(task)
        if task.layer == "relu":
            for name, command in self.commands.items():
                yield _measured(name, command, task)

    def _cheetah(self, task: Task) -> Iterator[Case]:
        """Yields the rows of SPU; where it ends without a result, a sentence says so."""
        for ring in cheetah.rings(task):
            try:
                yield cheetah.measured(task, ring)
            except NescioError as error:
                self.notes.append(f"SPU has no row for {task.layer} {task.size}, {ring}: {error}.")


def _command(text: str) -> tuple[str, list[str]]:
    name, equals, command = text.partition("=")
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not (name and equals and words):
        raise ArgumentError(f"peer: found {text!r}, expected NAME=COMMAND")
    return name, words


def _measured(name: str, command: list[str], task: Task) -> Case:
    """Runs a user's program. Raises NescioError if it fails or prints something else."""
    words = [*command, str(task.elements), str(task.table_bits)]
    try:
        done = subprocess.run(  # noqa: S603 - the user's own command
            words, capture_output=True, text=True, timeout=PARTY_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NescioError(f"peer {name}: {shlex.join(words)} did not run: {error}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it printed no error"])[-1]
        raise NescioError(f"peer {name}: found exit code {done.returncode}, expected 0: {last}")
    case = _parsed(name, done.stdout)
    return {**case, "program": name, "measured": True, "size": task.size, "threads": None}


def _parsed(name: str, text: str) -> Case:
    """Reads the object that a program printed, with the fields in their order."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise NescioError(f"peer {name}: found {shown(text)}, expected one JSON object")
    for key, kind in FIELDS.items():
        value = found.get(key)
        if not (_is_number(value) if kind is float else type(value) is kind):
            raise NescioError(
                f"peer {name}: field {key}: found {shown(value)}, expected {kind.__name__}"
            )
    if found["elements"] < 1:
        raise NescioError(f"peer {name}: field elements: found {found['elements']}, expected 1")
    return {key: found.pop(key) for key in FIELDS} | found


def _is_number(value: object) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))
