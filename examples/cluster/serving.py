"""The server's cluster: workers that prepare inferences with those of the client's cluster."""

import argparse
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from examples.cluster.nodes import cluster
from examples.cluster.options import Address, listening
from examples.cluster.totals import Totals, show, transfers_of
from nescio.errors import ResourceError
from nescio.mpc import Plan, PlanServer, Served, ServiceLimits

_POLL_SECONDS = 0.5


class PlanWorker:
    """A PlanServer in a Ray actor, with a folder of stores of its own.

    A worker that was killed starts again with the same folder and port. Its PlanServer removes
    stores that were incomplete, and names those that were complete.
    """

    def __init__(
        self, plan: str, folder: str, address: Address, threads: int, limits: ServiceLimits
    ) -> None:
        self._served: list[Served] = []
        self._listener = address.listener()
        self._server = PlanServer(
            Plan.load(plan),
            self._listener,
            folder,
            limits=limits,
            threads=threads,
            report=self._served.append,
        )
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()

    def poll(self) -> tuple[int, list[Served]]:
        """Returns the process, and the connections that ended since the last call."""
        found = self._served[:]
        del self._served[: len(found)]
        return os.getpid(), found

    def stop(self) -> list[Served]:
        """Ends all connections, and closes the folder; returns the last connections."""
        self._server.stop()
        self._thread.join()
        self._server.close()
        self._listener.close()
        return self.poll()[1]


class Workers:
    """The workers of the server's cluster, as its program sees them."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        import ray  # noqa: PLC0415 - after the environment was set

        self._get = ray.get
        own = ray.remote(PlanWorker).options(
            num_cpus=arguments.threads,
            max_restarts=arguments.retries,
            max_task_retries=arguments.retries,
            scheduling_strategy="SPREAD",
        )
        limits = ServiceLimits(bytes=arguments.max_bytes, prepared=1 << 20)
        plan, folder = str(arguments.plan.absolute()), arguments.stores.absolute()
        self._actors = [
            own.remote(plan, str(folder / f"worker-{number}"), address, arguments.threads, limits)
            for number, address in enumerate(listening(arguments))
        ]
        self._processes: list[int] = [0] * len(self._actors)

    def poll(self) -> list[tuple[int, Served]]:
        """Returns the connections that have ended, and says which workers were started again.

        Raises ResourceError if a worker was lost too often.
        """
        found = []
        for number, (process, served) in enumerate(self._ask("poll")):
            if self._processes[number] not in (0, process):
                print(f"worker {number} was lost and has started again", flush=True)
            self._processes[number] = process
            found += [(number, one) for one in served]
        return found

    def stop(self) -> list[tuple[int, Served]]:
        """Ends all workers."""
        return [(number, one) for number, served in enumerate(self._ask("stop")) for one in served]

    def _ask(self, method: str) -> list[Any]:
        import ray  # noqa: PLC0415

        try:
            return list(self._get([getattr(actor, method).remote() for actor in self._actors]))
        except ray.exceptions.RayActorError as error:
            text = str(error).partition("\n")[0]
            raise ResourceError(f"a worker was lost, and could not start again: {text}") from error


def serve(arguments: argparse.Namespace) -> int:
    """Runs the workers until a signal, or until no client came for some time."""
    folder: Path = arguments.stores
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    totals, transfers = Totals(), transfers_of(Plan.load(arguments.plan).network.public)
    with cluster(arguments.ray, arguments.workers * arguments.threads):
        stopped = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        workers = Workers(arguments)
        _report(workers.poll(), totals)
        print(f"{arguments.workers} workers listen from port {arguments.port} on", flush=True)
        _wait(workers, stopped, arguments, totals)
        _report(workers.stop(), totals)
    collect(folder)
    totals.transfers = totals.inferences * transfers
    show(totals, as_json=arguments.json)
    return 0


def _wait(
    workers: Workers, stopped: threading.Event, arguments: argparse.Namespace, totals: Totals
) -> None:
    """Reports connections until `stopped` is set, or no part is prepared for `--idle` seconds."""
    idle, last = arguments.idle, time.monotonic()
    while not stopped.wait(_POLL_SECONDS):
        found = workers.poll()
        _report(found, totals)
        if found or any(arguments.stores.glob("worker-*/*.part")):
            last = time.monotonic()
        elif idle is not None and totals.inferences and time.monotonic() - last > idle:
            return


def _report(found: list[tuple[int, Served]], totals: Totals) -> None:
    for number, one in found:
        if one.problem is not None:
            totals.again += 1
            print(f"worker {number}: a part was broken off: {one.problem}", flush=True)
            continue
        totals.add(one.inferences, one.sent_bytes, one.received_bytes, one.seconds)
        print(f"worker {number}: {one.inferences:,} inferences", flush=True)


def collect(folder: Path) -> int:
    """Moves complete stores of all workers to the folder that `nescio infer serve` reads."""
    found = sorted(folder.glob("worker-*/*.store"))
    for path in found:
        path.rename(folder / path.name)
    return len(found)
