"""Layouts of all kinds, as the specification and as the package have them."""

import numpy as np
from hypothesis import strategies as st

from nescio.pir.batch import FullPart, HotPart, Layout, Together
from spec import batch as spec


def as_layout(own):
    """Converts a layout of the specification."""
    hot = together = None
    if own.hot:
        hot = HotPart(np.array(own.hot_rows, np.uint64), own.hot.bins, own.hot.keys)
    if own.together:
        lines = [near + [-1] * (own.together - len(near)) for near in own.neighbors.values()]
        together = Together(np.array(list(own.neighbors), np.uint64), np.array(lines))
    full = FullPart(own.full.bins, own.full.keys, own.hashes, own.seed)
    return Layout(own.rows, full, hot, together, own.lookups)


@st.composite
def layouts(draw, max_rows=60):
    """Small layouts of the specification, with all combinations of parts."""
    rows = draw(st.integers(1, max_rows))
    row = st.integers(0, rows - 1)
    hashes = draw(st.integers(1, 4))
    full = spec.Part(draw(st.integers(1, min(rows, 9))), draw(st.integers(1, 3)))
    made = spec.Layout(rows, full, hashes, draw(st.integers(0, 2**32 - 1)))
    if draw(st.booleans()):
        made.hot_rows = sorted(draw(st.sets(row, min_size=1)))
        bins = draw(st.integers(1, min(len(made.hot_rows), 5)))
        made.hot = spec.Part(bins, draw(st.integers(1, 2)))
    if rows > 1 and draw(st.booleans()):
        made.together = draw(st.integers(1, 3))
        for owner in draw(st.sets(row, min_size=1)):
            others = row.filter(lambda other, owner=owner: other != owner)
            near = draw(st.sets(others, min_size=1, max_size=made.together))
            made.neighbors[owner] = sorted(near)
    if hashes > 1 or full.bins == 1:
        made.lookups = draw(st.integers(0, full.bins * hashes * full.keys))
    return made
