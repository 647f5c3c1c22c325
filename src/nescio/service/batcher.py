"""Answers requests that arrive together as one batch.

Every query costs a pass over the table, and queries that are answered together share it; so a
request waits up to a window for company. While a batch is being answered the next one gathers, and
requests that have waited out the window by then go at once.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..pir.wire import Message
from .limits import Limits, answer_too_slow, overloaded

AnswerBatch = Callable[[Sequence[Message]], list[bytes]]


@dataclass(slots=True)
class _Request:
    query: Message
    arrived: float
    answer: "asyncio.Future[tuple[bytes, float]]"


class Batcher:
    """Gathers queries, answers them on a thread of its own, hands the answers out.

    `answer_batch` answers checked queries in one call. Call `start` inside the event loop that
    submits, and `stop` before it ends.
    """

    def __init__(
        self, answer_batch: AnswerBatch, limits: Limits, max_batch_keys: int = 1024
    ) -> None:
        self._answer_batch = answer_batch
        self._limits = limits
        self._max_batch_keys = max_batch_keys
        self._waiting: deque[_Request] = deque()
        self._waiting_keys = 0
        self._arrival = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nescio-answer")
        self._loop_task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to answer."""
        self._loop_task = asyncio.create_task(self._answer_forever())

    async def stop(self) -> None:
        """Cancels what waits and gives the thread back, once its batch is done."""
        if self._loop_task is not None:
            self._loop_task.cancel()
            await asyncio.gather(self._loop_task, return_exceptions=True)
        for request in self._waiting:
            request.answer.cancel()
        await asyncio.to_thread(self._thread.shutdown)

    async def submit(self, query: Message) -> tuple[bytes, float]:
        """The answer to a checked query, and the seconds that its batch took.

        Raises RefusedError if too many keys wait already, or if the answer takes too long.
        """
        keys = len(query.records)
        if self._waiting_keys + keys > self._limits.max_waiting_keys:
            raise overloaded(self._limits.max_waiting_keys)
        loop = asyncio.get_running_loop()
        request = _Request(query, loop.time(), loop.create_future())
        self._waiting.append(request)
        self._waiting_keys += keys
        self._arrival.set()
        try:
            return await asyncio.wait_for(request.answer, self._limits.answer_seconds)
        except TimeoutError:
            raise answer_too_slow(self._limits.answer_seconds) from None

    async def _answer_forever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = await self._gather()
            if not batch:  # whoever asked has given up
                continue
            queries = [request.query for request in batch]
            try:
                answers, seconds = await loop.run_in_executor(self._thread, self._timed, queries)
            except Exception as error:  # each request gets it; the service goes on
                for request in batch:
                    if not request.answer.done():
                        request.answer.set_exception(error)
                continue
            for request, answer in zip(batch, answers, strict=True):
                if not request.answer.done():
                    request.answer.set_result((answer, seconds))

    def _timed(self, queries: list[Message]) -> tuple[list[bytes], float]:
        begin = time.perf_counter()
        return self._answer_batch(queries), time.perf_counter() - begin

    async def _gather(self) -> list[_Request]:
        """Waits for a request, then for its company until its window ends or the batch is full."""
        loop = asyncio.get_running_loop()
        while not self._waiting:
            self._arrival.clear()
            await self._arrival.wait()
        deadline = self._waiting[0].arrived + self._limits.batch_window
        while self._waiting_keys < self._max_batch_keys and loop.time() < deadline:
            self._arrival.clear()
            try:
                await asyncio.wait_for(self._arrival.wait(), deadline - loop.time())
            except TimeoutError:
                break
        return self._take()

    def _take(self) -> list[_Request]:
        """Takes requests that still want an answer off the queue, up to a full batch."""
        batch: list[_Request] = []
        keys = 0
        while self._waiting:
            size = len(self._waiting[0].query.records)
            if batch and keys + size > self._max_batch_keys:
                break
            request = self._waiting.popleft()
            self._waiting_keys -= size
            if not request.answer.done():
                batch.append(request)
                keys += size
        return batch
