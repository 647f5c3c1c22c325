"""Errors for invalid tables, queries and answers."""

import tracemalloc

import numpy as np
import pytest

import nescio
from nescio import _core, _emulated
from nescio.errors import (
    ArgumentError,
    IndexRangeError,
    MalformedKeyError,
    MalformedMessageError,
    MismatchError,
)

VALUES = np.arange(3000.0, dtype="f4").reshape(1000, 3)

HUGE = pytest.param(10**5000, id="huge")  # Python will not even print it


@pytest.fixture
def table():
    return nescio.Table(VALUES, record_rows=1)


@pytest.fixture
def client(table):
    return nescio.Client(table.params, table.tops)


@pytest.fixture
def servers(table):
    return [nescio.Server(table, party=p) for p in (0, 1)]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((0, 3)), "at least one row and element"),
        (np.zeros((3, 0)), "at least one row and element"),
        (np.float64(3), "at least one row and element"),
        (np.array([{}, []], dtype=object), "is not supported"),
        (np.zeros(3, dtype=[("a", "i4"), ("b", "f8")]), "is not supported"),
        (np.zeros(3, dtype=np.longdouble), "is not supported"),
        (np.ma.masked_equal([1, 2], 2), "masked elements"),
        ("embeddings.npy", "found a path, expected an array"),
        ([[1, 2], [3]], "cannot be read as an array"),
    ],
)
def test_unsupported_tables(array, message):
    with pytest.raises(ArgumentError, match=message):
        nescio.Table(array)


def engine_tables():
    pool = _core.ThreadPool(1)
    processor = _core.Table([(1, 1000, 1)], 12, "bit")
    emulated = _emulated.Table(
        device=0, bins=[(1, 1000, 1)], first_row=0, rows=1000, row_bytes=12, output="bit"
    )
    return {
        "stored on the processor": lambda rows: processor.store(0, rows, pool),
        "stored on a device": lambda rows: emulated.store(0, rows),
        "replaced on a device": lambda rows: emulated.replace(np.zeros(1, np.uint64), rows),
    }


@pytest.mark.parametrize("name", engine_tables())
def test_rows_of_another_width_are_the_callers_mistake(name):
    with pytest.raises(
        ArgumentError, match=r"^rows of a table: found 13 bytes, expected 12 bytes$"
    ):
        engine_tables()[name](np.zeros((1, 13), np.uint8))


@pytest.mark.parametrize(("rows", "row_bytes"), [(1000, 13), (1001, 12)])
def test_changes_of_another_table_are_the_callers_mistake(rows, row_bytes):
    pool = _core.ThreadPool(1)
    table = _core.Table([(1, 1000, 1)], 12, "bit")
    new = np.zeros((1, row_bytes), np.uint8)
    changes = _core.RowChanges(np.zeros(1, np.uint64), new, [(1, rows, 1)], pool)
    with pytest.raises(ArgumentError, match="expected 1000 rows of 12 bytes"):
        table.replace(changes, pool)
    with pytest.raises(ArgumentError, match="new rows: found 1, expected 2"):
        _core.RowChanges(np.zeros(2, np.uint64), new, [(1, rows, 1)], pool)
    with pytest.raises(IndexRangeError):
        _core.RowChanges(np.full(1, rows, np.uint64), new, [(1, rows, 1)], pool)


def test_the_memory_of_a_table_has_its_size():
    with pytest.raises(
        ArgumentError, match=r"^memory of a table: found 5 bytes, expected \d+ bytes$"
    ):
        _core.Table([(1, 1000, 1)], 12, "bit", np.zeros(5, np.uint8))


@pytest.mark.parametrize(
    "arguments",
    [{"output": "u16"}, {"generator": "rot13"}, {"version": ""}, {"version": "a\nb"}],
)
def test_table_options_that_do_not_exist(arguments):
    with pytest.raises(ArgumentError):
        nescio.Table(VALUES, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"party": 2},
        {"party": True},
        {"device": "tpu"},
        {"threads": -1},
        {"threads": 2**40},
        {"threads": 1.5},
        {"tier": "avx1024"},
    ],
)
def test_server_options_that_do_not_exist(table, arguments):
    with pytest.raises(ArgumentError):
        nescio.Server(table, **arguments)


@pytest.mark.parametrize("index", [-1, 1000, [0, 1000], 1 << 80, HUGE])
def test_an_index_out_of_range(client, index):
    with pytest.raises(IndexRangeError, match="expected 0 to 999"):
        client.query(index)


@pytest.mark.parametrize("indices", [1.0, [0.5], "1", [True], None, [None]])
def test_indices_are_integers(client, indices):
    with pytest.raises(ArgumentError):
        client.query(indices)


