"""Replicas on several nodes, of which one ends and another one starts."""

import time

import pytest

from nescio.service._cluster import _admin as admin

pytestmark = [pytest.mark.timeout(240), pytest.mark.load, pytest.mark.cluster]


def nodes_of(table):
    """Returns the nodes of the replicas of each shard; None for one that does not answer."""
    found = {}
    for one in admin.status(table.name):
        found.setdefault(one.shard, []).append(one.info.node if one.up and one.info else None)
    return list(found.values())


def are_apart(table):
    return all(None not in own and len(set(own)) == len(own) for own in nodes_of(table))


def test_replicas_of_a_shard_are_on_different_nodes(sharded):
    table = sharded(shards=3, replicas=2)
    table.wait_up()
    assert are_apart(table)
    used = [node for own in nodes_of(table) for node in own]
    assert sorted(map(used.count, set(used))) == [2, 2, 2]


def test_a_node_that_ends_fails_no_lookup_and_no_change(sharded, fresh_rows, raylets):
    """Its replicas start on the other nodes, and move to a new one, apart from their likes."""
    table = sharded(shards=3, replicas=2)
    table.wait_up()
    ended = next(node for own in nodes_of(table) for node in own if node in raylets.others)
    raylets.kill(ended)
    try:
        for number in range(10):
            table.check()
            table.change("update", [number, 69_000], fresh_rows(2))
            table.check(rows=(number, 69_000))
        table.wait_up()
        assert ended not in [node for own in nodes_of(table) for node in own]
    finally:
        raylets.add()
    end = time.monotonic() + 90
    while not are_apart(table) and time.monotonic() < end:
        table.check()
        time.sleep(0.1)
    assert are_apart(table)
    table.wait_up()
    table.check(rows=(9, 69_000))
