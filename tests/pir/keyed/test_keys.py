"""Keys as bytes: their types, and what is no key."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nescio import _core
from nescio.errors import ArgumentError
from nescio.pir._keyed._keys import MAX_KEY_BYTES, pack_keys, places_of
from spec import keyed as spec

POOL = _core.ThreadPool(1)
SEED = bytes(range(32))
INTEGERS = st.integers(-(2**63), 2**64 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
KEYS = st.one_of(*(st.lists(keys) for keys in (INTEGERS, TEXTS, st.binary(min_size=1))))


@given(KEYS)
def test_keys_agree_with_the_specification(keys):
    packed = pack_keys(keys)
    words = packed.hashed(SEED, POOL)
    assert words.tolist() == [list(spec.words(SEED, key)) for key in keys]
    assert packed.seed() == spec.first_seed(keys)
    assert packed.shape == (len(keys),)
    assert [packed.describe(i) for i in range(min(3, len(keys)))] == [
        text if len(text) <= 80 else f"{text[:77]}..." for text in map(repr, keys[:3])
    ]


@given(st.lists(INTEGERS, min_size=1), st.sampled_from([1, 2, 388_362, 2**32 - 1, 2**32]))
def test_places(keys, rows):
    words = pack_keys(keys).hashed(SEED, POOL)
    expected = [spec.places(tuple(own), rows) for own in words.tolist()]
    assert places_of(words, rows).tolist() == expected


def test_keys_of_different_types_differ():
    words = [pack_keys(key).hashed(SEED, POOL).tolist() for key in ("1", b"1", 1, -1, 2**64 - 1)]
    assert len({str(own) for own in words}) == 5


@pytest.mark.parametrize(
    "keys",
    [
        np.array([1, 2, 300], "i2"),
        np.array([1, 2, 300], ">u8"),
        np.array([1, 2, 300], "u4")[::1],
        [np.int8(1), 2, np.uint64(300)],
        (1, 2, 300),
        np.array([1, 2, 300], object),
    ],
    ids=str,
)
def test_integers_are_the_same_in_any_array(keys):
    assert pack_keys(keys).data.tobytes() == pack_keys([1, 2, 300]).data.tobytes()


def test_large_integers_in_arrays():
    keys = [2**64 - 1, 2**63, 5]
    assert pack_keys(np.array(keys, "u8")).data.tobytes() == pack_keys(keys).data.tobytes()


def test_texts_in_arrays():
    keys = np.array([["a", "bcd"], ["é", "\U0001f600"]])
    packed = pack_keys(keys)
    assert packed.shape == (2, 2)
    assert packed.data.tobytes() == pack_keys(["a", "bcd", "é", "\U0001f600"]).data.tobytes()
    assert pack_keys(np.array([b"ad", b"bc"])).data.tobytes() == b"badbbc"
    assert pack_keys(np.str_("a")).shape == ()


def test_bytes_of_one_length_may_end_with_zeros():
    """NumPy takes zeros at the end of an element of an S array for padding."""
    keys = [b"ab\0c", b"abcd", b"xy\0\0", bytes(4)]
    array = np.frombuffer(b"".join(keys), "u1").reshape(4, 4)
    packed = pack_keys(array)
    assert (packed.kind, packed.shape) == ("bytes", (4,))
    assert packed.data.tobytes() == pack_keys(keys).data.tobytes()
    assert packed.ends.tolist() == pack_keys(keys).ends.tolist()
    assert pack_keys(array.reshape(2, 2, 4)[:, ::-1]).shape == (2, 2)
    assert len(pack_keys(array[:0])) == 0
    with pytest.raises(ArgumentError, match="key 2: found 2 bytes in an array of S4, .* a uint8"):
        pack_keys(np.array(keys, "S4"))
    for length in (0, MAX_KEY_BYTES + 1):
        with pytest.raises(ArgumentError, match=f"found {length} bytes on the last axis"):
            pack_keys(np.zeros((2, length), "u1"))


def test_unicode_is_not_normalized():
    words = pack_keys(["\u00e9", "e\u0301"]).hashed(SEED, POOL)
    assert words[0].tolist() != words[1].tolist()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["a", 1], "found integer and text keys, expected keys of one type"),
        (["a", b"a"], "found bytes and text keys, expected keys of one type"),
        ([1.5], "found one of type float, expected str, bytes or int"),
        ([True], "found one of type bool, expected str, bytes or int"),
        ([np.bool_(True)], "found one of type bool"),
        ([None], "found one of type NoneType"),
        (1.5, "found an array of float64, expected text, bytes or integers"),
        (np.float32(1), "found one of type float32"),
        (np.zeros(3), "found an array of float64, expected text, bytes or integers"),
        (np.zeros(3, bool), "found an array of bool"),
        ({"a"}, "found one of type set"),
        (["a", ""], "key 1: found 0 bytes, expected 1 to 4096"),
        ([b""], "key 0: found 0 bytes, expected 1 to 4096"),
        ("", "key 0: found 0 bytes, expected 1 to 4096"),
        (["x" * (MAX_KEY_BYTES + 1)], "key 0: found 4097 bytes, expected 1 to 4096"),
        (["é" * 2049], "key 0: found 4098 bytes, expected 1 to 4096"),
        (["a\ud800"], "unpaired surrogate"),
        ([2**64], r"key 0: found 18446744073709551616, expected -2\^63 to 2\^64 - 1"),
        ([0, -(2**63) - 1], r"key 1: found -9223372036854775809, expected -2\^63"),
        ([10**5000], "found a number of 16610 bits"),
        (np.ma.masked_equal([1, 2], 2), "masked elements"),
    ],
)
def test_what_is_no_key(keys, message):
    with pytest.raises(ArgumentError, match=message):
        pack_keys(keys)


def test_the_longest_key():
    assert len(pack_keys("x" * MAX_KEY_BYTES).data) == 1 + MAX_KEY_BYTES
