"""For builders of protocols: their own delta and memory, triples in batches, wiped secrets."""

import contextlib
import threading
import time
import tracemalloc

import numpy as np
import pytest

from nescio.errors import ArgumentError, ChannelError, ConsistencyError, PeerRefusedError
from nescio.net import Channel
from nescio.ot import Receiver, Sender, _triples
from ot.parties import session, together

DELTA = np.array([0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210], np.uint64)


def correlated(delta, r, choices, t):
    return np.array_equal(t, r ^ choices.astype(np.uint64)[:, None] * delta)


# ---- A delta of the caller -----------------------------------------------------------------------


@pytest.mark.parametrize("malicious", [False, True])
def test_sessions_in_several_threads_share_a_delta(malicious):
    found = []

    def one_session():
        own = DELTA.copy()

        def send(channel):
            party = Sender(channel, delta=own, malicious=malicious, family="dual")
            own[:] = 0  # the party has a copy
            return party.extend(1000)

        def receive(channel):
            return Receiver(channel, malicious=malicious, family="dual").extend(1000)

        r, (choices, t) = together(send, receive)
        found.append((r, correlated(DELTA, r, choices, t)))

    threads = [threading.Thread(target=one_session) for _ in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert [right for _, right in found] == [True] * 3
    assert len(np.unique(np.concatenate([r for r, _ in found])[:, 1])) == 3000


@pytest.mark.parametrize(
    ("delta", "message"),
    [
        (DELTA ^ np.uint64(1), "delta: found an even low half"),
        (DELTA[:1], r"delta: found uint64 of shape \(1,\), expected uint64 of shape \(2,\)"),
        (DELTA.view(np.uint8), "delta: found uint8"),
        ("secret", "delta"),
    ],
)
def test_invalid_deltas(delta, message):
    with pytest.raises(ArgumentError, match=message):
        Sender(Channel.pair(timeout=1)[0], delta=delta)


# ---- Memory of the caller ------------------------------------------------------------------------


def arrays(n, *kinds):
    shapes = {"choices": ((n,), np.uint8), "blocks": ((n, 2), np.uint64)}
    return tuple(np.full(*shapes[kind][:1], 0xAA, shapes[kind][1]) for kind in kinds)


@pytest.mark.parametrize("family", ["primal", "dual"])
@pytest.mark.parametrize("n", [1, 5000, (1 << 20) + 3])
def test_results_in_the_callers_memory_are_the_same(family, n):
    options = {"family": family, "insecure_seed": b"out"}
    _, expected, _, (bits, blocks) = session(
        lambda s: s.extend(n), lambda c: c.extend(n), **options
    )
    (mine,), yours = arrays(n, "blocks"), arrays(n, "choices", "blocks")
    _, r, _, (choices, t) = session(
        lambda s: s.extend(n, out=mine), lambda c: c.extend(n, out=yours), **options
    )
    assert r is mine
    assert choices is yours[0]
    assert t is yours[1]
    for found, wanted in ((mine, expected), (choices, bits), (t, blocks)):
        assert np.array_equal(found, wanted)


def test_random_ots_in_the_callers_memory():
    n = 3000
    pair, yours = arrays(n, "blocks", "blocks"), arrays(n, "choices", "blocks")
    _, (zeros, ones), _, (choices, chosen) = session(
        lambda s: s.extend_random(n, out=pair),
        lambda c: c.extend_random(n, out=yours),
        family="dual",
    )
    assert zeros is pair[0]
    assert ones is pair[1]
    assert np.array_equal(chosen, np.where(choices[:, None], ones, zeros))
    assert len(np.unique(np.concatenate(pair)[:, 0])) == 2 * n


def test_a_stream_into_one_array():
    def take(party, out):
        stream = party.stream(1000, out=out)
        return [np.copy(next(stream)[-1] if isinstance(out, tuple) else next(stream)) for _ in "ab"]

    _, sent, _, received = session(
        lambda s: take(s, *arrays(1000, "blocks")),
        lambda c: take(c, arrays(1000, "choices", "blocks")),
        family="dual",
    )
    assert not np.array_equal(*sent)
    for r, t in zip(sent, received, strict=True):
        assert (r[:, 1] == t[:, 1]).any()


READ_ONLY = np.zeros((8, 2), np.uint64)
READ_ONLY.flags.writeable = False
SHARED = np.zeros((8, 2), np.uint64)


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda s: s.extend(8, out=[1]), "out: found list, expected a NumPy array"),
        (lambda s: s.extend(9, out=SHARED), r"shape \(8, 2\), expected uint64 of shape \(9, 2\)"),
        (lambda s: s.extend(8, out=SHARED.view("i8")), "found int64"),
        (lambda s: s.extend(8, out=READ_ONLY), "read-only"),
        (lambda s: s.extend(8, out=np.ma.masked_array(SHARED, True)), "found MaskedArray"),
        (lambda s: s.extend(4, out=np.zeros((8, 2), "u8")[::2]), "gaps"),
        (lambda s: s.extend_random(8, out=SHARED), "expected a tuple of 2 arrays"),
        (lambda s: s.extend_random(8, out=(SHARED, SHARED)), "share memory"),
        (
            lambda s: s.extend(8, out=np.zeros(17, "u8")[1:].reshape(8, 2)),
            "not aligned to 16 bytes",
        ),
    ],
)
def test_invalid_outputs(work, message):
    """Before anything is sent, so the session stays usable."""
    party = Sender(Channel.pair(timeout=1)[0])
    with pytest.raises(ArgumentError, match=message):
        work(party)
    assert not party.channel.closed


