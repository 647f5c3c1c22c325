"""Answers requests that arrive together as one batch.

Every query needs a pass over the table, and the queries of a batch share one pass. Therefore a
request waits up to a time window for other requests. While a batch is answered, the next one
gathers; requests whose window has passed by then are answered at once.

The answering thread takes its batches from the queue itself: between two batches it does not wait
for an event loop that is busy with other requests.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ..errors import DeviceFailedError, MismatchError, ResourceError
from ..pir._wire import QueryMessage
from ._quotas import Quotas, answer_too_slow, no_resources, overloaded

_LOG = logging.getLogger(__name__)

AnswerBatch = Callable[[Sequence[QueryMessage]], Sequence[bytes | MismatchError]]


@dataclass(slots=True)
class _Request:
    query: QueryMessage
    arrived: float
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[tuple[bytes, float]]"

    def resolve(self, answer: bytes | Exception, seconds: float) -> None:
        """Sets the result in the loop of the request, unless the request was cancelled."""
        if self.answer.done():
            return
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result((answer, seconds))


def _resolve_all(answered: Sequence[tuple[_Request, bytes | Exception]], seconds: float) -> None:
    """Sets the results of a batch in one callback: each wakes the event loop and takes its lock."""
    for request, answer in answered:
        request.resolve(answer, seconds)


class Batcher:
    """Gathers queries into batches, which a thread answers.

    `answer_batch` answers checked queries in one call; an error in place of an answer is raised by
    `submit`. A batch has at most `max_batch_keys` keys for a bin (an ordinary table is one bin), or
    is a single request. The thread starts
    with the first query and ends with `stop`.
    """

    def __init__(self, answer_batch: AnswerBatch, quotas: Quotas, max_batch_keys: int) -> None:
        self._answer_batch = answer_batch
        self._quotas = quotas
        self._max_batch_keys = max_batch_keys
        self._changed = threading.Condition()  # guards the attributes below
        self._waiting: deque[_Request] = deque()
        self._waiting_keys = 0
        self._thread: threading.Thread | None = None  # any other answering thread ends
        self._failed = False  # a device has failed; permanent

    @property
    def healthy(self) -> bool:
        """False if the thread ended without a call of `stop`, or if a device has failed."""
        thread = self._thread
        return not self._failed and (thread is None or thread.is_alive())

    @property
    def waiting(self) -> tuple[int, int]:
        """The number of requests that wait for a pass, and of their keys."""
        return len(self._waiting), self._waiting_keys

    async def stop(self) -> None:
        """Cancels waiting requests, and ends the thread after its current batch."""
        with self._changed:
            thread, self._thread = self._thread, None
            for request in self._waiting:
                request.answer.cancel()
            self._waiting.clear()
            self._waiting_keys = 0
            self._changed.notify_all()
        if thread is not None:
            await asyncio.to_thread(thread.join)

    async def submit(self, query: QueryMessage) -> tuple[bytes, float]:
        """Answers a checked query; also returns the seconds that its batch took.

        Raises RefusedError if too many keys wait, if the answer takes too long, or if memory or the
        device fails; MismatchError if the table has changed since the query was checked.
        """
        loop = asyncio.get_running_loop()
        request = _Request(query, time.monotonic(), loop, loop.create_future())
        self._append(request)
        try:
            return await asyncio.wait_for(request.answer, self._quotas.answer_seconds)
        except TimeoutError:
            raise answer_too_slow(self._quotas.answer_seconds) from None

    def _append(self, request: _Request) -> None:
        keys = request.query.bin_keys
        with self._changed:
            if self._waiting_keys + keys > self._quotas.max_waiting_keys:
                raise overloaded(f"{self._waiting_keys} keys")
            self._waiting.append(request)
            self._waiting_keys += keys
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._answer_forever, name="nescio-answer", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def _answer_forever(self) -> None:
        while (batch := self._gather()) is not None:
            self._answer_all(batch)
            del batch  # frees the batch while the next one gathers

    def _answer_all(self, batch: list[_Request]) -> None:
        begin = time.perf_counter()
        answers: Sequence[bytes | Exception]
        try:
            answers = self._answer_batch([request.query for request in batch])
        except (ResourceError, MemoryError) as error:
            self._failed = self._failed or isinstance(error, DeviceFailedError)
            _LOG.error("a batch of %d requests was refused: %s", len(batch), error)
            answers = [no_resources(failed=self._failed)] * len(batch)
        except Exception as error:  # raised for each request; the service goes on
            answers = [error] * len(batch)
        seconds = time.perf_counter() - begin
        loops: dict[asyncio.AbstractEventLoop, list[tuple[_Request, bytes | Exception]]] = {}
        for request, answer in zip(batch, answers, strict=True):
            loops.setdefault(request.loop, []).append((request, answer))
        for loop, answered in loops.items():
            with suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(_resolve_all, answered, seconds)

    def _gather(self) -> list[_Request] | None:
        """Waits for a batch of requests; None when stopped."""
        with self._changed:
            while self._thread is threading.current_thread():
                if not self._waiting:
                    self._changed.wait()
                    continue
                left = self._waiting[0].arrived + self._quotas.batch_window - time.monotonic()
                if left <= 0 or self._waiting_keys >= self._max_batch_keys:
                    if batch := self._take():
                        return batch
                else:
                    self._changed.wait(left)
        return None

    def _take(self) -> list[_Request]:
        """Removes a batch from the queue, without cancelled requests."""
        batch: list[_Request] = []
        keys = 0
        while self._waiting:
            size = self._waiting[0].query.bin_keys
            if batch and keys + size > self._max_batch_keys:
                break
            request = self._waiting.popleft()
            self._waiting_keys -= size
            if not request.answer.done():
                batch.append(request)
                keys += size
        return batch
