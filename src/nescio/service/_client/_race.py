"""The first good result of several servers, of which any is enough."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from ...errors import MalformedMessageError, MismatchError, ServiceError

_T = TypeVar("_T")
_SLOW_SECONDS = 1.0

Ask = Callable[[Callable[[object], None]], Coroutine[Any, Any, _T]]


async def first_good(asks: Sequence[Ask[_T]]) -> _T:
    """Returns the first result. Each `ask` begins when the one before has failed a try or is slow.

    An `ask` gets a function to call at a try that fails. When one has a result, the others are
    cancelled. Raises the last error if none has one.
    """
    failed = [asyncio.Event() for _ in asks]
    tasks = [asyncio.ensure_future(_in_turn(i, ask, failed)) for i, ask in enumerate(asks)]
    wrong: MismatchError | MalformedMessageError | ServiceError | None = None
    try:
        for done in asyncio.as_completed(tasks):
            try:
                return await done
            except (MismatchError, MalformedMessageError, ServiceError) as error:
                wrong = error
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert wrong is not None
    raise wrong


async def _in_turn(place: int, ask: Ask[_T], failed: Sequence[asyncio.Event]) -> _T:
    """Waits for a failure of the one before, at most a second for each before; then asks."""
    if place:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(place * _SLOW_SECONDS):
                await failed[place - 1].wait()
    try:
        return await ask(lambda _: failed[place].set())
    finally:
        failed[place].set()
