"""Tables whose rows are checked, and servers that answer honestly or lie."""

from dataclasses import replace

import numpy as np

import nescio


def make(rows, width=8, output="bit", seed=7, **options):
    values = np.random.default_rng(seed).integers(256, size=(rows, width), dtype=np.uint8)
    return nescio.Table(values, output=output, threads=2, **{"record_rows": 1, **options})


def servers_of(*tables):
    return [nescio.Server(table, threads=1, party=p) for p, table in enumerate(tables)]


def ask(client, indices, servers):
    """Returns a query and the answers of both servers."""
    query = client.query(indices)
    return query, [s.answer(k) for s, k in zip(servers, query.keys, strict=True)]


def look_up(client, indices, servers):
    query, answers = ask(client, indices, servers)
    return client.decode(query, *answers)


def lying(table, rows):
    """Makes a table with other rows that claims to be `table`."""
    params = table.params
    other = nescio.Table(rows, output=params.output, record_rows=params.record_rows, threads=1)
    other._state = replace(other._state, params=table.params)
    return other
