"""The GPU-DPF interface: `a - b` is the row."""

import copy
import pickle
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import devices
import nescio
from nescio import _core
from nescio.errors import ArgumentError
from nescio.pir import _device_table

torch = pytest.importorskip("torch")
from nescio.compat import gpu_dpf as dpf  # noqa: E402 - torch may be absent

EXAMPLES = Path(__file__).parents[2] / "examples"
PRFS = [
    pytest.param(dpf.DPF.PRF_AES128, id="aes128"),
    pytest.param(dpf.DPF.PRF_CHACHA20, id="chacha20"),
    pytest.param(
        dpf.DPF.PRF_SALSA20,
        id="salsa20",
        marks=pytest.mark.skipif(
            "salsa20" not in nescio.dpf.GENERATORS, reason="the engine has no salsa20"
        ),
    ),
]
SHAPES = [(1, 1), (1, 17), (100, 16), (129, 17), (16384, 1)]


def random_table(rng, shape):
    """Makes a table of random int32 with the smallest and the largest value."""
    values = rng.integers(-(2**31), 2**31, shape, np.int64).astype(np.int32)
    values.flat[0], values.flat[-1] = -(2**31), 2**31 - 1
    return torch.from_numpy(values)


def two_servers(table, prf, **arguments):
    servers = [dpf.DPF(prf, **arguments) for _ in range(2)]
    for server in servers:
        server.eval_init(table)
    return servers


def keys_for(indices, rows, prf):
    client = dpf.DPF(prf)
    pairs = [client.gen(int(index), rows) for index in indices]
    return [list(keys) for keys in zip(*pairs, strict=True)]


