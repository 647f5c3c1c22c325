"""Threads of a server's linear layers: its own, and those of NumPy's linear algebra."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mpc.plans import small_plan
from mpc.sessions import POOL, small_network
from nescio import _core
from nescio.mpc import PlanServer, RemotePlan
from nescio.mpc._blas import one_blas_thread
from nescio.mpc._dealer import insecure_deal
from nescio.mpc._maps import Convolution, Dense
from nescio.mpc._online import dithers_of, infer, serve
from nescio.net import Channel
from ot.parties import together


def blas_threads():
    return [own["num_threads"] for own in threadpool_info() if own["user_api"] == "blas"]


def set_blas_threads(count):
    """Sets the number in a thread that ends: a thread that lives keeps others from setting it."""
    thread = threading.Thread(target=threadpool_limits, args=(count, "blas"))
    thread.start()
    thread.join()


@pytest.fixture(autouse=True)
def _two_blas_threads():
    before = blas_threads()
    set_blas_threads(2)
    if set(blas_threads()) != {2}:
        pytest.skip("NumPy's linear algebra has no threads that can be set")
    yield
    set_blas_threads(before[0])


def spied_maps(monkeypatch):
    """Returns lists of the sizes of maps' inputs, and of the threads of linear algebra."""
    sizes, threads = [], []
    for kind in (Convolution, Dense):
        call = kind.__call__

        def spied(self, values, call=call):
            sizes.append(len(values))
            threads.extend(blas_threads())
            return call(self, values)

        monkeypatch.setattr(kind, "__call__", spied)
    return sizes, threads


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_servers_with_any_threads_compute_the_same(monkeypatch, threads, count):
    """A batch is divided; each map runs with one thread of BLAS."""
    random = np.random.default_rng(5)
    network = small_network(random)
    client, server = insecure_deal(network, count, random)
    inputs = random.integers(0, 9, (count, *network.inputs)).astype(np.uint32)
    expected = network.simulate(inputs, dithers_of(client)).outputs
    sizes, found = spied_maps(monkeypatch)
    pool = _core.ThreadPool(threads)
    outputs, _ = together(
        lambda channel: infer(channel, network.public, client, inputs, POOL),
        lambda channel: serve(channel, network, server, pool),
    )
    assert np.array_equal(outputs, expected)
    assert set(found) == {1}
    assert max(sizes) == -(-count // min(count, threads))
    assert set(blas_threads()) == {2}


def test_a_service_has_one_thread_of_linear_algebra_until_it_stops(tmp_path, monkeypatch):
    plan, inputs = small_plan()
    with Channel.listener() as listener:
        with PlanServer(plan, listener, tmp_path / "stores", threads=1) as server:
            running = threading.Thread(target=server.run)
            running.start()
            remote = RemotePlan(
                plan.public, lambda: Channel.connect("127.0.0.1", listener.port), threads=1
            )
            remote.prepare(tmp_path / "client.store", 2)
            _, found = spied_maps(monkeypatch)
            with remote.open(tmp_path / "client.store") as model:
                model(inputs[:2])
            server.stop()
            running.join(20)
    assert set(found) == {1}
    assert set(blas_threads()) == {2}


def test_blocks_that_overlap_leave_the_number_of_before():
    """Of two blocks, the first one ends before the second one does."""
    inner, outer = threading.Event(), threading.Event()
    found = []

    def block(begin, end):
        begin.wait(10)
        with one_blas_thread():
            (outer if begin is inner else inner).set()
            end.wait(10)
            found.append(blas_threads())

    first_leaves, second_leaves = threading.Event(), threading.Event()
    started = threading.Event()
    started.set()
    first = threading.Thread(target=block, args=(started, first_leaves))
    second = threading.Thread(target=block, args=(inner, second_leaves))
    first.start()
    second.start()
    assert outer.wait(10)
    first_leaves.set()
    first.join()
    second_leaves.set()
    second.join()
    assert {number for own in found for number in own} == {1}
    assert set(blas_threads()) == {2}
