"""IKNP: comparison with the specification, and malicious parties."""

from functools import cache

import numpy as np
import pytest

from nescio.errors import ArgumentError, ConsistencyError, MalformedMessageError
from nescio.ot import _iknp
from nescio.ot._iknp import MAX_SEEDS, seed_receiver, seed_sender
from nescio.ot._randomness import SystemRandomness, insecure_seeded
from ot.loopback import run_both
from spec import ot_base, ot_iknp

COINS = SystemRandomness()


@pytest.fixture
def delta(rng):
    value = rng.integers(0, 2**64, 2, np.uint64, endpoint=False)
    value[0] |= np.uint64(1)
    return value


def run(delta, count, malicious, coins=(COINS, COINS), tamper=(None, None), other_count=None):
    return run_both(
        lambda channel: seed_sender(channel, delta, count, coins[0], malicious, session=b""),
        lambda channel: seed_receiver(
            channel, other_count or count, coins[1], malicious, session=b""
        ),
        *tamper,
    )


def errors_of(sender, receiver, delta):
    """Computes r ^ t ^ x delta as bits, zero for correct transfers."""
    choices, t = receiver.get()
    wrong = sender.get() ^ t ^ choices[:, None].astype(np.uint64) * delta
    return np.unpackbits(wrong.view(np.uint8), axis=1, bitorder="little")


def integers(blocks):
    return [int(low) | int(high) << 64 for low, high in blocks]


# ---- Correct results -----------------------------------------------------------------------------


@pytest.mark.parametrize("malicious", [False, True])
@pytest.mark.parametrize("count", [1, 127, 128, 1000])
def test_the_correlation_holds(delta, count, malicious):
    sender, receiver = run(delta, count, malicious)
    r, (choices, t) = sender.get(), receiver.get()
    assert (r.shape, t.shape, choices.shape) == ((count, 2), (count, 2), (count,))
    assert (r.dtype, t.dtype, choices.dtype) == (np.uint64, np.uint64, np.uint8)
    assert r.flags.c_contiguous
    assert t.flags.c_contiguous
    assert not errors_of(sender, receiver, delta).any()
    assert not (r[:, 0] & np.uint64(1)).any()
    assert ((t[:, 0] & np.uint64(1)) == choices).all()


def test_choices_and_blocks_are_balanced(delta):
    count = 4096
    sender, receiver = run(delta, count, malicious=True)
    choices, _ = receiver.get()
    bits = np.unpackbits(sender.get().view(np.uint8), axis=1, bitorder="little")[:, 1:]
    # Six standard deviations: a false alarm in one of some million runs.
    assert abs(choices.mean() - 0.5) < 6 * 0.5 / count**0.5
    assert (abs(bits.mean(axis=0) - 0.5) < 6 * 0.5 / count**0.5).all()
    assert len(np.unique(sender.get(), axis=0)) == count


BASE_COINS = 16 + 128 * 128, 16 + 64  # bytes that base OTs draw: receiver's, sender's


@cache
def specified_base(number, names):
    """Runs the base OTs of a session: hello, reply, and the keys of both parties."""
    coins = [insecure_seeded(name).draw for name in names]
    sender = ot_base.Sender(coins[1])
    bits = [number >> j & 1 for j in range(128)]
    reply, chosen = ot_base.receive(coins[0], bits, sender.hello())
    return sender.hello(), reply, chosen, sender.keys(128, reply)


