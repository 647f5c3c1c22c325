"""Layouts from access logs, and tables from layouts."""

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

from ... import _core
from ..._arrays import IndexArray, as_count
from ...dpf import Generator, Output
from ...errors import ArgumentError
from .._bins import MAX_SLOTS
from .._checksums import Progress
from .._params import MAX_ROWS
from .._rows import RowKind, new_params, servable
from .._table import Table
from ._cut import Cut, bytes_of
from ._exact import MAX_HASHES, MAX_LOOKUPS, bins_for
from ._layout import Layout
from ._log import AccessLog
from ._parts import MAX_TOGETHER, FullPart, HotPart, Together
from ._plan import Planner
from ._positions import DROPPED
from ._table import BatchTable

MIN_COUNT = 5
"""Users, or inferences, that must have a row or a pair before it shapes a layout."""

FAILURE = 2.0**-40
_SEEDS = 100


def make_layout(
    rows: int,
    log: AccessLog,
    *,
    lookups: int | None = None,
    hashes: int | None = None,
    failure: float = FAILURE,
    bins: int | None = None,
    keys: int = 1,
    hot: int = 0,
    hot_bins: int = 1,
    hot_keys: int = 1,
    together: int = 0,
    min_count: int = MIN_COUNT,
) -> Layout:
    """Makes a layout for a table of `rows` rows from the log of past inferences.

    Without `bins` it is for exact mode: an inference of up to `lookups` different rows gets all of
    them, except with the probability `failure`, and no such inference of the log fails. `lookups`
    is by default the most rows that inferences of at least `min_count` users have. There are
    `hashes` copies of all rows (4), in as many bins as that takes. Where `lookups` is no larger
    than `hashes`, one bin and `lookups` keys cost as little, and the layout has these; a warning
    says so. With `bins` and `keys` it is for partial mode: so many bins for each of the `hashes`
    (1), and keys for each.

    The `hot` rows that most inferences have are also in `hot_bins` bins, with `hot_keys` keys each.
    Up to `together` rows arrive with each row: those that most inferences have with it. Only rows
    and pairs that at least `min_count` users have count (inferences, where users are not known):
    everybody can read the layout.

    Raises ArgumentError for sizes that cannot be, an option without an effect, and hot rows or
    neighbors of which the log has none; IndexRangeError for a log of other rows.
    """
    rows = as_count(rows, "rows", 1, MAX_ROWS)
    if not isinstance(log, AccessLog):
        raise ArgumentError(f"log: found {type(log).__name__}, expected an AccessLog")
    log.check(rows)
    min_count = as_count(min_count, "min_count", 1, MAX_ROWS)
    hot = as_count(hot, "hot", 0, rows)
    if bins is None:
        _check_unused("without bins, which make partial mode", 1, keys=keys)
    else:
        _check_unused("with bins, which make partial mode", FAILURE, failure=failure)
        _check_unused("with bins, which make partial mode", None, lookups=lookups)
    if not hot:
        _check_unused("without hot rows", 1, hot_bins=hot_bins, hot_keys=hot_keys)
    near = _together(log, as_count(together, "together", 0, MAX_TOGETHER), min_count)
    own_hot = None
    if hot:
        hot_bins = as_count(hot_bins, "hot_bins", 1, hot)
        hot_keys = as_count(hot_keys, "hot_keys", 1, MAX_SLOTS)
        own_hot = HotPart(_hot_rows(log, hot, min_count, hot_bins), hot_bins, hot_keys)
    with_full = partial(Layout, rows, hot=own_hot, together=near)
    if bins is None:
        if lookups is None:
            lookups = _longest(log, min_count)
        return _exact(with_full, log, rows=rows, lookups=lookups, hashes=hashes, failure=failure)
    return _checked(with_full(FullPart(bins, keys, 1 if hashes is None else hashes)))


def _check_unused(where: str, default: object, **options: object) -> None:
    """Raises ArgumentError for an option that is given where it has no effect."""
    for name, found in options.items():
        if found != default:
            raise ArgumentError(f"{name}: found {found} {where}, expected {default}: no effect")


def _checked(layout: Layout) -> Layout:
    """Returns a layout. Raises ArgumentError if its table has too many rows."""
    if layout.table_rows > MAX_ROWS:
        raise ArgumentError(
            f"rows: found {layout.rows}, in bins {layout.table_rows} with all copies, expected at "
            f"most {MAX_ROWS}: choose fewer hashes, or divide the table"
        )
    return layout


