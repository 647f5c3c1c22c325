"""Lookups in every kind of table, checked against the plaintext table."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import nescio
from nescio import _core
from nescio.dpf import GENERATORS, OUTPUTS

ROWS = [1, 2, 127, 128, 129, (1 << 17) + 1]
TIERS = _core.supported_tiers()
DTYPES = ["?", "i1", "u1", "i2", ">i4", "<u8", "f2", "f4", ">f8", "c8", "S5", "U3", "M8[s]"]


def look_up(table, indices, threads=1, tier=None):
    """Looks up rows on two servers with the table."""
    servers = [nescio.Server(table, threads=threads, party=p, tier=tier) for p in (0, 1)]
    params = nescio.TableParams.from_json(table.params.to_json())
    insecure = "insecure_" in params.generator
    client = nescio.Client(params, table.tops, insecure_generator=insecure)
    query = client.query(indices)
    answers = [s.answer(key) for s, key in zip(servers, query.keys, strict=True)]
    return client.decode(query, *answers)


def random_table(rng, shape, dtype="u1"):
    dtype = np.dtype(dtype)
    raw = rng.integers(256, size=(*shape, dtype.itemsize), dtype=np.uint8)
    if dtype.kind == "b":
        raw &= 1
    if dtype.kind in "U":
        raw = rng.integers(65, 90, size=(*shape, dtype.itemsize // 4)).astype("<u4")
    return raw.view(dtype).reshape(shape)


def assert_same(found, expected):
    """Compares arrays bit for bit, NaNs included."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("generator", ["aes128", "chacha20"])
@pytest.mark.parametrize("rows", ROWS)
def test_numbers_of_rows(rows, generator, output, threads, rng):
    table = nescio.Table(random_table(rng, (rows, 5)), output=output, generator=generator)
    indices = [0, rows - 1, rows // 2]
    assert_same(look_up(table, indices, threads), table[indices])


@pytest.mark.parametrize("generator", GENERATORS)
def test_every_generator(generator, tier, rng):
    table = nescio.Table(random_table(rng, (5000, 9)), generator=generator)
    indices = [0, 4999, 17]
    assert_same(look_up(table, indices, tier=tier), table[indices])


@pytest.mark.parametrize("row_bytes", [1, 3, 8, 63, 64, 65, 200, 256, 1000, 4096])
@pytest.mark.parametrize("output", OUTPUTS)
def test_widths_of_rows_in_every_tier(row_bytes, output, tier, rng):
    table = nescio.Table(random_table(rng, (700, row_bytes)), output=output)
    indices = rng.integers(700, size=3)
    assert_same(look_up(table, indices, tier=tier), table[indices])


@pytest.mark.parametrize("row_bytes", [1, 2, 3, 4, 12, 16, 17, 63, 100])
@pytest.mark.parametrize("output", ["u8", "u32", "u64", "u128"])
def test_narrow_rows_have_the_same_answer_on_every_tier_and_device(row_bytes, output, rng):
    """With more rows than the kernels copy at a time, and rows that end within a word."""
    table = nescio.Table(random_table(rng, (1100, row_bytes)), output=output)
    client = nescio.Client(table.params, table.tops)
    indices = [1099, 1023]
    query = client.query(indices)
    servers = [{"tier": tier} for tier in TIERS] + [{"device": "emulated"}]
    answers = [
        [nescio.Server(table, threads=1, party=p, **where).answer(query.keys[p]) for p in (0, 1)]
        for where in servers
    ]
    assert all(other == answers[0] for other in answers)
    assert_same(client.decode(query, *answers[0]), table[indices])


@pytest.mark.load
@pytest.mark.parametrize("output", ["u8", "u32"])
def test_narrow_rows_take_about_as_long_as_their_shares(output, rng):
    """With a vector for each row, rows of one element took 70 times as long as these."""

    def seconds(row_bytes):
        values = rng.integers(256, size=((1 << 22) // row_bytes, row_bytes), dtype=np.uint8)
        table = nescio.Table(values, output=output, generator="aes128")
        query = nescio.Client(table.params, table.tops).query([1]).keys[0]
        server = nescio.Server(table, threads=1)

        def once():
            begin = time.process_time()
            server.answer(query)
            return time.process_time() - begin

        return min(once() for _ in range(5))

    assert seconds({"u8": 1, "u32": 4}[output]) < 16 * seconds(64)


@pytest.mark.parametrize("batch", [0, 1, 2, 65, 300])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("output", ["bit", "u8", "u32"])
def test_batches(batch, threads, output, rng):
    table = nescio.Table(random_table(rng, (1300, 20), "f4"), output=output)
    indices = rng.integers(1300, size=batch)
    assert_same(look_up(table, indices, threads), table[indices])


@pytest.mark.parametrize("batch", [9, 24, 40, 48, 57, 64, 71, 105, 128, 257])
@pytest.mark.parametrize("row_bytes", [8, 17, 100])
def test_groups_of_keys_and_blocks_of_columns(batch, row_bytes, tier, rng):
    """The kernels take groups of eight keys and blocks of eight bytes in different numbers."""
    table = nescio.Table(random_table(rng, (1100, row_bytes)))
    indices = rng.integers(1100, size=batch)
    assert_same(look_up(table, indices, tier=tier), table[indices])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_types_and_shapes(dtype, shape, rng):
    values = random_table(rng, (50, *shape), dtype)
    assert_same(look_up(nescio.Table(values), [7, 49]), values[[7, 49]])


@given(
    values=hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.int16, np.bool_]),
        hnp.array_shapes(min_dims=1, max_dims=3, max_side=20),
    ),
    output=st.sampled_from(OUTPUTS),
    data=st.data(),
)
def test_any_table_and_any_indices(values, output, data):
    shapes = hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4)
    indices = data.draw(hnp.arrays(np.int64, shapes, elements=st.integers(0, len(values) - 1)))
    found = look_up(nescio.Table(values, output=output), indices, threads=2)
    assert_same(found, values[indices])


