"""One key alone reveals nothing: statistics over thousands of serialized keys.

Every bit and every byte of a key is tested for correlation with every bit of the index, and for
uniform distribution, for both parties, every output and every generator. The tests also run on keys
with planted flaws, which they must find: a control bit that is also a bit of the output, a
correction that is zero off the path, a seed from a generator that is not random.
"""

import numpy as np
import pytest

import nescio.dpf
from dpf.helpers import ALL_GENERATORS, GENERATORS, OUTPUTS
from spec import prg
from spec.dpf import OUTPUT_BITS

DOMAIN = 1 << 17
KEYS = 1 << 14
HEADER = 16

# The chance that one sound statistic lies beyond this many standard deviations is 6e-14; there are
# some two million of them in this file.
Z = 7.5


CASES = [(generator, output) for generator in GENERATORS for output in OUTPUTS]
CASES += [(generator, "bit") for generator in ALL_GENERATORS if generator not in GENERATORS]


def generate(generator, output, alphas, payload=None):
    """Return the keys of both parties as arrays of bytes, one row per key."""
    keys = nescio.dpf.generate(
        alphas, domain=DOMAIN, output=output, generator=generator, payload=payload
    )
    return [np.frombuffer(b"".join(party), np.uint8).reshape(len(alphas), -1) for party in keys]


