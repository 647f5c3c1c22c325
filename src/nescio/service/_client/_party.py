"""The servers of one party: which one is asked, and when another one."""

import asyncio
import contextvars
import random
import re
import statistics
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ...errors import ArgumentError, MalformedMessageError, MismatchError, NescioError
from ...pir import TableParams
from ...pir._wire import check_answer
from .._exchange import Description, TablesDifferError
from .._http import Http
from ._attempt import ASK_OPERATOR, Failure, Reply
from ._breaker import Breaker
from ._progress import Pending, Progress

_GRACE_SECONDS = 0.25  # for further replicas to describe themselves, after the first has
_FEWEST_TIMES = 10
_QUANTILE = re.compile("p([5-9][0-9])")
_MAX_HEDGE = 86400.0


class Request(NamedTuple):
    """A query of one party: the version, the message with its keys, the length of an answer."""

    party: int
    params: TableParams
    body: bytes
    max_bytes: int


class Replica:
    """One server of a party, its health, and the description that it gave last."""

    def __init__(self, http: Http, url: str) -> None:
        self._http = http
        self.url = url
        self.breaker = Breaker()
        self.description: Description | None = None
        self.task: asyncio.Task[Description] | None = None
        self.trouble: NescioError | None = None  # of the last try of `task`

    def describe(self) -> asyncio.Task[Description]:
        """Begins to ask the server for its description, unless that is under way."""
        if self.task is None or self.task.done():
            context = contextvars.Context()
            self.task = asyncio.create_task(self._describe(), context=context)
            self.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self.task

    async def _describe(self) -> Description:
        self.trouble = None
        try:
            body = await self._http.get(self.url, on_failure=self._note_trouble)
            found = Description.parse(self.url, body)
        except NescioError:
            self.breaker.failed()  # what it has said before is still the best guess
            raise
        self.breaker.succeeded()
        self.description = found
        return found

    def _note_trouble(self, failure: Failure) -> None:
        self.trouble = failure.error

    def answers(self, party: int, params: TableParams) -> bool:
        """Tests if the server is known to be of a party, and to answer a version."""
        known = self.description
        return known is not None and known.party == party and params in known.versions

    def note(self, outcome: Reply | Failure, params: TableParams) -> None:
        """Notes what came of a query of a version."""
        if isinstance(outcome, Reply):
            self.breaker.succeeded()
        elif not _is_honest(outcome.error):
            self.breaker.failed(outcome.after)
        elif self.description is not None:
            self.description = self.description.without(params)


