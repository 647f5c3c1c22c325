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

from ..errors import MismatchError
from ..pir.wire import QueryMessage
from .limits import Limits, answer_too_slow, overloaded

AnswerBatch = Callable[[Sequence[QueryMessage]], Sequence[bytes | MismatchError]]


@dataclass(slots=True)
class _Request:
    query: QueryMessage
    arrived: float
    answer: "asyncio.Future[tuple[bytes, float]]"


class Batcher:
    """Gathers queries, answers them on a thread of its own, hands the answers out.

    `answer_batch` answers checked queries in one call; an error in place of an answer is raised to
    who asked. The batcher starts with the first query, in the event loop that submits it; `stop` it
    before that loop ends.
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
        self._thread: ThreadPoolExecutor | None = None
        self._work: asyncio.Task[None] | None = None

    @property
    def healthy(self) -> bool:
        """False if the batcher has ended although nobody stopped it."""
        return self._work is None or not self._work.done()

    async def stop(self) -> None:
        """Cancels what waits and gives the thread back, once its batch is done."""
        if self._work is None or self._thread is None:
            return
        self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)
        for request in self._waiting:
            request.answer.cancel()
        await asyncio.to_thread(self._thread.shutdown)
        self._work = self._thread = None

    async def submit(self, query: QueryMessage) -> tuple[bytes, float]:
        """The answer to a checked query, and the seconds that its batch took.

        Raises RefusedError if too many keys wait already, or if the answer takes too long, and
        MismatchError if the table has changed since the query was checked.
        """
        keys = len(query.keys)
        if self._waiting_keys + keys > self._limits.max_waiting_keys:
            raise overloaded(f"{self._waiting_keys} keys")
        self._start()
        loop = asyncio.get_running_loop()
        request = _Request(query, loop.time(), loop.create_future())
        self._waiting.append(request)
        self._waiting_keys += keys
        self._arrival.set()
        try:
            return await asyncio.wait_for(request.answer, self._limits.answer_seconds)
        except TimeoutError:
            raise answer_too_slow(self._limits.answer_seconds) from None

    def _start(self) -> None:
        if self._work is not None and not self._work.done():
            return
        # One event loop may follow another, as in tests; nothing of the old one is of use.
        self._waiting.clear()
        self._waiting_keys = 0
        self._arrival = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nescio-answer")
        self._work = asyncio.create_task(self._answer_forever(self._thread))

    async def _answer_forever(self, thread: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = await self._gather()
            if not batch:  # whoever asked has given up
                continue
            queries = [request.query for request in batch]
            try:
                answers, seconds = await loop.run_in_executor(thread, self._timed, queries)
            except Exception as error:  # each request gets it; the service goes on
                answers, seconds = [error] * len(batch), 0.0
            for request, answer in zip(batch, answers, strict=True):
                if request.answer.done():
                    continue
                if isinstance(answer, Exception):
                    request.answer.set_exception(answer)
                else:
                    request.answer.set_result((answer, seconds))

    def _timed(self, queries: list[QueryMessage]) -> tuple[Sequence[bytes | Exception], float]:
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
            size = len(self._waiting[0].query.keys)
            if batch and keys + size > self._max_batch_keys:
                break
            request = self._waiting.popleft()
            self._waiting_keys -= size
            if not request.answer.done():
                batch.append(request)
                keys += size
        return batch
