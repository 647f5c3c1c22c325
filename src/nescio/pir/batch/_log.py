"""Access logs: the rows that past inferences looked up."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..._arrays import as_array, as_count
from ...errors import ArgumentError
from .._params import MAX_ROWS
from . import _log_files as files
from ._columns import (
    Bools,
    Columns,
    Integers,
    Sets,
    as_codes,
    as_rows,
    as_sets,
    as_times,
    check_rows,
    distinct,
    grouped,
    joined,
)
from ._pairs import Pairs, count_pairs

__all__ = ["AccessLog"]

_MAX_NEIGHBORS = 64
_SEED = 18


class AccessLog:
    """Past inferences: the rows that each of them looked up, and optionally its user and time.

    `sets` has the rows of each inference: sets, lists or arrays of integers, or one integer array
    (inferences, rows). A row that is repeated within an inference counts once. `users` has a name
    or number for each inference and `times` a number or date; only their order counts. Without
    both, a client-side cache cannot be scored.

    `offsets` (n + 1,) and `rows` are int64: inference i has rows[offsets[i] : offsets[i + 1]].
    `users` (n,) numbers the users from 0, `times` (n,) is float64; both may be None.

    Raises ArgumentError for a log without accesses, rows that are not integers, times that are not
    finite, and another number of users or times than inferences; IndexRangeError for rows below 0.
    """

    def __init__(
        self, sets: object, users: object | None = None, times: object | None = None
    ) -> None:
        offsets, rows = joined(as_sets(sets))
        count = len(offsets) - 1
        check_rows(rows, MAX_ROWS, lambda i: _inference(offsets, i))
        seconds = None if times is None else as_times(times, count)
        numbers = None if users is None else as_codes(users, count, "users")
        self._begin(Sets(*distinct(offsets, rows), numbers, seconds))

    @classmethod
    def from_numpy(
        cls,
        inferences: object,
        rows: object,
        users: object | None = None,
        times: object | None = None,
        *,
        limit: int | None = None,
    ) -> "AccessLog":
        """Makes a log from columns of one element per access, in any order.

        `inferences` has a name or number of the inference, `rows` the row. `limit` is the number
        of rows of the table, if known. The time of an inference is that of its earliest access.
        Raises as the class does, IndexRangeError also for a row of `limit` or more, and
        ArgumentError for an inference of two users.
        """
        column = as_array(rows, "rows")
        count = len(column) if column.ndim else 0
        columns = Columns(
            as_codes(inferences, count, "inferences"),
            as_rows(column.reshape(-1), lambda i: f"access {i}"),
            None if users is None else as_codes(users, count, "users"),
            None if times is None else as_times(times, count),
            "access {}".format,
        )
        return cls._grouped(columns, limit)

    @classmethod
    def from_csv(cls, path: str | Path, *, limit: int | None = None) -> "AccessLog":
        """Reads a CSV file, plain or as .csv.gz, with one line per access.

        The first line has the names of the columns, in any order: inference, row, and optionally
        user and time; other columns are ignored. Inferences and users may be any text, times are
        numbers or ISO 8601 dates. `limit` is the number of rows of the table, if known. Raises
        FileError or IndexRangeError, which name the line and the value.
        """
        return cls._grouped(files.read_csv(Path(path)), limit)

    @classmethod
    def from_parquet(cls, path: str | Path, *, limit: int | None = None) -> "AccessLog":
        """Reads a Parquet file with the columns of `from_csv`; times may be timestamps.

        Needs pyarrow: pip install 'nescio[tune]'. Raises as `from_csv` does.
        """
        return cls._grouped(files.read_parquet(Path(path)), limit)

    @classmethod
    def load(cls, path: str | Path, *, limit: int | None = None) -> "AccessLog":
        """Reads a log by the ending of its name: .npz (of `save`), .csv, .csv.gz or .parquet.

        `limit` is the number of rows of the table, if known. Raises FileError or IndexRangeError.
        """
        path = Path(path)
        if path.name.endswith((".csv", ".csv.gz")):
            return cls.from_csv(path, limit=limit)
        if path.suffix == ".parquet":
            return cls.from_parquet(path, limit=limit)
        sets = files.read_npz(path)
        log = cls.__new__(cls)
        log._begin(sets)
        log.check(limit or MAX_ROWS)
        return log

    def save(self, path: str | Path) -> None:
        """Writes the log for `load`, as .npz. Raises FileError if that fails."""
        path = Path(path)
        files.write_npz(path, Sets(self.offsets, self.rows, self.users, self.times))

    @classmethod
    def _grouped(cls, columns: Columns, limit: int | None) -> "AccessLog":
        if not len(columns.rows):
            raise ArgumentError("the log is empty: found no accesses, expected at least one")
        if limit is not None:
            limit = as_count(limit, "limit", 1, MAX_ROWS)
        log = cls.__new__(cls)
        log._begin(grouped(columns, limit))
        return log

    def _begin(self, sets: Sets) -> None:
        if not len(sets.rows):
            raise ArgumentError(
                f"the log is empty: found {len(sets.offsets) - 1} inferences without accesses, "
                "expected at least one access"
            )
        self.offsets, self.rows, self.users, self.times = sets
        for array in (self.offsets, self.rows, self.users, self.times):
            if array is not None:
                array.flags.writeable = False

    def __len__(self) -> int:
        """The number of inferences."""
        return len(self.offsets) - 1

    def __getitem__(self, inference: int) -> Integers:
        """Returns the rows of an inference."""
        number = range(len(self))[inference]  # also for a negative number
        return self.rows[self.offsets[number] : self.offsets[number + 1]]

    def __iter__(self) -> Iterator[Integers]:
        """Yields the rows of each inference."""
        return iter(np.split(self.rows, self.offsets[1:-1]))

    def __repr__(self) -> str:
        """Describes the log in one line."""
        known = "" if self.users is None else f", {self.people} users"
        known += "" if self.times is None else ", times"
        return f"AccessLog({len(self)} inferences, {len(self.rows)} accesses{known})"

    @property
    def lengths(self) -> Integers:
        """The number of rows of each inference, int64 (n,)."""
        return np.diff(self.offsets)

    def common_length(self, min_count: int) -> int:
        """Returns the most rows that inferences of at least `min_count` users have.

        Where users are not known, each inference counts as one. Returns 0 for fewer users.
        """
        min_count = as_count(min_count, "min_count", 1, MAX_ROWS)
        longest = self.lengths
        if self.users is not None:
            longest = np.zeros(int(self.users.max()) + 1, np.int64)
            np.maximum.at(longest, self.users, self.lengths)
        return int(np.sort(longest)[-min_count]) if len(longest) >= min_count else 0

    @property
    def people(self) -> int:
        """The number of users; every inference counts as one where they are not known."""
        return len(self) if self.users is None else len(np.unique(self.users))

    def check(self, rows: int) -> None:
        """Raises IndexRangeError, with its inference, for a row that a table of `rows` lacks."""
        check_rows(self.rows, rows, lambda i: _inference(self.offsets, i))

    def counts(self, rows: int, *, users: bool = False) -> Integers:
        """Counts the inferences with each row of a table, int64 (rows,).

        With `users`, counts the users with each row instead, where the log knows them. Raises
        IndexRangeError for a row that the table lacks.
        """
        self.check(rows)
        if not users or self.users is None:
            return np.bincount(self.rows, minlength=rows)
        _, distinct_rows = distinct(*self._by_user())
        return np.bincount(distinct_rows, minlength=rows)

    def common(self, min_count: int) -> Integers:
        """Returns the rows of at least `min_count` users, those of most inferences first.

        Where users are not known, inferences count instead. Equal numbers go by the row's index.
        """
        rows = self.rows if self.users is None else distinct(*self._by_user())[1]
        names, people = np.unique(rows, return_counts=True)
        _, counts = np.unique(self.rows, return_counts=True)
        enough = people >= min_count
        return names[enough][np.argsort(-counts[enough], kind="stable")]

    def _by_user(self) -> tuple[Integers, Integers]:
        """Returns offsets and rows of sets that join all inferences of a user."""
        assert self.users is not None
        order = np.argsort(self.users, kind="stable")
        joined = self.select(order)
        _, lengths = np.unique(self.users, return_counts=True)
        ends = joined.offsets[np.cumsum(lengths)]
        return np.concatenate([[0], ends]), joined.rows

    def pairs(self, count: int, min_count: int = 1) -> Pairs:
        """Finds up to `count` rows that are looked up together with each row most often.

        Only pairs of at least `min_count` users count, or of as many inferences where users are not
        known. Inferences with more than 256 rows count by a sample of their rows.
        """
        count = as_count(count, "count", 1, _MAX_NEIGHBORS)
        min_count = as_count(min_count, "min_count", 1, MAX_ROWS)
        people = np.arange(len(self)) if self.users is None else self.users
        return count_pairs(self.offsets, self.rows, people, count, min_count)

    def accesses_of(self, inferences: Integers) -> Integers:
        """Returns the places in `rows` of the accesses of some inferences, in the given order."""
        lengths = self.lengths[inferences]
        ends = np.cumsum(lengths)
        return np.arange(lengths.sum()) + np.repeat(
            self.offsets[inferences] - ends + lengths, lengths
        )

    def select(self, inferences: Integers) -> "AccessLog":
        """Returns the log of some inferences, in the given order, int64 (k,).

        Raises ArgumentError if they have no accesses.
        """
        offsets = np.concatenate([[0], np.cumsum(self.lengths[inferences])]).astype(np.int64)
        log = AccessLog.__new__(AccessLog)
        users = None if self.users is None else self.users[inferences]
        times = None if self.times is None else self.times[inferences]
        log._begin(Sets(offsets, self.rows[self.accesses_of(inferences)], users, times))
        return log

    def kept(self, accesses: Bools) -> "AccessLog":
        """Returns the log of some accesses, a boolean for each of `rows`, with all inferences.

        Raises ArgumentError if there are none.
        """
        before = np.concatenate([[0], np.cumsum(accesses)])
        log = AccessLog.__new__(AccessLog)
        sets = Sets(before[self.offsets], self.rows[accesses], self.users, self.times)
        log._begin(sets)
        return log

    def split(self, fraction: float = 0.8) -> tuple["AccessLog", "AccessLog"]:
        """Divides the log into one to make layouts from and one to score them on.

        The first gets about `fraction` of the inferences: the earliest ones where times are known;
        otherwise all those of some users, chosen at random with a fixed seed, where there are
        several; otherwise inferences at random. Raises ArgumentError for fewer than two inferences.
        """
        first, second = self.divided(fraction)
        return self.select(first), self.select(second)

    def divided(self, fraction: float) -> tuple[Integers, Integers]:
        """Returns the inferences of both parts of `split`, ascending."""
        if len(self) < 2:
            raise ArgumentError(
                "the log has one inference, expected at least two: one to make layouts from, and "
                "another to score them on"
            )
        if not 0 < fraction < 1:
            raise ArgumentError(f"fraction: found {fraction}, expected a number between 0 and 1")
        order, ends = self._split_order()
        wanted = round(len(self) * fraction)
        at = ends[np.argmin(np.abs(ends - wanted))]
        return np.sort(order[:at]), np.sort(order[at:])

    def _split_order(self) -> tuple[Integers, Integers]:
        """Returns an order of the inferences, and the numbers of them after which it may be cut."""
        anywhere = np.arange(1, len(self))
        if self.times is not None:
            return np.argsort(self.times, kind="stable"), anywhere
        random = np.random.default_rng(_SEED)
        if self.users is None or self.people == 1:
            return random.permutation(len(self)), anywhere
        _, numbers = np.unique(self.users, return_inverse=True)
        shuffled = random.permutation(self.people)[numbers]
        return np.argsort(shuffled, kind="stable"), np.cumsum(np.bincount(shuffled))[:-1]


def _inference(offsets: Integers, access: int) -> str:
    return f"inference {int(np.searchsorted(offsets, access, side='right')) - 1}"
