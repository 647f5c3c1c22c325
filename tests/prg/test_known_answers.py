"""The primitives under the generators against their standards, and the generators against the
executable specification."""

import numpy as np
import pytest

from nescio import _core
from spec import prg


def raw(data: bytes):
    return np.frombuffer(data, np.uint8)


# FIPS 197, appendix B and appendix C.1; NIST SP 800-38A, F.1.1 (ECB-AES128.Encrypt).
AES_ANSWERS = [
    (
        "2b7e151628aed2a6abf7158809cf4f3c",
        "3243f6a8885a308d313198a2e0370734",
        "3925841d02dc09fbdc118597196a0b32",
    ),
    (
        "000102030405060708090a0b0c0d0e0f",
        "00112233445566778899aabbccddeeff",
        "69c4e0d86a7b0430d8cdb78070b4c55a",
    ),
    (
        "2b7e151628aed2a6abf7158809cf4f3c",
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
        "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf"
        "43b1cd7f598ece23881b00e3ed0306887b0c785e27e8ad3f8223207104725dd4",
    ),
]


@pytest.mark.parametrize(("key", "plain", "cipher"), AES_ANSWERS)
def test_aes128_gives_the_standards_answers(key, plain, cipher, tier):
    found = _core.aes128_encrypt(raw(bytes.fromhex(key)), raw(bytes.fromhex(plain)), tier)
    assert found.tobytes().hex() == cipher


@pytest.mark.parametrize(("key", "plain", "cipher"), AES_ANSWERS)
def test_the_specifications_aes128_gives_the_standards_answers(key, plain, cipher):
    blocks = [bytes.fromhex(plain)[i : i + 16] for i in range(0, len(plain) // 2, 16)]
    found = b"".join(prg.aes128_encrypt(bytes.fromhex(key), block) for block in blocks)
    assert found.hex() == cipher


# RFC 8439, section 2.3.2: key 00 01 .. 1f, counter 1, nonce 00 00 00 09 00 00 00 4a 00 00 00 00.
CHACHA_STATE = (
    "657870616e642033322d62797465206b000102030405060708090a0b0c0d0e0f101112131415161718191a1b"
    "1c1d1e1f01000000000000090000004a00000000"
)
CHACHA_OUTPUT = (
    "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4ed2826446079faa0914c2d705"
    "d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
)


def test_chacha20_gives_the_standards_answer():
    assert _core.chacha20_block(raw(bytes.fromhex(CHACHA_STATE))).tobytes().hex() == CHACHA_OUTPUT


def test_the_specifications_chacha20_gives_the_standards_answer():
    state = bytes.fromhex(CHACHA_STATE)
    words = [int.from_bytes(state[i : i + 4], "little") for i in range(0, 64, 4)]
    output = b"".join(w.to_bytes(4, "little") for w in prg.chacha20_block(words))
    assert output.hex() == CHACHA_OUTPUT


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
