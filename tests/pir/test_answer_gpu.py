"""The GPU kernels' answers equal those of the portable engine, bit for bit.

The kernels run on the emulated devices everywhere, and on a GPU if there is one.
"""

import math

import numpy as np
import pytest

import devices
from nescio import _core, dpf
from nescio._device import Device
from nescio.errors import ArgumentError, IndexRangeError, MismatchError, ResourceError
from nescio.pir._bins import Bins
from nescio.pir._device_table import STRATEGIES, DeviceTable


def table_of(rng, rows, row_bytes):
    return rng.integers(0, 256, (rows, row_bytes), dtype=np.uint8)


def keys_of(rng, rows, output, generator, count):
    """Keys of both parties, in turn, for random rows."""
    points = rng.integers(0, rows, count, dtype=np.uint64)
    payloads = np.tile(np.array([1, 0], np.uint64), (count, 1))
    pair = _core.generate(points, payloads, rows, output, generator)
    return _core.Keys(np.stack([pair[i % 2][i] for i in range(count)]))


def expected(values, keys, pool):
    rows = _core.Table([(1, len(values), 1)], values.shape[1], keys.output)
    rows.store(0, values, pool)
    return rows.answer([keys], pool, "portable")


def on_devices(values, output, *names):
    table = DeviceTable(
        [Device.parse(name) for name in names], [Bins(1, len(values))], values.shape[1], output
    )
    table.store(0, values)
    return table


# Rows, bytes per row, keys: one row; a partial block; whole blocks; several tiles of columns; more
# keys than a tile of 64. An emulated device is slow, and gets the smallest shape of each kind.
CARD_SHAPES = [(1, 1, 1), (65, 7, 3), (1024, 64, 17), (1500, 300, 2), (600, 9, 70)]
EMULATED_SHAPES = [(1, 1, 1), (65, 7, 3), (512, 4, 2), (520, 140, 2), (130, 9, 66)]


@pytest.mark.parametrize("device", devices.ALL)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("output", dpf.OUTPUTS)
def test_every_output_and_strategy(device, strategy, output, rng, pool):
    shapes = EMULATED_SHAPES if device in devices.EMULATED else CARD_SHAPES
    for rows, row_bytes, batch in shapes:
        values = table_of(rng, rows, row_bytes)
        keys = keys_of(rng, rows, output, "chacha20", batch)
        found, _ = on_devices(values, output, device).answer_by(strategy, [keys])
        assert np.array_equal(found, expected(values, keys, pool)), (rows, row_bytes, batch)


@pytest.mark.parametrize("device", devices.FIRST)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("output", ["bit", "u32"])
@pytest.mark.parametrize("generator", dpf.GENERATORS)
def test_every_generator(device, strategy, output, generator, rng, pool):
    values = table_of(rng, 1300, 24)
    keys = keys_of(rng, 1300, output, generator, 5)
    found, _ = on_devices(values, output, device).answer_by(strategy, [keys])
    assert np.array_equal(found, expected(values, keys, pool))


# Rows, bytes per row, keys: more than a slab of 2^14 rows for bits or 2^16 for words, and on a card
# more leaves than its cache holds (for this case, a slab of an H200 has 2^16 to 2^18 rows).
EMULATED_SLABS = {"bit": (16_900, 5, 130), "u8": (66_001, 5, 5)}
CARD_SLABS = {"bit": ((1 << 20) + 700, 4, 1200), "u8": (400_001, 5, 600), "u32": (400_001, 8, 64)}


