"""Replays tests/vectors/wire.json: whole lookups, byte for byte."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import nescio
from nescio import _core
from nescio.pir import _tops as tops
from nescio.pir import _wire as wire

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "wire.json").read_text())


def stream(label, count):
    """Returns the reproducible bytes of tests/vectors/README.md."""
    return hashlib.shake_128(f"nescio test vector {label}".encode()).digest(count)


def make_table(params, layout=b""):
    """Makes the table of a vector's parameters."""
    dtype, width = np.dtype(params["dtype"]), params["row_shape"][0]
    raw = b"".join(stream(f"row {i}", width * dtype.itemsize) for i in range(params["rows"]))
    values = np.frombuffer(raw, dtype).reshape(-1, width)
    count = params["record_rows"]
    return nescio.Table(
        values,
        version="vector",
        output=params["output"],
        record_rows=count,
        bins=params.get("bins"),
        layout=layout,
    )


@pytest.fixture(scope="module", params=VECTORS["lookups"], ids=lambda v: v["id"][:6])
def vector(request):
    return request.param


@pytest.fixture(scope="module")
def table(vector):
    return make_table(json.loads(vector["params"]), vector["layout"].encode())


def test_parameters(vector, table):
    assert table.params.to_json() == vector["params"]
    assert table.params.id.hex() == vector["id"]
    assert nescio.TableParams.from_json(vector["params"]) == table.params


def test_tops(vector, table):
    with table.reading() as state:
        message = tops.encode_tops(state)
    assert hashlib.sha256(message).hexdigest() == vector["tops"]
    assert np.array_equal(tops.parse_tops(table.params, message), table.tops)


def test_queries(vector, table):
    params, places = table.params, np.array(vector["lookups"], np.uint64)
    places = places.reshape(len(places), params.slots)
    parts = []
    for level in range(len(vector["roots"][0])):
        first = 0
        for group in params.layouts[level].bins:
            own = slice(first, first + group.slots)
            first += group.slots
            pairs = "".join(r for lookup in vector["roots"] for p in lookup[level][own] for r in p)
            roots = np.frombuffer(bytes.fromhex(pairs), np.uint64).reshape(-1, 2)
            at = (places[:, own] // np.uint64(params.record_rows * 16**level)).reshape(-1)
            ones = np.tile(np.array([[1, 0]], np.uint64), (len(at), 1))
            output = params.layouts[level].output
            parts.append(_core.generate(at, ones, group.rows, output, "chacha20", roots))
    levels = len(vector["roots"][0])
    per_level = len(parts) // levels
    for party in (0, 1):
        keys = [part[party].reshape(len(places), -1) for part in parts]
        joined = [
            np.concatenate(keys[level * per_level : (level + 1) * per_level], axis=1)
            for level in range(levels)
        ]
        query = wire.encode_query(params, party, joined)
        assert query.hex() == vector["queries"][party]


@pytest.mark.parametrize("party", [0, 1])
def test_answers(vector, table, party, tier):
    server = nescio.Server(table, threads=2, party=party, tier=tier)
    answer = server.answer(bytes.fromhex(vector["queries"][party]))
    assert answer.hex() == vector["answers"][party]


def test_decoding(vector, table):
    client = nescio.Client(table.params, table.tops, verify=vector["checked"])
    query = client.query(vector["lookups"])  # other keys, but a query of the same shape
    rows = client.decode(query, *(bytes.fromhex(answer) for answer in vector["answers"]))
    assert rows.tobytes().hex() == "".join(vector["found"])


def test_a_difference_of_tops():
    vector = VECTORS["tops"]
    table = make_table(
        {"rows": 5000, "row_shape": [3], "dtype": "<u2", "output": "bit", "record_rows": 1}
    )
    before, old = table.params, table.tops
    row = np.frombuffer(bytes.fromhex(vector["bytes"]), "<u2")
    table.update([vector["row"]], row[None])
    assert table.params.to_json() == vector["params"]
    with table.reading() as state:
        message = tops.encode_tops(state, before.id)
    assert message.hex() == vector["change"]
    assert np.array_equal(tops.parse_tops(table.params, message, old), table.tops)