def secret_bits(keys, generator, output):
    """Return the bits of keys that must look random.

    These are all bits but the header, the lowest bit of the root, which is the party, and the
    padding of the control bits.
    """
    bits = np.unpackbits(keys, axis=1, bitorder="little")
    shape = nescio.dpf.inspect(keys[0].tobytes())
    radix = {2: 1, 4: 2}[prg.GENERATORS[generator].arity]
    leaf_bits = (shape.domain * OUTPUT_BITS[output] - 1) // 512
    depth = -(-leaf_bits.bit_length() // radix)
    leaf = bits.shape[1] - 512  # its correction comes last
    return np.hstack([bits[:, 8 * HEADER + 1 : leaf - -depth % 8], bits[:, leaf:]])


def index_bits(alphas):
    return alphas[:, None] >> np.arange(17) & 1


def chi_square_limit(freedom):
    """Return the chi-square quantile for the tail probability of a normal variable at Z.

    The approximation is that of Wilson and Hilferty (1931).
    """
    part = 2 / (9 * freedom)
    return freedom * (1 - part + Z * part**0.5) ** 3


def biased_bits(bits):
    """Return the bits whose frequency of ones differs from 1/2."""
    ones = bits.sum(axis=0, dtype=np.int32)
    return np.flatnonzero(np.abs(2 * ones - len(bits)) > Z * len(bits) ** 0.5)


def telling_bits(bits, features):
    """Return the pairs of a feature of the index and a bit that are correlated."""
    signs = 2 * features.astype(np.float32) - 1
    centred = signs - signs.mean(axis=0)
    # The columns of `centred` add up to 0, so bits of 0 and 1 give half of what -1 and 1 give.
    correlation = np.zeros((features.shape[1], bits.shape[1]))
    for rows in np.split(np.arange(len(bits)), 64):  # 64 parts of bits fit the cache as floats
        correlation += 2 * (centred[rows].T @ bits[rows].astype(np.float32))
    limit = Z * np.sqrt((centred**2).sum(axis=0))[:, None]
    return np.argwhere(np.abs(correlation) > limit)


def telling_bytes(keys, features):
    """Return the pairs of a byte and a feature of the index on which its distribution depends."""
    every = byte_counts(keys)
    freedom = np.maximum(1, np.count_nonzero(every, axis=1) - 1)
    found = []
    for number, feature in enumerate(features.T):
        ones = byte_counts(keys[feature == 1])
        statistic = 0.0
        for counts in (ones, every - ones):
            expected = every * (counts[0].sum() / len(keys))
            statistic += ((counts - expected) ** 2 / np.maximum(expected, 1e-9)).sum(axis=1)
        positions = np.flatnonzero(statistic > chi_square_limit(freedom))
        found += [(HEADER + position, number) for position in positions]
    return found


def byte_counts(keys):
    """Return how often each byte behind the header has each value, one row per byte."""
    body = keys[:, HEADER:]
    values = body + 256 * np.arange(body.shape[1])
    return np.bincount(values.ravel(), minlength=256 * body.shape[1]).reshape(-1, 256)


@pytest.mark.parametrize(("generator", "output"), CASES)
def test_no_bit_or_byte_of_a_key_correlates_with_a_bit_of_the_index(generator, output, rng):
    alphas = rng.integers(DOMAIN, size=KEYS)
    features = index_bits(alphas)
    for keys in generate(generator, output, alphas):
        assert (keys[:, :HEADER] == keys[0, :HEADER]).all()
        bits = secret_bits(keys, generator, output)
        assert not len(biased_bits(bits))
        assert not len(telling_bits(bits, features))
        assert not telling_bytes(keys, features)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("generator", GENERATORS)
def test_keys_for_the_two_ends_of_the_table_look_alike(generator, output):
    # Flaws at rare positions, such as the first of a leaf, are visible here but not among random
    # indices.
    side = np.arange(KEYS) % 2
    for keys in generate(generator, output, side * (DOMAIN - 1)):
        bits = secret_bits(keys, generator, output)
        assert not len(biased_bits(bits))
        assert not len(telling_bits(bits, side[:, None]))
        assert not telling_bytes(keys, side[:, None])


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("generator", GENERATORS)
def test_keys_for_different_payloads_look_alike(generator, output):
    side = np.arange(KEYS) % 2
    largest = (1 << OUTPUT_BITS[output]) - 1
    payloads = [largest if s else 0 for s in side]
    for keys in generate(generator, output, np.full(KEYS, 77), payloads):
        bits = secret_bits(keys, generator, output)
        assert not len(biased_bits(bits))
        assert not len(telling_bits(bits, side[:, None]))
        assert not telling_bytes(keys, side[:, None])


@pytest.fixture
def sound(rng):
    alphas = rng.integers(DOMAIN, size=KEYS)
    return alphas, generate("aes128", "bit", alphas)[0].copy()


def test_a_control_bit_that_is_also_output_is_found(sound):
    alphas, keys = sound
    # The lowest bit of a leaf correction is then 1 unless the path ends there.
    keys[:, -64] = keys[:, -64] & 0xFE | (alphas % 512 != 0)
    assert len(biased_bits(secret_bits(keys, "aes128", "bit"))) == 1


def test_a_bit_that_follows_the_index_in_one_key_of_ten_is_found(sound, rng):
    alphas, keys = sound
    leaky = rng.random(KEYS) < 0.1
    keys[leaky, 100] = keys[leaky, 100] & 0xFE | alphas[leaky] >> 3 & 1
    bits = secret_bits(keys, "aes128", "bit")
    assert {feature for feature, _ in telling_bits(bits, index_bits(alphas))} == {3}


def test_a_byte_that_leaks_only_by_its_parity_is_found(sound):
    alphas, keys = sound
    # The parity of the byte is bit 5 of the index: no single bit of the byte depends on it.
    parity = np.unpackbits(keys[:, 150:151], axis=1).sum(axis=1) & 1
    keys[:, 150] ^= (parity != (alphas >> 5 & 1)).astype(np.uint8)
    assert not len(telling_bits(secret_bits(keys, "aes128", "bit"), index_bits(alphas)))
    assert telling_bytes(keys, index_bits(alphas)) == [(150, 5)]


def test_keys_from_a_generator_with_few_seeds_are_found(rng):
    alphas = np.full(KEYS, 5)
    few = rng.integers(0, 256, size=(64, 2, 16), dtype=np.uint8)[np.arange(KEYS) % 64]
    keys, _ = nescio.dpf.insecure_generate(alphas, domain=DOMAIN, roots=few)
    rows = np.frombuffer(b"".join(keys), np.uint8).reshape(KEYS, -1)
    assert len(biased_bits(secret_bits(rows, "chacha20", "bit")))
