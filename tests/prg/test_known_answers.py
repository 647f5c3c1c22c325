"""Known-answer tests of the primitives, for the engine and for the executable specification."""

import hashlib

import numpy as np
import pytest

from nescio import _core
from nescio.errors import ArgumentError
from spec import prg
from spec.hashes import highwayhash, sha256, siphash
from spec.streams import (
    Words,
    chacha_block,
    from_words,
    salsa20_expand,
    salsa20_hash,
    salsa20_stream,
    to_words,
)

COUNTED = bytes(range(64))


def raw(data: bytes):
    return np.frombuffer(data, np.uint8)


def generate(name, node, tier, *, leaves):
    """Expand one node with the engine."""
    zeros = np.zeros(16 * (4 if leaves else prg.GENERATORS[name].arity), np.uint8)
    return _core.generate_blocks(name, raw(node), zeros, leaves, tier=tier).tobytes()


# ---- AES-128 -------------------------------------------------------------------------------------

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


# ---- ChaCha --------------------------------------------------------------------------------------

# RFC 8439, section 2.3.2: key 00 01 .. 1f, counter 1, nonce 00 00 00 09 00 00 00 4a 00 00 00 00.
CHACHA_STATE = (
    "657870616e642033322d62797465206b000102030405060708090a0b0c0d0e0f101112131415161718191a1b"
    "1c1d1e1f01000000000000090000004a00000000"
)
CHACHA_OUTPUT = (
    "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4ed2826446079faa0914c2d705"
    "d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
)

# draft-strombergson-chacha-test-vectors-01, TC1: a 128-bit key of zeros and a nonce of zeros; the
# first two blocks of the keystream.
CHACHA_STREAMS = {
    "chacha8": (
        "e28a5fa4a67f8c5defed3e6fb7303486aa8427d31419a729572d777953491120"
        "b64ab8e72b8deb85cd6aea7cb6089a101824beeb08814a428aab1fa2c816081b",
        "8a26af448a1ba906368fd8c83831c18cec8ced811a028e675b8d2be8fce08116"
        "5ceae9f1d1b7a975497749480569ceb83de6a0a587d4984f19925f5d338e430d",
    ),
    "chacha12": (
        "e1047ba9476bf8ff312c01b4345a7d8ca5792b0ad467313f1dc412b5fdce3241"
        "0dea8b68bd774c36a920f092a04d3f95274fbeff97bc8491fcef37f85970b450",
        "1d43b61a8f7e19fceddef368ae6bfb11101bd9fd3e4d127de30db2db1b472e76"
        "426803a45e15b962751986ef1d9d50f598a5dcdc9fa529a28357991e784ea20f",
    ),
}


def test_chacha20_gives_the_standards_answer():
    state = bytes.fromhex(CHACHA_STATE)
    assert _core.chacha20_block(raw(state)).tobytes().hex() == CHACHA_OUTPUT
    assert from_words(chacha_block(to_words(state))).hex() == CHACHA_OUTPUT


def test_the_chacha20_stream_of_rfc_8439(tier):
    key, nonce = raw(COUNTED[:32]), raw(bytes.fromhex(CHACHA_STATE)[52:])
    assert _core.chacha20_stream(key, nonce, 1, 1, tier=tier).tobytes().hex() == CHACHA_OUTPUT


@pytest.mark.parametrize("first", [0, 5, 2**32 - 40])
def test_every_block_of_a_stream_agrees_with_the_specification(first, tier):
    key, nonce = COUNTED[:32], COUNTED[:12]
    words = [*to_words(b"expand 32-byte k"), *to_words(key)]
    for count in (1, 2, 7, 8, 9, 16, 17, 40):
        found = _core.chacha20_stream(raw(key), raw(nonce), first, count, tier=tier)
        blocks = [
            chacha_block([*words, counter, *to_words(nonce)])
            for counter in range(first, first + count)
        ]
        assert found.tobytes() == b"".join(map(from_words, blocks))


def test_numbers_of_a_stream_are_consecutive_bytes():
    stream = Words(COUNTED[:32], tuple(to_words(COUNTED[:12])))
    found = b"".join(stream.read(4).to_bytes(4, "little") for _ in range(40))
    expected = _core.chacha20_stream(raw(COUNTED[:32]), raw(COUNTED[:12]), 0, 3)
    assert found == expected.tobytes()[:160]


def test_a_stream_beyond_its_counter_is_refused():
    key, nonce = raw(bytes(32)), raw(bytes(12))
    for first, count in ((2**32, 1), (2**32 - 1, 2), (0, 2**32 + 1), (2**63, 2**63)):
        with pytest.raises(ArgumentError, match=r"2\^32 blocks"):
            _core.chacha20_stream(key, nonce, first, count)


@pytest.mark.parametrize("name", CHACHA_STREAMS)
def test_chacha_of_fewer_rounds_gives_the_published_answers(name, tier):
    zeros = bytes(16)
    children, leaf = CHACHA_STREAMS[name]
    assert generate(name, zeros, tier, leaves=False).hex() == children
    assert generate(name, zeros, tier, leaves=True).hex() == leaf
    assert b"".join(prg.GENERATORS[name].children(zeros)).hex() == children
    assert prg.GENERATORS[name].leaf(zeros).hex() == leaf


# ---- Salsa20 -------------------------------------------------------------------------------------