def test_a_query_cut_anywhere(client, servers):
    query = client.query([5, 6]).keys[0]
    for length in [*range(64), len(query) // 2, len(query) - 1]:
        with pytest.raises(MalformedMessageError):
            servers[0].answer(query[:length])
    with pytest.raises(MalformedMessageError, match="bytes in all"):
        servers[0].answer(query + b"\0")


@pytest.mark.parametrize(
    ("offset", "value", "error", "message"),
    [
        (0, b"NA", MalformedMessageError, "found b'NA' at the beginning, expected b'NQ'"),
        (2, b"\x01", MalformedMessageError, "found format version 1, expected 2"),
        (3, b"\x02", MalformedMessageError, "found party 2, expected 0 or 1"),
        (4, b"\xff\xff\xff\xff", MalformedMessageError, "4294967295 records"),
        (8, b"\xff" * 4, MalformedMessageError, "expected records of"),
        (12, b"\x02", MalformedMessageError, "found 2 tables, expected 1"),
        (13, b"\x01", MalformedMessageError, "at byte 13, expected zeros"),
        (16, bytes(16), MismatchError, "another table or version"),
        (32, b"XX", MalformedKeyError, "does not begin with 'NK'"),
        (37, b"\x01", MalformedKeyError, "contradicts its party"),
        (40, b"\xe9", MismatchError, "bit keys over 1001 points"),
    ],
)
def test_a_damaged_query(client, servers, offset, value, error, message):
    query = client.query([5, 6]).keys[0]
    damaged = query[:offset] + value + query[offset + len(value) :]
    with pytest.raises(error, match=message):
        servers[0].answer(damaged)


@pytest.mark.parametrize("data", ["text", None, 5, np.zeros(100), b""])
def test_queries_are_bytes(servers, data):
    with pytest.raises((ArgumentError, MalformedMessageError)):
        servers[0].answer(data)


def test_a_query_for_the_other_party_is_not_answered(client, servers):
    query = client.query([5])
    with pytest.raises(MismatchError, match="one server must never get both keys") as caught:
        servers[0].answer(query.keys[1])
    assert (caught.value.found, caught.value.expected) == ("party 1", "party 0")


@pytest.mark.parametrize(
    "other",
    [
        nescio.Table(VALUES + 1),
        nescio.Table(VALUES[:999]),
        nescio.Table(VALUES.reshape(1000, 3, 1)),
        nescio.Table(VALUES.view("i4")),
        nescio.Table(VALUES, version="2"),
        nescio.Table(VALUES, output="u32"),
        nescio.Table(VALUES, generator="aes128"),
    ],
    ids=["content", "rows", "shape", "dtype", "version", "output", "generator"],
)
def test_different_tables_never_answer_each_others_queries(table, other):
    query = nescio.Client(table.params, table.tops).query([5])
    assert other.params != table.params
    with pytest.raises(MismatchError, match="fetch the table's parameters again") as caught:
        nescio.Server(other).answer(query.keys[0])
    assert caught.value.found == table.params.id.hex()
    assert caught.value.expected == other.params.id.hex()


def test_a_foreign_key_inside_a_sound_query(client, servers):
    query = client.query([5]).keys[0]
    foreign = nescio.dpf.generate(5, domain=999)[0]
    assert len(foreign) == len(query) - 32
    with pytest.raises(MismatchError, match="bit over 999 records.*expected bit over 1000 records"):
        servers[0].answer(query[:32] + foreign)


def answers_to(query, servers):
    return [s.answer(key) for s, key in zip(servers, query.keys, strict=True)]


def test_clients_and_servers_are_made_from_what_they_say(table):
    with pytest.raises(ArgumentError, match=r"TableParams\.from_json"):
        nescio.Client(table.params.to_json())
    with pytest.raises(ArgumentError, match=r"nescio\.Table"):
        nescio.Server(VALUES)


@pytest.mark.parametrize("generator", ["insecure_siphash", "insecure_highwayhash"])
def test_a_client_refuses_an_insecure_generator_unless_it_is_allowed(generator):
    params = nescio.Table(VALUES, generator=generator).params
    with pytest.raises(ArgumentError, match=f"{generator}, which claims no 128-bit security"):
        nescio.Client(params, verify=False)
    client = nescio.Client(params, verify=False, insecure_generator=True)
    assert client.query([5]).count == 1


def test_a_query_in_any_buffer(client, servers):
    key = client.query([5]).keys[0]
    spread = memoryview(b"".join(bytes([b, 0]) for b in key))[::2]
    assert servers[0].answer(spread) == servers[0].answer(bytearray(key))


def test_answers_may_come_in_either_order(client, servers):
    query = client.query([5, 6])
    first, second = answers_to(query, servers)
    assert np.array_equal(client.decode(query, second, first), VALUES[[5, 6]])


def test_an_answer_cut_anywhere(client, servers):
    query = client.query([5, 6])
    first, second = answers_to(query, servers)
    for length in range(len(second)):
        with pytest.raises(MalformedMessageError):
            client.decode(query, first, second[:length])


def test_two_answers_of_one_party(client, servers):
    query = client.query([5])
    first, _ = answers_to(query, servers)
    with pytest.raises(MismatchError, match="both answers are from party 0"):
        client.decode(query, first, first)


def test_answers_to_another_query(client, servers):
    answers = answers_to(client.query([5, 6]), servers)
    with pytest.raises(MalformedMessageError, match="found 2 lookups of 1 tables, expected 1 of 1"):
        client.decode(client.query([5]), *answers)


def test_answers_from_another_table(client):
    query = client.query([5])
    other = nescio.Table(VALUES, version="2")
    other_query = nescio.Client(other.params, other.tops).query([5])
    answers = answers_to(other_query, [nescio.Server(other) for _ in range(2)])
    with pytest.raises(MismatchError, match="another table or version"):
        client.decode(query, *answers)


def test_a_query_does_not_show_its_keys_when_printed(client):
    query = client.query([5])
    assert "keys" not in repr(query)
    assert query.count == 1


def test_rows_that_are_too_long_are_refused_before_they_are_copied():
    rows = np.broadcast_to(np.zeros(1, "u1"), (2, 1 << 31))
    tracemalloc.start()
    try:
        with pytest.raises(ArgumentError, match="found rows of 2147483648 bytes, expected 1 to"):
            nescio.Table(rows)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
