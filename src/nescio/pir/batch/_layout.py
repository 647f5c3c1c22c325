"""The layout of a batch table: which rows are in which bins, and the keys of every lookup."""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from ..._arrays import as_count, check_file
from ...errors import ArgumentError, FileError, MalformedMessageError
from .._bins import Bins, bin_problems
from .._params import MAX_LAYOUT_BYTES, MAX_ROWS
from . import _layout_file as file
from ._exact import MAX_HASHES, failure_probability
from ._parts import FullPart, HotPart, Together, part_problems

_MAX_LOOKUPS = 512
"""Rows of an inference for which the probability of failure is computed: 0.1 s for that many."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The layout of a batch table: a small public file that servers and clients share.

    `rows` is the number of rows of the table. The `full` part has all of them; the `hot` part has
    the popular ones again. With a row arrive those that are `together` with it. `lookups` of 0 is
    *partial mode*: rows that do not fit the keys are dropped. Otherwise it is *exact mode*: a
    lookup of up to `lookups` different rows gets all of them, except with a small probability,
    which the number of bins decides (see `make_layout`).

    A layout is made from an access log, and tells everybody which rows are popular and which occur
    together. Layouts are equal if their bytes are. Raises ArgumentError for parts that cannot be.
    """

    rows: int
    full: FullPart
    hot: HotPart | None = None
    together: Together | None = None
    lookups: int = 0

    def __post_init__(self) -> None:
        as_count(self.rows, "layout: rows", 1, MAX_ROWS)
        if self.hot is not None:
            object.__setattr__(self, "hot", self.hot.checked(self.rows))
        if self.together is not None:
            object.__setattr__(self, "together", self.together.checked(self.rows))
        for problem in self._problems():
            raise ArgumentError(f"layout: {problem}")

    def _problems(self) -> Iterator[str]:
        """Yields the problems. A check may rely on earlier ones: only the first problem counts."""
        yield from part_problems(self.full, self.rows, "full")
        if self.hot is not None:
            yield from part_problems(self.hot, len(self.hot.rows), "hot")
        yield from bin_problems(self.bins, self.table_rows)
        slots = self.full.slots
        if type(self.lookups) is not int or not 0 <= self.lookups <= slots:
            yield f"found {self.lookups} lookups, expected 0 to the {slots} keys of the full part"
        if self.lookups and self.full.hashes == 1 < self.full.bins:
            yield (
                f"found one hash of {self.full.bins} bins in exact mode, expected several hashes, "
                "or one bin"
            )

    @property
    def kind(self) -> Literal["batch"]:
        """The kind of the layout."""
        return "batch"

    @property
    def mode(self) -> Literal["exact", "partial"]:
        """Tells if `lookups` rows always fit."""
        return "exact" if self.lookups else "partial"

    @cached_property
    def bins(self) -> tuple[Bins, ...]:
        """The bins of the table: those of the hot part, then those of the full part."""
        hot = () if self.hot is None else (self.hot.group(),)
        return (*hot, self.full.group(self.rows))

    @property
    def slots(self) -> int:
        """The keys that every lookup sends to a server, without those that check the rows."""
        return sum(group.slots for group in self.bins)

    @property
    def table_rows(self) -> int:
        """The rows of the table in bins: those of all parts, and empty places."""
        return sum(group.total_rows for group in self.bins)

    @property
    def slot_rows(self) -> int:
        """The rows that arrive in a slot: one, and its neighbors."""
        return 1 if self.together is None else 1 + self.together.count

    @property
    def client_bytes(self) -> int:
        """The bytes of the layout, which a client keeps."""
        return len(self.to_bytes())

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the bytes, in hexadecimal: `params.layout` of a table that has it."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def __eq__(self, other: object) -> bool:
        """Compares the bytes."""
        return isinstance(other, Layout) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.digest)

    def describe(self) -> str:
        """Describes the layout in one line.

        In exact mode for up to 512 rows, it has an upper bound of the probability that an inference
        of so many rows does not get all of them.
        """
        bins, rows = _count(self.full.bins, "bin"), _count(self.bins[-1].rows, "row")
        full = f"{bins} of {rows}{_keys(self.full.keys)}"
        parts = [full if self.full.hashes == 1 else f"{self.full.hashes} hashes of {full}"]
        if self.hot is not None:
            hot, bins = _count(len(self.hot.rows), "hot row"), _count(self.hot.bins, "bin")
            parts.insert(0, f"{hot} in {bins}{_keys(self.hot.keys)}")
        if self.together is not None:
            near = _count(self.together.count, "neighbor")
            parts.append(f"up to {near} of {_count(len(self.together.rows), 'row')}")
        size = f"layout of {self.client_bytes} bytes"
        return f"{_count(self.rows, 'row')}, {self._mode}: {', '.join(parts)} ({size})"

    @cached_property
    def _mode(self) -> str:
        """The mode in words, with the probability that a row is dropped where it is known."""
        if not self.lookups:
            return "partial mode"
        words, full = f"exact mode for {_count(self.lookups, 'row')}", self.full
        if self.lookups > _MAX_LOOKUPS or not 1 < full.hashes <= MAX_HASHES:
            return words
        bins = full.hashes * full.bins
        failure = failure_probability(self.lookups, bins, full.hashes, keys=full.keys)
        bits = int(-math.log2(failure)) if failure else 0
        return f"{words} (fewer than one in 2^{bits} fail)" if bits else words

    @cached_property
    def _bytes(self) -> bytes:
        fields = file.Fields(self.rows, self.full, self.hot, self.together, self.lookups)
        return file.encode(fields)

    def to_bytes(self) -> bytes:
        """Encodes canonical JSON: equal layouts have equal bytes, on every machine.

        Raises ArgumentError for more than 64 MiB.
        """
        return self._bytes

    @classmethod
    def from_bytes(cls, data: object) -> "Layout":
        """Parses the bytes of `to_bytes`. Raises MalformedMessageError for any others."""
        fields = file.decode(data)
        try:
            layout = cls(*fields)
        except ArgumentError as error:
            raise MalformedMessageError(str(error)) from error
        if layout.to_bytes() != bytes(data):  # type: ignore[call-overload]
            raise MalformedMessageError(
                "a layout: found JSON that is not canonical, expected the bytes of Layout.to_bytes"
            )
        return layout

    def save(self, path: str | Path) -> None:
        """Writes the layout to a file. Raises FileError if that fails."""
        try:
            Path(path).write_bytes(self.to_bytes())
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error.strerror}") from error

    @classmethod
    def load(cls, path: str | Path) -> "Layout":
        """Reads a file that `save` wrote. Raises FileError if it is not a layout."""
        check_file(Path(path), "a layout file")
        try:
            with Path(path).open("rb") as layout:
                return cls.from_bytes(layout.read(MAX_LAYOUT_BYTES + 1))
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror}") from error
        except MalformedMessageError as error:
            raise FileError(
                f"{path} is not a layout ({error}); write one with Layout.save or nescio tune"
            ) from error


def _keys(count: int) -> str:
    return "" if count == 1 else f" with {count} keys each"


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"
