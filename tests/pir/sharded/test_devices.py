"""Shards on devices answer as those on processors do, bit for bit, also after changes."""

import numpy as np
import pytest

import devices
import nescio
from nescio.pir._sharded import ShardServer
from pir.sharded.test_shards import sharded

WIDTH = 260  # bytes: a record is a row, so that shards begin and end within tiles of 512


def answers(tables, queries, **options):
    """Returns what each shard answers to queries."""
    found = []
    for table in tables:
        server = ShardServer(table, threads=1, party=0, **options)
        found.append(server.answer_parts([server.checked(query) for query in queries]))
    return found


@pytest.mark.parametrize("device", devices.FIRST)
@pytest.mark.parametrize(("rows", "output", "shards"), [(1500, "bit", 3), (1100, "u32", 2)])
def test_a_shard_on_a_device(device, rows, output, shards, rng):
    values = rng.integers(256, size=(rows, WIDTH), dtype=np.uint8)
    head, tables, _ = sharded(values, output, shards)
    servers = [ShardServer(table, threads=1, party=0, device=device) for table in tables]
    wanted = [0, rows - 1]
    old = nescio.Client(head.params, head.tops).query(wanted).keys[0]
    where = np.array([0, 700, rows - 1], np.uint64)
    for _ in range(2):
        query = nescio.Client(head.params, head.tops).query(wanted).keys[0]
        expected = answers(tables, [query, old], device="cpu")
        for server, own in zip(servers, expected, strict=True):
            assert server.devices != ("cpu",)
            assert server.answer_parts([server.checked(one) for one in (query, old)]) == own
        head.update(where, rng.integers(256, size=(3, WIDTH), dtype=np.uint8))


def test_a_shard_on_several_devices(rng):
    values = rng.integers(256, size=(2700, WIDTH), dtype=np.uint8)
    head, tables, _ = sharded(values, "bit", 2)
    assert tables[1].window(0)[0] > 0
    query = nescio.Client(head.params, head.tops).query([5, 2699]).keys[0]
    several = ["emulated", "emulated:1"]
    assert answers(tables, [query], devices=several) == answers(tables, [query], device="cpu")
