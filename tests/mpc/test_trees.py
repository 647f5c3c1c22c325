"""Tables of many entries, by trees: the kernels, the specification, and both parties together."""

import random as python_random

import numpy as np
import pytest

from mpc.test_tables import as_int, check, uniform, worst_bias
from nescio import _core
from nescio.errors import ArgumentError, ChannelError, MismatchError
from nescio.mpc import _tables
from nescio.mpc._tables import TREES_FROM, TableMaker
from nescio.mpc._transfers import Draw
from nescio.mpc._trees import Trees
from nescio.net import Channel
from ot.parties import together
from spec import lut_tree
from spec.blocks import to_bytes

POOL = _core.ThreadPool(1)
BITS = list(range(lut_tree.LOW_BITS + 1, 13))
TIERS = _core.supported_tiers()
BASE = bytes(range(16))


class Dealer:
    """Deals correlated transfers to both parties in clear, for the specification."""

    def __init__(self, seed):
        self.draw = python_random.Random(seed)
        self.deltas = [self.draw.getrandbits(128) | 1 for _ in range(2)]

    def block(self):
        return self.draw.getrandbits(128)

    def products(self, bits):
        """Returns both parties' shares of the product of an XOR of two bits."""
        sent = [lut_tree.cleared(self.block()) for _ in range(2)]
        got = [sent[1 - p] ^ bits[p] * self.deltas[1 - p] for p in range(2)]
        return [lut_tree.product_share(bits[p], self.deltas[p], sent[p], got[p]) for p in range(2)]

    def shares(self, value):
        mask = self.block()
        return [mask, mask ^ value]


def planted(dealer, path):
    """Returns shares of all products of a path, and the parties' first nodes."""
    bits = [(dealer.draw.getrandbits(1), bit) for bit in path]
    products = [dealer.products((own, own ^ bit)) for own, bit in bits]
    nodes = [lut_tree.first_level(p, dealer.deltas[p], products[0][p]) for p in range(2)]
    return products, nodes


# ---- the specification ---------------------------------------------------------------------------


@pytest.mark.parametrize("bits", BITS)
def test_vectors_of_the_specification_are_one_at_the_place(bits):
    dealer = Dealer(bits)
    for table in range(4):
        place = dealer.draw.randrange(1 << bits)
        path = lut_tree.path(place, bits)
        products, nodes = planted(dealer, path)
        secret = lut_tree.cleared(dealer.deltas[0] ^ dealer.deltas[1]) | 1
        for level in range(1, len(path) + 1):
            expected = [0] * (1 << level)
            expected[place >> bits - level] = secret
            assert [a ^ b for a, b in zip(*nodes, strict=True)] == expected
            key = lut_tree.level_key(BASE, table, level)
            if level == len(path):
                break
            correction = 0
            for p in range(2):
                product, delta = products[level][p], dealer.deltas[p]
                correction ^= lut_tree.node_share(p, nodes[p], delta, product, key)
            nodes = [lut_tree.grow(own, correction, key) for own in nodes]
        low = dealer.shares(1 << place % (1 << lut_tree.LOW_BITS))
        parts = [lut_tree.leaf_share(nodes[p], low[p], key) for p in range(2)]
        vectors = [lut_tree.vector(own, parts[0] ^ parts[1], key) for own in nodes]
        assert vectors[0] ^ vectors[1] == 1 << place


# ---- the kernels and the specification -----------------------------------------------------------


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("level", range(1, 6))
def test_kernels_are_those_of_the_specification(level, tier):
    """More tables than share a key, and arrays with more words than the nodes have."""
    random, count, size = np.random.default_rng(level), 67, 1 << level
    nodes = uniform(random, count, 4 * size + 2)
    corrections = uniform(random, count, 2)
    found = []
    for at_leaves in (False, True):
        own = nodes.copy()
        sums, controls = _core.lut_expand_trees(level, at_leaves, BASE, own, POOL, tier)
        _core.lut_correct_trees(level, at_leaves, corrections, controls, own, POOL)
        found.append(own)
    grown, leaves = found
    for table in range(count):
        own = [as_int(nodes[table, 2 * j : 2 * j + 2]) for j in range(size)]
        key = lut_tree.level_key(BASE, table, level)
        correction = as_int(corrections[table])
        assert as_int(sums[table]) == lut_tree.leaf_share(own, 0, key)
        children = lut_tree.grow(own, correction, key)
        assert grown[table, : 4 * size].tobytes() == b"".join(map(to_bytes, children))
        vector = lut_tree.vector(own, correction, key)
        assert as_int(leaves[table, : 2 * size]) == vector
    assert np.array_equal(grown[:, 4 * size :], nodes[:, 4 * size :])
    assert np.array_equal(leaves[:, 2 * size :], nodes[:, 2 * size :])