# ---- Triples in batches --------------------------------------------------------------------------


def test_bit_triples_in_batches(monkeypatch):
    monkeypatch.setattr(_triples, "_BIT_BATCH", 1000)
    _, mine, _, yours = session(
        lambda s: s.extend_bit_triples(3001), lambda c: c.extend_bit_triples(3001), family="dual"
    )
    a, b, c = (x ^ y for x, y in zip(mine, yours, strict=True))
    assert np.array_equal(c, a & b)
    assert (a.mean(), b.mean()) == pytest.approx((0.5, 0.5), abs=0.06)


def test_bit_triples_take_bounded_memory():
    n = 1 << 20
    tracemalloc.start()
    try:
        session(lambda s: s.extend_bit_triples(n), lambda c: c.extend_bit_triples(n))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 130e6  # of both parties; blocks of all OTs alone take 168 MB


def test_word_triples_send_only_the_bits_that_count():
    n = 100
    channels = Channel.pair(timeout=20)
    session(
        lambda s: s.extend_word_triples(n),
        lambda c: c.extend_word_triples(n),
        channels,
        family="dual",
    )
    assert channels[0].counts.sent_by_kind["TRPL"] <= (520 + 16) * n


def test_packed_differences_are_those_of_plain_python(rng):
    """Position i of d counts 2^i times modulo 2^64: its 64 - i low bits must come through."""
    d = rng.integers(0, 1 << 64, (2, 3, 64), dtype=np.uint64)
    words = _triples._packed(d)
    assert words.shape == (3, 65)
    expected = [[[int(x) << i & (1 << 64) - 1 for i, x in enumerate(k)] for k in p] for p in d]
    assert _triples._terms(words).tolist() == expected


# ---- Wiped secrets -------------------------------------------------------------------------------


def memory_of(party):
    """The arrays with secrets that a party holds between its calls."""
    held = [party._kernels._kept, party._kernels._scratch]
    return [*held, party._delta] if isinstance(party, Sender) else held


@pytest.mark.parametrize("family", ["primal", "dual"])
def test_a_party_wipes_its_secrets_at_its_end(family):
    def run(kind):
        def work(channel):
            with kind(channel, family=family, malicious=True) as party:
                party.extend(1000)
                party.extend(100_000)
                held = memory_of(party)
                assert all(array.any() for array in held)
            assert not any(array.any() for array in held)
            with pytest.raises(ChannelError, match="session has ended"):
                party.extend(1)
            return True

        return work

    assert together(run(Sender), run(Receiver)) == [True, True]


