"""The vacant rows of a table, as a server tells its operator: the message and its parser."""

import json
from typing import NamedTuple

import numpy as np

from ..._arrays import IndexArray, shown
from ...errors import ArgumentError, MalformedMessageError
from ...pir import Table
from ...pir._params import MAX_ROWS
from ...pir._vacancy import NO_ROWS
from .._client._attempt import ASK_OPERATOR, printable

MAX_COUNT = 1 << 20
"""Maximum rows of one append."""

_RUN_BYTES = 48  # of JSON for each run of rows, at most


class Vacant(NamedTuple):
    """The lowest vacant rows of a table, and those that its last change appended.

    `total` is the number of all vacant rows, `check` a sum over them, which two parties compare.
    """

    rows: IndexArray = NO_ROWS
    appended: IndexArray = NO_ROWS
    total: int = 0
    check: str = ""

    @classmethod
    def parse(cls, url: str, body: bytes) -> "Vacant":
        """Parses the reply of `vacant_message`. Raises MalformedMessageError."""
        try:
            fields = json.loads(body)
            rows, appended = (_from_runs(fields[name]) for name in ("rows", "appended"))
            total, check = fields["total"], fields["check"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            reason = printable(repr(error))
            raise MalformedMessageError(
                f"{url}: found a reply that does not list vacant rows ({reason}), expected their "
                f"JSON; {ASK_OPERATOR}"
            ) from error
        if type(total) is not int or not len(rows) <= total <= MAX_ROWS or type(check) is not str:
            raise MalformedMessageError(
                f"{url}: found {printable(shown(total))} vacant rows, expected a number from "
                f"{len(rows)} to 2^40, and a sum as text; {ASK_OPERATOR}"
            )
        return cls(rows, appended, total, check)


def max_reply_bytes(count: int) -> int:
    """Returns a bound on the length of a reply about `count` rows."""
    return 4096 + 2 * _RUN_BYTES * count


def checked_count(text: str) -> int:
    """Parses the number of rows that a request wants. Raises ArgumentError."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 7 or int(text) > MAX_COUNT:
        raise ArgumentError(f"count: found {shown(text)}, expected a number from 0 to {MAX_COUNT}")
    return int(text)


def vacant_message(table: Table, count: int) -> dict[str, object]:
    """Lists the `count` lowest vacant rows in JSON types, as runs: [first, rows]."""
    rows, info = table.lowest_vacant(count)
    return {
        "total": info.total,
        "check": f"{info.check:016x}",
        "rows": _runs(rows),
        "appended": _runs(info.appended) if len(info.appended) <= count else [],
    }


def _runs(rows: IndexArray) -> list[list[int]]:
    if not len(rows):
        return []
    begins = np.flatnonzero(np.diff(rows, prepend=rows[:1]) != 1)
    begins[:1] = 0
    counts = np.diff(begins, append=len(rows))
    return [list(run) for run in zip(rows[begins].tolist(), counts.tolist(), strict=True)]


def _from_runs(runs: object) -> IndexArray:
    """Lists the rows of runs. Raises ValueError or TypeError."""
    if not isinstance(runs, list) or len(runs) > MAX_COUNT:
        raise TypeError("rows are not a list of runs")
    parts, total = [NO_ROWS], 0
    for first, count in runs:
        if type(first) is not int or type(count) is not int:
            raise TypeError("a run is not two integers")
        total += count
        if not (0 <= first < MAX_ROWS and count >= 1) or total > MAX_COUNT:
            raise ValueError("a run is out of range")
        parts.append(np.arange(first, first + count, dtype=np.uint64))
    return np.concatenate(parts)
