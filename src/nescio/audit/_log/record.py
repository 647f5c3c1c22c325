"""The log: what a server that sees only sums has on record. Checked before any work starts.

A = P G: row t of `aggregates` (rounds x dimensions) is the sum of the updates of the users who took
part in round t. P is binary, rounds x users; row k of G is the update of user k. `counts[k, i]` is
the number of rounds in `windows[i]` = (start, stop), stop excluded, in which user k took part.

Model: thesis chapter 6, section 6.3 (Lam, Wei, Brooks, Reddi and Mitzenmacher, "Gradient
Disaggregation", ICML 2021).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..._arrays import as_array, as_count, shown
from ...errors import ArgumentError, FileError
from .._arrays import BoolArray, FloatArray, IntArray
from .consistency import check_counts, check_size
from .file import read_log, write_log

__all__ = ["MAX_ROUNDS", "MAX_USERS", "UNKNOWN", "Log"]

UNKNOWN = -1
"""The value of a count that is not on record."""

MAX_ROUNDS = 1 << 14
MAX_USERS = 1 << 14
MAX_DIMENSIONS = 1 << 28
MAX_WINDOWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Log:
    """The record of a training run as the server has it.

    `aggregates`: float32 or float64, (rounds, dimensions). `users`: the number of users. `windows`:
    (start, stop) ranges of rounds; they may overlap and leave gaps. `counts`: int64, (users,
    windows), -1 where unknown, or None. `participants`: int64, (rounds,), the number of users in
    each round, or None. `count_error`: the largest error of a count (0: counts are exact).

    Raises ArgumentError if the record contradicts itself or is too short; the message says what to
    log instead.
    """

    aggregates: FloatArray
    users: int
    windows: tuple[tuple[int, int], ...] = ()
    counts: IntArray | None = None
    participants: IntArray | None = None
    count_error: int = 0

    def __post_init__(self) -> None:
        checked: dict[str, object] = {}
        users = as_count(self.users, "users", 1, MAX_USERS)
        aggregates = _aggregates(self.aggregates)
        rounds = len(aggregates)
        windows = _windows(self.windows, rounds)
        error = as_count(self.count_error, "count_error", 0, rounds)
        counts = None if self.counts is None else _counts(self.counts, users, windows)
        participants = _participants(self.participants, rounds, users)
        checked.update(aggregates=aggregates, users=users, windows=windows, counts=counts)
        checked.update(participants=participants, count_error=error)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        empty, idle = _empty_rounds(aggregates, participants), self.idle
        dimensions = self.dimensions
        if counts is not None:
            check_counts(windows, counts, error, participants, empty)
        check_size(self.rounds, dimensions, users, idle)

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self.aggregates)

    @property
    def dimensions(self) -> int:
        """The length of an update."""
        return int(self.aggregates.shape[1])

    @property
    def empty(self) -> BoolArray:
        """(rounds,): True for rounds without participants, whose sum is zero."""
        return np.array([not row.any() for row in self.aggregates], np.bool_)

    @property
    def idle(self) -> BoolArray:
        """(users,): True for users who never took part: counts of zero cover every round."""
        if self.counts is None or self.count_error:
            return np.zeros(self.users, np.bool_)
        covered = np.zeros((self.rounds, self.users), np.bool_)
        for (start, stop), row in zip(self.windows, self.counts.T, strict=True):
            covered[start:stop] |= row == 0
        covered[self.empty] = True
        return np.asarray(covered.all(axis=0))

    def save(self, path: str | Path) -> None:
        """Writes the log as an .npz file. Raises FileError if it cannot be written."""
        arrays: dict[str, object] = {
            "aggregates": self.aggregates,
            "users": np.int64(self.users),
            "windows": np.array(self.windows, np.int64).reshape(-1, 2),
            "count_error": np.int64(self.count_error),
        }
        if self.counts is not None:
            arrays["counts"] = self.counts
        if self.participants is not None:
            arrays["participants"] = self.participants
        write_log(arrays, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> "Log":
        """Reads a log written by `save`. Raises FileError if the file is not a valid log."""
        arrays = read_log(Path(path))
        try:
            return cls(
                arrays["aggregates"],
                int(arrays["users"]),
                tuple(map(tuple, arrays.get("windows", np.zeros((0, 2), np.int64)).tolist())),
                arrays.get("counts"),
                arrays.get("participants"),
                int(arrays.get("count_error", np.int64(0))),
            )
        except ArgumentError as error:
            raise FileError(f"the log {path} is invalid: {error}") from error


def _aggregates(value: object) -> FloatArray:
    array = as_array(value, "aggregates")
    if array.ndim != 2 or 0 in array.shape:
        raise ArgumentError(f"aggregates: found shape {array.shape}, expected (rounds, dimensions)")
    if array.dtype.kind not in "f" or array.dtype.itemsize not in (4, 8):
        raise ArgumentError(
            f"aggregates: found {array.dtype}, expected float32 or float64; log the sums as they "
            "leave the aggregation, before any rounding to fewer bits"
        )
    if len(array) > MAX_ROUNDS or array.shape[1] > MAX_DIMENSIONS:
        raise ArgumentError(
            f"aggregates: found shape {array.shape}, expected at most {MAX_ROUNDS} rounds of "
            f"{MAX_DIMENSIONS} dimensions; audit some of the rounds or some of the parameters"
        )
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    for row in range(len(array)):
        if not np.isfinite(array[row]).all():
            raise ArgumentError(
                f"aggregates: round {row} has NaN or infinite entries; leave out rounds that "
                "failed, and count windows without them"
            )
    return array


def _windows(value: object, rounds: int) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, Iterable):
        raise ArgumentError(f"windows: found {shown(value)}, expected a list of (start, stop)")
    windows: list[tuple[int, int]] = []
    for item in value:
        pair = tuple(item) if isinstance(item, Iterable) else ()
        if len(pair) != 2 or len(windows) == MAX_WINDOWS:
            raise ArgumentError(
                f"windows: found {shown(item)}, expected at most {MAX_WINDOWS} pairs (start, stop)"
            )
        start = as_count(pair[0], "the start of a window", 0, rounds - 1)
        windows.append((start, as_count(pair[1], "the stop of a window", start + 1, rounds)))
    return tuple(windows)


def _counts(value: object, users: int, windows: tuple[tuple[int, int], ...]) -> IntArray:
    array = _integers(value, "counts", "-1 where they are unknown")
    if array.shape != (users, len(windows)):
        raise ArgumentError(
            f"counts: found shape {array.shape}, expected (users, windows) = "
            f"({users}, {len(windows)})"
        )
    if array.size and array.min() < UNKNOWN:
        raise ArgumentError(f"counts: found {array.min()}, expected -1 (unknown), 0 or more")
    return array


def _participants(value: object, rounds: int, users: int) -> IntArray | None:
    if value is None:
        return None
    array = _integers(value, "participants", "the number of users in each round's sum")
    if array.shape != (rounds,):
        raise ArgumentError(f"participants: found shape {array.shape}, expected ({rounds},)")
    if array.min() < 0 or array.max() > users:
        bad = int(np.argmax((array < 0) | (array > users)))
        raise ArgumentError(
            f"participants: round {bad} has {array[bad]}, expected 0 to {users} (the users)"
        )
    return array


def _integers(value: object, what: str, meaning: str) -> IntArray:
    array = as_array(value, what)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    whole = array.dtype.kind == "f" and bool(np.isfinite(array).all())
    if not whole or (array != np.rint(array)).any() or np.abs(array).max(initial=0) > 1 << 53:
        raise ArgumentError(f"{what}: found {array.dtype}, expected integers ({meaning})")
    return array.astype(np.int64)


def _empty_rounds(aggregates: FloatArray, participants: IntArray | None) -> npt.NDArray[np.bool_]:
    """(rounds,): True where the sum is zero. Rejects rows that cannot be sums of updates."""
    low, high = aggregates.min(axis=1), aggregates.max(axis=1)
    empty = (low == 0) & (high == 0)
    constant = (low == high) & ~empty & (aggregates.shape[1] > 1)
    if constant.any():
        raise ArgumentError(
            f"aggregates: round {int(np.argmax(constant))} has one value in all dimensions, which "
            "is not a sum of updates; log the sums themselves, and leave out rounds that failed"
        )
    if participants is not None and (empty != (participants == 0)).any():
        bad = int(np.argmax(empty != (participants == 0)))
        found = "zero" if empty[bad] else "not zero"
        raise ArgumentError(
            f"round {bad}: its sum is {found} but participants says {participants[bad]}; log both "
            "from the same source, and leave out rounds that failed"
        )
    if empty.all():
        raise ArgumentError("aggregates: every round is zero; log the sums before they are applied")
    return np.asarray(empty)