@pytest.mark.parametrize("malicious", [False, True])
def test_a_transcript_is_that_of_the_specification(delta, malicious):
    count, names = 21, (b"sender", b"receiver")
    sender, receiver = run(delta, count, malicious, [insecure_seeded(name) for name in names])
    coins = [insecure_seeded(name).draw for name in names]
    number = integers([delta])[0]

    hello, reply, chosen, keys = specified_base(number, names)
    for draw, spent in zip(coins, BASE_COINS, strict=True):
        draw(spent)
    rows = ot_iknp.rows_for(count, malicious)
    second = ot_iknp.Receiver(keys, coins[1](rows // 8), rows)
    first = ot_iknp.Sender(chosen, number, second.columns(), rows)
    sent = [("OTBR", frame) for frame in ot_base.frames(reply)]
    answered = [("OTBS", hello), ("OTSU", second.columns())]
    if malicious:
        sent.append(("OTSC", coins[0](16)))
        answered.append(("OTSP", second.proof(sent[-1][1])))
        assert first.accepts(sent[-1][1], answered[-1][1])

    assert (sender.sent, receiver.sent) == (sent, answered)
    assert integers(sender.get()) == first.output(count, malicious)
    choices, t = receiver.get()
    assert (choices.tolist(), integers(t)) == second.output(count, malicious)


BASE_FRAMES = [16 + 64 * 32] + [64 * 32] * 3


def test_columns_belong_to_their_session(monkeypatch):
    """A sender that chooses chi learns 128 bits of a column, to search the column's key for."""
    monkeypatch.setattr(_iknp, "COLUMNS", 2)
    keys = np.frombuffer(bytes(range(16)) * 2, np.uint8).reshape(2, 16)
    columns = [_iknp._columns(keys, 64, session).tobytes() for session in (b"a", b"b", b"a")]
    assert columns[0] == columns[2] != columns[1]
    expected = ot_iknp.column(0, keys[0].tobytes(), 64, b"a")
    assert columns[0][:8] == ot_iknp.pack(expected)


@pytest.mark.parametrize(
    ("malicious", "sent", "answered"),
    [
        (False, BASE_FRAMES, [48, 16 * 3000]),
        (True, [*BASE_FRAMES, 16], [48, 16 * (3000 + 128), 16 * 129]),
    ],
)
def test_the_bytes_on_the_wire(delta, malicious, sent, answered):
    sender, receiver = run(delta, 3000, malicious)
    assert [len(data) for _, data in sender.sent] == sent
    assert [len(data) for _, data in receiver.sent] == answered


# ---- Malicious receivers -------------------------------------------------------------------------


def flip(columns, row, rows):
    """Changes `columns` so that one has a different choice in one row."""

    def tamper(kind, data):
        if kind != "OTSU":
            return data
        sent = np.frombuffer(data, np.uint8).reshape(128, rows // 8).copy()
        for column in columns:
            sent[column, row // 8] ^= 1 << row % 8
        return sent.tobytes()

    return tamper


def column_where(delta, bit):
    bits = np.unpackbits(delta.view(np.uint8), bitorder="little")
    return next(j for j in range(1, 128) if bits[j] == bit)


@pytest.mark.parametrize("bit", [0, 1])
def test_unchecked_a_receiver_reads_delta_off_wrong_transfers(delta, bit):
    column = column_where(delta, bit)
    sender, receiver = run(delta, 64, False, tamper=(None, flip([column], 5, 64)))
    wrong = errors_of(sender, receiver, delta)
    assert wrong[5, column] == bit
    assert wrong.sum() == bit


def test_a_receiver_with_another_choice_in_one_column_is_caught(delta):
    column = column_where(delta, 1)
    sender, _ = run(delta, 64, True, tamper=(None, flip([column], 128 + 5, 192)))
    with pytest.raises(ConsistencyError, match="found columns with different choices, expected"):
        sender.get()


def test_a_receiver_that_guesses_a_bit_of_delta_passes_and_gains_nothing_else(delta):
    """Correlated transfers allow this; a wrong guess ends the session and the use of delta."""
    column = column_where(delta, 0)
    sender, receiver = run(delta, 64, True, tamper=(None, flip([column], 128 + 5, 192)))
    assert not errors_of(sender, receiver, delta).any()


@pytest.mark.parametrize("bit", [0, 1])
def test_a_receiver_that_bends_its_proof_must_guess_as_well(delta, bit):
    """The receiver answers for one column as if that bit of delta were one."""
    column, row, seen = column_where(delta, bit), 128 + 5, []
    spoil = flip([column], row, 192)

    def keep(kind, data):
        seen.append(data)
        return data

    def bend(kind, data):
        if kind != "OTSP":
            return spoil(kind, data)
        error = [int(i == row) for i in range(192)]
        bent = ot_iknp.column_hash(error, int.from_bytes(seen[-1], "little"))
        place = slice(16 * (1 + column), 16 * (2 + column))
        hashed = int.from_bytes(data[place], "little") ^ bent
        return data[: place.start] + hashed.to_bytes(16, "little") + data[place.stop :]

    sender, receiver = run(delta, 64, True, tamper=(keep, bend))
    if bit:
        assert errors_of(sender, receiver, delta).sum() == 1  # which it knows
    else:
        with pytest.raises(ConsistencyError):
            sender.get()


def test_a_receiver_that_would_have_to_guess_many_bits_is_caught(delta):
    sender, _ = run(delta, 64, True, tamper=(None, flip(range(1, 65), 128 + 63, 192)))
    with pytest.raises(ConsistencyError):  # except for one delta in 2^64
        sender.get()


def test_a_receiver_that_cheats_in_the_rows_of_the_check_is_caught(delta):
    column = column_where(delta, 1)
    sender, _ = run(delta, 64, True, tamper=(None, flip([column], 0, 192)))
    with pytest.raises(ConsistencyError):
        sender.get()


@pytest.mark.parametrize("place", [0, 15, 16, 16 * 129 - 1])
def test_a_wrong_proof_is_refused(delta, place):
    def tamper(kind, data):
        if kind != "OTSP":
            return data
        return data[:place] + bytes([data[place] ^ 0x80]) + data[place + 1 :]

    sender, _ = run(delta | np.uint64(2**63), 64, True, tamper=(None, tamper))
    with pytest.raises(ConsistencyError):
        sender.get()


# ---- Malicious senders ---------------------------------------------------------------------------


@pytest.mark.parametrize("challenge", [bytes(16), b"\1" + bytes(15), b"\xff" * 16])
def test_a_sender_learns_no_choice_whatever_its_challenge_is(delta, challenge):
    """The proof's hash of the choices is masked by bits without another use."""

    def tamper(kind, data):
        return challenge if kind == "OTSC" else data

    _, receiver = run(delta, 256, True, (COINS, insecure_seeded(b"r")), (tamper, None))
    coins = insecure_seeded(b"r")
    coins.draw(16 + 64)
    mask, rest = coins.draw(16), coins.draw(32)
    found = int.from_bytes(receiver.sent[-1][1][:16], "little")
    unmasked = ot_iknp.column_hash(
        ot_iknp.bits(bytes(16) + rest), int.from_bytes(challenge, "little")
    )
    assert found == unmasked ^ int.from_bytes(mask, "little")
    choices, _ = receiver.get()
    assert choices.tolist() == ot_iknp.bits(rest)


def test_a_sender_that_draws_a_bad_point_is_caught(delta):
    """A sender sends only points before the challenge, which the base transfers check."""

    def tamper(kind, data):
        return data[:16] + ot_base.encode(ot_base.IDENTITY) + data[48:] if kind == "OTBR" else data

    _, receiver = run(delta, 64, True, tamper=(tamper, None))
    with pytest.raises(MalformedMessageError, match="point 0 of transfer 0"):
        receiver.get()
    assert [kind for kind, _ in receiver.sent] == ["OTBS"]


# ---- Bad input -----------------------------------------------------------------------------------


def test_parties_that_want_different_counts_or_checks_end_in_an_error(delta):
    sender, _ = run(delta, 64, False, other_count=128)
    with pytest.raises(MalformedMessageError, match="OTSU of 2048 bytes, expected OTSU of 1024"):
        sender.get()
    sender, _ = run_both(
        lambda channel: seed_sender(channel, delta, 64, COINS, True, session=b""),
        lambda channel: seed_receiver(channel, 64, COINS, False, session=b""),
    )
    with pytest.raises(MalformedMessageError, match="OTSU of 1024 bytes, expected OTSU of 3072"):
        sender.get()


@pytest.mark.parametrize("kind", ["OTSC", "OTSP"])
def test_a_cut_frame_is_refused(delta, kind):
    def cut(found, data):
        return data[:-1] if found == kind else data

    outcomes = run(delta, 64, True, tamper=(cut, cut))
    with pytest.raises(MalformedMessageError, match=kind):
        outcomes[{"OTSC": 1, "OTSP": 0}[kind]].get()


@pytest.mark.parametrize("count", [0, -1, MAX_SEEDS + 1, 1.0, True])
def test_counts_that_cannot_be_are_refused(delta, count):
    with pytest.raises(ArgumentError, match="count: found"):
        seed_sender(None, delta, count, COINS, True, session=b"")
    with pytest.raises(ArgumentError, match="count: found"):
        seed_receiver(None, count, COINS, True, session=b"")


@pytest.mark.parametrize(
    "delta",
    [
        np.zeros(2, np.uint64),
        np.array([2, 1], np.uint64),
        np.ones(2, np.int64),
        np.ones(3, np.uint64),
    ],
)
def test_a_delta_that_cannot_be_is_refused(delta):
    with pytest.raises(ArgumentError, match="delta: found"):
        seed_sender(None, delta, 8, COINS, True, session=b"")
