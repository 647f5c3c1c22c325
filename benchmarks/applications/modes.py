"""Plain lookups, partial mode and exact mode of one table, each as a server and its queries."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nescio.dpf import Generator
from nescio.pir import Server, Table
from nescio.pir.batch._tune.cost import Cost, Machine, Setup
from nescio.pir.batch._tune.design import Design, exact

from .places import Place
from .published import Size

__all__ = ["Mode", "modes"]

_HASHES = (4, 5)


class Mode(NamedTuple):
    """A way to get the rows of an inference: `plain`, `partial` or `exact`."""

    name: str
    design: Design

    @property
    def keys(self) -> int:
        """The lookups that an inference has on the table of `open`: one where it is in bins."""
        return self.design.keys if self.name == "plain" else 1

    @property
    def retrieved(self) -> float:
        """The share of the rows of an inference that arrive, for rows drawn at random."""
        bins = self.design.bins
        return 1 - (1 - 1 / bins) ** bins if self.name == "partial" else 1.0

    def cost(self, setup: Setup) -> Cost:
        """Computes the bytes of an inference; the time is 0."""
        return Cost.of(self.design, setup, Machine(0, 0, 0, 0))

    def open(self, size: Size, generator: Generator, place: Place) -> Server:
        """Makes a table of random rows in the mode's bins, and a server of it."""
        groups = self.design.groups(size.rows)
        rows = sum(group.total_rows for group in groups)
        values = np.frombuffer(np.random.default_rng().bytes(rows * size.row_bytes), np.uint8)
        bins = None if self.name == "plain" else groups
        shaped = values.reshape(rows, size.row_bytes)
        return place.open(Table(shaped, generator=generator, bins=bins))


def modes(size: Size) -> Iterator[Mode]:
    """Yields whole lookups, as many bins as rows, and exact mode with four and five hashes.

    A few rows are not worth hashes: exact mode has an array's copy for each hash, so as many whole
    lookups cost as much.
    """
    yield Mode("plain", Design(1, size.lookups))
    yield Mode("partial", Design(size.lookups))
    for hashes in _HASHES:
        if size.lookups > hashes:
            yield Mode("exact", exact(size.lookups, hashes))
