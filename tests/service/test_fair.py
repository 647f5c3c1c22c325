"""Clients that share a service: turns, parts of requests, and refusals."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

import nescio
from nescio.pir import _wire as wire
from nescio.service import Quotas
from nescio.service._batcher import Batcher
from nescio.service._connection import client_address
from nescio.service._fair import Comebacks, FairQueue, Job, Returns
from nescio.service._quotas import RefusedError
from service.conftest import VALUES, error_of, make_app, raw_request, running

SERVER = nescio.Server(nescio.Table(VALUES), party=0, threads=1)


def queue_of(**clients):
    """A queue with requests of so many lookups, by client."""
    queue = FairQueue()
    for client, requests in clients.items():
        for lookups in requests:
            queue.push(Job(client=client, lookups=lookups, cost=1))
    return queue


def keys_by_client(batch):
    found = {}
    for piece in batch:
        found[piece.job.client] = found.get(piece.job.client, 0) + piece.lookups
    return found


def test_a_batch_takes_from_each_client_in_turn():
    queue = queue_of(greedy=[1024] * 20, modest=[1], other=[1, 1])
    assert keys_by_client(queue.take(64)) == {"greedy": 61, "modest": 1, "other": 2}
    assert keys_by_client(queue.take(64)) == {"greedy": 64}
    assert queue.keys == queue.keys_of("greedy") == 20 * 1024 - 125


def test_clients_with_long_queues_get_equal_shares():
    queue = queue_of(a=[1000], b=[10] * 100, c=[1] * 1000)
    total = {}
    for _ in range(15):
        for client, keys in keys_by_client(queue.take(64)).items():
            total[client] = total.get(client, 0) + keys
    assert sum(total.values()) == 15 * 64
    assert max(total.values()) - min(total.values()) <= 64


def test_more_clients_than_a_batch_has_keys():
    queue = queue_of(**{f"client {i}": [2] for i in range(100)})
    batches = [keys_by_client(queue.take(64)) for _ in range(4)]
    assert [sum(batch.values()) for batch in batches] == [64, 64, 64, 8]
    assert len(batches[0].keys() | batches[1].keys()) == 100  # nobody twice before all once


def test_the_parts_of_a_request_are_its_lookups_in_their_order():
    queue = queue_of(greedy=[150], other=[100])
    parts = []
    while queue:
        parts += [(p.first, p.lookups) for p in queue.take(64) if p.job.client == "greedy"]
    ends = np.cumsum([count for _, count in parts])
    assert [first for first, _ in parts] == [0, *ends[:-1]]
    assert ends[-1] == 150


def test_a_lookup_of_more_keys_than_a_batch_is_a_batch():
    queue = FairQueue()
    for client in "ab":
        queue.push(Job(client=client, lookups=2, cost=100))
    batches = [[(p.job.client, p.lookups) for p in queue.take(64)] for _ in range(4)]
    assert sorted(batches) == [[("a", 1)], [("a", 1)], [("b", 1)], [("b", 1)]]
    assert not queue


def test_an_empty_request_is_taken():
    queue = FairQueue()
    queue.push(Job(client="a", lookups=0, cost=0))
    assert [(p.first, p.lookups) for p in queue.take(64)] == [(0, 0)]
    assert not queue


def test_a_cancelled_request_leaves_nothing():
    queue = FairQueue()
    first, second = (Job(client="a", lookups=100, cost=1) for _ in range(2))
    queue.push(first)
    queue.push(second)
    queue.take(64)
    queue.cancel(first)
    queue.cancel(first)
    assert queue.keys == 100
    queue.cancel(second)
    assert (queue.keys, queue.clients, queue.take(64)) == (0, 0, [])


def test_a_batch_waits_for_a_client_that_came_back_at_once():
    returns = Returns(0.01)
    returns.answered(["prompt", "slow"], now=1.0)
    assert returns.wait(1.0) == 0  # nobody is known yet
    returns.arrived("prompt", 1.005)
    returns.arrived("slow", 1.5)
    returns.answered(["prompt", "slow"], now=2.0)
    assert returns.wait(2.004) == pytest.approx(0.006)
    returns.arrived("prompt", 2.005)
    assert returns.wait(2.006) == 0
    returns.answered(["prompt"], now=3.0)
    assert returns.wait(3.02) == 0  # it did not come back
    returns.answered(["prompt"], now=4.0)
    assert returns.wait(4.0) == 0


@pytest.mark.parametrize("verify", [True, False])
def test_the_answer_in_parts_is_the_answer(verify):
    """A request of 50 rows among others, in batches of 8 and of 4 keys."""
    client = nescio.Client(SERVER.params, SERVER.tops if verify else None, verify=verify)
    bodies = [client.query(np.arange(n)).keys[0] for n in (50, 1, 7, 50, 1)]
    sizes = []

    def answer(queries):
        sizes.append(sum(query.bin_keys for query in queries))
        return SERVER.answer_batch(queries)

    async def scenario():
        batcher = Batcher(answer, SERVER.check, Quotas(), max_batch_keys=8)
        asked = [batcher.submit(SERVER.check(body), body, i % 2) for i, body in enumerate(bodies)]
        try:
            return await asyncio.gather(*asked)
        finally:
            await batcher.stop()

    answers = asyncio.run(scenario())
    assert [answer for answer, _ in answers] == [SERVER.answer(body) for body in bodies]
    assert max(sizes) <= 8
    assert sum(sizes) == 109


def test_a_table_that_changes_between_two_parts_is_an_error():
    table = nescio.Table(VALUES)
    server = nescio.Server(table, party=0, threads=1)
    body = nescio.Client(table.params, table.tops).query(np.arange(20)).keys[0]

    def check(part):
        raise nescio.errors.MismatchError("another version", found="", expected="")

    async def scenario():
        batcher = Batcher(server.answer_batch, check, Quotas(), max_batch_keys=8)
        try:
            asked = asyncio.create_task(batcher.submit(server.check(body), body, "a"))
            with pytest.raises(nescio.errors.MismatchError, match="another version"):
                await asked
            return sum(batcher.waiting)
        finally:
            await batcher.stop()

    assert asyncio.run(scenario()) == 0


def test_cutting_and_joining_messages():
    client = nescio.Client(SERVER.params, SERVER.tops)
    body = client.query(np.arange(10)).keys[0]
    parts = [wire.cut_query(body, 0, 3), wire.cut_query(body, 3, 7)]
    assert [SERVER.check(part).lookups for part in parts] == [3, 7]
    assert wire.join_answers([SERVER.answer(part) for part in parts]) == SERVER.answer(body)
    assert wire.cut_query(body, 0, 10) == body


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_the_address_of_a_client(host, client):
    assert client_address(host) == client


class StoppedServer(nescio.Server):
    """Answers nothing until it may."""

    may = threading.Event()
    checked = 0
    answering = 0

    def check(self, query):
        type(self).checked += 1
        return super().check(query)

    def answer_batch(self, queries):
        type(self).answering += 1
        assert self.may.wait(30)
        return super().answer_batch(queries)


def wait_until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def post_from(address, url, body):
    with httpx.Client(transport=httpx.HTTPTransport(local_address=address)) as client:
        return client.post(f"{url}/v1/tables/words/answer", content=body)


@pytest.fixture
def stopped(client):
    """A service with room for 8 keys, of which one client has 6: its URL, and how to ask."""
    StoppedServer.may.clear()
    StoppedServer.checked = StoppedServer.answering = 0
    quotas = Quotas(max_keys=8, max_waiting_keys=8, max_waiting_per_client=2, batch_window=0)
    waiting = []
    with (
        running(make_app(0, quotas=quotas, server=StoppedServer)) as url,
        ThreadPoolExecutor(8) as pool,
    ):

        def ask(address, lookups):
            body = client.query(np.arange(lookups)).keys[0]
            waiting.append(pool.submit(post_from, address, url, body))
            wait_until(lambda: StoppedServer.checked == len(waiting))
            time.sleep(0.05)  # from the check to the queue

        ask("127.0.0.1", 1)
        wait_until(lambda: StoppedServer.answering)
        ask("127.0.0.1", 6)
        yield url, ask
        StoppedServer.may.set()
        assert {future.result().status_code for future in waiting} == {200}


def test_a_client_whose_share_is_full_is_refused_and_others_are_not(stopped, client):
    url, ask = stopped
    body = client.query([1]).keys[0]
    refused = post_from("127.0.0.1", url, body)
    assert refused.status_code == 429
    assert error_of(refused)["code"] == "too_much_waiting"
    assert refused.headers["retry-after"] == "1"
    ask("127.0.0.2", 2)
    full = post_from("127.0.0.3", url, body)
    assert full.status_code == 503
    assert error_of(full)["code"] == "overloaded"
    assert full.headers["retry-after"] == "1"


def test_a_refusal_does_not_wait_for_the_body(stopped, client):
    url, _ = stopped
    length = len(client.query([1, 2]).keys[0])
    head = f"POST /v1/tables/words/answer HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n"
    answer = raw_request(url, head.encode() + b"Connection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 429 ")
    assert b"retry-after: 1\r\n" in answer


def test_a_refused_request_keeps_its_connection(stopped, client):
    url, _ = stopped
    body = client.query([1, 2, 3]).keys[0]
    with httpx.Client() as connection:
        for _ in range(2):
            refused = connection.post(f"{url}/v1/tables/words/answer", content=body)
            assert refused.status_code == 429
            assert "connection" not in refused.headers
        assert connection.get(f"{url}/healthz").status_code == 200


def test_the_time_to_retry_follows_the_queue():
    async def scenario():
        quotas = Quotas(max_keys=40, max_waiting_keys=40, max_waiting_per_client=40)
        slow = threading.Event()

        def answer(queries):
            slow.wait(0.5)
            return [b"\x00" * wire.HEADER_BYTES for _ in queries]

        def query(keys):
            return wire.QueryMessage(0, b"", 1, keys, ())

        batcher = Batcher(answer, None, quotas, max_batch_keys=4)
        try:
            for _ in range(4):
                await batcher.submit(query(4), b"", "a")
            tasks = [asyncio.create_task(batcher.submit(query(4), b"", "c"))]
            await asyncio.sleep(0.1)  # it is being answered
            tasks += [asyncio.create_task(batcher.submit(query(4), b"", i)) for i in range(10)]
            await asyncio.sleep(0.1)
            with pytest.raises(RefusedError) as refused:
                await batcher.submit(query(4), b"", "b")
            slow.set()
            await asyncio.gather(*tasks)
            return refused.value
        finally:
            await batcher.stop()

    refused = asyncio.run(scenario())
    assert refused.status == 503
    assert 2 <= refused.retry_after <= 6  # ten batches of half a second


def rounds(comebacks, answered, after, count=30):
    """Notes batches of 4 ms, and the requests that arrive so many ms after each."""
    for number in range(count):
        end = float(number)
        comebacks.answered(answered, 0.004, end)
        for milliseconds in after:
            comebacks.arrived(end + milliseconds / 1000)
    comebacks.answered(answered, 0.004, float(count))
    return float(count)


def test_a_batch_waits_for_requests_that_come_back():
    """Two groups of eight clients that ask again at once: eight wait, eight were answered."""
    comebacks = Comebacks()
    assert comebacks.wait(8, 0.0) == 0
    end = rounds(comebacks, 8, [0.5] * 8)
    assert comebacks.wait(8, end) == pytest.approx(0.002)  # half of the batch's time
    for arrived in range(1, 8):
        comebacks.arrived(end + 0.0005)
        expected = 0.0015 if arrived < 7 else 0.0
        assert comebacks.wait(8 + arrived, end + 0.0005) == pytest.approx(expected)
    end = rounds(comebacks, 8, [0.5] * 8)
    assert comebacks.wait(8, end + 0.003) == 0  # they did not come


@pytest.mark.parametrize(
    ("waiting", "after"),
    [
        (8, [3.0] * 8),  # they come back late
        (8, [1.0] * 4),  # some at a steady rate
        (60, [0.5] * 8),  # too few in comparison to those that wait
        (8, []),
    ],
)
def test_a_batch_does_not_wait_for_less(waiting, after):
    comebacks = Comebacks()
    end = rounds(comebacks, 8, after)
    assert comebacks.wait(waiting, end) == 0
