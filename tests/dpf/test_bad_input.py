"""Errors for invalid keys and arguments."""

import os
import subprocess
import sys

import numpy as np
import pytest

import nescio.dpf
from nescio.errors import (
    ArgumentError,
    IndexRangeError,
    MalformedKeyError,
    MismatchError,
    NescioError,
)

HUGE = pytest.param(10**5000, id="huge")  # Python refuses to print it


@pytest.fixture
def key():
    return nescio.dpf.generate(5, domain=5000)[0]


def test_every_truncated_key_is_refused(key):
    for length in range(len(key)):
        with pytest.raises(MalformedKeyError, match="not a DPF key"):
            nescio.dpf.evaluate_all(key[:length])
    with pytest.raises(MalformedKeyError, match=f"found {len(key) + 1} bytes.*have {len(key)}"):
        nescio.dpf.evaluate_all(key + b"\0")


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (0, b"XX", "does not begin with 'NK'"),
        (2, b"\x09", "found version 9, expected version 1"),
        (3, b"\x00", "generator number 0 does not exist"),
        (3, b"\xff", "generator number 255 does not exist"),
        (4, b"\x05", "output number 5 does not exist"),
        (5, b"\x02", "found party 2, expected 0 or 1"),
        (5, b"\x01", "control bit contradicts its party"),
        (6, b"\x01", "reserved bytes are not zero"),
        (8, bytes(8), "found a domain of 0 points"),
        (8, b"\xff" * 8, "expected 1 to 2\\^40"),
        (8, (1 << 20).to_bytes(8, "little"), "bit keys over 1048576 points from chacha20 have"),
    ],
)
def test_a_damaged_header_is_refused_with_a_specific_message(key, offset, value, message):
    damaged = key[:offset] + value + key[offset + len(value) :]
    with pytest.raises(MalformedKeyError, match=message):
        nescio.dpf.evaluate_all(damaged)


def test_padding_bits_must_be_zero(key):
    bits = len(key) - 65  # the byte of control bits before the leaf correction
    assert nescio.dpf.evaluate_all(key) is not None
    damaged = bytearray(key)
    damaged[bits] |= 0x80
    with pytest.raises(MalformedKeyError, match="padding"):
        nescio.dpf.evaluate_all(bytes(damaged))


def test_keys_of_different_shapes_are_refused():
    one = nescio.dpf.generate(5, domain=5000)[0]
    other = nescio.dpf.generate(5, domain=5001)[0]
    with pytest.raises(MismatchError) as caught:
        nescio.dpf.evaluate_all([one, other])
    assert "5001 points" in caught.value.found
    assert "5000 points" in caught.value.expected
    assert caught.value.found in str(caught.value)


@pytest.mark.parametrize("alpha", [-1, 10, 1 << 70, [3, 10], HUGE])
def test_a_point_outside_the_domain_is_refused(alpha):
    with pytest.raises(IndexRangeError, match="expected 0 to 9"):
        nescio.dpf.generate(alpha, domain=10)


@pytest.mark.parametrize("point", [-1, 5000])
def test_evaluating_outside_the_domain_is_refused(key, point):
    with pytest.raises(IndexRangeError, match="expected 0 to 4999"):
        nescio.dpf.evaluate(key, [point])


@pytest.mark.parametrize(("start", "stop"), [(0, 5001), (5001, 5001)])
def test_a_range_outside_the_domain_is_refused(key, start, stop):
    with pytest.raises(IndexRangeError, match="is outside the domain of 5000 points"):
        nescio.dpf.evaluate_range(key, start, stop)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"domain": 0}, "expected 1 to 1099511627776"),
        ({"domain": (1 << 40) + 1}, "expected 1 to 1099511627776"),
        ({"domain": 10.5}, "expected an integer"),
        (
            {"domain": 10, "output": "u16"},
            "output: found 'u16', expected one of bit, u8, u32, u64, u128",
        ),
        (
            {"domain": 10, "generator": "aes256"},
            "generator: found 'aes256', expected one of aes128, chacha",
        ),
        ({"domain": 10, "generator": "siphash"}, "does not claim.*or name it 'insecure_siphash'"),
        ({"domain": 10, "payload": 2}, "does not fit bit"),
        ({"domain": 10, "output": "u8", "payload": 256}, "does not fit u8"),
        ({"domain": 10, "output": "u8", "payload": -129}, "does not fit u8"),
        ({"domain": 10, "output": "u8", "payload": 1.5}, "does not fit u8"),
        ({"domain": 10, "output": "u8", "payload": 10**5000}, "does not fit u8"),
        ({"domain": 10, "payload": [1, 1]}, "expected one or 1"),
        ({"domain": 10, "output": "u128", "payload": np.ones((1, 2))}, "halves of float64"),
    ],
)
def test_invalid_functions_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        nescio.dpf.generate(5, **arguments)