def launches_of_one_slab(rows, output):
    """Levels of the tree (ChaCha20 has four children), leaves, product, sums of planes."""
    leaves = -(-rows // {"bit": 512, "u8": 64, "u32": 16}[output])
    return math.ceil(math.log(leaves, 4)) + (2 if output == "bit" else 3)


@pytest.mark.parametrize("device", devices.FIRST)
@pytest.mark.parametrize("output", CARD_SLABS)
def test_several_slabs(device, output, rng, pool):
    slabs = EMULATED_SLABS if device in devices.EMULATED else CARD_SLABS
    if output not in slabs:
        pytest.skip("takes a minute on an emulated device")
    rows, row_bytes, batch = slabs[output]
    values = table_of(rng, rows, row_bytes)
    keys = keys_of(rng, rows, output, "chacha20", batch)
    found, work = on_devices(values, output, device).answer_by("auto", [keys])
    assert np.array_equal(found, expected(values, keys, pool))
    assert work.launches > launches_of_one_slab(rows, output)


def test_one_slab_on_a_card(rng, pool):
    """The same rows are one slab where the cache is as large as that of a card."""
    rows, row_bytes, batch = EMULATED_SLABS["bit"]
    values = table_of(rng, rows, row_bytes)
    keys = keys_of(
        rng, rows, "bit", "chacha20", 5 * batch
    )  # fewer would be expanded from their roots
    found, work = on_devices(values, "bit", "emulated:3").answer_by("auto", [keys])
    assert np.array_equal(found, expected(values, keys, pool))
    assert work.launches == launches_of_one_slab(rows, "bit")


@pytest.mark.parametrize("device", devices.FIRST)
def test_more_keys_than_one_batch(device, rng, pool):
    values = table_of(rng, 600, 1)
    keys = keys_of(rng, 600, "bit", "chacha8", (1 << 14) + 5)
    assert np.array_equal(
        on_devices(values, "bit", device).answer([keys]), expected(values, keys, pool)
    )


@pytest.mark.parametrize("device", devices.FIRST)
@pytest.mark.parametrize("run", [64, 256, 512])
def test_nodes_per_step(device, run, rng, pool):
    values = table_of(rng, 5000, 16)
    for output in ("bit", "u64"):
        keys = keys_of(rng, 5000, output, "aes128", 3)
        found, _ = on_devices(values, output, device).answer_by("bounded", [keys], run)
        assert np.array_equal(found, expected(values, keys, pool))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("output", dpf.OUTPUTS)
def test_rows_split_over_devices(strategy, output, rng, pool):
    values = table_of(rng, 3000, 20)
    keys = keys_of(rng, 3000, output, "aes128", 4)
    table = on_devices(values, output, *devices.EMULATED)
    found, work = table.answer_by(strategy, [keys])
    assert np.array_equal(found, expected(values, keys, pool))
    assert work.leaves >= 4 * -(-3000 // (512 if output == "bit" else 64))


@pytest.mark.parametrize("device", devices.ALL)
@pytest.mark.parametrize("output", ["bit", "u32"])
def test_overwritten_rows(device, output, rng, pool):
    values = table_of(rng, 1400, 33)
    table = on_devices(values, output, device)
    indices = np.array([3, 1399, 512, 0, 4, 5], np.uint64)
    rows = table_of(rng, 6, 33)
    table.replace(indices, rows)
    for index, row in zip(indices, rows, strict=True):
        values[index] = row
    keys = keys_of(rng, 1400, output, "chacha20", 9)
    assert np.array_equal(table.answer([keys]), expected(values, keys, pool))


@pytest.mark.parametrize("device", devices.FIRST)
def test_rows_that_come_in_parts_and_from_other_libraries(device, rng, pool, dlpack):
    values = table_of(rng, 1500, 12)
    table = DeviceTable([Device.parse(device)], [Bins(1, 1500)], 12, "bit")
    table.store(1024, values[1024:])
    table.store(512, values[512:1024])
    table.shards[0].store(0, dlpack(values[:512]))
    keys = keys_of(rng, 1500, "bit", "chacha20", 2)
    assert np.array_equal(table.answer([keys]), expected(values, keys, pool))


@pytest.mark.parametrize("generator", dpf.GENERATORS)
def test_the_work_of_the_strategies(generator, rng):
    """`branch` repeats paths; the others expand every node once; `bounded` uses less memory."""
    rows = 1 << 15  # 64 leaves of 512 bits
    table = on_devices(table_of(rng, rows, 8), "bit", "emulated")
    keys = keys_of(rng, rows, "bit", generator, 3)
    work = {s: table.answer_by(s, [keys])[1] for s in ("bounded", "branch", "level", "cooperative")}
    depth = 3 if generator.startswith(("chacha", "salsa")) else 6
    nodes = (4**3 - 1) // 3 if depth == 3 else 63
    assert {w.leaves for w in work.values()} == {3 * 64}
    assert work["branch"].expansions == 3 * 64 * depth
    assert {work[s].expansions for s in ("bounded", "level", "cooperative")} == {3 * nodes}
    assert work["bounded"].launches == 1


def test_no_keys(rng):
    table = on_devices(table_of(rng, 100, 8), "bit", "emulated", *[])
    assert table.answer([_core.Keys(np.zeros((0, 0), np.uint8))]).shape == (0, 8)


def test_keys_for_another_table(rng):
    table = on_devices(table_of(rng, 1000, 8), "bit", "emulated")
    for rows, output in ((1001, "bit"), (1000, "u8")):
        with pytest.raises(MismatchError, match="does not match the table"):
            table.answer([keys_of(rng, rows, output, "aes128", 1)])


@pytest.mark.parametrize("run", [0, 63, 100, 1024])
def test_invalid_nodes(run, rng):
    table = on_devices(table_of(rng, 10, 8), "bit", "emulated")
    with pytest.raises(ArgumentError, match="expected a power of two from 64 to 512"):
        table.answer_by("bounded", [keys_of(rng, 10, "bit", "aes128", 1)], run)


def test_invalid_rows(rng):
    table = on_devices(table_of(rng, 1000, 8), "bit", "emulated")
    with pytest.raises(IndexRangeError, match="row 1000 is outside the table of 1000 rows"):
        table.shards[0].replace(np.array([1000], np.uint64), table_of(rng, 1, 8))
    for first, count in ((512, 489), (1024, 1)):
        with pytest.raises(IndexRangeError, match="outside the table of 1000 rows"):
            table.shards[0].store(first, table_of(rng, count, 8))
    with pytest.raises(ArgumentError, match="first row: found 100, expected a multiple of 512"):
        table.shards[0].store(100, table_of(rng, 1, 8))
    with pytest.raises(ArgumentError, match="found 9 bytes, expected 8 bytes"):
        table.store(0, table_of(rng, 10, 9))


def test_too_large_a_table():
    with pytest.raises(ResourceError, match=r"out of memory: requested \d+ of \d+ bytes"):
        DeviceTable([Device.parse("emulated")], [Bins(1, 1 << 30)], 64, "bit")
    with pytest.raises(ArgumentError, match="invalid table size"):
        DeviceTable([Device.parse("emulated")], [Bins(1, 1 << 60)], 1 << 20, "bit")
