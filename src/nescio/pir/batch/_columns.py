"""Columns of a log, one element per access, and the sets of inferences that are made of them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..._arrays import Array, as_array, shown
from ...errors import ArgumentError, IndexRangeError
from .._params import MAX_ROWS

__all__ = [
    "Bools",
    "Columns",
    "Floats",
    "Integers",
    "Sets",
    "as_codes",
    "as_rows",
    "as_sets",
    "as_times",
    "check_rows",
    "check_times",
    "codes_of",
    "distinct",
    "grouped",
    "joined",
    "seconds",
]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Columns(NamedTuple):
    """A log with one element per access; `inferences` and `users` number theirs from 0."""

    inferences: Integers
    rows: Integers
    users: Integers | None
    times: Floats | None
    place: Callable[[int], str]
    """Names the place of an access in its source, such as a line of a file."""


class Sets(NamedTuple):
    """A log in which inference i has `rows[offsets[i] : offsets[i + 1]]`, each row once."""

    offsets: Integers
    rows: Integers
    users: Integers | None
    times: Floats | None


def grouped(columns: Columns, limit: int | None) -> Sets:
    """Collects the accesses of each inference, in their order, without repetitions.

    The time of an inference is that of its earliest access. Raises IndexRangeError for a row of
    `limit` or more, ArgumentError for a time that is not a number and an inference of two users.
    """
    check_rows(columns.rows, limit or MAX_ROWS, columns.place)
    check_times(columns.times, columns.place)
    order = np.argsort(columns.inferences, kind="stable")
    lengths = np.bincount(columns.inferences)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    first = order[offsets[:-1]]
    users = times = None
    if columns.users is not None:
        users = columns.users[first]
        _check_one_user(columns.users != users[columns.inferences], columns.place)
    if columns.times is not None:
        times = np.minimum.reduceat(columns.times[order], offsets[:-1])
    return Sets(*distinct(offsets, columns.rows[order]), users, times)


def distinct(offsets: Integers, rows: Integers) -> tuple[Integers, Integers]:
    """Removes repetitions of a row within a set; keeps the first occurrence and the order."""
    count = len(offsets) - 1
    owners = np.repeat(np.arange(count), np.diff(offsets))
    limit = int(rows.max(initial=0)) + 1
    if count * limit >= 1 << 63:
        names, rows_ = np.unique(rows, return_inverse=True)
        limit = len(names)
    else:
        rows_ = rows
    _, first = np.unique(owners * limit + rows_, return_index=True)
    if len(first) == len(rows):
        return offsets, rows
    first.sort()
    lengths = np.bincount(owners[first], minlength=count)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), rows[first]


def codes_of(values: Iterable[object], known: dict[Any, int]) -> list[int]:
    """Numbers values by their first occurrence; `known` has the numbers so far, and grows."""
    return [known.setdefault(value, len(known)) for value in values]


def check_rows(rows: Integers, limit: int, place: Callable[[int], str]) -> None:
    """Raises IndexRangeError, with its place, for a row that a table of `limit` rows lacks."""
    wrong = np.flatnonzero((rows < 0) | (rows >= limit))
    if len(wrong):
        found = int(rows[wrong[0]])
        raise IndexRangeError(
            f"{place(int(wrong[0]))}: found row {found}, expected 0 to {limit - 1}"
        )


def check_times(times: Array | None, place: Callable[[int], str]) -> None:
    """Raises ArgumentError, with its place, for a time that is not a finite number."""
    if times is None:
        return
    wrong = np.flatnonzero(~np.isfinite(times))
    if len(wrong):
        found = shown(float(times[wrong[0]]))
        raise ArgumentError(
            f"{place(int(wrong[0]))}: found the time {found}, expected a finite number"
        )


def _check_one_user(wrong: Bools, place: Callable[[int], str]) -> None:
    if wrong.any():
        raise ArgumentError(
            f"{place(int(np.argmax(wrong)))}: found another user than in the same inference "
            "before, expected one user per inference"
        )


# ---- Arguments -----------------------------------------------------------------------------------


def as_sets(sets: object) -> list[Array]:
    """Converts the rows of each inference to arrays of integers."""
    if hasattr(sets, "__dlpack__") or isinstance(sets, np.ndarray):
        array = as_array(sets, "sets")
        if array.ndim != 2 and array.dtype != object:
            raise ArgumentError(
                f"sets: found an array of {array.ndim} dimensions, expected (inferences, rows); "
                "AccessLog.from_numpy takes columns"
            )
        sets = list(array)
    if not isinstance(sets, Sequence) or isinstance(sets, str | bytes):
        raise ArgumentError(
            f"sets: found {shown(sets)}, expected a sequence with the rows of each inference"
        )
    return [_as_set(rows, number) for number, rows in enumerate(sets)]


def _as_set(rows: object, number: int) -> Array:
    where = f"inference {number}"
    if isinstance(rows, set | frozenset | dict):
        rows = list(rows)
    array = as_array(rows, where)
    if array.ndim != 1:
        raise ArgumentError(f"{where}: found {shown(rows)}, expected its rows")
    return as_rows(array, lambda _: where)


def as_rows(array: Array, place: Callable[[int], str]) -> Integers:
    """Converts an array to rows. Raises ArgumentError, with its place, for a non-integer."""
    if not len(array):
        return np.zeros(0, np.int64)
    if array.dtype.kind in "iu" and (array.dtype != np.uint64 or array.max() < 1 << 63):
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "f":
        i = int(np.argmax(array != np.floor(array)))
        raise ArgumentError(f"{place(i)}: found row {array[i]}, expected an integer")
    for i, value in enumerate(array.tolist()):
        if not isinstance(value, int) or isinstance(value, bool) or not -1 << 63 <= value < 1 << 63:
            raise ArgumentError(f"{place(i)}: found row {shown(value)}, expected an integer")
    return array.astype(np.int64)


def joined(sets: list[Array]) -> tuple[Integers, Integers]:
    lengths = np.fromiter(map(len, sets), np.int64, len(sets))
    rows = np.concatenate([np.zeros(0, np.int64), *sets])
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), rows


def as_codes(values: object, count: int, what: str) -> Integers:
    """Numbers names from 0, by their first occurrence."""
    array = _column(values, count, what)
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ArgumentError(f"{what}: found nan at {int(np.argmax(np.isnan(array)))}")
    try:
        return np.array(codes_of(array.tolist(), {}), np.int64)
    except TypeError as error:
        raise ArgumentError(f"{what}: expected names or numbers: {error}") from error


def as_times(values: object, count: int) -> Floats:
    """Converts times to seconds or to the caller's own unit."""
    array = _column(values, count, "times")
    if array.dtype.kind == "M":
        array = seconds(array)
    if array.dtype.kind not in "iuf":
        raise ArgumentError(f"times: found {array.dtype}, expected numbers or dates (datetime64)")
    times = array.astype(np.float64)
    check_times(times, "times, number {}".format)
    return times


def _column(values: object, count: int, what: str) -> Array:
    array = as_array(values, what)
    if array.shape != (count,):
        raise ArgumentError(f"{what}: found shape {array.shape}, expected ({count},)")
    return array


def seconds(dates: Array) -> Floats:
    """Converts datetime64 to seconds since 1970; NaT becomes NaN."""
    since = dates.astype("datetime64[us]") - np.datetime64(0, "us")
    return since / np.timedelta64(1, "s")