@pytest.mark.parametrize("tier", TIERS)
def test_many_trees_are_as_few(tier):
    random, level, count = np.random.default_rng(3), 4, 3001
    nodes, corrections = uniform(random, count, 64), uniform(random, count, 2)
    found = []
    for threads in (1, 3):
        own, pool = nodes.copy(), _core.ThreadPool(threads)
        sums, controls = _core.lut_expand_trees(level, False, BASE, own, pool, tier)
        _core.lut_correct_trees(level, False, corrections, controls, own, pool)
        found.append((sums, controls, own))
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("bits", BITS)
def test_a_party_is_that_of_the_specification(bits):
    """Its nodes, and its messages on each level, for messages of the other that are any blocks."""
    dealer, random = Dealer(bits), np.random.default_rng(bits)
    levels, count = bits - lut_tree.LOW_BITS, 3
    products = uniform(random, levels, count, 2)
    others, low = uniform(random, levels, count, 2), uniform(random, count, 2)
    for p in range(2):
        delta = lut_tree.with_lowest_bit(dealer.deltas[p], 1 - p)
        memory = np.zeros((count, 2 << levels), np.uint64)
        block = np.frombuffer(to_bytes(delta), np.uint64)
        trees = Trees(memory, products, block, BASE, POOL)
        nodes = [lut_tree.first_level(p, delta, as_int(one)) for one in products[0]]
        for level in range(1, levels + 1):
            message = trees.message(low).view(np.uint64).reshape(count, 2)
            key = lut_tree.level_key(BASE, 0, level)
            last = level == levels
            for i in range(count):
                if last:
                    own = lut_tree.leaf_share(nodes[i], as_int(low[i]), key)
                else:
                    product = as_int(products[level, i])
                    own = lut_tree.node_share(p, nodes[i], delta, product, key)
                assert as_int(message[i]) == own
                correction = own ^ as_int(others[level - 1, i])
                if last:
                    nodes[i] = lut_tree.vector(nodes[i], correction, key)
                else:
                    nodes[i] = lut_tree.grow(nodes[i], correction, key)
            trees.read(others[level - 1].reshape(-1).view(np.uint8))
        assert [as_int(one) for one in memory] == nodes


def test_products_of_transfers():
    """Shares of bits times the secret block, whose lowest bit is one."""
    levels, count = 3, 200

    def run(role):
        def work(channel):
            is_server = role == "server"
            draw = Draw(channel, is_server=is_server, threads=1)
            bits = np.random.default_rng(4).integers(0, 2, (levels, count), np.uint8)
            return draw.products(levels, count, list(bits) if is_server else [])

        return work

    (mine, p0, d0), (other, p1, d1) = together(run("server"), run("client"))
    bits = np.array(mine) ^ np.array(other)
    assert 0.4 < bits.mean() < 0.6
    delta = d0 ^ d1
    assert delta[0] & np.uint64(1) == 1
    assert np.array_equal(p0 ^ p1, bits[..., np.newaxis].astype(np.uint64) * delta)


@pytest.mark.parametrize(
    ("level", "base", "words", "said"),
    [
        (0, BASE, 64, "a level of trees: found 0, expected 1 to 5"),
        (6, BASE, 256, "a level of trees: found 6, expected 1 to 5"),
        (5, BASE, 127, "words of a tree: found 127, expected at least 128"),
        (5, BASE[1:], 128, "the base of keys: found 15 bytes, expected 16"),
    ],
)
def test_arrays_that_do_not_fit(level, base, words, said):
    nodes = np.zeros((2, words), np.uint64)
    with pytest.raises(ArgumentError, match=said):
        _core.lut_expand_trees(level, False, base, nodes, POOL)


@pytest.mark.parametrize("counts", [(3, 2), (2, 3)])
def test_corrections_of_other_tables(counts):
    corrections, controls = np.zeros((counts[0], 2), np.uint64), np.zeros(counts[1], np.uint32)
    with pytest.raises(ArgumentError, match="arrays of transfers: found 3 lines, expected 2"):
        _core.lut_correct_trees(1, False, corrections, controls, np.zeros((2, 8), np.uint64), POOL)


# ---- both parties --------------------------------------------------------------------------------


def made(count, bits, channels=None, trees_from=(TREES_FROM, TREES_FROM)):
    def run(role, smallest):
        def work(channel):
            with TableMaker(channel, role, threads=1, trees_from=smallest) as maker:
                return maker.make(count, bits)

        return work

    runs = [run(*pair) for pair in zip(("server", "client"), trees_from, strict=True)]
    return together(*runs, channels)


def test_tables_of_several_batches(monkeypatch):
    monkeypatch.setattr(_tables, "_BATCH", 100)
    server, client = made(250, 10)
    places = check(server, client, 10)
    assert len(np.unique(places)) > 180


@pytest.mark.parametrize("trees_from", [8, 13])
def test_tables_of_8_and_12_bits_either_way(trees_from):
    for bits in (8, 12):
        check(*made(70, bits, None, (trees_from, trees_from)), bits)


