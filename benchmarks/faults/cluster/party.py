"""A party whose table is in shards on a Ray cluster, with one front or several."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.faults.party import DATA, TABLE, Party
from nescio.errors import NescioError
from nescio.service._cluster import _admin as admin
from nescio.service._cluster._connect import import_ray
from nescio.service._cluster._messages import ReplicaStatus

_START_SECONDS = 180.0
_LEARN_SECONDS = 0.3  # until fronts know what the head of a table knows
_PAUSE_SECONDS = 0.05


class ClusterParty(Party):
    """The first front of a table; `others` are fronts of the same shards.

    Leaving the scene ends the actors of the table too.
    """

    def __init__(
        self, folder: Path, address: str, *, shards: int = 3, replicas: int = 2, fronts: int = 1
    ) -> None:
        options = ["--cluster", address, "--shards", str(shards), "--replicas", str(replicas)]
        common = 0, folder / "table.npy"
        every = [*options, "--data", DATA]
        super().__init__(*common, folder, every, start_seconds=_START_SECONDS)
        self.shards = shards
        shared = [*options, "--data", str(self.data)]
        self.others = [
            Party(*common, folder / f"front-{n}", shared, start_seconds=_START_SECONDS)
            for n in range(1, fronts)
        ]

    @property
    def urls(self) -> Sequence[str]:
        """The addresses of all fronts."""
        return [self.url, *(front.url for front in self.others)]

    def wait_until_ready(self) -> None:
        """Waits until all fronts say that they serve, the others after the first."""
        super().wait_until_ready()
        for front in self.others:
            if not front.running:
                front.start()

    def stop(self) -> None:
        """Ends all fronts, and the actors of the table."""
        for front in self.others:
            front.stop()
        super().stop()
        with suppress(NescioError):  # no front has started
            admin.drain(TABLE)

    def status(self, seconds: float = 60.0) -> list[ReplicaStatus]:
        """Asks the head of the table for its replicas, again and again while it is away."""
        end = time.monotonic() + seconds
        while True:
            try:
                return admin.status(TABLE)
            except NescioError:
                if time.monotonic() > end:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def wait_up(self, shard: int | None = None, seconds: float = 120.0) -> list[int]:
        """Waits until all replicas, or those of one shard, answer; returns their processes."""
        end = time.monotonic() + seconds
        while True:
            found = [one for one in self.status() if shard in (None, one.shard)]
            if all(one.up for one in found):
                time.sleep(_LEARN_SECONDS)
                return [one.info.pid for one in found if one.info]
            if time.monotonic() > end:
                raise RuntimeError(f"a replica is not back within {seconds:g} s")
            time.sleep(_PAUSE_SECONDS)

    def head_pid(self) -> int:
        """Returns the process of the table's head."""
        import_ray()
        from ray._private.state import actors  # noqa: PLC0415 - without the dashboard

        found = actors(None, None, "ALIVE").values()
        return next(int(one["Pid"]) for one in found if one["Name"] == f"{TABLE}/head")


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Sends a signal to a process, unless it has ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
