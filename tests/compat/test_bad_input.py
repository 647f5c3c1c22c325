"""Errors of the GPU-DPF interface."""

import numpy as np
import pytest

from nescio.errors import (
    ArgumentError,
    IndexRangeError,
    MalformedKeyError,
    MismatchError,
    ResourceError,
)
from nescio.pir import _device_table

torch = pytest.importorskip("torch")
from nescio.compat import gpu_dpf as dpf  # noqa: E402 - torch may be absent

ROWS = 100


@pytest.fixture
def server():
    made = dpf.DPF(dpf.DPF.PRF_CHACHA20)
    made.eval_init(torch.arange(2 * ROWS).int().reshape(ROWS, 2))
    return made


@pytest.fixture
def key():
    return dpf.DPF(dpf.DPF.PRF_CHACHA20).gen(42, ROWS)[0]


@pytest.mark.parametrize(
    ("prf", "message"),
    [
        (dpf.DPF.PRF_DUMMY, "PRF_DUMMY, which is not a pseudorandom function"),
        (4, "prf: found 4, expected 0 to 3"),
        (-1, "prf: found -1"),
        ("AES128", "prf: found 'AES128', expected an integer"),
        ([], "expected an integer"),
    ],
)
def test_a_prf_that_does_not_exist(prf, message):
    with pytest.raises(ArgumentError, match=message):
        dpf.DPF(prf=prf)


@pytest.mark.parametrize("device", ["gpu", "cpu", None, 0])
def test_a_device_that_does_not_exist(device):
    with pytest.raises(ArgumentError, match="device: found .*, expected a GPU"):
        dpf.DPF(device=device)


@pytest.mark.parametrize("k", [100, -1, pytest.param(10**5000, id="huge"), torch.tensor(100)])
def test_a_row_that_does_not_exist(k):
    with pytest.raises(IndexRangeError, match=r"k out of range: found .*, expected 0 to 99"):
        dpf.DPF().gen(k, ROWS)


@pytest.mark.parametrize("k", [1.0, "1", None, True, [1, 2], torch.tensor([1])])
def test_a_row_that_is_not_an_integer(k):
    with pytest.raises(ArgumentError, match="k:? "):
        dpf.DPF().gen(k, ROWS)


@pytest.mark.parametrize("n", [0, -1, 2**40 + 1, 1.5, True, None])
def test_an_invalid_number_of_rows(n):
    with pytest.raises(ArgumentError, match="n: found"):
        dpf.DPF().gen(0, n)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (torch.zeros(3, 2), r"found torch.float32, expected a tensor of int32 \(.int\(\)"),
        (torch.zeros(3, 2).long(), "found torch.int64"),
        (torch.zeros(3, 2, dtype=torch.bfloat16), "found torch.bfloat16"),
        (torch.zeros(3).int(), r"found shape \(3,\), expected 2-d"),
        (torch.zeros(3, 2, 2).int(), r"found shape \(3, 2, 2\), expected 2-d"),
        (torch.zeros(0, 2).int(), r"found shape \(0, 2\), expected a row and a column"),
        (torch.zeros(3, 0).int(), "expected a row and a column"),
        (torch.zeros(3, 2).int().to_sparse(), "cannot be read as an array"),
        (np.zeros((3, 2), ">i4"), "found >i4"),
        ([[1, 2]], "found list"),
        (None, "found NoneType"),
    ],
)
def test_unsupported_tables(table, message):
    server = dpf.DPF()
    with pytest.raises(ArgumentError, match=message):
        server.eval_init(table)
    assert repr(server).startswith("DPF(_uninitialized_")


@pytest.mark.parametrize("evaluate", ["eval_cpu", "eval_gpu"])
def test_answers_need_a_table(evaluate, key):
    with pytest.raises(ArgumentError, match=rf"{evaluate} needs a table: call eval_init"):
        getattr(dpf.DPF(dpf.DPF.PRF_CHACHA20), evaluate)([key])


@pytest.mark.parametrize("one_hot_only", [False, True])
@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda key: [], ArgumentError, "keys: found none"),
        (lambda key: key, ArgumentError, r"found one tensor, expected a list of keys: \[key\]"),
        (lambda key: [key.long()], ArgumentError, "a key: found torch.int64"),
        (lambda key: [key.numpy().tobytes()], ArgumentError, "a key: found bytes"),
        (lambda key: [key.reshape(1, -1)], ArgumentError, "a key: found shape"),
        (lambda key: [key[:0]], MalformedKeyError, "found 0 bytes"),
        (
            lambda key: [key[:3]],
            MalformedKeyError,
            "found 12 bytes, expected a header of at least 16",
        ),
        (lambda key: [key[:-1]], MalformedKeyError, "not a DPF key: found"),
        (lambda key: [torch.cat([key, key[-1:]])], MalformedKeyError, "not a DPF key: found"),
        (lambda key: [key, key[:-1]], MismatchError, "the keys of one call must have one length"),
        (lambda key: [torch.zeros_like(key)], MalformedKeyError, "does not begin with 'NK'"),
        (lambda key: [key | (127 << 24)], MalformedKeyError, "not a DPF key"),
    ],
)
def test_invalid_keys(spoil, error, message, one_hot_only, server, key):
    with pytest.raises(error, match=message):
        server.eval_cpu(spoil(key), one_hot_only)


def test_a_key_with_something_after_its_end(server):
    key = dpf.DPF(dpf.DPF.PRF_CHACHA20).gen(0, 1000)[0]
    raw = key.numpy().copy()
    raw[-1] |= 1 << 24  # the last byte is padding
    server.eval_init(torch.zeros(1000, 1).int())
    with pytest.raises(MalformedKeyError, match="are not zero"):
        server.eval_cpu([torch.from_numpy(raw)])


@pytest.mark.parametrize(
    ("prf", "rows", "found"),
    [
        (dpf.DPF.PRF_CHACHA20, 101, "u32 keys over 101 points from chacha20"),
        (dpf.DPF.PRF_CHACHA20, 2**20, "u32 keys over 1048576 points from chacha20"),
        (dpf.DPF.PRF_AES128, ROWS, "u32 keys over 100 points from aes128"),
    ],
)
@pytest.mark.parametrize("evaluate", ["eval_cpu", "eval_gpu"])
def test_keys_for_something_else(evaluate, prf, rows, found, server):
    other = dpf.DPF(prf).gen(1, rows)[0]
    with pytest.raises(MismatchError) as caught:
        getattr(server, evaluate)([other])
    assert caught.value.found == found
    assert caught.value.expected == "u32 keys over 100 points from chacha20"


def test_keys_of_two_tables_in_one_call(server, key):
    other = dpf.DPF(dpf.DPF.PRF_CHACHA20).gen(1, 101)[0]
    assert other.shape == key.shape
    with pytest.raises(MismatchError, match="the keys of one call have one shape"):
        server.eval_cpu([key, other], one_hot_only=True)


def test_a_machine_without_a_gpu_names_the_way_out(server, key, monkeypatch):
    def none(device, rows, row_bytes, output):
        raise ResourceError("there is no CUDA device here")

    monkeypatch.setattr(_device_table, "open_table", none)
    server.eval_init(server.table)
    with pytest.raises(ResourceError, match="there is no CUDA device here; eval_cpu answers"):
        server.eval_gpu([key])
    assert server.eval_cpu([key]).shape == (1, 2)
