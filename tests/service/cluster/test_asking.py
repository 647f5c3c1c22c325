"""A batch at replicas that fail, with calls that end at once: without Ray."""

import threading
import time

import numpy as np
import pytest

from nescio.errors import MismatchError, ResourceError
from nescio.pir._sharded import Part
from nescio.service._cluster._asking import Batch, Versions
from nescio.service._cluster._messages import Partial
from nescio.service._cluster._replica import Replica

PARTS = [Part(0, 4), Part(4, 8)]
VERSIONS = Versions(b"current", lambda ident: ident in (b"older", b"current"))
GONE = {0: MismatchError("gone", found="", expected="")}


class Calls:
    """Takes the place of Ray. A call ends at once, or never if its result is None."""

    @staticmethod
    def wait(refs, num_returns=1, timeout=None):
        ready = [ref for ref in refs if ref.result is not None]
        if len(ready) < num_returns:
            time.sleep(min(timeout, 0.01))
        return ready, []

    @staticmethod
    def get(ref):
        if isinstance(ref.result, Exception):
            raise ref.result
        return ref.result


class Ref:
    def __init__(self, result):
        self.result = result


class Actor:
    """An actor that notes the batches that it is asked, and replies what it is told."""

    def __init__(self, answer, pong=b"current"):
        self.answers, self.pong = [], pong
        self._answer = answer

    @property
    def answer(self):
        return _Method(lambda whole: self.answers.append(whole) or Ref(self._answer))

    @property
    def ping(self):
        return _Method(lambda: Ref(self.pong))


class _Method:
    def __init__(self, call):
        self.remote = call

    def options(self, **_):
        return self


def partial(number, *, ident=b"current", fresh=False, errors=None, part=None):
    payload = np.full(3, number, np.uint8)
    return Partial(part or PARTS[number], (b"current",), payload, errors or {}, ident, fresh, 0.0)


def ask(*shards):
    """Asks shards, each a list of actors; returns the payloads, and the replicas."""
    replicas = [[Replica(f"{i}", actor) for i, actor in enumerate(own)] for own in shards]
    batch = Batch(Calls, replicas, PARTS[: len(shards)], VERSIONS, ["query"])
    return batch, replicas


def test_one_replica_of_each_shard_answers():
    actors = [[Actor(partial(0)), Actor(partial(0))], [Actor(partial(1))]]
    batch, _ = ask(*actors)
    assert [one.payload.tolist() for one in batch.answer()] == [[0] * 3, [1] * 3]
    assert sum(len(one.answers) for one in actors[0]) == 1


@pytest.mark.parametrize(
    "bad",
    [
        OSError("gone"),
        partial(0, part=PARTS[1]),
        partial(0, ident=b"older", errors=GONE),
        partial(0, ident=b"none", fresh=True, errors=GONE),
    ],
    ids=["an error", "another part", "lacks changes", "was started again"],
)
def test_another_replica_takes_the_place_of_one_that_fails(bad):
    first, second = Actor(bad), Actor(partial(0))
    batch, [[left_out, good]] = ask([first, second])
    assert batch.answer()[0].payload.tolist() == [0] * 3
    assert (left_out.up, good.up) == (False, True)
    assert first.answers == second.answers == [["query"]]  # the same keys
    batch, _ = ask([Actor(bad)])
    with pytest.raises(ResourceError, match="shard 0 has no replica that answers"):
        batch.answer()


def test_a_version_that_the_shard_no_longer_has_is_no_failure():
    batch, [[replica]] = ask([Actor(partial(0, errors=GONE))])
    assert batch.answer()[0].errors == GONE
    assert replica.up
    newer = partial(0, ident=b"not heard of", errors=GONE)
    batch, [[replica]] = ask([Actor(newer)])
    assert batch.answer()[0].errors == GONE
    assert replica.up


def test_a_silent_replica_is_left_out_and_one_that_pongs_is_not(monkeypatch):
    for name in ("_SILENT_SECONDS", "_ALONE_SECONDS"):
        monkeypatch.setattr(f"nescio.service._cluster._asking.{name}", 0.1)
    batch, [[silent, _]] = ask([Actor(None, pong=None), Actor(partial(0))])
    assert batch.answer()[0].payload.tolist() == [0] * 3
    assert not silent.up
    batch, _ = ask([Actor(None, pong=None)])
    with pytest.raises(ResourceError):
        batch.answer()
    monkeypatch.setattr("nescio.service._cluster._asking._ANSWER_SECONDS", 0.5)
    batch, _ = ask([Actor(None)])
    begin = time.monotonic()
    with pytest.raises(ResourceError):
        batch.answer()
    assert time.monotonic() - begin > 0.4  # not 0.1


def test_a_replica_that_comes_back_is_waited_for():
    batch, [[first, second]] = ask([Actor(OSError("gone")), Actor(partial(0))])
    second.up = False
    timer = threading.Timer(0.2, setattr, [second, "up", True])
    timer.start()
    assert batch.answer()[0].payload.tolist() == [0] * 3
    timer.join()
    assert not first.up


def test_a_silent_replica_is_asked_again_once_it_is_back(monkeypatch):
    """If the other one fails meanwhile, as one that is killed does."""
    monkeypatch.setattr("nescio.service._cluster._asking._SILENT_SECONDS", 0.1)
    silent, other = Actor(None, pong=None), Actor(OSError("gone"))
    batch, [[first, second]] = ask([silent, other])

    def come_back():
        silent._answer = partial(0)
        first.up = True

    timer = threading.Timer(1.0, come_back)
    timer.start()
    assert batch.answer()[0].payload.tolist() == [0] * 3
    timer.join()
    assert (len(silent.answers), len(other.answers)) == (2, 1)
    assert not second.up


def test_a_replica_that_always_fails_is_not_asked_for_ever(monkeypatch):
    actor = Actor(OSError("gone"))
    batch, _ = ask([actor])
    monkeypatch.setattr(Replica, "fail", lambda *_: None)  # it answers pings
    with pytest.raises(ResourceError):
        batch.answer()
    assert len(actor.answers) == 3