def _longest(log: AccessLog, min_count: int) -> int:
    """Returns the rows of the longest inferences that enough users have."""
    longest = log.common_length(min_count)
    if not longest:
        raise ArgumentError(
            f"lookups: found {log.people} users or inferences in the log, expected at least "
            f"{min_count} (min_count) to choose it: give lookups, or lower min_count"
        )
    return longest


def _exact(
    with_full: Callable[..., Layout],
    log: AccessLog,
    *,
    rows: int,
    lookups: int,
    hashes: int | None,
    failure: float,
) -> Layout:
    """Makes a layout for exact mode; see `make_layout`."""
    lookups = as_count(lookups, "lookups", 1, min(MAX_LOOKUPS, rows))
    hashes = as_count(4 if hashes is None else hashes, "hashes", 1, MAX_HASHES)
    count = 1 if lookups <= hashes else bins_for(lookups, hashes, failure) // hashes
    if lookups <= hashes or count > rows:
        warnings.warn(
            f"found {lookups} lookups in a table of {rows} rows, for {hashes} hashes: whole "
            f"lookups cost as little, so the layout has one bin and {lookups} keys",
            stacklevel=3,
        )
        return _checked(with_full(FullPart(1, lookups), lookups=lookups))
    _checked(with_full(FullPart(count, 1, hashes), lookups=lookups))
    return _with_seed(
        lambda seed: with_full(FullPart(count, 1, hashes, seed), lookups=lookups), log
    )


def _with_seed(make: Callable[[int], Layout], log: AccessLog) -> Layout:
    """Returns a layout in which no inference of a log fails that has at most its `lookups` rows."""
    layout, pool = make(0), _core.ThreadPool()
    fitting = np.flatnonzero(log.lengths <= layout.lookups)
    if not log.lengths[fitting].any():
        return layout
    log = log.select(fitting)
    rows = log.rows.astype(np.uint64)
    for seed in range(_SEEDS):
        layout = make(seed)
        if not (Planner(layout, pool).assign(log.offsets, rows) == DROPPED).any():
            return layout
    raise ArgumentError(
        f"lookups: found inferences of the log that do not fit {layout.describe()}, with any of "
        f"{_SEEDS} seeds; expected a lower failure probability, or more hashes"
    )


def build(
    array: object,
    source: Layout | AccessLog,
    *,
    version: str = "1",
    output: Output = "bit",
    generator: Generator = "chacha20",
    record_rows: int | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> BatchTable:
    """Builds a batch table from rows, (rows, *row_shape), and a layout or an access log.

    A log makes the layout of `make_layout` for exact mode. The other arguments are those of
    `nescio.Table`. In addition to the array, building takes little more memory than the table.
    Raises ArgumentError for a layout of another number of rows, IndexRangeError for a log of other
    rows.
    """
    values = servable(array)
    layout = make_layout(len(values), source) if isinstance(source, AccessLog) else source
    if not isinstance(layout, Layout):
        raise ArgumentError(
            f"found {type(source).__name__}, expected a Layout or an AccessLog: read a file with "
            "Layout.load or AccessLog.load"
        )
    if len(values) != layout.rows:
        raise ArgumentError(
            f"layout: found one of {layout.rows} rows for a table of {len(values)}, expected as "
            "many: make a layout for this table"
        )
    params = new_params(
        RowKind(layout.table_rows, (layout.slot_rows, *values.shape[1:]), values.dtype),
        version=version,
        output=output,
        generator=generator,
        record_rows=record_rows,
        bins=layout.bins,
        layout=layout.to_bytes(),
    )
    parts = Cut(layout).parts(params, bytes_of(values))
    return BatchTable(Table.of_parts(params, parts, layout.to_bytes(), threads, progress))


def _hot_rows(log: AccessLog, hot: int, min_count: int, hot_bins: int) -> IndexArray:
    """Returns the rows that most inferences have, of those that enough users have."""
    common = log.common(min_count)
    if len(common) < hot_bins:
        raise ArgumentError(
            f"hot: found {len(common)} rows that at least {min_count} users have, expected at "
            f"least {hot_bins}, one for each bin; lower min_count, or hot_bins"
        )
    return np.sort(common[:hot]).astype(np.uint64)


def _together(log: AccessLog, count: int, min_count: int) -> Together | None:
    """Returns up to `count` neighbors of each row; None for a count of 0."""
    if not count:
        return None
    pairs = log.pairs(count, min_count)
    if not len(pairs.rows):
        raise ArgumentError(
            f"together: found no two rows that at least {min_count} users have together, expected "
            "some; lower min_count, or leave out together"
        )
    return Together(pairs.rows.astype(np.uint64), pairs.neighbors)