# The verified vectors of eSTREAM for keys of 128 bits and a nonce of zero: set 1, vector 0, and set
# 2, vector 0. The first 64 bytes.
SALSA20_STREAMS = {
    "80000000000000000000000000000000": (
        "4dfa5e481da23ea09a31022050859936da52fcee218005164f267cb65f5cfd7f"
        "2b4f97e0ff16924a52df269515110a07f9e460bc65ef95da58f740b7d1dbb0aa"
    ),
    "00000000000000000000000000000000": (
        "6513adaecfeb124c1cbe6bdaef690b4ffb00b0fcace33ce806792bb414801998"
        "34bfb1cfdd095802c6e95e251002989ac22ae588d32ae79320d9bd7732e00338"
    ),
}


@pytest.mark.parametrize("key", SALSA20_STREAMS)
def test_salsa20_gives_the_published_answers(key, tier):
    node, stream = bytes.fromhex(key), SALSA20_STREAMS[key]
    assert generate("salsa20", node, tier, leaves=False).hex() == stream
    assert salsa20_stream(node, 0).hex() == stream


def test_the_specifications_salsa20_counts_as_the_published_answers_do():
    # Set 1, vector 0: bytes 192 to 255, and the XOR of all blocks of the first 512 bytes.
    key = bytes.fromhex("80000000000000000000000000000000")
    assert salsa20_stream(key, 3).hex().startswith("da9c1581f429e0a00f7d67e23b730676")
    total = bytes(64)
    for counter in range(8):
        total = prg.xor(total, salsa20_stream(key, counter))
    assert total.hex() == (
        "f7a274d268316790a67ec058f45c0f2a067a99fcde6236c0cef8e056349fe54c"
        "5f13ac74d2539570fd34feab06c572053949b59585742181a5a760223afa22d4"
    )


def test_the_specifications_salsa20_gives_its_specifications_answers():
    # "Salsa20 specification", section 8, third example, and section 9, a key of 16 bytes.
    state = (
        "d39f0d734c3752b70375de25bfbbea8831edb330016ab2dbafc7a6305610b3cf"
        "1ff0203f0f535da174933071ee37cc244fc9eb4f03519c2fcb1af4f358766836"
    )
    assert salsa20_hash(bytes.fromhex(state)).hex() == (
        "6d2ab2a89cf0f8eea8c4becb1a6eaa9a1d1d961a961eebf9bea3fb3045903339"
        "7628989db4391b5e6b2aec231b6f7272dbece8876f9b6e1218e85f9eb31330ca"
    )
    assert salsa20_expand(bytes(range(1, 17)), bytes(range(101, 117))).hex() == (
        "27ad2ef81ec852113043feef25120df7f1c83d900a3732b9062ff6fd8f56bbe1"
        "86556ef6a1a32bebe75eab3391d6701d0ee80510978cb78dab097ab568b6b1c1"
    )


# ---- SHA-256, against an independent implementation ----------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 17, 55, 56, 63, 64, 65, 200])
def test_the_specifications_sha256_is_hashlibs(length, rng):
    message = rng.bytes(length)
    assert sha256(message) == hashlib.sha256(message).digest()


def test_sha256_is_hashlibs(tier, rng):
    for node in (bytes(16), b"\xff" * 16, *(rng.bytes(16) for _ in range(20))):
        first, second, third = (hashlib.sha256(node + bytes([j])).digest() for j in range(3))
        assert generate("sha256", node, tier, leaves=False) == first
        assert generate("sha256", node, tier, leaves=True) == second + third


# ---- SipHash and HighwayHash ---------------------------------------------------------------------

# SipHash-2-4 of 00 01 .. under the key 00 01 .. 0f, by the length of the message: from the vectors
# of the reference code; the one for 15 bytes is also in appendix A of the paper.
SIPHASH_ANSWERS = {
    0: "310e0edd47db6f72",
    1: "fd67dc93c539f874",
    2: "5a4fa9d909806c0d",
    7: "37d1018bf50002ab",
    8: "6224939a79f5f593",
    9: "b0e4a90bdf82009e",
    15: "e545be4961ca29a1",
    16: "db9bc2577fcc2a3f",
}

# HighwayHash-256 of 00 01 .. under the key 00 01 .. 1f, by the length of the message: from the
# vectors of google/highwayhash, in the four words in which it prints them.
HIGHWAYHASH_ANSWERS = {
    0: (0xDD44482AC2C874F5, 0xD946017313C7351F, 0xB3AEBECCB98714FF, 0x41DA233145751DF4),
    32: (0xBCE38C9039A1C3FE, 0x42D56326A3C11289, 0xE35595F764FCAEA9, 0xC9B03C6BC9475A99),
    64: (0x90D8E6FF6AC12475, 0x1A422A196EDAC1F2, 0x9E3765FE1F8EB002, 0xC1BDD7C4C351CFBE),
}


@pytest.mark.parametrize("length", SIPHASH_ANSWERS)
def test_the_specifications_siphash_gives_the_published_answers(length):
    assert siphash(COUNTED[:16], COUNTED[:length]).hex() == SIPHASH_ANSWERS[length]


def test_siphash_gives_the_published_answer_for_a_message_of_one_byte(tier):
    children = generate("insecure_siphash", COUNTED[:16], tier, leaves=False)
    assert children[:8].hex() == SIPHASH_ANSWERS[1]


# tests/core/engine_test.cc tests these answers for the engine, because no node gives this key.
@pytest.mark.parametrize("length", HIGHWAYHASH_ANSWERS)
def test_the_specifications_highwayhash_gives_the_published_answers(length):
    found = highwayhash(COUNTED[:32], COUNTED[:length])
    expected = b"".join(w.to_bytes(8, "little") for w in HIGHWAYHASH_ANSWERS[length])
    assert found == expected
