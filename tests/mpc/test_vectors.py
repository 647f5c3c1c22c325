"""The vectors of one-time tables and their lookups in every tier."""

import json
from pathlib import Path

import numpy as np
import pytest

from nescio import _core
from nescio.mpc._activation import Activation, ClientLookups, ServerLookups
from nescio.mpc._tables import Tables
from nescio.mpc._trees import Trees
from vectors import make_lut

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "lut.json").read_text())
POOL = _core.ThreadPool(1)


@pytest.fixture(params=VECTORS["tables"], ids=lambda case: f"{case['bits']}-{case['outputs']}")
def case(request):
    return request.param


def words(number, bits):
    """Returns a number as one row of words."""
    size = 8 * max(1, -(-bits // 64))
    return np.frombuffer(int(number).to_bytes(size, "little"), np.uint64)[None].copy()


def test_the_specification_writes_the_vectors():
    assert make_lut.content() == VECTORS


def test_the_engine_reproduces_the_messages_of_transfers(case):
    for one in case["transfers"]:
        field = one["entries"], one["product"], one["shift"]
        size = one["entries"] + one["product"]
        zero, last, message = (words(n, size) for n in (*one["pads"], one["message"]))
        share, numbers = words(one["share"], size), np.zeros((2, 1), np.uint32)
        bit, choice = (np.array([one[name]], np.uint8) for name in ("bit", "choice"))
        sent = _core.lut_write_message(field, share, bit, zero, last, numbers[0], POOL)
        assert sent.tobytes() == message.tobytes()[: -(-size // 8)]
        chosen = last if one["choice"] else zero
        entries = _core.lut_read_message(field, choice, chosen, sent, numbers[1], POOL)
        assert int(one["received"][0]) == int.from_bytes(entries.tobytes(), "little")
        assert numbers.ravel().tolist() == [one["sent"][1], one["received"][1]]


def test_the_engine_reproduces_the_growth_of_a_vector(case):
    first, *steps = case["growth"]
    share = words(first["share"], 1 << case["bits"])
    for level, step in enumerate(steps, 1):
        products = words(step["products"], max(128, 1 << level))
        bit = np.array([step["bit"]], np.uint8)
        _core.lut_grow(level, bit, np.zeros_like(products), products, share, POOL)
        assert int.from_bytes(share.tobytes(), "little") == int(step["share"])


def tables_of(case, party):
    own = [one["tables"][party] for one in case["lookups"]]
    numbers = [[table[name] for table in own] for name in ("offset", "mask")]
    return Tables(
        case["bits"],
        np.concatenate([words(table["one_hot"], 1 << case["bits"]) for table in own]),
        *(np.array(one, np.uint16) for one in numbers),
        np.array([table["dabits"] for table in own], np.uint32).T.copy(),
    )


def column(case, name):
    return np.array([one[name] for one in case["lookups"]], np.uint32)


def test_both_parties_reproduce_the_lookups(case):
    entries, bits = np.array(case["entries"]), case["bits"]
    activation = Activation(
        lambda places: entries[places % (1 << bits)], bits=bits, outputs=case["outputs"]
    )
    dithers = column(case, "dither")
    server, client = (tables_of(case, party) for party in (0, 1))
    asking = ClientLookups(activation, client, case["shift"], dithers, POOL)
    serving = ServerLookups(activation, server, case["shift"], asking.places, POOL)
    asked = serving.turn(column(case, "value") - dithers)
    answered = asking.turn(asked, column(case, "mask"))
    parts = [
        [one[name][party] for one in case["lookups"]]
        for name, party in (("places", 1), ("places", 0), ("masked", 0), ("masked", 1))
    ]
    packed = [
        _core.lut_pack(width, np.array(part, np.uint16)).tobytes()
        for width, part in zip((bits, bits, *[case["outputs"]] * 2), parts, strict=True)
    ]
    assert asking.places.tobytes() == packed[0]
    assert asked.tobytes() == packed[1] + packed[2]
    assert answered.tobytes() == packed[3] + column(case, "client_number").tobytes()
    results = serving.results(answered) - column(case, "mask")
    assert results.tolist() == column(case, "result").tolist()
    x = column(case, "value")
    assert results.tolist() == activation.simulate(x, dithers, case["shift"])[0].tolist()


@pytest.mark.parametrize("tier", _core.supported_tiers())
def test_every_tier_looks_up_the_same(case, tier):
    entries, bits = np.array(case["entries"]), case["bits"]
    activation = Activation(
        lambda places: entries[places % (1 << bits)], bits=bits, outputs=case["outputs"]
    )
    opened = np.array([sum(one["places"]) % (1 << bits) for one in case["lookups"]], np.uint16)
    for party in (0, 1):
        tables = tables_of(case, party)
        found = _core.lut_look_up(bits, activation._twice, tables.one_hot, opened, POOL, tier)
        masked = found.astype(np.uint16) ^ tables.masks
        assert masked.tolist() == [one["masked"][party] for one in case["lookups"]]


def blocks(hexes):
    return np.frombuffer(bytes.fromhex("".join(hexes)), np.uint64).reshape(-1, 1, 2)


@pytest.mark.parametrize("tree", VECTORS["trees"], ids=lambda tree: str(tree["bits"]))
def test_both_parties_reproduce_the_trees(tree):
    """The tables before the one of the vector, which has its number, are zeros."""
    count, words = tree["table"] + 1, (1 << tree["bits"]) // 64
    vectors = []
    for party in (0, 1):
        products = np.repeat(blocks([pair[party] for pair in tree["products"]]), count, 1)
        low = np.repeat(blocks([tree["low"][party]])[0], count, 0)
        memory = np.zeros((count, words), np.uint64)
        delta = blocks([tree["deltas"][party]])[0, 0]
        trees = Trees(memory, products, delta, bytes.fromhex(tree["base"]), POOL)
        for pair in tree["messages"]:
            message = trees.message(low)
            assert message[-16:].tobytes().hex() == pair[party]
            others = np.zeros((count, 16), np.uint8)
            others[-1] = np.frombuffer(bytes.fromhex(pair[1 - party]), np.uint8)
            trees.read(others.reshape(-1))
        assert memory[-1].tobytes().hex() == tree["vectors"][party]
        vectors.append(memory[-1].copy())
    one_hot = int.from_bytes((vectors[0] ^ vectors[1]).tobytes(), "little")
    assert one_hot == 1 << tree["place"]
