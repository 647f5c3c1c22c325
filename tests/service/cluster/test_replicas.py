"""The replicas that a front knows, and what it asks its head: without Ray."""

import threading
import time

import pytest

from nescio.errors import ResourceError
from nescio.pir._sharded import Part
from nescio.service._cluster._front import FrontTable
from nescio.service._cluster._replicas import Replicas, wait_for


class Actor:
    """An actor that is pinged; it replies its version."""

    version = b"1"

    @property
    def ping(self):
        return self

    def options(self, **_):
        return self

    def remote(self):
        return self.version


class Ray:
    """Actors by their names; a call has ended when it is made."""

    class exceptions:  # noqa: N801 - as in Ray
        ActorDiedError = OSError

    def __init__(self, *names):
        self.actors = {name: Actor() for name in names}

    def get_actor(self, name):
        if name not in self.actors:
            raise ValueError(name)
        return self.actors[name]

    @staticmethod
    def get(ref, timeout=None):
        del timeout
        return ref


@pytest.fixture
def replicas_of():
    made = []

    def make(ray):
        made.append(Replicas(ray, [Part(0, 1)]))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def update(replicas, names, version=b"1"):
    replicas.update([names], version, lambda ident: ident == b"1")


def test_a_replica_that_is_not_there_yet_is_looked_for_again(replicas_of):
    ray = Ray("a")
    replicas = replicas_of(ray)
    update(replicas, ["a", "b"])
    assert wait_for(lambda: replicas.shards[0][0].up, 5)
    assert not replicas.shards[0][1].up
    ray.actors["b"] = Actor()
    assert wait_for(lambda: replicas.shards[0][1].up, 5)


def test_a_replica_that_comes_is_asked_as_often_as_the_others(replicas_of):
    replicas = replicas_of(Ray("a", "b", "c"))
    update(replicas, ["a", "b"])
    assert wait_for(lambda: all(one.up for one in replicas.shards[0]), 5)
    replicas.shards[0][0].asked, replicas.shards[0][1].asked = 1000, 990
    update(replicas, ["a", "b", "c"])
    assert wait_for(lambda: replicas.shards[0][2].up, 5)
    assert replicas.shards[0][2].asked == 990
    replicas.shards[0][2].asked = 2000
    replicas.shards[0][2].fail("it is silent")
    assert wait_for(lambda: replicas.shards[0][2].up, 5)
    assert replicas.shards[0][2].asked == 2000


def test_replicas_of_an_older_version_wait(replicas_of):
    ray = Ray("a")
    replicas = replicas_of(ray)
    update(replicas, ["a"], b"2")
    assert not wait_for(lambda: replicas.shards[0][0].up, 0.5)
    ray.actors["a"].version = b"2"
    assert wait_for(lambda: replicas.shards[0][0].up, 5)


class Head:
    """A head whose calls are counted."""

    def __init__(self, result):
        self.calls, self.result = 0, result

    def refresh(self, seconds):
        del seconds
        self.calls += 1
        time.sleep(0.05)
        if isinstance(self.result, Exception):
            raise self.result


@pytest.fixture
def learning():
    """Returns a function that lets many threads learn of a head; it returns their errors."""

    def run(head):
        table = FrontTable.__new__(FrontTable)
        table._asked = table._unheard = -float("inf")
        table._learning = threading.Lock()

        def refresh(seconds):
            head.refresh(seconds)
            table._asked = time.monotonic()

        table.refresh = refresh
        errors = []

        def learn():
            try:
                table.learn()
            except ResourceError as error:
                errors.append(error)

        threads = [threading.Thread(target=learn) for _ in range(20)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        return errors

    return run


def test_a_head_is_asked_once_for_all_that_name_unknown_versions(learning):
    head = Head(None)
    assert learning(head) == []
    assert head.calls <= 2


def test_a_head_that_does_not_answer_holds_up_one_of_them_only(learning):
    head = Head(ResourceError("the head of the table does not answer"))
    begun = time.monotonic()
    assert len(learning(head)) == 20
    assert head.calls == 1
    assert time.monotonic() - begun < 1
