"""HTTP requests of the service's clients, with bounded time and reply length."""

import asyncio
import itertools
import os
import ssl
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from ..errors import ArgumentError, MalformedMessageError
from ._client._attempt import ASK_OPERATOR, Failure, Reply, failed, pause, refused, timed_out
from ._exchange import MAX_TEXT_BYTES

_T = TypeVar("_T")
_MAX_TIMEOUT = 86400.0
_GRACE_SECONDS = 1.0


def _ignore(_: Failure) -> None:
    pass


class Closing:
    """A base class: leaving a `with` block calls `close`."""

    def close(self) -> None:
        """Releases the resources."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """Returns the object itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Calls `close`."""
        self.close()


class Http:
    """Sends requests; each try takes at most `timeout` seconds.

    `keys` has clients' keys by URL; a key is sent to its URL, and to no other. A request is tried
    again if that may help, up to `retries` times, after the time that the server names in
    `Retry-After`, unless all these times are longer than `timeout`.

    Proxies of the environment are not used: a proxy for the traffic to both servers would see both
    keys. Compression is not used, so the length of a reply is bounded while it is read. No cookie
    is stored: one server's cookie would go to the other party, and name the client there.
    """

    def __init__(
        self,
        *,
        timeout: float,
        retries: int,
        tls: bool | ssl.SSLContext,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        if not 0 < timeout <= _MAX_TIMEOUT:
            raise ArgumentError(f"timeout: found {timeout}, expected seconds up to a day")
        if not 0 <= retries <= 100:
            raise ArgumentError(f"retries: found {retries}, expected 0 to 100")
        self._timeout = timeout
        self.retries = retries
        self._keys = {url: f"Bearer {key}" for url, key in (keys or {}).items()}
        self._client = httpx.AsyncClient(
            timeout=timeout,
            verify=tls,
            trust_env=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            headers={"Accept-Encoding": "identity", "User-Agent": "nescio"},
        )

    async def get(
        self,
        url: str,
        max_bytes: int = MAX_TEXT_BYTES,
        headers: Mapping[str, str] | None = None,
        on_failure: Callable[[Failure], None] = _ignore,
    ) -> bytes:
        """Fetches and returns a body of at most `max_bytes`. Raises the errors of `post`.

        `on_failure` is called after each try that fails.
        """
        reply = await self._send("GET", url, None, headers or {}, max_bytes, on_failure=on_failure)
        return reply.body

    async def post(
        self,
        url: str,
        body: bytes,
        max_bytes: int = MAX_TEXT_BYTES,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Sends a body and returns the reply, of at most `max_bytes`.

        Raises ServiceError, MismatchError if the server reports a mismatch, or
        MalformedMessageError for a reply that is too long or compressed.
        """
        all_headers = {"Content-Type": "application/octet-stream", **(headers or {})}
        return await self._send("POST", url, body, all_headers, max_bytes)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def attempt(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        max_bytes: int = MAX_TEXT_BYTES,
    ) -> Reply | Failure:
        """Tries a request once. Raises MalformedMessageError as `post` does."""
        key = self._keys.get(url)
        own = dict(headers or {}) if key is None else {**(headers or {}), "Authorization": key}
        try:
            async with asyncio.timeout(self._timeout):
                async with self._client.stream(method, url, content=body, headers=own) as response:
                    reply = await _read(response, max(max_bytes, MAX_TEXT_BYTES))
            return refused(url, reply) or reply
        except TimeoutError:
            return timed_out(url)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            return failed(url, error)

    async def _send(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        max_bytes: int,
        *,
        on_failure: Callable[[Failure], None] = _ignore,
    ) -> Reply:
        asked = 0.0
        for tries in itertools.count(1):
            outcome = await self.attempt(method, url, body, headers, max_bytes)
            if isinstance(outcome, Reply):
                return outcome
            on_failure(outcome)
            asked += outcome.after
            if not outcome.again or tries > self.retries or asked > self._timeout:
                raise outcome.error
            await asyncio.sleep(self.wait(tries, outcome.after))
        raise AssertionError

    def wait(self, tries: int, asked: float) -> float:
        """Returns the seconds to wait after some tries; at most `timeout` more if a server asks."""
        return pause(tries) + min(asked, self._timeout)


async def both(first: Coroutine[Any, Any, _T], second: Coroutine[Any, Any, _T]) -> tuple[_T, _T]:
    """Runs two coroutines concurrently; returns both results or raises the first error.

    After an error, the other coroutine has one more second before it is cancelled: asyncio leaves a
    connection open that is cancelled during its TLS handshake, and mostly both servers fail alike.
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
    """Reads the whole reply. Raises MalformedMessageError if it is too long or compressed."""
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise MalformedMessageError(
            f"{response.url} answers with content encoding {encoding[:40]!r}, expected none; "
            f"{ASK_OPERATOR}"
        )
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > max_bytes:
            raise MalformedMessageError(
                f"{response.url} answers with more than {max_bytes} bytes, expected at most as "
                f"many; {ASK_OPERATOR}"
            )
    return Reply(response.status_code, bytes(body), response.headers)


class LoopThread:
    """An event loop on its own thread, for callers without an event loop.

    The thread is a daemon, so a program exits without waiting for it. If a caller is interrupted,
    its coroutine is cancelled.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._changing = threading.Lock()  # guards the attributes below
        self._closed = False
        self._pending: set[Future[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="nescio-lookup", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Runs a coroutine and returns its result; an interruption of the caller cancels it.

        Raises ArgumentError if the loop is closed, before or during the call.
        """
        with self._changing:
            if self._closed:
                work.close()
                raise ArgumentError("the table is closed")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._pending.add(future)
        try:
            return future.result()
        except CancelledError:
            raise ArgumentError("the table was closed during the call") from None
        except BaseException:
            future.cancel()
            raise
        finally:
            with self._changing:
                self._pending.discard(future)

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancels running coroutines, runs a last one, and ends the thread.

        A second call, and a call in a forked process, have no effect.
        """
        if self.process != os.getpid():
            return
        with self._changing:
            if self._closed:
                return
            self._closed = True
            for future in self._pending:
                future.cancel()
        try:
            asyncio.run_coroutine_threadsafe(last(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().run_forever()
