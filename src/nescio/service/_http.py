"""Requests as the service's clients make them: bounded in time and in what they read."""

import asyncio
import os
import ssl
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from ..errors import ArgumentError, MalformedMessageError
from ._exchange import MAX_TEXT_BYTES, Attempt, Reply

_T = TypeVar("_T")
_LONGEST_TIMEOUT = 86400.0
_GRACE_SECONDS = 1.0


class Closing:
    """What ends with a `with` block by its own `close`."""

    def close(self) -> None:
        """Ends it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """The thing itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes it."""
        self.close()


class Http:
    """Sends requests, each try within `timeout` seconds, and tries again as an Attempt says.

    Nothing is taken from the environment: a proxy that both servers' queries go through would see
    both keys. No compression either, so that a reply is as long as it looks.
    """

    def __init__(self, *, timeout: float, retries: int, verify: bool | ssl.SSLContext) -> None:
        if not 0 < timeout <= _LONGEST_TIMEOUT:
            raise ArgumentError(f"timeout: found {timeout}, expected seconds up to a day")
        if not 0 <= retries <= 100:
            raise ArgumentError(f"retries: found {retries}, expected 0 to 100")
        self._timeout = timeout
        self._retries = retries
        self._client = httpx.AsyncClient(
            timeout=timeout,
            verify=verify,
            trust_env=False,
            headers={"Accept-Encoding": "identity", "User-Agent": "nescio"},
        )

    async def get(self, url: str) -> bytes:
        """The body of a short text. Raises as `post`."""
        reply = await self._send("GET", url, None, {}, MAX_TEXT_BYTES)
        return reply.body

    async def post(
        self,
        url: str,
        body: bytes,
        max_bytes: int = MAX_TEXT_BYTES,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """The reply to a body, of at most `max_bytes`.

        Raises ServiceError, MismatchError if the server refuses for that, or MalformedMessageError
        for a reply that is too long or compressed.
        """
        all_headers = {"Content-Type": "application/octet-stream", **(headers or {})}
        return await self._send("POST", url, body, all_headers, max_bytes)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def _send(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        max_bytes: int,
    ) -> Reply:
        attempt = Attempt(url, self._retries)
        while True:
            try:
                async with asyncio.timeout(self._timeout):
                    async with self._client.stream(
                        method, url, content=body, headers=headers
                    ) as response:
                        reply = await _read(response, max(max_bytes, MAX_TEXT_BYTES))
                wait = attempt.answered(reply)
                if wait is None:
                    return reply
            except TimeoutError:
                wait = attempt.timed_out()
            except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
                wait = attempt.failed(error)
            await asyncio.sleep(wait)


async def both(first: Coroutine[Any, Any, _T], second: Coroutine[Any, Any, _T]) -> tuple[_T, _T]:
    """The results of two coroutines that run at once, or the first error of one.

    What fails at one server mostly fails at the other too: it has a second to say so before it is
    cancelled, because asyncio leaves a connection open that is cancelled during its TLS handshake.
    """
    tasks = [asyncio.ensure_future(work) for work in (first, second)]
    try:
        await asyncio.gather(*tasks)
    except Exception:
        await asyncio.wait(tasks, timeout=_GRACE_SECONDS)
        raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return tasks[0].result(), tasks[1].result()


async def _read(response: httpx.Response, max_bytes: int) -> Reply:
    """The whole reply, if it is short enough."""
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise MalformedMessageError(f"{response.url} answers in the encoding {encoding[:40]!r}")
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > max_bytes:
            raise MalformedMessageError(
                f"{response.url} answers with more than the {max_bytes} bytes that were asked for"
            )
    return Reply(response.status_code, bytes(body), response.headers)


class LoopThread:
    """An event loop on a thread of its own, for callers that have none.

    The thread is a daemon, so a program ends without waiting for it, and what a caller abandons by
    an interruption is cancelled.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._changing = threading.Lock()  # guards what follows
        self._closed = False
        self._under_way: set[Future[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="nescio-lookup", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Runs a coroutine to its end; an interruption of the caller cancels it.

        Raises ArgumentError if the loop is closed, or is closed meanwhile by another thread.
        """
        with self._changing:
            if self._closed:
                work.close()
                raise ArgumentError("the table is closed")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._under_way.add(future)
        try:
            return future.result()
        except CancelledError:
            raise ArgumentError("the table was closed meanwhile") from None
        except BaseException:
            future.cancel()
            raise
        finally:
            with self._changing:
                self._under_way.discard(future)

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancels what runs, runs one coroutine more, and ends the thread.

        A second time, and in a process that was forked since, it does nothing.
        """
        if self.process != os.getpid():
            return
        with self._changing:
            if self._closed:
                return
            self._closed = True
            for future in self._under_way:
                future.cancel()
        try:
            asyncio.run_coroutine_threadsafe(last(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().run_forever()