@pytest.mark.parametrize("alpha", [1.5, "5", None, [[1]], [True], object()])
def test_points_are_integers(alpha):
    with pytest.raises(ArgumentError):
        nescio.dpf.generate(alpha, domain=10)


def test_arrays_on_a_gpu_whose_library_copies_nothing_are_refused_with_advice(dlpack):
    with pytest.raises(ArgumentError, match=r"is on a GPU: move it to the CPU first"):
        nescio.dpf.generate(dlpack([1], device=(2, 0), copies=False), domain=10)


@pytest.mark.parametrize("method", ["cpu", "get"])
def test_arrays_on_a_gpu_are_copied_by_the_method_of_their_library(method, dlpack):
    point = dlpack([5], device=(2, 0), copies=False)
    setattr(point, method, lambda: np.array([5]))
    keys = nescio.dpf.generate(point, domain=10)
    values = [nescio.dpf.evaluate_all(key) for key in keys]
    assert (values[0] ^ values[1]).tolist()[0] == [0] * 5 + [1] + [0] * 4


@pytest.mark.parametrize("key", ["text", 5, None, np.zeros(3), np.zeros((2, 2, 2), np.uint8)])
def test_keys_are_bytes(key):
    with pytest.raises(NescioError):
        nescio.dpf.evaluate_all(key)


def test_packing_is_for_bits(key):
    words = nescio.dpf.generate(5, domain=10, output="u8")[0]
    with pytest.raises(ArgumentError, match="only shares of 'bit' keys"):
        nescio.dpf.evaluate_all(words, packed=True)
    with pytest.raises(ArgumentError, match="multiple of 8"):
        nescio.dpf.evaluate_range(key, 3, 9, packed=True)


@pytest.mark.parametrize("threads", [-1, 100_000, 1 << 70, 1.5])
def test_invalid_numbers_of_threads_are_refused(key, threads):
    with pytest.raises(ArgumentError, match="threads"):
        nescio.dpf.evaluate_all(key, threads=threads)


def test_shares_of_different_types_are_refused():
    for a, b, output in [
        (np.zeros(3, np.uint8), np.zeros(4, np.uint8), "u8"),
        (np.zeros(3, np.uint8), np.zeros(3, np.uint8), "u32"),
        (np.zeros(4), np.zeros(4), "u32"),
    ]:
        with pytest.raises(ArgumentError, match="expected one shape and the dtype"):
            nescio.dpf.combine(a, b, output)
    with pytest.raises(ArgumentError, match="output: found 'u16'"):
        nescio.dpf.combine(a, b, "u16")


def test_an_evaluation_larger_than_memory_is_an_error_not_a_crash():
    key = nescio.dpf.generate(0, domain=1 << 40, output="u128")[0]
    with pytest.raises(NescioError, match="out of memory"):
        nescio.dpf.evaluate_all(key)


def test_the_range_is_checked_before_memory_is_allocated():
    key = nescio.dpf.generate(0, domain=10)[0]
    with pytest.raises(IndexRangeError, match="is outside the domain of 10 points"):
        nescio.dpf.evaluate_range(key, 0, 1 << 39)
    with pytest.raises(ArgumentError, match="stop"):
        nescio.dpf.evaluate_range(key, 0, 1 << 70)


def test_a_child_process_can_go_on_after_a_fork():
    program = """
import os, nescio.dpf as dpf
key, _ = dpf.generate(5, domain=1 << 20)
before = dpf.evaluate_all(key, threads=4)
child = os.fork()
if child == 0:
    os._exit(0 if (dpf.evaluate_all(key, threads=4) == before).all() else 1)
_, status = os.waitpid(child, 0)
raise SystemExit(os.waitstatus_to_exitcode(status))
"""
    assert (
        subprocess.run([sys.executable, "-c", program], timeout=60, env=os.environ).returncode == 0
    )


def test_threads_of_a_forked_child_may_use_the_pool_at_once():
    program = """
import os, threading, warnings
warnings.simplefilter("ignore")
import nescio.dpf as dpf
key, _ = dpf.generate(5, domain=1 << 16)
expected = dpf.evaluate_all(key, threads=3).tobytes()
for _ in range(20):
    child = os.fork()
    if child == 0:
        wrong = []
        def work():
            for _ in range(5):
                if dpf.evaluate_all(key, threads=3).tobytes() != expected: wrong.append(1)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        os._exit(len(wrong))
    _, status = os.waitpid(child, 0)
    assert status == 0, status
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=100).returncode == 0


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (3, "found int, expected bytes"),
        ("key", "found a string, expected bytes; encode it first"),
        (np.zeros(3), "found an array of 1 dimensions and dtype float64, expected bytes"),
    ],
)
def test_values_that_are_not_bytes(value, found):
    with pytest.raises(ArgumentError, match=f"a key: {found}"):
        nescio.dpf.inspect(value)