class Party:
    """The servers of one party, of which a client asks one, and others if it fails or is slow.

    All of them are one party: they may see the same key, and never one of the other party. A query
    goes to a server only after it has said that it is of this party. `hedge` is the time after
    which a second server gets the same key: seconds, or a quantile of the last times, as "p95".
    """

    def __init__(
        self, http: Http, label: str, urls: Sequence[str], hedge: float | str | None
    ) -> None:
        check_hedge(hedge)
        self._http = http
        self._replicas = [Replica(http, url) for url in urls]
        random.shuffle(self._replicas)  # clients spread out
        self._hedge = hedge
        self._times: deque[float] = deque(maxlen=100)
        self._label = label

    @property
    def pending(self) -> list[Pending]:
        """The description of the table that the party was asked for, if there is no reply."""
        if any(one.task is None or one.task.done() for one in self._replicas):
            return []
        first = self._replicas[0]
        text = f"{self._label} did not describe its table ({first.trouble or first.url})"
        return [Pending(self._label, text, first.url)]

    async def describe(self) -> list[Description]:
        """Asks all servers; returns the descriptions of those that answer soon, at least of one.

        Raises the first server's error if none answers.
        """
        tasks = [one.describe() for one in self._replicas]
        waiting = set(tasks)
        while waiting and not any(map(_is_good, tasks)):
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if waiting:
            await asyncio.wait(waiting, timeout=_GRACE_SECONDS)
        found = [task.result() for task in tasks if _is_good(task)]
        if not found:
            raise self._error([task.exception() for task in tasks])
        self._label = f"party {found[0].party}"
        return found

    async def answer(self, request: Request, progress: Progress) -> Reply:
        """Sends a party's key to one server after the other until one has answered.

        Raises the errors of `Http.post`; MismatchError if no server has the version.
        """
        failures: dict[str, Failure] = {}
        self._probe()

        async def ask(replica: Replica) -> Reply | None:
            outcome = await self._ask(replica, request, progress)
            if isinstance(outcome, Failure):
                failures[replica.url] = outcome
                progress.failed(self._label, outcome.error)
                return None
            return outcome

        for tries in range(1, self._http.retries + 2):
            replicas = [
                one
                for one in self._candidates(request)
                if one.url not in failures or failures[one.url].again
            ]
            reply = await self._first(replicas, ask)
            if reply is not None:
                progress.answered(self._label)
                return reply
            again = [failure.after for failure in failures.values() if failure.again]
            if not again or tries > self._http.retries:
                break
            wait = self._http.wait(tries, min(again))
            if min(again) > 0 and wait > progress.left:
                raise self._error(
                    [failure.error for failure in failures.values()],
                    f"; try again in {min(again):g} s: the deadline of {progress.seconds:g} s, of "
                    f"which {progress.left:.1f} s are left, is sooner",
                )
            await asyncio.sleep(wait)
        if not failures:
            raise MismatchError(
                f"{self._label}: none of its servers has version {request.params.version!r}",
                found="other versions",
                expected=request.params.describe(),
            )
        raise self._error([failure.error for failure in failures.values()])

    async def close(self) -> None:
        """Ends the probes."""
        tasks = [one.task for one in self._replicas if one.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, replica: Replica, request: Request, progress: Progress) -> Reply | Failure:
        url = f"{replica.url}/answer"
        progress.asks(self._label, url)
        begun = time.monotonic()
        headers = {"Content-Type": "application/octet-stream"}
        try:
            outcome = await self._http.attempt(
                "POST", url, request.body, headers, request.max_bytes
            )
        except MalformedMessageError as error:
            outcome = Failure(error)
        if isinstance(outcome, Reply):
            outcome = _checked(url, outcome, request)
        replica.note(outcome, request.params)
        if isinstance(outcome, Reply):
            self._times.append(time.monotonic() - begun)
            self._prefer(replica)
        return outcome

    async def _first(
        self,
        replicas: Sequence[Replica],
        ask: Callable[[Replica], Coroutine[Any, Any, Reply | None]],
    ) -> Reply | None:
        """Returns the first answer. The next server is asked if one fails, or once if it is slow.

        What is under way when the first answer comes is cancelled.
        """
        if self._hedge is None or len(replicas) < 2:
            for replica in replicas:
                reply = await ask(replica)
                if reply is not None:
                    return reply
            return None
        following = iter(replicas)
        running = {asyncio.ensure_future(ask(next(following)))}
        delay = self._delay()
        try:
            while running:
                done, _ = await asyncio.wait(
                    running, timeout=delay, return_when=asyncio.FIRST_COMPLETED
                )
                replies = [task.result() for task in done]
                running -= done
                for reply in filter(None, replies):
                    return reply
                if not done:
                    delay = None
                if not done or not running:
                    running |= {asyncio.ensure_future(ask(one)) for one in islice(following, 1)}
            return None
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _candidates(self, request: Request) -> list[Replica]:
        """Lists the servers to ask: healthy ones first; open ones only if there is no other."""
        having = [one for one in self._replicas if one.answers(request.party, request.params)]
        usable = [one for one in having if one.breaker.state == "closed"] or having
        return sorted(usable, key=lambda one: one.breaker.failures)

    def _prefer(self, replica: Replica) -> None:
        """Moves a server to the front: it is asked first as long as it answers."""
        if self._replicas[0] is not replica:
            self._replicas.remove(replica)
            self._replicas.insert(0, replica)

    def _probe(self) -> None:
        """Asks servers that are not in use if they are well, in the background."""
        if len(self._replicas) > 1:
            for one in self._replicas:
                if one.breaker.is_due:
                    one.describe()

    def _delay(self) -> float | None:
        """Returns the seconds after which a second server is asked; None before enough times."""
        if not isinstance(self._hedge, str):
            return self._hedge
        if len(self._times) < _FEWEST_TIMES:
            return None
        percent = int(self._hedge.removeprefix("p"))
        return statistics.quantiles(self._times, n=100)[percent - 1]

    def _error(self, errors: Sequence[BaseException | None], advice: str = "") -> NescioError:
        """Joins the errors of all servers to one that names the party; a mismatch has priority."""
        own = [error for error in errors if isinstance(error, NescioError)]
        first = next(filter(_is_honest, own), own[0])
        message = "; ".join(map(str, own))
        if len(self._replicas) > 1:
            message = f"none of its {len(self._replicas)} servers answered: {message}"
        joined = type(first)(f"{self._label}: {message}{advice}", **first._facts)
        joined.__cause__ = first.__cause__
        return joined


def check_hedge(hedge: object) -> None:
    """Raises ArgumentError unless `hedge` is None, seconds, or a quantile from "p50" to "p99"."""
    if hedge is None or (isinstance(hedge, str) and _QUANTILE.fullmatch(hedge)):
        return
    if isinstance(hedge, str) or not isinstance(hedge, int | float) or not 0 < hedge <= _MAX_HEDGE:
        raise ArgumentError(
            f"hedge: found {hedge!r}, expected seconds, or a quantile of the last times as 'p95'"
        )


def _is_good(task: asyncio.Task[Description]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def _is_honest(error: NescioError) -> bool:
    """Tests if a server has said that it lacks a version, which is not a failure of the server."""
    return isinstance(error, MismatchError) and not isinstance(error, TablesDifferError)


def _checked(url: str, reply: Reply, request: Request) -> Reply | Failure:
    """Returns a reply that is an answer to the request; another server may have one."""
    try:
        check_answer(request.params, reply.body, request.body)
    except MalformedMessageError as error:
        return Failure(MalformedMessageError(_invalid(url, error)))
    except MismatchError as error:  # an honest server would have refused the query
        facts = {"found": error.found, "expected": error.expected}
        return Failure(TablesDifferError(_invalid(url, error), **facts))
    return reply


def _invalid(url: str, error: NescioError) -> str:
    return f"{url} sent an invalid answer: {error}; {ASK_OPERATOR}"
