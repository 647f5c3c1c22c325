"""One-time tables: the kernels, the specification, and both parties together."""

import numpy as np
import pytest

from nescio import _core
from nescio.errors import ArgumentError, ChannelError, MismatchError
from nescio.mpc import _tables
from nescio.mpc._tables import TableMaker
from nescio.mpc._transfers import dabit_field, level_field
from nescio.net import Channel
from ot.parties import together
from spec import lut

POOL = _core.ThreadPool(1)
BITS = list(range(4, 13))


def uniform(random, *shape):
    return random.integers(0, 1 << 64, shape, np.uint64, endpoint=False)


def as_int(words):
    return int.from_bytes(np.ascontiguousarray(words).tobytes(), "little")


def packed(values, bits):
    """Packs numbers of any size one after the other."""
    joined = sum(value << i * bits for i, value in enumerate(values))
    return np.frombuffer(joined.to_bytes((len(values) * bits + 7) // 8, "little"), np.uint8)


def fields(bits):
    return [
        *(level_field(level, bits, bits) for level in range(bits)),
        dabit_field(0),
        dabit_field(11),
    ]


# ---- the kernels and the specification -----------------------------------------------------------


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("count", [1, 7, 70])
def test_messages_are_those_of_the_specification(bits, count):
    random = np.random.default_rng(bits)
    for field in fields(bits):
        words = max(1, field.pad_bytes // 8)
        zero, one, shares = (uniform(random, count, words) for _ in range(3))
        own, choices = random.integers(0, 2, (2, count), np.uint8)
        numbers = np.array(random.integers(0, 1 << 32, (2, count)), np.uint32)
        before = numbers.copy()
        pads = [
            lut.Pads(as_int(a), as_int(b), int(c))
            for a, b, c in zip(zero, one, choices, strict=True)
        ]
        expected = [
            lut.message(lut.Field(*field), as_int(share), int(bit), pad)
            for share, bit, pad in zip(shares, own, pads, strict=True)
        ]
        message = _core.lut_write_message(field, shares, own, zero, one, numbers[0], POOL)
        assert np.array_equal(message, packed(expected, field.entries + field.product))
        chosen = np.where(choices[:, None] == 1, one, zero)
        entries = _core.lut_read_message(field, choices, chosen, message, numbers[1], POOL)
        for i in range(count):
            _, add = lut.sent(lut.Field(*field), int(own[i]), pads[i])
            assert numbers[0, i] == (int(before[0, i]) + add) % (1 << 32)
            found, add = lut.received(lut.Field(*field), expected[i], pads[i])
            assert as_int(entries[i]) == found
            assert numbers[1, i] == (int(before[1, i]) + add) % (1 << 32)


@pytest.mark.parametrize("level", range(1, 12))
def test_vectors_grow_as_in_the_specification(level):
    random = np.random.default_rng(level)
    size, words = 1 << level, max(1, (1 << level) // 64)
    shares = np.zeros((9, max(1, 2 * size // 64)), np.uint64)
    shares[:, :words] = uniform(random, 9, words)
    if size < 64:
        shares &= np.uint64((1 << size) - 1)
    zero, received = uniform(random, 2, 9, max(2, words))
    bits = random.integers(0, 2, 9, np.uint8)
    expected = [
        lut.grow(level, as_int(share), int(bit), lut.low(as_int(one) ^ as_int(other), size - 1))
        for share, bit, one, other in zip(shares, bits, zero, received, strict=True)
    ]
    _core.lut_grow(level, bits, zero, received, shares, POOL)
    assert [as_int(share) for share in shares] == expected


def test_many_transfers_are_as_few():
    """Parts of a message end at bytes, whatever the threads do."""
    random, field, count = np.random.default_rng(3), level_field(5, 8, 8), 9001
    zero, one, shares = (uniform(random, count, 2) for _ in range(3))
    bits = random.integers(0, 2, count, np.uint8)
    whole = [
        _core.lut_write_message(field, shares, bits, zero, one, None, _core.ThreadPool(threads))
        for threads in (1, 3)
    ]
    assert np.array_equal(*whole)
    first = _core.lut_write_message(field, shares[:8], bits[:8], zero[:8], one[:8], None, POOL)
    assert np.array_equal(whole[0][: len(first)], first)


@pytest.mark.parametrize("bits", range(1, 17))
def test_packed_numbers(bits):
    numbers = np.random.default_rng(bits).integers(0, 1 << 16, 77, np.uint16)
    found = _core.lut_pack(bits, numbers)
    low = numbers & np.uint16((1 << bits) - 1)
    assert np.array_equal(found, packed(low.tolist(), bits))
    assert np.array_equal(_core.lut_unpack(bits, 77, found), low)


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda: _core.lut_pack(17, np.zeros(1, np.uint16)), "found 17 bits, expected 1 to 16"),
        (lambda: _core.lut_unpack(8, 3, np.zeros(2, np.uint8)), "found 2 bytes, expected 3"),
        (
            lambda: _core.lut_read_message(
                (127, 0, 7),
                np.zeros(2, np.uint8),
                np.zeros((2, 2), np.uint64),
                np.zeros(0, np.uint8),
                None,
                POOL,
            ),
            "a message of transfers: found 0 bytes, expected 32",
        ),
        (
            lambda: _core.lut_read_message(
                (127, 0, 7),
                np.zeros(2, np.uint8),
                np.zeros((2, 1), np.uint64),
                np.zeros(32, np.uint8),
                None,
                POOL,
            ),
            "pads: found 64 bits, expected 127",
        ),
    ],
)
def test_arrays_that_do_not_fit(work, said):
    with pytest.raises(ArgumentError, match=said):
        work()


# ---- both parties --------------------------------------------------------------------------------


def made(count, bits, outputs=None, channels=None):
    def run(role):
        def work(channel):
            with TableMaker(channel, role, threads=1) as maker:
                return maker.make(count, bits, outputs)

        return work

    return together(run("server"), run("client"), channels)


def check(server, client, bits):
    one_hot = np.unpackbits(
        (server.one_hot ^ client.one_hot).view(np.uint8), axis=1, bitorder="little"
    )
    places = (server.offsets + client.offsets) % (1 << bits)
    assert (one_hot.sum(1) == 1).all()
    assert np.array_equal(one_hot.argmax(1), places)
    masks = (server.masks ^ client.masks).astype(np.uint32)
    for number, (mine, other) in enumerate(zip(server.dabits, client.dabits, strict=True)):
        assert np.array_equal(mine + other, (masks >> number & 1) << number)
    return places


@pytest.mark.parametrize("bits", BITS)
def test_tables_of_all_sizes(bits):
    server, client = made(300, bits)
    places = check(server, client, bits)
    assert len(server) == len(server.masks) == 300
    assert len(np.unique(places)) > min(150, 1 << bits - 1)


def test_tables_of_several_batches_and_entries_of_other_bits(monkeypatch):
    monkeypatch.setattr(_tables, "_BATCH", 100)
    server, client = made(250, 6, 13)
    check(server, client, 6)
    assert server.dabits.shape == (13, 250)
    assert (server.masks ^ client.masks).max() >> 12  # all 13 bits are random


def test_no_tables():
    server, client = made(0, 8)
    assert len(server) == len(client) == 0


def test_tables_of_8_bits_take_at_most_100_bytes_and_5_turns():
    channels = Channel.pair()
    count = 20_000

    def run(role):
        def work(channel):
            with TableMaker(channel, role, threads=1) as maker:
                maker.make(64)
                before = channel.counts.sent_bytes, channel.counts.rounds
                maker.make(count)
                after = channel.counts.sent_bytes, channel.counts.rounds
                return [b - a for a, b in zip(before, after, strict=True)]

        return work

    (sent, rounds), (other, _) = together(run("server"), run("client"), channels)
    extensions = 6  # announcements and messages of the two OT sessions
    assert (sent + other) / count < 100
    assert rounds <= 5 + extensions


def test_parties_that_ask_for_other_tables(tmp_path):
    channels = Channel.pair(timeout=20)

    def run(role, count):
        def work(channel):
            with TableMaker(channel, role, threads=1) as maker:
                maker.make(count)

        return work

    with pytest.raises(MismatchError, match="different methods or pass different sizes"):
        together(run("server", 100), run("client", 101), channels)


@pytest.mark.parametrize(("role", "frames"), [("server", 8), ("client", 9)])
def test_a_party_that_vanishes_ends_the_other(role, frames):
    """Both threads end, and the maker is closed: nothing is used twice."""
    channels = Channel.pair(timeout=20)
    left = [frames]
    leaving = channels[0 if role == "server" else 1]
    send = leaving.send

    def sending(kind, data):
        left[0] -= 1
        if not left[0]:
            leaving.close()
        send(kind, data)

    leaving.send = sending
    kept = []

    def run(role):
        def work(channel):
            maker = TableMaker(channel, role, threads=1)
            kept.append(maker)
            maker.make(500)

        return work

    with pytest.raises(ChannelError):
        together(run("server"), run("client"), channels)
    assert all(channel.closed for channel in channels)
    for maker in kept:
        with pytest.raises(ChannelError, match="has ended"):
            maker.make(1)


@pytest.mark.parametrize("options", [{"bits": 3}, {"bits": 13}, {"outputs": 17}, {"count": -1}])
def test_sizes_that_no_table_has(options):
    maker = TableMaker(Channel.pair()[0], "server", threads=1)
    with pytest.raises(ArgumentError):
        maker.make(**{"count": 1} | options)


def test_an_unknown_role():
    with pytest.raises(ArgumentError, match="expected 'server' or 'client'"):
        TableMaker(Channel.pair()[0], "helper")


# ---- secrecy -------------------------------------------------------------------------------------


def frames_of(count):
    """Returns the frames of tables that each party sent, and both parties' tables."""
    channels = Channel.pair()
    sent = ([], [])
    for channel, own in zip(channels, sent, strict=True):
        send = channel.send

        def recording(kind, data, send=send, own=own):
            if kind == "TABL":
                own.append(np.frombuffer(bytes(memoryview(data)), np.uint8))
            send(kind, data)

        channel.send = recording
    return sent, made(count, 8, None, channels)


def worst_bias(fields, secret):
    """Returns how far any bit of a field is from a fair coin, for both values of a secret bit.

    `fields` (n, bits) are of n tables. In standard deviations.
    """
    worst = 0.0
    for value in (0, 1):
        own = fields[secret == value]
        worst = max(worst, float(np.abs(own.mean(0) - 0.5).max()) * 2 * len(own) ** 0.5)
    return worst


def unmasked(frame, tables):
    """Removes the receiver's share of the vector from the message of the last bit: (n, 127)."""
    size = _core.lut_message_bytes((127, 0, 0), len(tables))
    bits = np.unpackbits(frame[-size:], bitorder="little")[: 127 * len(tables)]
    share = tables.one_hot[:, :2] ^ tables.one_hot[:, 2:]  # as it was without the last bit
    own = np.unpackbits(share.view(np.uint8), axis=1, bitorder="little")
    return bits.reshape(len(tables), 127) ^ own[:, :127]


def test_what_a_party_sees_does_not_depend_on_the_places():
    """Each bit is a fair coin, whatever a bit of the place is."""
    (by_server, by_client), (server, client) = frames_of(20_000)
    places = server.offsets + client.offsets
    for seen in (unmasked(by_server[-1], client), unmasked(by_client[-1], server)):
        for number in range(8):
            assert worst_bias(seen, places >> number & 1) < 5.5


def test_the_statistic_finds_a_planted_leak(monkeypatch):
    """A sender whose two pads are equal sends its share of the vector in clear."""
    write = _core.lut_write_message

    def leaking(field, shares, bits, zero, _one, numbers, pool):
        return write(field, shares, bits, zero, zero, numbers, pool)

    monkeypatch.setattr(_core, "lut_write_message", leaking)
    (by_server, _), (server, client) = frames_of(20_000)
    places = server.offsets + client.offsets
    assert worst_bias(unmasked(by_server[-1], client), places & 1) > 20
