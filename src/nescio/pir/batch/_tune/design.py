"""The numbers that shape a layout, and the steps from one to similar ones."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from random import Random
from typing import NamedTuple

import numpy as np

from ..._bins import Bins, bin_problems
from .._exact import bins_for
from .._parts import FullPart, HotPart

__all__ = ["MAX_NEIGHBORS", "Design", "Needs", "first_designs", "similar"]

FAILURE = 2.0**-40
MAX_NEIGHBORS = 5
_EXACT_HASHES = (3, 4, 5)
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)
_COUNTS = (1, 2, 3, 5)  # of rows that arrive with a row
_MAX_SLOTS = 2048
_MAX_EXACT = 512
"""Rows for which exact mode is tried: for more, the number of bins takes seconds to compute."""
_SEED = 18


@dataclass(frozen=True, order=True)
class Design:
    """The numbers of a layout; the log chooses the rows. They are those of `make_layout`.

    Each of `hashes` hashes has `bins` bins with `keys` keys each. The `hot` most popular rows are
    also in `hot_bins` bins with `hot_keys` keys each. Up to `together` rows arrive with each row.
    Exact mode is for `lookups` rows; partial mode has 0.
    """

    bins: int
    keys: int = 1
    hashes: int = 1
    hot: int = 0
    hot_bins: int = 0
    hot_keys: int = 0
    together: int = 0
    lookups: int = 0

    @property
    def kind(self) -> str:
        """The most that the design uses: plain, bins, hot, choices, together or exact."""
        uses = {
            "exact": self.lookups,
            "together": self.together,
            "choices": self.hashes > 1,
            "hot": self.hot,
            "bins": self.bins > 1,
        }
        return next((name for name, used in uses.items() if used), "plain")

    def groups(self, rows: int) -> tuple[Bins, ...]:
        """Returns the groups of bins of a table of so many rows."""
        full = FullPart(self.bins, self.keys, self.hashes).group(rows)
        if not self.hot:
            return (full,)
        return HotPart(np.zeros(self.hot, np.uint64), self.hot_bins, self.hot_keys).group(), full

    def fits(self, rows: int) -> bool:
        """Tests if a table of so many rows can have the design."""
        if self.bins > rows or self.hot_bins > self.hot:
            return False
        groups = self.groups(rows)
        total = sum(group.total_rows for group in groups)
        return sum(group.slots for group in groups) <= _MAX_SLOTS and not any(
            bin_problems(groups, total)
        )

    def describe(self) -> str:
        """Describes the design in a few words."""
        full = f"{self.bins} bins" if self.bins > 1 else "whole table"
        full = full if self.hashes == 1 else f"{self.hashes} hashes, {self.bins} bins each"
        parts = [full + _keys(self.keys)]
        if self.hot:
            parts.insert(0, f"{self.hot} hot rows in {self.hot_bins} bins{_keys(self.hot_keys)}")
        if self.together:
            parts.append(f"{self.together} together")
        if self.lookups:
            parts.insert(0, f"exact for {self.lookups} rows")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, int]:
        """Converts to JSON types."""
        return asdict(self)


def _keys(count: int) -> str:
    return f" x {count} keys" if count > 1 else ""


class Needs(NamedTuple):
    """The facts of a log that bound useful designs.

    `lengths` are rows of an inference: typical, large and largest ones. `common` counts the rows
    that may be hot, and `pairs` tells if any may arrive together.
    """

    rows: int
    lengths: tuple[int, ...]
    common: int
    pairs: bool


def first_designs(needs: Needs) -> list[Design]:
    """Lists designs of all kinds, in turns, to begin a search with."""
    random = Random(_SEED)  # noqa: S311 - no secrets
    kinds = [list(kind(needs)) for kind in (_plain, _bins, _exact, _hot, _choices, _together)]
    for own in kinds:
        random.shuffle(own)
    found: list[Design] = []
    while any(kinds):
        found += [own.pop() for own in kinds if own]
    return list(dict.fromkeys(design for design in found if design.fits(needs.rows)))


def _plain(needs: Needs) -> Iterator[Design]:
    for keys in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256):
        if keys < needs.lengths[-1]:
            yield Design(1, keys)
    yield Design(1, needs.lengths[-1])


def _bins(needs: Needs) -> Iterator[Design]:
    for bins, keys in product((2, 4, 8, 16, 32, 64, 128, 256, 512), (1, 2, 3)):
        if keys * bins <= 8 * max(8, needs.lengths[-1]):
            yield Design(bins, keys)


def _hot(needs: Needs) -> Iterator[Design]:
    full = ((1, 1), (4, 1), (16, 1), (64, 1))
    for share, bins, keys, own in product(_SHARES, (4, 16, 64), (1, 2), full):
        yield with_hot(needs, Design(*own), share, bins, keys)


def _choices(needs: Needs) -> Iterator[Design]:
    for bins, keys, hashes in product((4, 8, 16, 32, 64, 128), (1, 2), (2, 3)):
        if keys * bins * hashes <= 4 * max(8, needs.lengths[-1]):
            yield Design(bins, keys, hashes)
    for share, bins in product((0.05, 0.2), (8, 16, 32)):
        yield with_hot(needs, Design(8, 1, 2), share, bins, 1)


def _together(needs: Needs) -> Iterator[Design]:
    if not needs.pairs:
        return
    for count, bins, keys in product((1, 3), (8, 32, 128), (1, 2)):
        yield Design(bins, keys, together=count)
    for count, share, bins in product((1, 3), (0.05, 0.2), (8, 32)):
        yield replace(with_hot(needs, Design(8), share, bins, 1), together=count)


def _exact(needs: Needs) -> Iterator[Design]:
    for lookups, hashes in product(sorted(set(needs.lengths)), _EXACT_HASHES):
        if lookups <= _MAX_EXACT:
            yield exact(lookups, hashes)


def exact(lookups: int, hashes: int) -> Design:
    """Returns the design of exact mode for so many rows; whole lookups where they are as good."""
    if lookups <= hashes:
        return Design(1, lookups)
    return Design(bins_for(lookups, hashes, FAILURE) // hashes, 1, hashes, lookups=lookups)


def with_hot(needs: Needs, design: Design, share: float, bins: int, keys: int) -> Design:
    """Returns a design with a share of the rows as hot ones, as far as they are common."""
    hot = min(round(share * needs.rows), needs.common)
    if not hot:
        return design
    return replace(design, hot=hot, hot_bins=min(bins, hot), hot_keys=keys)


def similar(design: Design, needs: Needs) -> list[Design]:
    """Lists the designs that differ in one number, by one step."""
    found = list(_similar_exact(design) if design.lookups else _similar_partial(design, needs))
    return [one for one in dict.fromkeys(found) if one != design and one.fits(needs.rows)]


def _similar_exact(design: Design) -> Iterator[Design]:
    step = max(1, design.lookups // 8)
    for lookups in (design.lookups - step, design.lookups + step):
        if design.hashes < lookups <= _MAX_EXACT:
            yield exact(lookups, design.hashes)
    for hashes in _EXACT_HASHES:
        if design.lookups > hashes:
            yield exact(design.lookups, hashes)


def _similar_partial(design: Design, needs: Needs) -> Iterator[Design]:
    for bins in _stepped(design.bins):
        yield replace(design, bins=bins)
    for keys in (max(1, design.keys - 1), design.keys + 1):
        yield replace(design, keys=keys)
    for hashes in (max(1, design.hashes - 1), design.hashes + 1):
        bins = max(1, round(design.bins * design.hashes / hashes))
        yield replace(design, bins=bins, hashes=hashes)
    if needs.pairs:
        at = (0, *_COUNTS).index(design.together)
        for count in (0, *_COUNTS)[max(0, at - 1) : at + 2]:
            yield replace(design, together=count)
    yield from _similar_hot(design, needs)


def _similar_hot(design: Design, needs: Needs) -> Iterator[Design]:
    if not design.hot:
        for share in _SHARES[1::2]:
            yield with_hot(needs, design, share, max(1, design.bins // 2), 1)
        return
    yield replace(design, hot=0, hot_bins=0, hot_keys=0)
    for factor in (0.5, 0.75, 1.5, 2):
        hot = max(design.hot_bins, min(round(factor * design.hot), needs.common))
        yield replace(design, hot=hot)
    for bins in _stepped(design.hot_bins):
        yield replace(design, hot_bins=bins)
    for keys in (max(1, design.hot_keys - 1), design.hot_keys + 1):
        yield replace(design, hot_keys=keys)


def _stepped(count: int) -> tuple[int, ...]:
    """Returns numbers of bins next to one: three quarters, four thirds, half and twice."""
    return tuple(
        max(1, number)
        for number in (round(count * 0.75), round(count / 0.75), count // 2, 2 * count)
    )
