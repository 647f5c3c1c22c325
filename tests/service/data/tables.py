"""Tables in data folders, and models of them."""

import numpy as np

import nescio
from nescio.pir._change import Change, make_change, row_kind
from nescio.service._data import Folder, KeptTable, Origin, recover

ROWS = 600
ID_BYTES = 16


def fresh_rows(stamp, count):
    """Makes rows that are all different."""
    rows = np.zeros((count, 3), "u4")
    rows[:, 0] = stamp
    rows[:, 1] = np.arange(count)
    rows[:, 2] = rows[:, 0] * 0x9E3779B1 ^ rows[:, 1] * 0x85EBCA6B
    return rows


def new_table(rows=ROWS, **options):
    return nescio.Table(fresh_rows(0, rows), threads=1, **options)


def begin(path, table=None):
    """Starts to keep a table in a new folder."""
    table = table or new_table()
    return KeptTable.begin(table, Folder(path), Origin.of(table.params, []))


def restart(kept):
    """Ends a kept table as a crash does, and starts it from its folder."""
    kept.snapshots.wait()
    kept.folder.close()
    return recover(Folder(kept.folder.path), threads=1)


def message(table, operation, indices, rows=(), version=None, **options):
    """Encodes a change of a table."""
    kind = row_kind(table)
    indices = np.asarray(indices, np.uint64)
    values = np.zeros((0, *kind.row_shape), kind.dtype) if operation == "delete" else rows
    raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8).reshape(-1, kind.row_bytes)
    version = version or table.next_version
    return Change(operation, version, indices, raw, **options).encode(table.params)


def change(table, operation, indices, rows=(), **options):
    """Makes a change by a message; returns the message."""
    data = message(table, operation, indices, rows, **options)
    make_change(table, data)
    return data


def names_in(folder):
    """Lists the names of the files of a folder."""
    return {path.name for path in folder.path.iterdir()}


def all_rows(table):
    return table[np.arange(len(table))]


def same(first, second):
    """Tests if two tables have the same parameters and the same memory, bit for bit."""
    with first.reading() as one, second.reading() as other:
        memories = [
            [np.asarray(part.memory()) for part in (state.records, *state.tree.tables)]
            for state in (one, other)
        ]
        return (
            one.params == other.params
            and np.array_equal(one.tree.tops, other.tree.tops)
            and all(np.array_equal(a, b) for a, b in zip(*memories, strict=True))
        )
