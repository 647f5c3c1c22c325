"""The queue times that a batcher reports, and lanes whose number changes."""

import asyncio
import threading
import time

import pytest

from nescio.service._batcher import Waited
from nescio.service._quotas import Quotas

from .test_batcher import Recorder, ask, batching, query

pytestmark = pytest.mark.load


def test_the_waits_of_requests_whose_batch_began():
    async def scenario():
        async with batching(Recorder(0.3), Quotas(batch_window=0.0)) as batcher:
            assert batcher.take_waited() == Waited(0, 0.0)
            first = asyncio.create_task(ask(batcher, query(1)))
            await asyncio.sleep(0.1)
            alone = batcher.take_waited()
            others = [asyncio.create_task(ask(batcher, query(n))) for n in (2, 3)]
            await asyncio.sleep(0.1)
            meanwhile = batcher.take_waited()
            await asyncio.gather(first, *others)
            return alone, meanwhile, batcher.take_waited(), batcher.take_waited()

    alone, meanwhile, others, nothing = asyncio.run(scenario())
    assert alone.requests == 1
    assert alone.seconds < 0.1
    assert meanwhile.requests == 2  # they wait still, for as long as this
    assert 0.1 < meanwhile.seconds < 0.4
    assert others.requests == 2
    assert 0.3 < others.seconds < 0.6
    assert nothing == Waited(0, 0.0)


def test_lanes_are_added_while_requests_arrive():
    lanes, busy, most = [1], set(), [0]
    lock = threading.Lock()

    def answer(queries):
        with lock:
            busy.add(threading.get_ident())
            most[0] = max(most[0], len(busy))
        time.sleep(0.1)
        with lock:
            busy.remove(threading.get_ident())
        return [b"" for _ in queries]

    async def ask_for(batcher, count):
        most[0] = 0
        await asyncio.gather(*(ask(batcher, query(n, keys=4)) for n in range(count)))
        return most[0]

    async def scenario():
        async with batching(
            answer, Quotas(batch_window=0.0), max_batch_keys=4, lanes=lambda: lanes[0]
        ) as batcher:
            found = [await ask_for(batcher, 6)]
            lanes[0] = 3
            found.append(await ask_for(batcher, 6))
            lanes[0] = 1
            found.append(await ask_for(batcher, 6))
            return found

    assert asyncio.run(scenario()) == [1, 3, 1]
