"""Batching of requests, without a network."""

import asyncio
import contextlib
import itertools
import threading
import time

import pytest

import nescio
from nescio.errors import MismatchError
from nescio.pir._wire import QueryMessage
from nescio.service._batcher import Batcher
from nescio.service._quotas import Quotas, RefusedError
from service.conftest import VALUES

pytestmark = pytest.mark.load


def query(number, keys=1):
    """A query whose answer is its number; a batcher uses only its number of keys for a bin."""
    return QueryMessage(0, bytes([number]), 1, keys, ())


def ask(batcher, query, client="someone"):
    return batcher.submit(query, b"", client)


class Recorder:
    """Answers each query with its first byte, and records the batches."""

    def __init__(self, seconds=0.0):
        self.batches = []
        self.began = threading.Event()
        self._seconds = seconds

    def __call__(self, queries):
        self.began.set()
        time.sleep(self._seconds)
        numbers = [q.table[0] for q in queries]
        self.batches.append(numbers)
        if 66 in numbers:
            raise RuntimeError("sixty-six")
        return [bytes([n]) for n in numbers]


@contextlib.asynccontextmanager
async def batching(answer, quotas=None, **options):
    batcher = Batcher(answer, None, quotas or Quotas(), **{"max_batch_keys": 128, **options})
    try:
        yield batcher
    finally:
        await batcher.stop()


def test_everyone_gets_their_own_answer():
    async def scenario():
        async with batching(Recorder()) as batcher:
            return await asyncio.gather(*(ask(batcher, query(n)) for n in range(50)))

    answers = asyncio.run(scenario())
    assert [answer for answer, _ in answers] == [bytes([n]) for n in range(50)]
    assert all(seconds >= 0 for _, seconds in answers)


def test_a_request_waits_for_company_no_longer_than_the_window():
    recorder = Recorder()

    async def scenario():
        async with batching(recorder, Quotas(batch_window=0.2)) as batcher:
            begun = time.monotonic()
            first = asyncio.create_task(ask(batcher, query(1)))
            await asyncio.sleep(0.05)
            second = asyncio.create_task(ask(batcher, query(2)))
            await asyncio.gather(first, second)
            together = time.monotonic() - begun
            await ask(batcher, query(3))
            return together

    together = asyncio.run(scenario())
    assert recorder.batches == [[1, 2], [3]]
    assert 0.15 < together < 1


def test_a_full_batch_goes_at_once_and_what_does_not_fit_follows():
    recorder = Recorder()

    async def scenario():
        quotas = Quotas(batch_window=1)
        async with batching(recorder, quotas, max_batch_keys=4) as batcher:
            begun = time.monotonic()
            await asyncio.gather(*(ask(batcher, query(n, keys=3)) for n in (1, 2)))
            return time.monotonic() - begun

    asyncio.run(scenario())
    assert recorder.batches == [[1], [2]]


def test_while_a_batch_is_answered_the_next_one_gathers():
    recorder = Recorder(seconds=0.2)

    async def scenario():
        async with batching(recorder) as batcher:
            first = asyncio.create_task(ask(batcher, query(1)))
            await asyncio.sleep(0.1)
            rest = [asyncio.create_task(ask(batcher, query(n))) for n in (2, 3, 4)]
            await asyncio.gather(first, *rest)

    asyncio.run(scenario())
    assert recorder.batches == [[1], [2, 3, 4]]


def test_cancelled_requests_are_left_out():
    recorder = Recorder(seconds=0.2)

    async def scenario():
        async with batching(recorder, Quotas(answer_seconds=0.1, batch_window=0)) as batcher:
            tasks = [asyncio.create_task(ask(batcher, query(1)))]
            await asyncio.to_thread(recorder.began.wait, 10)
            tasks += [asyncio.create_task(ask(batcher, query(n))) for n in (2, 3)]
            results = await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0.3)
            return results

    results = asyncio.run(scenario())
    assert [r.code for r in results] == ["answer_too_slow"] * 3
    assert recorder.batches == [[1]]


def test_a_failed_batch_fails_its_requests_and_no_others():
    async def scenario():
        async with batching(Recorder(), Quotas(batch_window=0)) as batcher:
            with pytest.raises(RuntimeError, match="sixty-six"):
                await ask(batcher, query(66))
            return await ask(batcher, query(1))

    assert asyncio.run(scenario())[0] == b"\x01"


def test_one_answer_may_be_an_error():
    def answer(queries):
        return [
            b"good" if q.table[0] % 2 else MismatchError("odd", found="", expected="")
            for q in queries
        ]

    async def scenario():
        async with batching(answer) as batcher:
            tasks = (ask(batcher, query(n)) for n in range(4))
            return await asyncio.gather(*tasks, return_exceptions=True)

    kinds = [type(result) for result in asyncio.run(scenario())]
    assert kinds == [MismatchError, tuple, MismatchError, tuple]


def test_parts_that_are_answered_in_another_order_are_joined_in_theirs():
    """With two lanes the second part of a request may be answered before the first one."""
    table = nescio.Table(VALUES)
    server = nescio.Server(table, threads=1, party=0)
    message = nescio.Client(table.params, table.tops).query(range(12)).keys[0]
    second, calls = threading.Event(), itertools.count()

    def answer(queries):
        number = next(calls)
        if number == 0:
            assert second.wait(10)
        found = server.answer_batch(queries)
        if number == 1:
            second.set()
        return found

    async def scenario():
        batcher = Batcher(answer, server.check, Quotas(batch_window=0), 4, lanes=2)
        found, _ = await batcher.submit(server.check(message), message, "someone")
        await batcher.stop()
        return found

    assert asyncio.run(scenario()) == server.answer(message)
    assert next(calls) == 3


def test_too_much_waiting_is_refused():
    async def scenario():
        quotas = Quotas(max_waiting_keys=5, max_keys=5, batch_window=0.5)  # it waits that long
        async with batching(Recorder(), quotas) as batcher:
            tasks = [asyncio.create_task(ask(batcher, query(n, keys=4))) for n in (1, 2)]
            return await asyncio.gather(*tasks, return_exceptions=True)

    first, second = asyncio.run(scenario())
    assert first[0] == b"\x01"
    assert isinstance(second, RefusedError)
    assert (second.status, second.code) == (429, "too_much_waiting")
    assert second.retry_after == 1