def test_a_party_wipes_its_secrets_after_an_error():
    def send(channel):
        party = Sender(channel, family="dual", malicious=True)
        party.extend(1000)
        held = memory_of(party)
        with pytest.raises(PeerRefusedError):
            party.extend(100_000)
        assert not any(array.any() for array in held)
        with pytest.raises(ChannelError, match="overwritten"):
            party.delta  # noqa: B018
        return True

    def receive(channel):
        party = Receiver(channel, family="dual", malicious=True)
        party.extend(1000)
        held = memory_of(party)
        party._kernels.chi_sum = lambda leaves, seed: np.zeros(2, np.uint64)
        with pytest.raises(ConsistencyError):
            party.extend(100_000)
        assert not any(array.any() for array in held)
        return True

    assert together(send, receive) == [True, True]


def test_a_failed_call_leaves_nothing_in_the_callers_array():
    out = arrays(1000, "blocks")[0]

    def send(channel):
        with pytest.raises(PeerRefusedError):
            Sender(channel, family="dual", malicious=True).extend(1000, out=out)
        return not out.any()

    def receive(channel):
        party = Receiver(channel, family="dual", malicious=True)
        party._kernels.chi_sum = lambda leaves, seed: np.zeros(2, np.uint64)
        with pytest.raises(ConsistencyError):
            party.extend(1000)

    assert together(send, receive) == [True, None]


# ---- The end of a session ------------------------------------------------------------------------


def test_close_waits_for_a_call_in_another_thread():
    """A call that went on with a wiped delta would send what reveals delta."""
    entered, errors = threading.Event(), []

    def send(channel):
        party = Sender(channel, family="primal")
        grow = party._kernels.grow

        def slow_grow(*arguments):
            entered.set()
            time.sleep(0.05)
            return grow(*arguments)

        party._kernels.grow = slow_grow
        delta = party.delta

        def close():
            entered.wait(20)
            try:
                party.close()
            except BaseException as error:
                errors.append(error)

        closing = threading.Thread(target=close)
        closing.start()
        r = party.extend(50_000)
        closing.join()
        return delta, r, party

    def receive(channel):
        return Receiver(channel, family="primal").extend(50_000)

    (delta, r, party), (choices, t) = together(send, receive)
    assert correlated(delta, r, choices, t)
    assert not errors
    with pytest.raises(ChannelError, match="session has ended"):
        party.extend(1)


def test_a_closed_party_leaves_the_channel_to_others():
    def run(kind):
        def work(channel):
            first = kind(channel, family="dual")
            first.extend(10)
            first.close()
            second = kind(channel, family="dual")
            with pytest.raises(ChannelError, match="session has ended"):
                first.extend(10)
            return second.extend(10)

        return work

    r, (choices, _) = together(run(Sender), run(Receiver))
    assert len(r) == len(choices) == 10


def test_an_exception_in_a_with_block_tells_the_other_party():
    def send(channel):
        with contextlib.suppress(ZeroDivisionError), Sender(channel, family="dual") as party:
            party.extend(10)
            1 / 0  # noqa: B018

    def receive(channel):
        party = Receiver(channel, family="dual")
        party.extend(10)
        with pytest.raises(PeerRefusedError, match="an error on its side"):
            party.extend(1 << 20)

    together(send, receive)


def test_an_error_between_batches_ends_the_session(monkeypatch):
    monkeypatch.setattr(_triples, "_BIT_BATCH", 1000)

    def send(channel):
        party = Sender(channel, family="dual")
        batch, calls = party._bit_triples, []

        def interrupted(n):
            if calls:
                raise KeyboardInterrupt
            calls.append(n)
            return batch(n)

        party._bit_triples = interrupted
        with pytest.raises(KeyboardInterrupt):
            party.extend_bit_triples(3000)
        return channel.closed

    def receive(channel):
        with pytest.raises(PeerRefusedError):
            Receiver(channel, family="dual").extend_bit_triples(3000)

    assert together(send, receive) == [True, None]
