"""Answers requests that arrive together as one batch.

Every query needs a pass over the table, and the queries of a batch share one pass. Therefore a
request waits up to a time window for other requests. While a batch is answered, the next one
gathers; requests whose window has passed by then are answered at once. Clients are served in turn:
see _fair.py.

The answering thread takes its batches from the queue itself: between two batches it does not wait
for an event loop that is busy with other requests.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from ..errors import DeviceFailedError, MessageError, MismatchError, ResourceError
from ..pir._wire import QueryMessage, cut_query, join_answers
from . import _quotas as refuse
from ._fair import Comebacks, FairQueue, Job, Piece, Returns
from ._quotas import Quotas

_LOG = logging.getLogger(__name__)
_NEWEST = 0.2  # weight of the last batch in the seconds of a batch
_RETURN_WINDOWS = 2  # that a batch waits for a client that is expected back

AnswerBatch = Callable[[Sequence[QueryMessage]], Sequence[bytes | MismatchError]]
Check = Callable[[bytes], QueryMessage]
_Answer = bytes | Exception


@dataclass(slots=True, eq=False, kw_only=True)
class _Request(Job):
    query: QueryMessage
    body: bytes
    arrived: float
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[tuple[bytes, float]]"
    parts: dict[int, bytes] = field(default_factory=dict)  # by their first lookup
    answered: int = 0  # lookups
    seconds: float = 0.0

    def resolve(self, answer: _Answer) -> None:
        """Sets the result in the loop of the request, unless the request was cancelled."""
        if self.answer.done():
            return
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result((answer, self.seconds))


def _resolve_all(answered: Sequence[tuple[_Request, _Answer]]) -> None:
    """Sets the results of a batch in one callback: each wakes the event loop and takes its lock."""
    for request, answer in answered:
        request.resolve(answer)


class Waited(NamedTuple):
    """Requests, and the sum of the seconds from their arrival to the begin of their batch."""

    requests: int
    seconds: float


class Batcher:
    """Gathers queries into batches, which a thread answers.

    `answer_batch` answers checked queries in one call; an error in place of an answer is raised by
    `submit`. `check` parses the parts of a request that is spread over several batches. A batch has
    at most `max_batch_keys` keys for a bin (an ordinary table is one bin), or a single lookup. If
    one client has more waiting than half of that, and others wait too, it has half: then none of
    them waits for a pass that is bound by arithmetic. The thread starts with the first query and
    ends with `stop`.

    With several `lanes`, a number or a function that returns it, as many threads answer batches.
    While a batch is answered, another one begins only if it is full: smaller ones would take a pass
    each.
    """

    def __init__(
        self,
        answer_batch: AnswerBatch,
        check: Check,
        quotas: Quotas,
        max_batch_keys: int,
        *,
        lanes: int | Callable[[], int] = 1,
    ) -> None:
        self._answer_batch = answer_batch
        self._check = check
        self._quotas = quotas
        self._max_batch_keys = max_batch_keys
        self._changed = threading.Condition()  # guards the attributes below
        self._queue: FairQueue[_Request] = FairQueue()
        self._returns = Returns(_RETURN_WINDOWS * quotas.batch_window)
        self._comebacks = Comebacks()
        self._oldest = -math.inf  # arrival of the oldest request of the next batch
        self._batch_seconds = 0.0  # of recent batches
        self._lanes = lanes if callable(lanes) else lambda: lanes
        self._threads: list[threading.Thread] = []  # any other answering thread ends
        self._busy = 0  # threads that answer a batch
        self._failed = False  # a device has failed; permanent
        self._waited = Waited(0, 0.0)
        self._taken_at = 0.0

    @property
    def healthy(self) -> bool:
        """False if the thread ended without a call of `stop`, or if a device has failed."""
        return not self._failed and all(thread.is_alive() for thread in self._threads)

    @property
    def waiting(self) -> tuple[int, int, int]:
        """The numbers of requests that wait for a pass, of their keys and of their clients."""
        return self._queue.requests, self._queue.keys, self._queue.clients

    async def stop(self) -> None:
        """Cancels waiting requests, and ends the thread after its current batch."""
        with self._changed:
            threads, self._threads = self._threads, []
            for request in self._queue.clear():
                request.answer.cancel()
            self._changed.notify_all()
        for thread in threads:
            await asyncio.to_thread(thread.join)

    def admit(self, client: Hashable, keys: int) -> None:
        """Raises RefusedError unless so many keys of a client may wait now.

        A client may have its share, or as much as stays free for others.
        """
        waiting, own = self._queue.keys, self._queue.keys_of(client)
        free = self._quotas.max_waiting_keys - waiting
        share = max(self._quotas.max_waiting_per_client, free)
        if own and own + keys > share:
            seconds = self._seconds(own * max(1, self._queue.clients))
            raise refuse.too_much_waiting(own, share, seconds)
        if keys > free:
            raise refuse.overloaded(f"{waiting} keys", self._seconds(waiting))

    async def submit(
        self, query: QueryMessage, body: bytes, client: Hashable
    ) -> tuple[bytes, float]:
        """Answers a checked query, `body`; also returns the seconds that its batches took.

        Raises RefusedError if too many keys wait, if the answer takes too long, or if memory or the
        device fails; MismatchError if the table has changed since the query was checked.
        """
        loop = asyncio.get_running_loop()
        request = _Request(
            client=client,
            lookups=query.lookups,
            cost=query.bin_keys // max(1, query.lookups),
            query=query,
            body=body,
            arrived=time.monotonic(),
            loop=loop,
            answer=loop.create_future(),
        )
        self._append(request)
        try:
            return await asyncio.wait_for(request.answer, self._quotas.answer_seconds)
        except TimeoutError:
            seconds = self._seconds(self._queue.keys)
            raise refuse.answer_too_slow(self._quotas.answer_seconds, seconds) from None
        finally:
            self._cancel(request)

    def _seconds(self, keys: int) -> float:
        """Estimates the seconds until so many keys are answered, from the recent batches."""
        return math.ceil(keys / self._max_batch_keys) * self._batch_seconds

    def _append(self, request: _Request) -> None:
        with self._changed:
            self.admit(request.client, request.keys)
            if not self._queue:
                self._oldest = request.arrived
            self._queue.push(request)
            self._returns.arrived(request.client, request.arrived)
            self._comebacks.arrived(request.arrived)
            self._start()
            self._changed.notify_all()

    def _start(self) -> None:
        """Starts the threads that are missing."""
        missing = self._lanes() - len(self._threads)
        made = [
            threading.Thread(target=self._answer_forever, name="nescio-answer", daemon=True)
            for _ in range(missing)
        ]
        self._threads += made
        for thread in made:
            thread.start()

    def _cancel(self, request: _Request) -> None:
        """Removes what still waits of a request that has ended."""
        if request.taken < request.lookups:
            with self._changed:
                self._queue.cancel(request)

    def _answer_forever(self) -> None:
        while (batch := self._gather()) is not None:
            self._answer_all(batch)
            del batch  # frees the batch while the next one gathers

    def _answer_all(self, batch: list[Piece[_Request]]) -> None:
        begin = time.perf_counter()
        answers = self._answers(batch)
        seconds = time.perf_counter() - begin
        loops: dict[asyncio.AbstractEventLoop, list[tuple[_Request, _Answer]]] = {}
        for piece, answer in zip(batch, answers, strict=True):
            whole = self._whole(piece, answer, seconds)
            if whole is not None:
                loops.setdefault(piece.job.loop, []).append((piece.job, whole))
        with self._changed:
            self._busy -= 1
            self._changed.notify_all()
            self._batch_seconds += _NEWEST * (seconds - self._batch_seconds)
            served = {piece.job.client for piece in batch}
            absent = [client for client in served if not self._queue.keys_of(client)]
            now = time.monotonic()
            self._returns.answered(absent, now)
            self._comebacks.answered(len(batch), self._batch_seconds, now)
        for loop, answered in loops.items():
            with suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(_resolve_all, answered)

    def _answers(self, batch: list[Piece[_Request]]) -> Sequence[_Answer]:
        """Answers the pieces of a batch, each with its answer or an error."""
        try:
            parts = [self._part(piece) for piece in batch]
            queries = [part for part in parts if isinstance(part, QueryMessage)]
            found = iter(self._answer_batch(queries) if queries else ())
            return [part if isinstance(part, Exception) else next(found) for part in parts]
        except (ResourceError, MemoryError) as error:
            self._failed = self._failed or isinstance(error, DeviceFailedError)
            _LOG.error("a batch of %d requests was refused: %s", len(batch), error)
            return [refuse.no_resources(failed=self._failed)] * len(batch)
        except Exception as error:  # raised for each request; the service goes on
            return [error] * len(batch)

    def _part(self, piece: Piece[_Request]) -> QueryMessage | MessageError:
        """Returns the query of a piece, or an error if the table has changed since its check."""
        request = piece.job
        if piece.lookups == request.lookups:
            return request.query
        try:
            return self._check(cut_query(request.body, piece.first, piece.lookups))
        except MessageError as error:
            return error

    def _whole(self, piece: Piece[_Request], answer: _Answer, seconds: float) -> _Answer | None:
        """Returns the answer of a request after its last piece, or after an error.

        With several lanes, pieces may be answered in another order.
        """
        request = piece.job
        if isinstance(answer, Exception):
            self._cancel(request)
            return answer
        with self._changed:
            request.seconds += seconds
            request.parts[piece.first] = answer
            request.answered += piece.lookups
            if request.answered < request.lookups:
                return None
        return join_answers([part for _, part in sorted(request.parts.items())])

    def _gather(self) -> list[Piece[_Request]] | None:
        """Waits for a batch of requests; None when stopped."""
        with self._changed:
            while threading.current_thread() in self._threads:
                full = self._queue.keys >= self._max_batch_keys
                if not self._queue or self._busy >= self._lanes() or (self._busy and not full):
                    self._changed.wait()
                    continue
                limit, left = self._next()
                if left > 0:
                    self._changed.wait(left)
                elif batch := self._queue.take(limit):
                    self._note_waits(batch)
                    self._oldest = -math.inf  # what is left goes with the next batch
                    self._busy += 1
                    return batch
        return None

    def _note_waits(self, batch: list[Piece[_Request]]) -> None:
        self._taken_at = now = time.monotonic()
        waits = [now - piece.job.arrived for piece in batch if piece.first == 0]
        requests, seconds = self._waited
        self._waited = Waited(requests + len(waits), seconds + sum(waits))

    def take_waited(self) -> Waited:
        """Returns the waits of the requests whose batch began since the last call.

        If none began, those of the requests that wait now, which are not over.
        """
        with self._changed:
            found, self._waited = self._waited, Waited(0, 0.0)
            count = self._queue.requests
            if found.requests or not count:
                return found
            since = max(self._oldest, self._taken_at)
            return Waited(count, count * (time.monotonic() - since))

    def _next(self) -> tuple[int, float]:
        """Returns the limit of the next batch, and the seconds until it starts."""
        now, limit = time.monotonic(), self._max_batch_keys
        if self._queue.keys < limit:
            wait = self._comebacks.wait(self._queue.requests, now)
            return limit, max(self._oldest + self._quotas.batch_window - now, wait)
        if self._queue.most_keys() <= limit // 2:
            return limit, 0.0
        wait = self._returns.wait(now)
        if wait or self._queue.clients > 1:
            limit = max(1, limit // 2)
        return limit, wait
