"""The nodes that are chosen for replicas, without a cluster."""

from nescio.service._cluster._placement import Placed, Room, choose_node, crowded

SMALL, LARGE = Room(10), Room(60)
NODES = {"a": Room(100), "b": Room(100), "c": Room(100)}


def test_replicas_of_a_shard_have_different_nodes():
    placed = []
    for shard in range(3):
        for _ in range(2):
            node = choose_node(NODES, placed, shard, SMALL)
            placed.append(Placed(shard, node, SMALL))
    for shard in range(3):
        assert len({one.node for one in placed if one.shard == shard}) == 2
    assert sorted(one.node for one in placed) == ["a", "a", "b", "b", "c", "c"]


def test_more_replicas_than_nodes_share_them():
    placed = [Placed(0, node, SMALL) for node in NODES]
    assert choose_node(NODES, placed, 0, SMALL) in NODES


def test_a_node_without_memory_or_cards_is_not_chosen():
    placed = [Placed(0, "a", LARGE), Placed(1, "b", LARGE)]
    assert choose_node(NODES, placed, 0, LARGE) == "c"
    assert choose_node(NODES, [*placed, Placed(2, "c", LARGE)], 0, LARGE) is None
    assert choose_node({**NODES, "d": Room(100, cards=2)}, placed, 0, Room(10, cards=1)) == "d"


def test_a_replica_moves_only_to_a_node_without_its_shard():
    placed = {"one": Placed(0, "a", SMALL), "two": Placed(0, "a", SMALL)}
    assert crowded(NODES, placed) == "one"
    assert crowded({"a": Room(100)}, placed) is None
    assert crowded({"a": Room(100), "b": Room(5)}, placed) is None
    assert crowded(NODES, {**placed, "two": Placed(0, "b", SMALL)}) is None
    other = {"one": Placed(0, "a", SMALL), "two": Placed(1, "a", SMALL)}
    assert crowded(NODES, other) is None
