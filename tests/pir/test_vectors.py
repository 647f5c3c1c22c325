"""Replays tests/vectors/wire.json: a whole lookup, byte for byte."""

import json
from pathlib import Path

import numpy as np
import pytest

import nescio
from nescio import _core
from nescio.pir import _wire as wire

VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "wire.json").read_text())


@pytest.fixture
def table():
    raw = bytes.fromhex("".join(VECTOR["rows"]))
    values = np.frombuffer(raw, "<u2").reshape(len(VECTOR["rows"]), 3)
    return nescio.Table(values, version="vector")


def test_parameters(table):
    assert table.params.to_json() == VECTOR["params"]
    assert table.params.id.hex() == VECTOR["id"]
    assert nescio.TableParams.from_json(VECTOR["params"]) == table.params


def test_queries(table):
    hexadecimal = "".join(root for pair in VECTOR["roots"] for root in pair)
    roots = np.frombuffer(bytes.fromhex(hexadecimal), np.uint64)
    points = np.array(VECTOR["indices"], np.uint64)
    ones = np.tile(np.array([[1, 0]], np.uint64), (len(points), 1))
    keys = _core.generate(points, ones, len(table), "bit", "chacha20", roots.reshape(-1, 2))
    queries = [wire.encode_query(table.params, party, keys[party]).hex() for party in (0, 1)]
    assert queries == VECTOR["queries"]


@pytest.mark.parametrize("party", [0, 1])
def test_answers(table, party, tier):
    server = nescio.Server(table, threads=2, party=party, tier=tier)
    answer = server.answer(bytes.fromhex(VECTOR["queries"][party]))
    assert answer.hex() == VECTOR["answers"][party]


def test_decoding(table):
    client = nescio.Client(table.params)
    query = client.query(VECTOR["indices"])  # other keys, but a query of the same shape
    rows = client.decode(query, *(bytes.fromhex(answer) for answer in VECTOR["answers"]))
    assert np.array_equal(rows, table[VECTOR["indices"]])