@pytest.mark.parametrize(("bits", "most"), [(9, 140), (10, 175), (12, 250)])
def test_large_tables_take_few_bytes_and_turns(bits, most):
    channels, count = Channel.pair(), 8_000

    def run(role):
        def work(channel):
            with TableMaker(channel, role, threads=1) as maker:
                maker.make(64, bits)
                before = channel.counts.sent_bytes, channel.counts.rounds
                maker.make(count, bits)
                after = channel.counts.sent_bytes, channel.counts.rounds
                return [b - a for a, b in zip(before, after, strict=True)]

        return work

    (sent, rounds), (other, _) = together(run("server"), run("client"), channels)
    assert (sent + other) / count < most
    assert rounds <= 5 + 6 + 2  # as many as for 8 bits, and the two extensions of the products


def test_parties_that_make_them_in_different_ways():
    with pytest.raises(MismatchError, match="different methods or pass different sizes"):
        made(100, 10, Channel.pair(timeout=20), (9, 11))


@pytest.mark.parametrize("smallest", [7, 14])
def test_sizes_that_no_trees_have(smallest):
    with pytest.raises(ArgumentError, match="trees_from"):
        TableMaker(Channel.pair()[0], "server", trees_from=smallest)


@pytest.mark.parametrize(
    ("sender", "kind", "frame"),
    [(1, "TKEY", 1), (0, "TABL", 1), (1, "TABL", 2), (0, "TABL", 4), (1, "TABL", 5)],
)
def test_a_frame_of_another_length_ends_both_parties(sender, kind, frame):
    """The last byte of a key, of a tree's first message, or of its last one, is missing."""
    channels = Channel.pair(timeout=20)
    send, seen = channels[sender].send, []

    def cutting(own, data):
        seen.append(own)
        short = own == kind and seen.count(kind) == frame
        send(own, bytes(memoryview(data))[: -1 if short else None])

    channels[sender].send = cutting
    with pytest.raises((MismatchError, ChannelError), match=f"expected frame [0-9]+, {kind}, of"):
        made(300, 10, channels)
    assert channels[1 - sender].closed


@pytest.mark.parametrize("leaver", [0, 1])
def test_a_party_that_vanishes_ends_the_other(leaver):
    channels = Channel.pair(timeout=20)
    leaving = channels[leaver]
    send, seen = leaving.send, []

    def sending(kind, data):
        seen.append(kind)
        if seen.count("TABL") == 2:
            leaving.close()
        send(kind, data)

    leaving.send = sending
    with pytest.raises(ChannelError):
        made(300, 10, channels)
    assert all(channel.closed for channel in channels)


# ---- secrecy -------------------------------------------------------------------------------------


def corrections_of(monkeypatch, count, bits):
    """Returns the blocks that both parties' messages open, as bits, for each level, and places."""
    messages, frames = {}, []
    write = Trees.message

    def keeping(self, vectors):
        message = write(self, vectors)
        messages.setdefault(id(self), []).append(message)
        kept.append(self)  # so that no two have one number
        return message

    kept = []
    monkeypatch.setattr(Trees, "message", keeping)
    channels = Channel.pair()
    for channel in channels:
        send = channel.send
        channel.send = lambda kind, data, send=send: (frames.append(bytes(data)), send(kind, data))
    server, client = made(count, bits, channels)
    for own in messages.values():
        assert all(any(message.tobytes() in frame for frame in frames) for message in own)
    first, second = messages.values()
    opened = [np.unpackbits(a ^ b, bitorder="little") for a, b in zip(first, second, strict=True)]
    places = (server.offsets + client.offsets) % (1 << bits)
    return [one.reshape(count, 128) for one in opened], places


def test_what_the_parties_open_does_not_depend_on_the_places(monkeypatch):
    """Each bit is a fair coin, whatever a bit of the place is."""
    opened, places = corrections_of(monkeypatch, 20_000, 10)
    assert len(opened) == 3
    for blocks in opened:
        for number in range(10):
            assert worst_bias(blocks, places >> number & 1) < 5.5


def test_pairs_of_opened_blocks_are_independent(monkeypatch):
    """A block would repeat, or differ by the secret block, if a mask were used twice."""
    opened, places = corrections_of(monkeypatch, 20_000, 10)
    for bit in range(7, 10):
        for one, other in ((0, 1), (1, 2), (0, 2)):
            assert worst_bias(opened[one] ^ opened[other], places >> bit & 1) < 5.5
        neighbors = opened[1][1:] ^ opened[1][:-1]
        assert worst_bias(neighbors, places[1:] >> bit & 1) < 5.5


def test_the_statistic_finds_a_planted_leak(monkeypatch):
    """Without their hashes the parties open a bit of the path, and the vector of the low bits."""

    expand = _core.lut_expand_trees

    def leaking(*arguments):
        sums, controls = expand(*arguments)
        return np.zeros_like(sums), controls

    monkeypatch.setattr(_core, "lut_expand_trees", leaking)
    opened, places = corrections_of(monkeypatch, 2_000, 10)
    for level, blocks in enumerate(opened):
        assert worst_bias(blocks, places >> 8 - level & 1) > 20
