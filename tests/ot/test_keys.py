"""The public AES keys: equal to the specification's, and all different."""

from functools import cache

import numpy as np
import pytest

from nescio import _core
from nescio.errors import ArgumentError
from nescio.ot._keys import SessionKeys
from ot.blocks import random_blocks, to_array, to_integers
from spec import ot_keys, ot_trees
from spec.blocks import to_block

NONCES = bytes(range(16)), bytes(range(16, 32))
BASE = bytes(range(50, 66))


def test_bases_are_those_of_the_specification():
    keys, session = SessionKeys(*NONCES), ot_keys.session_base(*NONCES)
    assert keys.hashing() == ot_keys.hashing_base(session)
    for extension in (0, 1, 1 << 40):
        assert keys.extension(extension).trees == ot_keys.trees_base(session, extension)


@pytest.mark.parametrize("challenge", [b"", bytes(range(32))])
def test_codes_and_proofs_are_those_of_the_specification(challenge):
    keys, session = SessionKeys(*NONCES), ot_keys.session_digest(*NONCES)
    for number in (0, 1, 1 << 40):
        own = keys.extension(number)
        assert own.code(challenge) == ot_keys.code_seed(session, number, challenge)
        assert own.proof(challenge, BASE) == ot_keys.proof(
            session, number, challenge, to_block(BASE)
        )


def test_bases_depend_on_who_drew_which_nonce():
    bases = {SessionKeys(*nonces).hashing() for nonces in (NONCES, NONCES[::-1], NONCES[:1] * 2)}
    assert len(bases) == 3


def test_no_key_comes_twice():
    """Neither for two levels, trees or extensions, nor for a range of transfers."""
    session = ot_keys.session_base(*NONCES)
    trees = [
        ot_keys.tree_key(ot_keys.trees_base(session, extension), tree, level)
        for extension in range(3)
        for tree in range(50)
        for level in range(32)
    ]
    hashing = ot_keys.hashing_base(session)
    transfers = [ot_keys.transfer_key(hashing, 64 * i) for i in range(5000)]
    assert len({*trees, *transfers}) == len(trees) + len(transfers)
    assert ot_keys.transfer_key(hashing, 63) == transfers[0]


grow = cache(ot_trees.grow)


@pytest.mark.parametrize(("depth", "first"), [(4, 1), (4, 9), (4, 1 << 33), (13, 1 << 33)])
def test_trees_are_numbered(first, depth, tier, pool, rng):
    """A device's share of the trees begins with a number other than 0."""
    seed, delta = random_blocks(rng, 1), to_array([0x1234567])[0]
    leaves, sums = _core.grow_trees(seed, depth, delta, BASE, pool, tier, first_tree=first)
    expected = grow(to_integers(seed)[0], 0x1234567, depth, BASE, first)
    assert (to_integers(leaves), to_integers(sums)) == expected
    choices = rng.integers(0, 2, depth, dtype=np.uint8)
    sides = sums ^ choices[:, np.newaxis] * delta
    found = _core.puncture_trees(sides, choices, depth, BASE, pool, tier, first_tree=first)
    assert (found != leaves).any(axis=1).sum() == 1


def test_the_same_block_is_hashed_otherwise_in_the_next_range(tier, pool, rng):
    """The key of the next range differs, not only the index: another base, another hash."""
    blocks = np.repeat(random_blocks(rng, 1), 65, axis=0)
    hashes = _core.hash_blocks(blocks, 0, 0, BASE, pool, tier=tier)
    other = bytearray(BASE)
    other[0] ^= 1  # range 1 of a base is range 0 of its neighbor
    again = _core.hash_blocks(blocks[:1], 64, 0, BASE, pool, tier=tier)
    assert (hashes[64] == again[0]).all()
    swapped = _core.hash_blocks(blocks[:1], 64, 0, bytes(other), pool, tier=tier)
    assert (swapped[0] != again[0]).any()


def test_keys_of_a_wrong_length(pool):
    with pytest.raises(ArgumentError, match="key in bytes: found 15, expected 16"):
        _core.hash_blocks(np.zeros((1, 2), np.uint64), 0, 0, BASE[:15], pool)