@pytest.mark.parametrize("prf", PRFS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_difference_is_the_row(shape, prf, rng):
    table = random_table(rng, shape)
    indices = [0, shape[0] - 1, shape[0] // 2]
    k1s, k2s = keys_for(indices, shape[0], prf)
    first, second = two_servers(table, prf)
    a, b = first.eval_cpu(k1s), second.eval_cpu(k2s)
    assert a.dtype == b.dtype == torch.int32
    assert torch.equal(a - b, table[indices])


@pytest.mark.parametrize("batch", [1, 3, 600])
@pytest.mark.parametrize("prf", PRFS)
def test_batches_of_any_size(prf, batch, rng):
    table = random_table(rng, (129, 3))
    indices = rng.integers(129, size=batch)
    k1s, k2s = keys_for(indices, 129, prf)
    first, second = two_servers(table, prf)
    assert torch.equal(first.eval_cpu(k1s) - second.eval_cpu(k2s), table[indices])


@pytest.mark.parametrize("device", devices.FIRST)
@pytest.mark.parametrize("prf", PRFS)
@pytest.mark.parametrize(("shape", "batch"), [((1, 1), 1), ((129, 17), 3), ((100, 16), 1)], ids=str)
def test_a_device_answers_as_the_processor_does(shape, batch, prf, device, rng):
    table = random_table(rng, shape)
    indices = rng.integers(shape[0], size=batch)
    k1s, k2s = keys_for(indices, shape[0], prf)
    first, second = two_servers(table, prf, device=device)
    a, b = first.eval_gpu(k1s), second.eval_gpu(k2s)
    assert torch.equal(a - b, table[indices])
    assert torch.equal(a, first.eval_cpu(k1s))
    assert torch.equal(b, second.eval_cpu(k2s))


def test_one_call_asks_the_device_once(rng, monkeypatch, pool):
    calls = []

    class Device:
        def __init__(self, device, rows, row_bytes, output):
            calls.append((device, rows, row_bytes, output))
            self._rows = _core.Table([(1, rows, 1)], row_bytes, output)

        def store(self, first, rows):
            self._rows.store(first, rows, pool)

        def answer(self, keys):
            calls.append(len(keys[0]))
            answers = self._rows.answer(keys, pool)
            answers.flags.writeable = False
            return answers

    monkeypatch.setattr(_device_table, "open_table", Device)
    table = random_table(rng, (100, 17))
    indices = rng.integers(100, size=600)
    k1s, k2s = keys_for(indices, 100, None)
    first, second = two_servers(table, None, device="cuda:1")
    assert torch.equal(first.eval_gpu(k1s) - second.eval_gpu(k2s), table[indices])
    assert calls == [("cuda:1", 100, 68, "u32")] * 2 + [600] * 2


@pytest.mark.gpu
@devices.no_card
def test_a_table_on_the_gpu(rng):
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    table = random_table(rng, (1000, 4))
    k1s, k2s = keys_for([7, 999], 1000, dpf.DPF.DEFAULT_PRF)
    first, second = two_servers(table.cuda(), None)
    assert torch.equal(first.eval_gpu(k1s) - second.eval_cpu(k2s), table[[7, 999]])


@pytest.mark.parametrize("prf", PRFS)
@pytest.mark.parametrize("rows", [1, 100, 1024])
def test_one_hot_vectors_need_no_table(rows, prf):
    indices = [0, rows - 1, rows // 2]
    k1s, k2s = keys_for(indices, rows, prf)
    v1, v2 = (dpf.DPF(prf).eval_cpu(keys, one_hot_only=True) for keys in (k1s, k2s))
    assert v1.dtype == torch.int32
    assert torch.equal(v1 - v2, torch.eye(rows, dtype=torch.int32)[indices])


def test_one_hot_vectors_times_the_table_are_the_answers(rng):
    table = random_table(rng, (100, 5))
    k1s, _ = keys_for([3, 99], 100, None)
    (server, _) = two_servers(table, None)
    one_hots = server.eval_cpu(k1s, one_hot_only=True)
    assert torch.equal(one_hots @ table, server.eval_cpu(k1s))


def test_one_batch_may_hold_keys_of_both_parties(rng):
    table = random_table(rng, (200, 2))
    k1, k2 = dpf.DPF().gen(150, 200)
    (server, _) = two_servers(table, None)
    a, b = server.eval_cpu([k1, k2])
    assert torch.equal(a - b, table[150])
    assert torch.equal(server.eval_cpu(torch.stack([k1, k2])), torch.stack([a, b]))


def test_a_table_of_any_strides(rng):
    table = random_table(rng, (6, 200)).T[::2]
    k1s, k2s = keys_for([99], 100, None)
    first, second = two_servers(table, None)
    assert torch.equal(first.eval_cpu(k1s) - second.eval_cpu(k2s), table[[99]])


def test_a_second_table_takes_the_place_of_the_first(rng):
    old, new = random_table(rng, (10, 2)), random_table(rng, (20, 3))
    server, _ = two_servers(old, None)
    server.eval_cpu([dpf.DPF().gen(0, 10)[0]])
    server.eval_init(new)
    a, b = server.eval_cpu(list(dpf.DPF().gen(19, 20)))
    assert torch.equal(a - b, new[19])


@pytest.mark.parametrize("prf", PRFS)
@pytest.mark.parametrize("n", [1, 1000, 2**20, 2**32])
def test_a_key_is_the_bytes_of_a_nescio_key_and_zeros(n, prf):
    client = dpf.DPF(prf)
    generator = client.prf_method_string.lower()
    length = nescio.dpf.key_bytes(n, output="u32", generator=generator)
    for party, key in enumerate(client.gen(n - 1, n)):
        assert key.dtype == torch.int32
        assert key.shape == (-(-length // 4),)
        raw = key.numpy().tobytes()
        assert not any(raw[length:])
        info = nescio.dpf.inspect(raw[:length])
        assert (info.domain, info.output, info.generator) == (n, "u32", generator)
        assert info.party == party


def test_keys_are_random():
    keys = [key.numpy().tobytes() for _ in range(10) for key in dpf.DPF().gen(5, 100)]
    assert len(set(keys)) == len(keys)


def test_an_index_may_be_a_tensor_or_a_numpy_integer(rng):
    table = random_table(rng, (50, 1))
    server, _ = two_servers(table, None)
    for index in (torch.tensor(7), np.int64(7)):
        a, b = server.eval_cpu(list(dpf.DPF().gen(index, 50)))
        assert torch.equal(a - b, table[7])


def test_what_programs_read():
    assert (dpf.DPF.PRF_DUMMY, dpf.DPF.PRF_SALSA20) == (0, 1)
    assert (dpf.DPF.PRF_CHACHA20, dpf.DPF.PRF_AES128) == (2, 3)
    assert (dpf.DPF.ENTRY_SIZE, dpf.DPF.BATCH_SIZE) == (16, 512)
    server = dpf.DPF()
    assert server.prf_method == dpf.DPF.DEFAULT_PRF == dpf.DPF.PRF_AES128
    assert repr(server) == "DPF(_uninitialized_, prf_method=AES128)"
    server.eval_init(torch.zeros(3, 2).int())
    assert (server.table_num_entries, server.table_effective_entry_size) == (3, 2)
    assert repr(server) == "DPF(entries=3, entry_size=2, prf_method=AES128)"


def test_the_benchmark_prints_one_line(capsys):
    dpf.test_cpu_dpf_perf(N=100, batch=3, entrysize=2, prf=dpf.DPF.PRF_CHACHA20)
    name = r"DPF\(entries=100, entry_size=2, prf_method=CHACHA20\)"
    line = rf"{name} Key Size: \d+ bytes, Perf: \d+ dpfs/sec\n"
    assert re.fullmatch(line, capsys.readouterr().out)


def test_the_example_runs_with_and_without_a_gpu(capsys):
    runpy.run_path(str(EXAMPLES / "gpu_dpf_sample.py"), run_name="__main__")
    assert re.fullmatch(r"row \d+: \[.*\]\n", capsys.readouterr().out)


def test_every_name_that_is_exported_exists_and_is_documented():
    assert dpf.__all__ == ["DPF", "test_cpu_dpf_perf", "test_gpu_dpf_perf"]
    assert all(getattr(dpf, name).__doc__ for name in dpf.__all__)


@pytest.mark.parametrize(
    "copied", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy, copy.copy]
)
@pytest.mark.parametrize("device", ["cuda", "emulated"])
def test_an_object_may_be_copied_before_and_after_its_answers(copied, device):
    table = torch.arange(300).int().reshape(100, 3)
    server = dpf.DPF(device=device)
    assert copied(server).table is None
    server.eval_init(table)
    keys = [dpf.DPF().gen(5, 100)[0]]
    again = copied(server)
    answer = server.eval_cpu(keys)
    assert torch.equal(again.eval_cpu(keys), answer)
    table[:] = 0  # the answers do not follow
    after = copied(server)
    assert repr(after) == repr(server)
    assert torch.equal(after.eval_cpu(keys), answer)
    if device == "emulated":
        assert torch.equal(after.eval_gpu(keys), answer)


@pytest.mark.parametrize("number", [torch.tensor(100), np.int64(100), np.array(100, "u1")])
def test_scalars_of_other_libraries_are_numbers(number):
    key, _ = dpf.DPF().gen(torch.tensor(5), number)
    assert torch.equal(dpf.DPF().gen(5, 100)[0][:4], key[:4])  # the header


@pytest.mark.parametrize("number", [torch.tensor(True), torch.tensor(100.0), torch.tensor([100])])
def test_values_that_are_not_numbers(number):
    with pytest.raises(ArgumentError, match="n: found tensor.*, expected an integer"):
        dpf.DPF().gen(5, number)
