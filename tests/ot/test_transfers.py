"""All methods that build on correlated OTs, as users call them."""

import numpy as np
import pytest

from nescio.errors import ArgumentError, MismatchError
from nescio.net import Channel
from nescio.ot import Sender
from ot.parties import SETS, session


def correlated(sender, r, choices, t):
    return np.array_equal(t, r ^ choices.astype(np.uint64)[:, None] * sender.delta)


@pytest.mark.parametrize("malicious", [False, True])
@pytest.mark.parametrize(("family", "parameters"), SETS)
@pytest.mark.parametrize("n", [1, 127, (1 << 15) + 7])
def test_correlated_ots(n, family, parameters, malicious):
    options = {"family": family, "parameters": parameters, "malicious": malicious}
    sender, r, _, (choices, t) = session(lambda s: s.extend(n), lambda c: c.extend(n), **options)
    assert r.shape == t.shape == (n, 2)
    assert choices.shape == (n,)
    assert choices.dtype == np.uint8
    assert correlated(sender, r, choices, t)
    assert sender.delta[0] & np.uint64(1)
    assert not (r[:, 0] & np.uint64(1)).any()
    assert np.array_equal(t[:, 0] & np.uint64(1), choices)


@pytest.mark.parametrize(("family", "parameters"), SETS)
def test_a_million_and_some(family, parameters):
    n = (1 << 20) + 7
    options = {"family": family, "parameters": parameters, "threads": 2}
    sender, r, _, (choices, t) = session(lambda s: s.extend(n), lambda c: c.extend(n), **options)
    assert correlated(sender, r, choices, t)
    assert abs(int(choices.sum()) - n // 2) < 6 * np.sqrt(n) / 2


@pytest.mark.parametrize(("family", "parameters"), SETS)
def test_several_calls_never_give_the_same(family, parameters):
    sizes = [5, 40_000, 1, 70_000, 3]
    sender, parts, _, others = session(
        lambda s: [s.extend(n) for n in sizes],
        lambda c: [c.extend(n) for n in sizes],
        family=family,
        parameters=parameters,
    )
    r = np.concatenate(parts)
    choices, t = (np.concatenate(part) for part in zip(*others, strict=True))
    assert correlated(sender, r, choices, t)
    assert len(np.unique(r[:, 1])) == len(r)


def test_a_stream():
    def take(party):
        stream = party.stream(1000)
        return [next(stream) for _ in range(3)]

    sender, sent, _, received = session(take, take, family="dual")
    for r, (choices, t) in zip(sent, received, strict=True):
        assert correlated(sender, r, choices, t)


def test_random_ots():
    n = 5000
    _, (zeros, ones), _, (choices, chosen) = session(
        lambda s: s.extend_random(n), lambda c: c.extend_random(n), family="dual"
    )
    assert np.array_equal(chosen, np.where(choices[:, None], ones, zeros))
    assert len(np.unique(np.concatenate([zeros, ones])[:, 0])) == 2 * n


@pytest.mark.parametrize("length", [1, 16, 17, 300])
def test_random_messages_of_any_length(length):
    n = 500
    _, (zero, one), _, (choices, chosen) = session(
        lambda s: s.extend_random_bytes(n, length), lambda c: c.extend_random_bytes(n, length)
    )
    assert zero.shape == one.shape == chosen.shape == (n, length)
    assert np.array_equal(chosen, np.where(choices[:, None] == 1, one, zero))
    if length > 1:
        assert len(np.unique(np.concatenate([zero, one]), axis=0)) == 2 * n


def test_parties_with_other_lengths_are_told():
    with pytest.raises(MismatchError, match="16 bytes"):
        session(lambda s: s.extend_random_bytes(9, 16), lambda c: c.extend_random_bytes(9, 17))


def test_chosen_choices(rng):
    wanted = rng.integers(0, 2, 3001, dtype=np.uint8)
    sender, r, _, t = session(
        lambda s: s.extend_chosen(len(wanted)), lambda c: c.extend_chosen(wanted), family="dual"
    )
    assert correlated(sender, r, wanted, t)


@pytest.mark.parametrize("length", [1, 16, 33])
def test_chosen_messages(length, rng):
    n = 700
    zeros, ones = rng.integers(0, 256, (2, n, length), dtype=np.uint8)
    choices = rng.integers(0, 2, n)
    _, _, _, received = session(
        lambda s: s.send(zeros, ones), lambda c: c.receive(choices, length), family="dual"
    )
    assert np.array_equal(received, np.where(choices[:, None], ones, zeros))


def test_blocks_as_messages(rng):
    zeros, ones = rng.integers(0, 1 << 63, (2, 9, 2), dtype=np.uint64)
    _, _, _, received = session(
        lambda s: s.send(zeros, ones), lambda c: c.receive(np.ones(9, bool)), family="dual"
    )
    assert np.array_equal(received.view(np.uint64), ones)


@pytest.mark.parametrize(("options", "length"), [(2, 16), (5, 3), (64, 20)])
def test_one_of_several(options, length, rng):
    n = 100
    messages = rng.integers(0, 256, (n, options, length), dtype=np.uint8)
    choices = rng.integers(0, options, n)
    _, _, _, received = session(
        lambda s: s.send_one_of(messages),
        lambda c: c.receive_one_of(choices, options, length),
        family="dual",
    )
    assert np.array_equal(received, messages[np.arange(n), choices])


def test_bit_triples():
    n = 4097
    _, mine, _, yours = session(
        lambda s: s.extend_bit_triples(n), lambda c: c.extend_bit_triples(n), family="dual"
    )
    a, b, c = (x ^ y for x, y in zip(mine, yours, strict=True))
    assert np.array_equal(c, a & b)
    for bits in (a, b, *mine, *yours):
        assert set(np.unique(bits)) == {0, 1}
        assert abs(bits.mean() - 0.5) < 0.05


@pytest.mark.parametrize("n", [1, 300])
def test_word_triples(n):
    _, mine, _, yours = session(
        lambda s: s.extend_word_triples(n), lambda c: c.extend_word_triples(n), family="dual"
    )
    a, b, c = (x + y for x, y in zip(mine, yours, strict=True))
    assert np.array_equal(c, a * b)
    assert len(np.unique(np.concatenate([*mine, *yours]))) == 6 * n


def test_no_ots_at_all():
    _, r, _, (choices, t) = session(lambda s: s.extend(0), lambda c: c.extend(0))
    assert r.shape == t.shape == (0, 2)
    assert choices.shape == (0,)


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda s: s.extend(-1), "n: found -1, expected 0 to"),
        (lambda s: s.extend(1.5), "expected an integer"),
        (lambda s: s.send(np.zeros((2, 3)), np.zeros((2, 3))), "zeros: found float64"),
        (lambda s: s.send(np.zeros((2, 3), "u1"), np.zeros((2, 4), "u1")), "expected equal"),
        (lambda s: s.send_one_of(np.zeros((2, 3), "u1")), r"\(n, options, length\)"),
        (lambda s: s.send_one_of(np.zeros((2, 1, 3), "u1")), "options: found 1"),
    ],
)
def test_what_a_sender_cannot_send(work, message):
    with pytest.raises(ArgumentError, match=message):
        work(Sender(Channel.pair(timeout=1)[0]))