def test_one_index_gives_one_row():
    values = np.arange(12.0).reshape(4, 3)
    assert look_up(nescio.Table(values), 2).tolist() == [6, 7, 8]


@pytest.mark.parametrize("order", ["C", "F"])
def test_tables_in_any_memory_order(order, rng):
    values = np.array(random_table(rng, (100, 7), "f4"), order=order)
    assert_same(look_up(nescio.Table(values), [5]), values[[5]])
    assert_same(look_up(nescio.Table(values[::2, ::-1]), [5]), values[::2, ::-1][[5]])


def test_a_mapped_file(tmp_path, rng):
    values = random_table(rng, (1000, 10), "f4")
    np.save(tmp_path / "table.npy", values)
    table = nescio.Table(np.load(tmp_path / "table.npy", mmap_mode="r"))
    np.save(tmp_path / "table.npy", values[::-1])  # later changes to the file have no effect
    assert_same(look_up(table, [999]), values[[999]])


def test_tables_and_indices_of_other_libraries(dlpack, rng):
    values = random_table(rng, (100, 7), "f4")
    table = nescio.Table(dlpack(values))
    assert_same(look_up(table, dlpack(np.array([3, 4]))), values[[3, 4]])
    on_a_gpu = nescio.Table(dlpack(values, device=(2, 0)))
    assert on_a_gpu.params == table.params


def test_pytorch_tensors():
    torch = pytest.importorskip("torch")
    values = torch.arange(300, dtype=torch.float32).reshape(100, 3)
    table = nescio.Table(values)
    assert_same(look_up(table, torch.tensor([99, 0])), values[[99, 0]].numpy())


def test_a_server_answers_several_threads_at_once(rng):
    table = nescio.Table(random_table(rng, (3000, 40)))
    servers = [nescio.Server(table, threads=2) for _ in range(2)]
    client = nescio.Client(table.params, table.tops)
    wrong = []

    def ask(index):
        query = client.query([index])
        answers = [s.answer(key) for s, key in zip(servers, query.keys, strict=True)]
        if not np.array_equal(client.decode(query, *answers), table[[index]]):
            wrong.append(index)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_answers_together_are_the_answers_alone(rng):
    table = nescio.Table(random_table(rng, (500, 9)))
    server = nescio.Server(table, threads=2)
    client = nescio.Client(table.params, table.tops)
    queries = [client.query(rng.integers(500, size=n)).keys[0] for n in (3, 0, 1, 40)]
    together = server.answer_batch([server.check(query) for query in queries])
    assert together == [server.answer(query) for query in queries]


def test_progress_is_reported_while_the_digest_is_taken(rng):
    calls = []
    values = random_table(rng, (40_000, 1000))
    nescio.Table(values, progress=lambda done, total: calls.append((done, total)))
    assert len(calls) > 1
    assert calls[-1] == (values.nbytes, values.nbytes)
    assert sorted(calls) == calls


def test_one_answer_alone_is_not_the_row(rng):
    table = nescio.Table(random_table(rng, (100, 64)))
    query = nescio.Client(table.params, table.tops).query([5])
    answer = nescio.Server(table).answer(query.keys[0])
    assert table[5].tobytes() not in answer
