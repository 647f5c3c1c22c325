"""The generators against the executable specification, bit for bit, in every tier."""

import json
from pathlib import Path

import numpy as np
import pytest

import nescio.dpf
from nescio import _core
from nescio.errors import ArgumentError
from spec import prg

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "prg.json").read_text())


def raw(data: bytes):
    return np.frombuffer(data, np.uint8)


def test_the_package_has_all_specified_generators():
    assert tuple(prg.GENERATORS) == nescio.dpf.GENERATORS


@pytest.mark.parametrize("name", ["siphash", "highwayhash"])
def test_insecure_generators_need_their_prefix(name):
    message = f"'{name}' does not claim 128-bit security.*name it 'insecure_{name}'"
    with pytest.raises(ArgumentError, match=message):
        nescio.dpf.generate(5, domain=10, generator=name)


@pytest.mark.parametrize("leaves", [False, True], ids=["children", "leaves"])
@pytest.mark.parametrize("name", prg.GENERATORS)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 100])
def test_every_tier_agrees_with_the_specification(name, count, leaves, tier, rng):
    generator = prg.GENERATORS[name]
    width = 4 if leaves else generator.arity
    nodes, corrections = rng.bytes(16 * count), rng.bytes(16 * width)
    expected = b""
    for i in range(0, len(nodes), 16):
        node = nodes[i : i + 16]
        own = generator.leaf(node) if leaves else b"".join(generator.children(node))
        expected += prg.xor(own, corrections) if prg.control_bit(node) else own
    found = _core.generate_blocks(name, raw(nodes), raw(corrections), leaves, tier=tier)
    assert found.tobytes() == expected


@pytest.mark.parametrize("leaves", [False, True], ids=["children", "leaves"])
@pytest.mark.parametrize("name", prg.GENERATORS)
@pytest.mark.parametrize("group_bits", [0, 1, 2, 3, 4, 5])
def test_nodes_of_several_trees_get_their_own_corrections(name, leaves, group_bits, tier, rng):
    count = 45
    width = 4 if leaves else prg.GENERATORS[name].arity
    nodes = rng.bytes(16 * count)
    corrections = rng.bytes(16 * width * (((count - 1) >> group_bits) + 1))
    arguments = (name, raw(nodes), raw(corrections), leaves, group_bits, tier)
    found = _core.generate_blocks(*arguments).tobytes()
    for i in range(count):
        own = 16 * width * (i >> group_bits)
        node, correction = nodes[16 * i : 16 * i + 16], corrections[own : own + 16 * width]
        alone = _core.generate_blocks(name, raw(node), raw(correction), leaves, tier=tier)
        assert found[16 * width * i : 16 * width * (i + 1)] == alone.tobytes()


@pytest.mark.parametrize(
    "case", VECTORS, ids=lambda case: f"{case['generator']}-{case['node'][:8]}"
)
def test_vector(case, tier):
    generator = prg.GENERATORS[case["generator"]]
    assert (generator.number, generator.arity) == (case["number"], len(case["children"]))
    node = raw(bytes.fromhex(case["node"]))
    for leaves, expected in ((False, "".join(case["children"])), (True, case["leaf"])):
        zeros = np.zeros(len(expected) // 2, np.uint8)
        found = _core.generate_blocks(generator.name, node, zeros, leaves, tier=tier)
        assert found.tobytes().hex() == expected
