"""Lookups in this process, some of which keep what left for each server."""

import numpy as np

import nescio


class Recorded:
    """Lookups of a table whose two servers are in this process; `sent` has all queries."""

    def __init__(self, rows):
        self.table = rows if isinstance(rows, nescio.Table) else nescio.Table(rows)
        self.params, self.layout = self.table.params, self.table.layout
        self.sent = []
        self._servers = [nescio.Server(self.table, party=party, threads=1) for party in (0, 1)]
        self._client = nescio.Client(self.params, self.table.tops)

    def lookup(self, places, *, layout=None):
        self._client.check_layout(layout)
        query = self._client.query(places)
        self.sent.append(query.keys)
        answers = (s.answer(k) for s, k in zip(self._servers, query.keys, strict=True))
        return self._client.decode(query, *answers)

    def sizes(self):
        """Returns the sizes of the messages to each server, and forgets them."""
        sizes = [tuple(map(len, keys)) for keys in self.sent]
        self.sent.clear()
        return sizes


def stored(weight):
    """Returns the array of a weight, as servers have it."""
    import torch  # noqa: PLC0415

    if weight.dtype == torch.bfloat16:
        return weight.detach().view(torch.int16).numpy().view("u2")
    return weight.detach().numpy()


def served(folder, **options):
    """Returns lookups of all tables in a folder of servers."""
    paths = sorted((folder / "servers").glob("*.npy"))
    return {path.stem: local(np.load(path), **options) for path in paths}


def local(array, **options):
    return nescio.pir.LocalTable(nescio.Table(array, **options), threads=1)
