"""Tables with bins on devices: the answers are those of the portable engine, bit for bit.

The kernels run on the emulated devices everywhere, and on a GPU if there is one.
"""

import numpy as np
import pytest

import devices
import nescio
from nescio import dpf
from nescio._device import Device
from nescio.errors import ArgumentError, IndexRangeError, MismatchError
from nescio.pir import Bins
from nescio.pir._device_table import STRATEGIES, DeviceTable
from pir.test_bins import keys_for, rows_of, stored
from pir.test_lookup import assert_same, random_table

# Bins of one row, and of a few; of several chunks, the last of them short; with several keys.
GROUPS = [(2, 1, 1), (3, 70, 2), (1, 600, 1)]


def on_devices(groups, values, output, *names):
    bins = [Bins(*group) for group in groups]
    table = DeviceTable([Device.parse(name) for name in names], bins, values.shape[1], output)
    table.store(0, values)
    return table


def expected(groups, values, output, keys, pool):
    return stored(groups, values, output, pool).answer(keys, pool, "portable")


@pytest.mark.parametrize("device", devices.ALL)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("output", dpf.OUTPUTS)
def test_every_output_and_strategy(device, strategy, output, rng, pool):
    values = random_table(rng, (rows_of(GROUPS), 9))
    table = on_devices(GROUPS, values, output, device)
    keys = keys_for(GROUPS, 3, output, "chacha20", rng)[0][0]
    assert_same(table.answer_by(strategy, keys)[0], expected(GROUPS, values, output, keys, pool))


@pytest.mark.parametrize("device", devices.FIRST)
@pytest.mark.parametrize("lookups", [1, 9, 40])
@pytest.mark.parametrize(("output", "row_bytes"), [("bit", 140), ("u32", 70)])
def test_every_kernel_of_the_product(device, lookups, output, row_bytes, rng, pool):
    """Few and many keys of each bin, several tiles of columns, and rows that end within a word."""
    groups = [(3, 130, 1), (2, 40, 5)]
    values = random_table(rng, (rows_of(groups), row_bytes))
    keys = keys_for(groups, lookups, output, "aes128", rng)[0][1]
    found = on_devices(groups, values, output, device).answer(keys)
    assert_same(found, expected(groups, values, output, keys, pool))


@pytest.mark.parametrize("device", devices.FIRST)
def test_more_keys_than_one_batch(device, rng, pool):
    """The keys of some bins, and of one bin, take several batches."""
    groups = [(40, 2, 3), (1, 3, 120), (2, 1, 1)]
    values = random_table(rng, (rows_of(groups), 2))
    keys = keys_for(groups, 170, "bit", "chacha8", rng)[0][0]
    found = on_devices(groups, values, "bit", device).answer(keys)
    assert_same(found, expected(groups, values, "bit", keys, pool))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("output", ["bit", "u64"])
def test_rows_split_over_devices(strategy, output, rng, pool):
    """Devices hold whole bins and parts of bins, and add up their answers."""
    groups = [(2, 700, 1), (3, 40, 2), (1, 1300, 1)]
    values = random_table(rng, (rows_of(groups), 12))
    keys = keys_for(groups, 2, output, "aes128", rng)[0][0]
    table = on_devices(groups, values, output, *devices.EMULATED)
    assert_same(table.answer_by(strategy, keys)[0], expected(groups, values, output, keys, pool))
    changed = rng.permutation(len(values))[:60].astype(np.uint64)
    values[changed] = random_table(rng, (60, 12))
    table.replace(changed, values[changed])
    assert_same(table.answer_by(strategy, keys)[0], expected(groups, values, output, keys, pool))


