"""Shards built as tasks of a Ray cluster, which read their own rows and write their own files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..._arrays import ByteArray
from ...errors import NescioError, ResourceError
from .._cluster import connected
from .._cluster._connect import import_ray
from ._run import Runner, Task, Told

_OVERHEAD_BYTES = 512 << 20  # of a process, and of the rows that it reads
_RETRIES = 3


@contextmanager
def on_ray(address: str, told: Told) -> Iterator[Runner]:
    """Connects to a cluster, or starts one on this machine ("local"), to run tasks there.

    All nodes must reach the files of input and output. Raises ResourceError if there is no cluster.
    """
    with connected(address, None, option="--ray"):
        yield _OnRay(import_ray("--ray"), told)


class _OnRay:
    """Runs tasks on a cluster, as many at once as its memory holds.

    A task uses `threads` processors, or all of its node. Ray runs it again if its node fails.
    """

    def __init__(self, ray: Any, told: Told) -> None:  # noqa: ANN401 - without types
        self._ray = ray
        self._told = told

    def __call__(self, what: str, tasks: Sequence[Task]) -> Iterator[tuple[int, ByteArray]]:
        """Yields the number of each task and its tops, in the order in which they end."""
        self._check_memory(tasks)
        waiting = {self._start(task): number for number, task in enumerate(tasks)}
        shards = rows = 0
        try:
            while waiting:
                (ready,), _ = self._ray.wait(list(waiting), num_returns=1)
                number = waiting.pop(ready)
                yield number, self._result(tasks[number], ready)
                first, end = tasks[number].part.rows(tasks[number].params)
                shards, rows = shards + 1, rows + end - first
                self._told(what, shards, rows)
        finally:
            for one in waiting:
                self._ray.cancel(one, force=True)

    def _start(self, task: Task) -> Any:  # noqa: ANN401 - a reference to a result
        remote = self._ray.remote(_run).options(
            num_cpus=task.threads,
            memory=_memory(task),
            max_retries=_RETRIES,
            scheduling_strategy="SPREAD",
        )
        return remote.remote(task)

    def _result(self, task: Task, ready: Any) -> ByteArray:  # noqa: ANN401
        try:
            found: ByteArray = self._ray.get(ready)
        except Exception as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, NescioError):
                raise cause from error
            raise ResourceError(f"{task.name}: its task failed: {error}") from error
        return found

    def _check_memory(self, tasks: Sequence[Task]) -> None:
        """Raises ResourceError for shards that no node has room for, for which Ray would wait."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        memory = int(max((node.get("memory", 0) for node in nodes), default=0))
        needed = max(map(_memory, tasks))
        if needed > memory:
            raise ResourceError(
                f"found {memory:,} bytes of memory at the largest node, expected {needed:,} for a "
                "shard: cut the table into more shards"
            )
        processors = int(max((node.get("CPU", 0) for node in nodes), default=0))
        if tasks[0].threads > processors:
            raise ResourceError(
                f"threads: found {tasks[0].threads}, expected at most {processors}, those of the "
                "largest node"
            )


def _run(task: Task) -> ByteArray:
    return task.run()


def _memory(task: Task) -> int:
    return task.part.bytes(task.params) + _OVERHEAD_BYTES