@pytest.mark.parametrize("device", devices.ALL)
@pytest.mark.parametrize("output", ["bit", "u8"])
def test_rows_that_change_and_come_in_parts(device, output, rng, pool, dlpack):
    groups = [(2, 700, 1), (3, 100, 1)]
    values = random_table(rng, (1700, 8))
    table = on_devices(groups, np.zeros_like(values), output, device)
    for first, end in [(1400, 1700), (512, 1400), (0, 512)]:
        table.shards[0].store(first, dlpack(values[first:end]))
    changed = np.array([0, 511, 512, 699, 700, 1399, 1400, 1500, 1699], np.uint64)
    values[changed] = random_table(rng, (9, 8))
    table.replace(changed, values[changed])
    keys = keys_for(groups, 2, output, "chacha20", rng)[0][0]
    assert_same(table.answer(keys), expected(groups, values, output, keys, pool))


@pytest.mark.parametrize("strategy", ["auto", "branch", "level", "bounded"])
@pytest.mark.parametrize("output", ["bit", "u32"])
def test_bins_of_one_size_take_the_launches_of_one(strategy, output, rng):
    def launches(bins):
        groups = [(bins, 300, 1)]
        table = on_devices(groups, random_table(rng, (bins * 300, 4)), output, "emulated")
        keys = keys_for(groups, 2, output, "chacha20", rng)[0][0]
        return table.answer_by(strategy, keys)[1].launches

    assert launches(12) == launches(1)


@pytest.mark.parametrize("names", [("emulated",), ("emulated", "emulated:3")])
def test_servers_that_follow_a_table(names, rng):
    """Checked lookups, before and after an update."""
    bins = [(1, 600, 2), (5, 90)]
    values = random_table(rng, (1050, 40))
    table = nescio.Table(values, bins=bins)
    servers = [nescio.Server(table, party=party, devices=names) for party in (0, 1)]

    def look_up(places):
        client = nescio.Client(table.params, table.tops)
        query = client.query(places)
        answers = [s.answer(key) for s, key in zip(servers, query.keys, strict=True)]
        return client.decode(query, *answers)

    places = np.concatenate([rng.integers(600, size=(3, 2)), rng.integers(90, size=(3, 5))], axis=1)
    rows = places + np.array([0, 0, 600, 690, 780, 870, 960])
    assert_same(look_up(places), values[rows])
    values[rows[0]] = random_table(rng, (7, 40))
    table.update(rows[0], values[rows[0]])
    assert_same(look_up(places), values[rows])


def test_invalid_arguments(rng, pool):
    groups = [(2, 600, 1), (1, 60, 3)]
    values = random_table(rng, (1260, 8))
    table = on_devices(groups, values, "bit", "emulated")
    keys = keys_for(groups, 2, "bit", "aes128", rng)[0][0]
    with pytest.raises(ArgumentError, match="found 1 groups, expected 2"):
        table.answer(keys[:1])
    with pytest.raises(MismatchError, match="a key does not match the table"):
        table.answer(keys[::-1])
    with pytest.raises(ArgumentError, match="keys of group 1: found None"):
        table.answer([keys[0], None])
    with pytest.raises(ArgumentError, match="group 1: found 3, expected 3 for each of 2 lookups"):
        table.answer([keys[0], keys_for([groups[1]], 1, "bit", "aes128", rng)[0][0][0]])
    with pytest.raises(ArgumentError, match="first row: found 700, expected a multiple of 512 in"):
        table.shards[0].store(700, values[:1])
    with pytest.raises(IndexRangeError, match="row 1260 is outside the table of 1260 rows"):
        table.shards[0].replace(np.array([1260], np.uint64), values[:1])
    with pytest.raises(ArgumentError, match="1260 records cannot be split over 6 devices"):
        on_devices(groups, values, "bit", *["emulated"] * 6)
    for first, rows in [(100, 10), (0, 0), (600, 661), (1260, 1)]:
        with pytest.raises(ArgumentError, match="are not part of a table of 1260 rows"):
            Device.parse("emulated").engine().Table(
                device=0, bins=groups, first_row=first, rows=rows, row_bytes=8, output="bit"
            )
